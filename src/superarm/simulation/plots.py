"""Regret curves as figures; only means and bands are computed here."""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import MissingExtra
from superarm.statistics import mean_and_band

if TYPE_CHECKING:
    from superarm.simulation.results import Results

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555", "#f0e442")
STYLES = ("-", "--", "-.", ":")


def new_figure(**size: Any) -> Any:
    """A figure without a window: it works without a screen and leaves the state of pyplot alone."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "lab") from None
    return Figure(layout="constrained", **size)


def line_style(n: int) -> dict[str, Any]:
    """Colour and line style of the n-th policy; lines can be told apart without colour, too."""
    return {"color": COLOURS[n % len(COLOURS)], "linestyle": STYLES[n // len(COLOURS) % len(STYLES)]}


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
        axes.plot(rounds, np.maximum(mean, lowest), label=name, linewidth=linewidth, **style)
        if len(values) > 1:
            low, high = np.maximum(mean - band, lowest), np.maximum(mean + band, lowest)
            axes.fill_between(rounds, low, high, color=style["color"], alpha=0.18, linewidth=0)


def plot_results(results: "Results") -> Any:
    """A figure of mean regret over rounds with 95 % bands of the mean, one line per policy."""
    figure = new_figure(figsize=(7.0, 4.3))
    axes = figure.add_subplot()
    draw_curves(axes, results.rounds, results.regret)
    axes.set_xlabel("round")
    axes.set_ylabel(f"regret ({results.target} target)")
    axes.set_xlim(0, results.rounds[-1])
    lowest = min(float(values.mean(axis=0).min()) for values in results.regret.values())
    if lowest >= 0.0:
        axes.set_ylim(bottom=0.0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def to_png(figure: Any) -> bytes:
    """The figure as PNG, for notebooks."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()
