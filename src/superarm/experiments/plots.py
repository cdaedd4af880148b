"""Tables as figures; nothing is computed here but what a pixel needs."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.experiments.summary import Line, coverage, shares
from superarm.simulation.plots import COLOURS, STYLES, new_figure

if TYPE_CHECKING:
    from superarm.experiments.study import Study

INK = "#39424e"  # text and axes; the report puts its own colour in this one's place
_WIDTH, _HEIGHT = 4.1, 3.0  # of a panel, in inches
_MOST = 70  # points of a line: more cannot be told apart at this size


def panels(n: int, columns: int = 2, height: float = _HEIGHT, legend: int = 0) -> tuple[Any, list[Any]]:
    """A figure with ``n`` panels in rows, and room for ``legend`` lines of a legend below them."""
    across = min(columns, n)
    down = math.ceil(n / across)
    foot = 0.22 * legend + 0.08 if legend else 0.0
    total = height * down + foot
    figure = new_figure(figsize=(_WIDTH * across + (0.6 if across == 1 else 0.0), total))
    figure.set_layout_engine(None)  # fixed margins are as good here, and ten times as fast
    grid = figure.subplots(down, across, squeeze=False)
    left, right = 0.72 / figure.get_figwidth(), 1.0 - 0.2 / figure.get_figwidth()
    figure.subplots_adjust(left, (foot + 0.5) / total, right, 1.0 - 0.32 / total, 0.3, 0.85 / height)
    axes = list(grid.reshape(-1))
    for empty in axes[n:]:
        empty.set_visible(False)
    for one in axes[:n]:
        dress(one)
    return figure, axes[:n]


def dress(axes: Any) -> None:
    """The plain look that all panels share."""
    axes.spines[["top", "right"]].set_visible(False)
    for part in ("left", "bottom"):
        axes.spines[part].set_color(INK)
    axes.tick_params(colors=INK, labelsize=8, which="both")
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.title.set_color(INK)


def look(n: int) -> dict[str, Any]:
    """Colour and stroke of the n-th line: told apart without colour too."""
    return {"color": COLOURS[n % len(COLOURS)], "linestyle": STYLES[n // len(COLOURS) % len(STYLES)]}


def legend(figure: Any, axes: Sequence[Any]) -> None:
    """One legend for all panels, at the foot."""
    entries = {label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels(), strict=True)}
    columns = legend_columns(figure.get_figwidth(), entries)
    kept = figure.legend(
        entries.values(), entries.keys(), loc="lower center", ncol=columns, frameon=False, fontsize=8, columnspacing=1.4
    )
    for text in kept.get_texts():
        text.set_color(INK)


def legend_columns(width: float, labels: Mapping[str, Any] | Sequence[str]) -> int:
    """How many entries stand side by side in ``width`` inches."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(len(labels), int(width / (0.55 + 0.075 * longest))))


def _legend_lines(n: int, labels: Sequence[str], columns: int = 2) -> int:
    across = min(columns, n)
    return math.ceil(len(labels) / legend_columns(_WIDTH * across + (0.6 if across == 1 else 0.0), labels))


def curves(study: "Study", worlds: Sequence[str], keyed: bool = True) -> Any:
    """Mean regret over rounds with 95 % bands of the mean: a panel an instance, a line a policy."""
    names = list(study.policies)
    figure, axes = panels(len(worlds), legend=_legend_lines(len(worlds), names) if keyed else 0)
    for one, world in zip(axes, worlds, strict=True):
        for policy, record in study.of(world).items():
            kept = _thin(len(record.rounds))
            rounds, values = record.rounds[kept], record.regret[:, kept]
            style, mean = look(names.index(policy)), values.mean(axis=0)
            one.plot(rounds, mean, label=policy, linewidth=1.6, **style)
            if len(values) > 1:
                band = 1.96 * values.std(axis=0, ddof=1) / math.sqrt(len(values))
                one.fill_between(rounds, mean - band, mean + band, color=style["color"], alpha=0.16, linewidth=0)
        one.set_xlim(0, study.experiment.horizon)
        one.xaxis.set_major_formatter(lambda x, _: _count(x))
        one.yaxis.set_major_formatter(lambda y, _: _count(y))
        _titles(one, world, "round", "regret")
    if keyed:
        legend(figure, axes)
    return figure


def sweeps(lines: Sequence[Line], keyed: bool = True) -> Any:
    """Regret along an axis: a panel a group, a line a policy, log-log where all means are positive."""
    groups = list(dict.fromkeys(line.group for line in lines))
    names = list(dict.fromkeys(line.name for line in lines))
    figure, axes = panels(len(groups), legend=_legend_lines(len(groups), names) if keyed else 0)
    for one, group in zip(axes, groups, strict=True):
        mine = [line for line in lines if line.group == group]
        numbers = all(isinstance(x, int | float) for line in mine for x in line.x)
        for line in mine:
            x = line.x if numbers else range(len(line.x))
            mean = [point.value for point in line.points]
            error = [0.0 if math.isnan(point.error) else point.error for point in line.points]
            style = look(names.index(line.name)) | {"marker": "o", "markersize": 3.5, "linewidth": 1.6}
            one.errorbar(x, mean, error, label=line.name, capsize=2.5, **style)
        if numbers and all(point.value > 0.0 for line in mine for point in line.points):
            _log_y(one)
            _log_x(one, sorted({x for line in mine for x in line.x}))
        elif not numbers:
            one.set_xticks(range(len(mine[0].x)), [str(x) for x in mine[0].x])
        _titles(one, group, mine[0].axis, "regret at the horizon")
    if keyed:
        legend(figure, axes)
    return figure


def _log_y(axes: Any) -> None:
    """A log scale with numbers, also where it spans less than a factor of five."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    low, high = axes.dataLim.intervaly
    axes.set_yscale("log")
    if high < 5.0 * low:
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.4g}")
    else:
        axes.yaxis.set_major_formatter(_log_tick)
        axes.yaxis.set_minor_formatter(_log_tick)


def _log_x(axes: Any, values: Sequence[float]) -> None:
    if values[0] <= 0.0:
        return
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)


def pulls(study: "Study", world: str) -> Any:
    """How often each policy plays each arm: a row a policy, the arms in the order of the first policy's liking."""
    names, table = list(study.of(world)), shares(study, world)
    order = np.argsort(-table.mean(axis=0), kind="stable")
    figure, axes = _wide(0.9 + 0.27 * len(names), names)
    _map(figure, axes, table[:, order], "", 0.0, max(1e-12, float(table.max())))
    axes.set_yticks(range(len(names)), names)
    _titles(axes, f"{world}: share of rounds", "arms, most played first", "")
    return figure


def covered(study: "Study", world: str) -> Any:
    """What each item had of the batches over time: a panel a policy; items in the order of their final share."""
    names, maps = list(study.of(world)), coverage(study, world)
    order = np.argsort(-maps[:, :, -1].mean(axis=0), kind="stable")
    looks = next(iter(study.of(world).values())).looks
    across = min(4, len(names))
    down = math.ceil(len(names) / across)
    height = 0.6 + 1.7 * down
    figure = new_figure(figsize=(2 * _WIDTH, height))
    figure.set_layout_engine(None)
    grid = list(figure.subplots(down, across, squeeze=False, sharey=True).reshape(-1))
    figure.subplots_adjust(0.07, 0.5 / height, 0.9, 1.0 - 0.3 / height, 0.08, 0.35)
    top = max(1e-12, float(maps.max()))
    for one in grid[len(names) :]:
        one.set_visible(False)
    for n, (one, name) in enumerate(zip(grid, names, strict=False)):
        dress(one)
        image = one.imshow(maps[n][order], aspect="auto", cmap="viridis", vmin=0.0, vmax=top, interpolation="nearest")
        one.grid(visible=False)
        ticks = [0, len(looks) // 2, len(looks) - 1]
        one.set_xticks(ticks, [_count(int(looks[tick])) for tick in ticks])
        lowest = n + across >= len(names)
        one.tick_params(labelbottom=lowest)
        _titles(one, name, "round" if lowest else "", "item" if n % across == 0 else "")
    _scale(
        figure.colorbar(image, cax=figure.add_axes((0.915, 0.5 / height, 0.012, 1.0 - 0.8 / height))), "share of weight"
    )
    return figure


def limits(study: "Study", world: str, found: Mapping[str, Any]) -> Any:
    """Regret and its bounds, both axes logarithmic."""
    names = list(study.policies)
    labels = [*study.of(world), *found]
    figure, (axes,) = panels(1, columns=1, height=3.6, legend=_legend_lines(1, labels, 1))
    rounds = next(iter(study.of(world).values())).rounds
    for policy, record in study.of(world).items():
        mean = record.regret.mean(axis=0)
        axes.plot(rounds, np.where(mean > 0.0, mean, np.nan), label=policy, linewidth=1.6, **look(names.index(policy)))
    for n, (words, values) in enumerate(found.items()):
        style = ("-", "--", "-.", ":", (0, (1, 3)), (0, (6, 2, 1, 2)))[n % 6]
        axes.plot(
            rounds, np.where(values > 0.0, values, np.nan), label=words, color=INK, linewidth=1.0, linestyle=style
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    _titles(axes, world, "round", "regret")
    legend(figure, [axes])
    return figure


def paces(study: "Study") -> Any:
    """Microseconds a round: a point an instance, a row a policy."""
    names = list(study.policies)
    figure, axes = _wide(0.8 + 0.26 * len(names), names)
    rows = study.finals
    for row in rows:
        n = names.index(row["policy"])
        axes.plot(row["us_per_round"], n, "o", color=look(n)["color"], markersize=5, alpha=0.75)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    paced = [row["us_per_round"] for row in rows]
    axes.set_xlim(0.7 * min(paced), 1.4 * max(paced))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_log_tick)
    axes.xaxis.set_minor_formatter(_log_tick)
    _titles(axes, "", "µs a round (processor time)", "")
    return figure


def _wide(height: float, names: Sequence[str]) -> tuple[Any, Any]:
    """A figure as wide as the page with one panel, and room for names at its left."""
    figure = new_figure(figsize=(2 * _WIDTH, height))
    figure.set_layout_engine(None)
    axes = figure.add_subplot()
    left = min(0.4, (0.35 + 0.075 * max(map(len, names))) / (2 * _WIDTH))
    figure.subplots_adjust(left, 0.5 / height, 0.97, 1.0 - 0.3 / height)
    dress(axes)
    return figure, axes


def _map(figure: Any, axes: Any, table: Any, words: str, low: float, high: float) -> None:
    image = axes.imshow(table, aspect="auto", cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
    axes.grid(visible=False)
    _scale(figure.colorbar(image, ax=axes, fraction=0.03, pad=0.01), words)


def _scale(bar: Any, words: str) -> None:
    bar.set_label(words, color=INK, fontsize=8)
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)


def _titles(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=9.5, color=INK)
    axes.set_xlabel(x, fontsize=8.5, color=INK)
    axes.set_ylabel(y, fontsize=8.5, color=INK)


def _count(n: float) -> str:
    """A number as a tick has it."""
    size = abs(n)
    return f"{n / 1e6:g}M" if size >= 1_000_000 else f"{n / 1e3:.3g}k" if size >= 1_000 else f"{n:g}"


def _log_tick(y: float, _: int) -> str:
    """Ticks of a log scale at 1, 2 and 5 times powers of ten; between them there is no room for numbers."""
    lead = y / 10.0 ** math.floor(math.log10(y) + 1e-9) if y > 0.0 else 0.0
    return _count(y) if any(abs(lead - mark) < 1e-6 for mark in (1.0, 2.0, 5.0)) else ""


def _thin(n: int) -> Any:
    return np.unique(np.linspace(0, n - 1, min(n, _MOST)).astype(int))
