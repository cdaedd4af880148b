"""Results as a figure; nothing is computed here but means and bands."""

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.errors import MissingExtra

if TYPE_CHECKING:
    from superarm.simulation.results import Results

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555", "#f0e442")
STYLES = ("-", "--", "-.", ":")


def new_figure(**size: Any) -> Any:
    """A figure that no window owns, so that it works without a screen and leaves pyplot's state alone."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "lab") from None
    return Figure(layout="constrained", **size)


def curves(results: "Results") -> Any:
    """Mean regret over rounds with 95 % bands of the mean, a line a policy, least regret last in the legend."""
    figure = new_figure(figsize=(7.0, 4.3))
    axes = figure.add_subplot()
    draw_curves(axes, results)
    return figure


def draw_curves(axes: Any, results: "Results") -> None:
    """Draw :func:`curves` into the given axes."""
    for n, (name, values) in enumerate(results.regret.items()):
        colour, style = COLOURS[n % len(COLOURS)], STYLES[n // len(COLOURS) % len(STYLES)]
        mean = values.mean(axis=0)
        axes.plot(results.rounds, mean, style, color=colour, label=name, linewidth=1.8)
        if len(values) > 1:
            band = 1.96 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
            axes.fill_between(results.rounds, mean - band, mean + band, color=colour, alpha=0.18, linewidth=0)
    axes.set_xlabel("round")
    axes.set_ylabel(f"regret ({results.target} target)")
    axes.set_xlim(0, results.rounds[-1])
    lowest = min(float(values.mean(axis=0).min()) for values in results.regret.values())
    if lowest >= 0.0:
        axes.set_ylim(bottom=0.0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def png(figure: Any) -> bytes:
    """The figure as PNG, for notebooks."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()
