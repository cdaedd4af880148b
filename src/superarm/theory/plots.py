"""The figure of regret and its bounds; only what drawing needs is computed here."""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.simulation.plots import draw_curves, line_style, new_figure

if TYPE_CHECKING:
    from superarm.theory.report import ComparedBounds

SMALLEST_DRAWN = 1e-9
"""Regret below it is drawn at it, since a log axis has no 0."""


def plot_bounds(compared: "ComparedBounds") -> Any:
    """Regret with 95 % bands, lower bounds dashed, upper bounds dotted, on log axes; every line labelled at its end."""
    figure = new_figure(figsize=(10.0, 6.0))
    axes = figure.add_subplot()
    draw_curves(axes, compared.rounds, compared.regret, linewidth=2.2, lowest=SMALLEST_DRAWN)
    means = {name: float(values[:, -1].mean()) for name, values in compared.regret.items()}
    ends = [(mean, name, line_style(n)["color"]) for n, (name, mean) in enumerate(means.items())]
    for style, colour, family in (("--", "#00695c", compared.lower), (":", "#8e0000", compared.upper)):
        for name, values in family.items():
            shown = values > 0.0  # a rate times log T is 0 at T = 1
            axes.plot(compared.rounds[shown], values[shown], style, color=colour, linewidth=1.5)
            ends.append((values[-1], name, colour))
    axes.plot(compared.rounds, compared.trivial, "-", color="#bbbbbb", linewidth=1.2)
    ends.append((compared.trivial[-1], "trivial: largest gap × T", "#888888"))
    axes.set_xscale("log")
    axes.set_yscale("log")
    largest = max(float(end) for end, _, _ in ends if np.isfinite(end))
    axes.set_ylim(max(1e-2, min(means.values()) / 1e3), 3.0 * largest)
    axes.set_xlim(min(2, compared.rounds[-1] / 2), compared.rounds[-1])
    _label_ends(axes, ends)
    axes.set_xlabel("round")
    axes.set_ylabel("regret (approximation target)")
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _label_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Write names at the right ends of the lines, moved apart where they would overlap, each with a line to its end."""
    low, high = np.log(axes.get_ylim())
    apart = (high - low) / 24.0
    at = -np.inf
    for value, name, colour in sorted(end for end in ends if np.isfinite(end[0]) and end[0] > 0.0):
        at = max(np.log(value), at + apart, low)
        axes.annotate(
            name, (1.0, value), (1.05, (at - low) / (high - low)), xycoords=("axes fraction", "data"),
            textcoords="axes fraction", color=colour, fontsize=8.5, va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 1.0, "shrinkB": 0.0},
        )  # fmt: skip
