"""The figures of the theory of [MerlisMannor2019]_; nothing is computed here but means and bands."""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.simulation.plots import COLOURS, new_figure

if TYPE_CHECKING:
    from superarm.theory.headline import Curve, Slope
    from superarm.theory.report import Lines

MARKS = ("o", "s", "^", "D")


def batch_sizes(curves: "list[Curve]") -> Any:
    """Regret, and regret over gap, against K: a column a world, fitted slopes in the legends, guides 0 and 1."""
    worlds = list(dict.fromkeys(c.world for c in curves))
    figure = new_figure(figsize=(11.0, 8.2))
    panels = figure.subplots(2, len(worlds), sharex=True, sharey="row", squeeze=False)
    for column, world in enumerate(worlds):
        shown = _longest([c for c in curves if c.world == world])
        for n, c in enumerate(shown):
            _line(panels[0, column], c, n, c.regret, c.slope)
            _line(panels[1, column], c, n, c.regret / c.gap, c.slope_plays)
        steep = max(shown, key=lambda c: c.slope.value)
        _guides(panels[0, column], steep.k, steep.regret[:, 0].mean())
        _guides(panels[1, column], steep.k, (steep.regret / steep.gap)[:, 0].mean())
        panels[0, column].set_title(f"{world} arms")
        panels[1, column].set_xlabel("batch size K")
    for axes in panels[:, 0]:  # scales and limits are shared along a row
        _finish(axes, curves[0].k)
    for axes in panels[:, 1:].flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.5)
        _legend(axes)
    panels[0, 0].set_ylabel("regret")
    panels[1, 0].set_ylabel("regret / gap  (suboptimal batches played)")
    return figure


def _longest(curves: "list[Curve]") -> "list[Curve]":
    best: dict[str, Curve] = {}
    for c in curves:
        if c.policy not in best or c.horizon > best[c.policy].horizon:
            best[c.policy] = c
    return list(best.values())


def _line(axes: Any, curve: "Curve", n: int, values: Floats, slope: "Slope") -> None:
    colour = COLOURS[n % len(COLOURS)]
    mean = values.mean(axis=0)
    exponent = int(np.log10(curve.horizon))
    when = f"$T=10^{exponent}$" if curve.horizon == 10**exponent else f"T={curve.horizon:,}"
    axes.plot(
        curve.k, mean, MARKS[n % len(MARKS)], color=colour, markersize=6, label=f"{curve.policy}, {when}: {slope}"
    )
    if len(values) > 1:
        reach = values.std(axis=0, ddof=1)
        axes.errorbar(curve.k, mean, reach, fmt="none", ecolor=colour, capsize=3, linewidth=1)
    centre = np.exp(np.log(curve.k).mean())
    axes.plot(curve.k, np.exp(np.log(mean).mean()) * (curve.k / centre) ** slope.value, color=colour, linewidth=1.4)


def _guides(axes: Any, k: Ints, start: float) -> None:
    """Dotted lines of slope 0 and 1, to compare with."""
    for power in (0, 1):
        guide = start * (k / k[0]) ** power
        axes.plot(k, guide, ":", color="#888888", linewidth=1.2, zorder=0)
        axes.text(k[-1] * 1.06, guide[-1], f"slope {power}", color="#666666", fontsize=8, va="center")


def _finish(axes: Any, k: Ints) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(k, [str(size) for size in k])
    axes.set_xlim(k[0] / 1.25, k[-1] * 1.6)
    low, high = axes.get_ylim()
    axes.set_ylim(low / 12.0, high)  # room for the legend
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    _legend(axes)


def _legend(axes: Any) -> None:
    axes.legend(frameon=False, fontsize=8, title="slope [95 % interval]", title_fontsize=8, loc="lower left")


def bounds(lines: "Lines") -> Any:
    """Regret with 95 % bands, lower bounds dashed, upper bounds dotted, on log axes; every line labelled at its end."""
    figure = new_figure(figsize=(10.0, 6.0))
    axes = figure.add_subplot()
    ends = []
    for n, (name, values) in enumerate(lines.regret.items()):
        mean = np.maximum(values.mean(axis=0), 1e-9)
        colour = COLOURS[n % len(COLOURS)]
        axes.plot(lines.rounds, mean, color=colour, linewidth=2.2)
        if len(values) > 1:
            band = 1.96 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
            axes.fill_between(lines.rounds, np.maximum(mean - band, 1e-9), mean + band, color=colour, alpha=0.2)
        ends.append((mean[-1], name, colour))
    for style, colour, family in (("--", "#00695c", lines.lower), (":", "#8e0000", lines.upper)):
        for name, values in family.items():
            shown = values > 0.0  # a rate times log T is 0 at T = 1
            axes.plot(lines.rounds[shown], values[shown], style, color=colour, linewidth=1.5)
            ends.append((values[-1], name, colour))
    axes.plot(lines.rounds, lines.trivial, "-", color="#bbbbbb", linewidth=1.2)
    ends.append((lines.trivial[-1], "trivial: largest gap × T", "#888888"))
    axes.set_xscale("log")
    axes.set_yscale("log")
    smallest = min(float(values.mean(axis=0)[-1]) for values in lines.regret.values())
    axes.set_ylim(max(1e-2, smallest / 1e3), 3.0 * max(float(end) for end, _, _ in ends if np.isfinite(end)))
    axes.set_xlim(min(2, lines.rounds[-1] / 2), lines.rounds[-1])
    _label(axes, ends)
    axes.set_xlabel("round")
    axes.set_ylabel("regret")
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _label(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Names at the right ends of the lines, moved apart where they would overlap."""
    low, high = np.log(axes.get_ylim())
    apart = (high - low) / 24.0
    at = -np.inf
    for value, name, colour in sorted(end for end in ends if np.isfinite(end[0]) and end[0] > 0.0):
        at = max(np.log(value), at + apart, low)
        axes.annotate(
            name, (1.0, np.log(value)), (1.03, (at - low) / (high - low)), xycoords=("axes fraction", "data"),
            textcoords="axes fraction", color=colour, fontsize=8.5, va="center",
        )  # fmt: skip
