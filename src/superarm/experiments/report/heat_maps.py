"""Heat maps: how often each arm is played, and the value of each item over time."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import Ints
from superarm.experiments.analysis.summary import item_coverage, pull_shares
from superarm.experiments.report.axes import INK, PANEL_WIDTH, format_tick, set_titles, style_axes, wide_panel
from superarm.simulation.plots import new_figure

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study


def plot_pulls(study: "Study", instance: str) -> Any:
    """How often each policy plays each arm: one row per policy; arms in the order of their mean share of rounds."""
    from matplotlib.colors import PowerNorm

    names, table = list(study.records_for(instance)), pull_shares(study, instance)
    order = np.argsort(-table.mean(axis=0), kind="stable")
    figure, axes = wide_panel(0.9 + 0.27 * len(names), names)
    top = max(1e-12, float(table.max()))
    # With 130 arms nearly all shares are small: by their square root they can be told apart.
    scale = PowerNorm(0.5, 0.0, top)
    image = axes.imshow(table[:, order], aspect="auto", cmap="viridis", norm=scale, interpolation="nearest")
    axes.grid(visible=False)
    _style_colour_bar(figure.colorbar(image, ax=axes, fraction=0.03, pad=0.01), "")
    axes.set_yticks(range(len(names)), names)
    set_titles(axes, f"{instance}: share of rounds (colours by its square root)", "arms, most played first", "")
    return figure


def plot_coverage(study: "Study", instance: str) -> Any:
    """The value of each item over time: one panel per policy; items in the order of their final share."""
    names, maps = list(study.records_for(instance)), item_coverage(study, instance)
    order = np.argsort(-maps[:, :, -1].mean(axis=0), kind="stable")
    rounds = next(iter(study.records_for(instance).values())).batch_rounds
    across = min(4, len(names))
    down = math.ceil(len(names) / across)
    height = 0.6 + 1.7 * down
    figure = new_figure(figsize=(2 * PANEL_WIDTH, height))
    figure.set_layout_engine(None)
    grid = list(figure.subplots(down, across, squeeze=False, sharey=True).reshape(-1))
    figure.subplots_adjust(0.07, 0.5 / height, 0.9, 1.0 - 0.3 / height, 0.08, 0.35)
    top = max(1e-12, float(maps.max()))
    for axes in grid[len(names) :]:
        axes.set_visible(False)
    for n, (axes, name) in enumerate(zip(grid, names, strict=False)):
        image = _draw_map(axes, maps[n][order], rounds, top)
        lowest = n + across >= len(names)
        axes.tick_params(labelbottom=lowest)
        set_titles(axes, name, "round" if lowest else "", "item" if n % across == 0 else "")
    scale = figure.add_axes((0.915, 0.5 / height, 0.012, 1.0 - 0.8 / height))
    _style_colour_bar(figure.colorbar(image, cax=scale), "share of weight")
    return figure


def _draw_map(axes: Any, table: Any, rounds: Ints, top: float) -> Any:
    """One heat map of items over rounds; returns the image that a colour bar needs."""
    style_axes(axes)
    image = axes.imshow(table, aspect="auto", cmap="viridis", vmin=0.0, vmax=top, interpolation="nearest")
    axes.grid(visible=False)
    axes.set_yticks(sorted({0, len(table) // 2, len(table) - 1}))
    ticks = [0, len(rounds) // 2, len(rounds) - 1]
    axes.set_xticks(ticks, [format_tick(int(rounds[tick])) for tick in ticks])
    return image


def _style_colour_bar(bar: Any, label: str) -> None:
    bar.set_label(label, color=INK, fontsize=8)
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)
