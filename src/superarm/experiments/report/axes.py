"""Panels, axes, ticks and legends: the appearance that all figures of a report share."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from superarm.simulation.plots import new_figure

INK = "#39424e"
"""The colour of text and axes; the report replaces it by the colour of the page."""
PANEL_WIDTH = 4.1
"""In inches."""
PANEL_HEIGHT = 3.0
"""In inches."""


def new_panels(n: int, columns: int = 2, height: float = PANEL_HEIGHT, legend_rows: int = 0) -> tuple[Any, list[Any]]:
    """A figure with ``n`` panels in rows, and room for ``legend_rows`` rows of a legend below them."""
    across = min(columns, n)
    down = math.ceil(n / across)
    foot = 0.22 * legend_rows + 0.08 if legend_rows else 0.0
    total = height * down + foot
    figure = new_figure(figsize=(_figure_width(across), total))
    figure.set_layout_engine(None)  # fixed margins look the same here, and take a tenth of the time
    grid = figure.subplots(down, across, squeeze=False)
    left, right = 0.72 / figure.get_figwidth(), 1.0 - 0.2 / figure.get_figwidth()
    figure.subplots_adjust(left, (foot + 0.5) / total, right, 1.0 - 0.32 / total, 0.3, 0.85 / height)
    panels = list(grid.reshape(-1))
    for empty in panels[n:]:
        empty.set_visible(False)
    for axes in panels[:n]:
        style_axes(axes)
    return figure, panels[:n]


def wide_panel(height: float, names: Sequence[str]) -> tuple[Any, Any]:
    """A figure with one panel, as wide as the page, and its axes; the left margin has space for ``names``."""
    figure = new_figure(figsize=(2 * PANEL_WIDTH, height))
    figure.set_layout_engine(None)
    axes = figure.add_subplot()
    left = min(0.4, (0.35 + 0.075 * max(map(len, names))) / (2 * PANEL_WIDTH))
    figure.subplots_adjust(left, 0.5 / height, 0.97, 1.0 - 0.3 / height)
    style_axes(axes)
    return figure, axes


def style_axes(axes: Any) -> None:
    """Thin grid, no frame at the top and right, everything in the colour of the text."""
    axes.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(INK)
    axes.tick_params(colors=INK, labelsize=8, which="both")
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.title.set_color(INK)


def set_titles(axes: Any, title: str, x: str, y: str) -> None:
    """The titles of a panel and of its axes."""
    axes.set_title(title, fontsize=9.5, color=INK)
    axes.set_xlabel(x, fontsize=8.5, color=INK)
    axes.set_ylabel(y, fontsize=8.5, color=INK)


def add_legend(figure: Any, panels: Sequence[Any]) -> None:
    """One legend for all panels, at the foot of the figure."""
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    columns = _legend_columns(figure.get_figwidth(), entries)
    legend = figure.legend(
        entries.values(), entries.keys(), loc="lower center", ncol=columns, frameon=False, fontsize=8, columnspacing=1.4
    )
    for text in legend.get_texts():
        text.set_color(INK)


def count_legend_rows(n: int, labels: Sequence[str], columns: int = 2) -> int:
    """How many rows the legend of a figure with ``n`` panels has."""
    return math.ceil(len(labels) / _legend_columns(_figure_width(min(columns, n)), labels))


def _figure_width(across: int) -> float:
    return PANEL_WIDTH * across + (0.6 if across == 1 else 0.0)


def _legend_columns(width: float, labels: Mapping[str, Any] | Sequence[str]) -> int:
    """How many entries fit side by side into ``width`` inches."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(len(labels), int(width / (0.55 + 0.075 * longest))))


def format_tick(n: float) -> str:
    """A number as the label of a tick.

    >>> format_tick(20_000), format_tick(1_500_000)
    ('20k', '1.5M')
    """
    size = abs(n)
    return f"{n / 1e6:g}M" if size >= 1_000_000 else f"{n / 1e3:.3g}k" if size >= 1_000 else f"{n:g}"


def format_log_tick(y: float, _: int) -> str:
    """The label of a tick on a log scale: only 1, 2 and 5 times powers of ten are labelled, for lack of room."""
    lead = y / 10.0 ** math.floor(math.log10(y) + 1e-9) if y > 0.0 else 0.0
    return format_tick(y) if any(abs(lead - digit) < 1e-6 for digit in (1.0, 2.0, 5.0)) else ""


def set_log_y(axes: Any) -> None:
    """A log scale with labelled ticks, even where it spans less than a factor of five."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    low, high = axes.dataLim.intervaly
    axes.set_yscale("log")
    if high < 5.0 * low:
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.4g}")
    else:
        axes.yaxis.set_major_formatter(format_log_tick)
        axes.yaxis.set_minor_formatter(format_log_tick)


def set_log_x(axes: Any, values: Sequence[float]) -> None:
    """A log scale with one tick per value, if all are positive; ``values`` increase."""
    if values[0] <= 0.0:
        return
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)
