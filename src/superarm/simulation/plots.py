"""Regret curves as figures; only means and bands are computed here."""

import contextlib
import functools
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument, MissingExtra
from superarm.core.statistics import mean_and_band

if TYPE_CHECKING:
    from superarm.simulation.results import Results

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555", "#882255")
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (6.0, 2.0),
    (1.5, 1.5),
    (6.0, 2.0, 1.5, 2.0),
    (2.5, 4.0),
    (3.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    (11.0, 4.0),
    (9.0, 2.0, 2.0, 2.0, 2.0, 2.0),
)
"""Lengths of dashes and gaps, in line widths; the first line is solid. One per colour, so that lines differ in grey."""


MARKERS = "osv^Dx+*<>"
"""Markers of bounds, which differ from one another in dashes, too."""


class Look(TypedDict, total=False):
    """How a figure of regret looks.

    Parameters
    ----------
    width, height
        In inches; 7 by default, and 0.62 of the width. A column of a paper is often 3.3 wide.
    font_size
        In points, for all text.
    policies
        Which policies to draw, in which order; all by default.
    log
        Which axes are logarithmic: ``""``, ``"x"``, ``"y"`` or ``"xy"``.
    quantiles
        The bands: between these two quantiles of the replications, such as ``(0.1, 0.9)``, with their median as the
        line. By default the mean with its 95 % interval.
    styles
        What matplotlib's ``plot`` is to do otherwise, by policy: ``{"CUCB": {"color": "black", "linestyle": ":"}}``.
    """

    width: float
    height: float
    font_size: float
    policies: Sequence[str]
    log: str
    quantiles: tuple[float, float]
    styles: Mapping[str, Mapping[str, Any]]


def new_figure(**size: Any) -> Any:
    """A figure without a window: it works without a screen, and notebooks show it without any setting."""
    return _figure_class()(layout="constrained", **size)


@functools.cache
def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "lab") from None

    class ShownFigure(Figure):
        """A figure that notebooks show by themselves, without pyplot."""

        def _repr_png_(self) -> bytes:
            return to_png(self)

    return ShownFigure


def line_style(n: int) -> dict[str, Any]:
    """Colour and line style of the n-th policy: 64 pairs, of which eight in a row share neither."""
    turns = n // len(COLOURS)
    dashes = DASHES[(n + turns) % len(DASHES)]
    return {"color": COLOURS[n % len(COLOURS)], "linestyle": (0, dashes) if dashes else "-"}


def draw_curves(
    axes: Any,
    rounds: Ints,
    regret: Mapping[str, Floats],
    styles: Mapping[str, dict[str, Any]] | None = None,
    linewidth: float = 1.8,
    lowest: float = -np.inf,
) -> None:
    """Draw mean regret over rounds with 95 % bands of the mean, one line per policy.

    Parameters
    ----------
    axes
        The matplotlib axes to draw into.
    rounds, regret
        The recorded rounds (n,), and the regret of each policy, (replications, n).
    styles
        Colour and line style by policy; by default those of :func:`line_style` in the order of ``regret``.
    linewidth
        The width of the lines.
    lowest
        Values below it are drawn at it: for log axes, which have no room for 0.
    """
    for n, (name, values) in enumerate(regret.items()):
        style = line_style(n) if styles is None else styles[name]
        mean, band = mean_and_band(values)
        (line,) = axes.plot(rounds, np.maximum(mean, lowest), label=name, **({"linewidth": linewidth} | dict(style)))
        if len(values) > 1:
            low, high = np.maximum(mean - band, lowest), np.maximum(mean + band, lowest)
            axes.fill_between(rounds, low, high, color=line.get_color(), alpha=0.18, linewidth=0)


def plot_results(results: "Results", ax: Any, look: Look) -> Any:
    """A figure of regret over rounds, one line per policy; or ``ax``'s figure, if matplotlib axes are given."""
    names, styles = _check_look(results, look)
    with _font(look.get("font_size")):
        width = look.get("width", 7.0)
        figure = new_figure(figsize=(width, look.get("height", 0.62 * width))) if ax is None else ax.figure
        axes = figure.add_subplot() if ax is None else ax
        lowest = _smallest_positive(results, names) if "y" in look.get("log", "") else -np.inf
        for name in names:
            draw_line(axes, results.rounds, name, results.regret[name], styles[name], look.get("quantiles"), lowest)
        _style_axes(axes, results, names, look.get("log", ""))
        axes.legend(frameon=False, handlelength=3.6)
    return figure


def _check_look(results: "Results", look: Look) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """The names of the policies to draw, and the style of each; refuses what cannot be drawn."""
    for key in look:
        if key not in Look.__annotations__:
            raise InvalidArgument(key, "unknown", f"give one of {', '.join(Look.__annotations__)}", "plot")
    if look.get("log", "") not in ("", "x", "y", "xy"):
        raise InvalidArgument("log", f"{look['log']!r}", "give 'x', 'y' or 'xy'", "plot")
    low, high = look.get("quantiles", (0.0, 1.0))
    if not 0.0 <= low < high <= 1.0:
        raise InvalidArgument("quantiles", f"{(low, high)}", "give two increasing numbers in [0, 1]", "plot")
    names = list(look.get("policies", results.regret))
    for name in (*names, *look.get("styles", {})):
        if name not in results.regret:
            raise InvalidArgument(
                "policies", f"there is no {name!r}", f"give some of {', '.join(results.regret)}", "plot"
            )
    own = look.get("styles", {})
    order = list(results.regret)
    return names, {name: line_style(order.index(name)) | dict(own.get(name, {})) for name in names}


def _font(size: float | None) -> Any:
    if size is None:
        return contextlib.nullcontext()
    import matplotlib

    return matplotlib.rc_context({"font.size": size, "legend.fontsize": size, "axes.labelsize": size})


def _smallest_positive(results: "Results", names: Sequence[str]) -> float:
    """The smallest positive mean: where lines of a log axis end that go down to 0."""
    means = np.concatenate([results.regret[name].mean(axis=0) for name in names])
    positive = means[means > 0.0]
    return float(positive.min()) if positive.size else 1.0


def draw_line(
    axes: Any,
    rounds: Ints,
    name: str,
    values: Floats,
    style: Mapping[str, Any],
    quantiles: tuple[float, float] | None,
    lowest: float,
) -> None:
    """Draw the regret of one policy, (replications, n): the mean with its 95 % band, or the median with quantiles."""
    if quantiles is None:
        draw_curves(axes, rounds, {name: values}, {name: {"linewidth": 1.8} | dict(style)}, lowest=lowest)
        return
    low, middle, high = np.quantile(values, [quantiles[0], 0.5, quantiles[1]], axis=0)
    (line,) = axes.plot(rounds, np.maximum(middle, lowest), label=name, **({"linewidth": 1.8} | dict(style)))
    low, high = np.maximum(low, lowest), np.maximum(high, lowest)
    axes.fill_between(rounds, low, high, color=line.get_color(), alpha=0.18, linewidth=0)


def _style_axes(axes: Any, results: "Results", names: Sequence[str], log: str) -> None:
    axes.set_xlabel("round")
    axes.set_ylabel(f"regret ({results.target} target)")
    axes.set_xscale("log" if "x" in log else "linear")
    axes.set_yscale("log" if "y" in log else "linear")
    axes.set_xlim(int(results.rounds[0]) if "x" in log else 0, results.rounds[-1])
    lowest = min(float(results.regret[name].mean(axis=0).min()) for name in names)
    if lowest >= 0.0 and "y" not in log:
        axes.set_ylim(bottom=0.0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def to_png(figure: Any) -> bytes:
    """The figure as PNG, for notebooks."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()
