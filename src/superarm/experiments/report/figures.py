"""Figures of a report: regret over rounds, along sweeps and beside its bounds; pulls, coverage and run time.

All share their panels, axes and legends. Figures are written as files for papers, and as SVG elements that use the
colours of the page.
"""

import base64
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import Ints
from superarm.core.errors import InvalidArgument
from superarm.experiments.analysis.summary import SweepLine, item_coverage, pull_shares
from superarm.experiments.report.tables import in_print
from superarm.simulation.plots import COLOURS, MARKERS, draw_curves, line_style, new_figure
from superarm.simulation.results import performance_profile

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study
    from superarm.theory import Bound


INK = "#39424e"
"""The colour of text and axes; the report replaces it by the colour of the page."""
PANEL_WIDTH = 4.1
"""In inches."""
PANEL_HEIGHT = 3.0
"""In inches."""


WIDTHS = {"column": 3.3, "page": 6.9}
"""The widths of a column and of a page of most journals, in inches."""


def new_panels(
    n: int, columns: int = 2, height: float = PANEL_HEIGHT, legend_rows: int = 0, width: float | None = None
) -> tuple[Any, list[Any]]:
    """A figure with ``n`` panels in rows, and room for ``legend_rows`` rows of a legend below them."""
    across = min(columns, n)
    down = math.ceil(n / across)
    foot = 0.22 * legend_rows + 0.08 if legend_rows else 0.0
    total = height * down + foot
    figure = new_figure(figsize=(width or _figure_width(across), total))
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
    width = figure.get_figwidth()
    look = {"ncol": _legend_columns(width, entries), "fontsize": _legend_size(width), "columnspacing": 1.4}
    legend = figure.legend(entries.values(), entries.keys(), loc="lower center", frameon=False, **look)
    for text in legend.get_texts():
        text.set_color(INK)


def count_legend_rows(n: int, labels: Sequence[str], columns: int = 2, width: float | None = None) -> int:
    """How many rows the legend of a figure with ``n`` panels has."""
    return math.ceil(len(labels) / _legend_columns(width or _figure_width(min(columns, n)), labels))


def _figure_width(across: int) -> float:
    return PANEL_WIDTH * across + (0.6 if across == 1 else 0.0)


def _legend_size(width: float) -> float:
    """The size of the font of a legend: smaller in a column of a paper, where names need few rows."""
    return 8.0 if width > WIDTHS["column"] else 7.0


def _legend_columns(width: float, labels: Mapping[str, Any] | Sequence[str]) -> int:
    """How many entries fit side by side into ``width`` inches."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(len(labels), int(width / ((0.5 + 0.068 * longest) * _legend_size(width) / 8))))


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


MAX_POINTS = 70
"""The points of a line; more cannot be told apart at the size of a panel."""


def plot_curves(
    study: "Study", instances: Sequence[str], legend: bool = True, log: bool = False, width: str | float | None = None
) -> Any:
    """Mean regret over rounds with 95 % bands of the mean: one panel per instance, one line per policy.

    With ``log`` both axes are logarithmic. ``width`` is that of a printed figure: ``column``, ``page`` or inches.
    """
    names, n = list(study.policies), len(instances)
    inches = _check_width(width)
    columns = 2 if inches is None else max(1, min(3, round(inches / 2.3), n))
    height = PANEL_HEIGHT if inches is None else max(1.6, 0.72 * inches / columns)
    styles = {name: line_style(place) for place, name in enumerate(names)}
    rows = count_legend_rows(n, names, columns, inches) if legend else 0
    figure, panels = new_panels(n, columns, height, rows, inches)
    for place, (axes, instance) in enumerate(zip(panels, instances, strict=True)):
        for policy, record in study.records_for(instance).items():
            kept = _thin_out(len(record.rounds))
            lowest = _smallest_mean(record.regret) if log else -np.inf
            draw_curves(axes, record.rounds[kept], {policy: record.regret[:, kept]}, styles, 1.6, lowest)
            mark_policy([axes.lines[-1], *axes.collections[-1:]], names.index(policy))
        axes.set_xlim(1 if log else 0, study.experiment.horizon)
        if log:
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: format_tick(x))
        axes.yaxis.set_major_formatter(format_log_tick if log else lambda y, _: format_tick(y))
        y = _regret_label(study.target(instance)) if inches is None or n == 1 else "regret"  # grids have no room
        lowest_row, first = place + columns >= n, place % columns == 0
        title = instance if inches is None else in_print(instance)
        set_titles(axes, title, "round" if lowest_row or legend is False else "", y if first else "")
    if legend:
        add_legend(figure, panels)
    return figure


def _check_width(width: str | float | None) -> float | None:
    if width is None or (isinstance(width, int | float) and width > 0.0):
        return width
    if width not in WIDTHS:
        raise InvalidArgument("width", f"{width!r}", f"give {', '.join(WIDTHS)} or a number of inches", "plot")
    return WIDTHS[str(width)]


def plot_profile(study: "Study", instances: Sequence[str], width: str | float | None = None) -> Any:
    """Performance profiles over the instances of ``instances``: the share on which regret is within a factor of the
    least one; of a family every instance counts, of another instance every replication."""
    values = {
        policy: np.concatenate([study.final_regret(label, policy) for label in instances]) for policy in study.policies
    }
    at, shares = performance_profile(values)
    inches = _check_width(width)
    figure, (axes,) = new_panels(1, 1, PANEL_HEIGHT, count_legend_rows(1, list(values), 1, inches), inches)
    for n, (policy, share) in enumerate(shares.items()):
        axes.step(at, share, where="post", label=policy, linewidth=1.6, **line_style(n))
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.02)
    axes.xaxis.set_major_formatter(format_log_tick)
    axes.xaxis.set_minor_formatter(format_log_tick)
    set_titles(axes, "", "regret ÷ least regret", "share of instances")
    add_legend(figure, [axes])
    return figure


def plot_sweeps(lines: Sequence[SweepLine], legend: bool = True) -> Any:
    """Regret along an axis: one panel per group, one line per policy, log-log where all means are positive."""
    groups = list(dict.fromkeys(line.group for line in lines))
    names = list(dict.fromkeys(line.name for line in lines))
    figure, panels = new_panels(len(groups), legend_rows=count_legend_rows(len(groups), names) if legend else 0)
    for axes, group in zip(panels, groups, strict=True):
        _draw_sweeps(axes, [line for line in lines if line.group == group], names)
        kinds = dict.fromkeys(kind for line in lines if line.group == group for kind in line.targets)
        set_titles(axes, group, lines[0].axis, _regret_label(" or ".join(kinds)))
    if legend:
        add_legend(figure, panels)
    return figure


def _draw_sweeps(axes: Any, lines: Sequence[SweepLine], names: Sequence[str]) -> None:
    numbers = all(isinstance(x, int | float) for line in lines for x in line.x)
    for line in lines:
        x = line.x if numbers else range(len(line.x))
        mean = [point.value for point in line.points]
        error = [0.0 if math.isnan(point.error) else point.error for point in line.points]
        style = line_style(names.index(line.name)) | {"marker": "o", "markersize": 3.5, "linewidth": 1.6}
        drawn = axes.errorbar(x, mean, error, label=line.name, capsize=2.5, **style)
        mark_policy(drawn.get_children(), names.index(line.name))
    if numbers and all(point.value > 0.0 for line in lines for point in line.points):
        set_log_y(axes)
        set_log_x(axes, sorted({x for line in lines for x in line.x}))
    elif not numbers:
        axes.set_xticks(range(len(lines[0].x)), [str(x) for x in lines[0].x])


def mark_vacuous(label: str, bound: "Bound") -> str:
    """The label of a bound; it says if the bound says nothing at the last round."""
    return f"{label} (vacuous)" if bool(np.atleast_1d(bound.vacuous)[-1]) else label


def plot_bounds(study: "Study", instance: str, bounds: Mapping[str, "Bound"]) -> Any:
    """Mean regret and its bounds, with logarithmic axes; bounds that say nothing here are pale."""
    names = list(study.policies)
    records = study.records_for(instance)
    labels = {mark_vacuous(label, bound): bound for label, bound in bounds.items()}
    figure, (axes,) = new_panels(1, columns=1, height=3.6, legend_rows=count_legend_rows(1, [*records, *labels], 1))
    rounds = next(iter(records.values())).rounds
    for policy, record in records.items():
        axes.plot(rounds, _positive(record.regret.mean(axis=0)), label=policy, linewidth=1.6, **_style(names, policy))
    for n, (label, bound) in enumerate(labels.items()):
        style = {"linestyle": line_style(n)["linestyle"], "marker": MARKERS[n % len(MARKERS)]}
        style |= {"markevery": (5 + 3 * n % 11, 17), "markersize": 3.0, "alpha": 0.45 if "(vacuous)" in label else 1.0}
        axes.plot(rounds, _positive(bound.value), label=label, color=INK, linewidth=1.0, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    set_titles(axes, instance, "round", _regret_label(study.target(instance)))
    add_legend(figure, [axes])
    return figure


def plot_run_times(study: "Study") -> Any:
    """Microseconds per round: one point per instance, one row per policy."""
    names = list(study.policies)
    figure, axes = wide_panel(0.8 + 0.26 * len(names), names)
    rows = study.final_regrets
    for row in rows:
        n = names.index(row["policy"])
        axes.plot(row["us_per_round"], n, "o", color=line_style(n)["color"], markersize=5, alpha=0.75)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    times = [row["us_per_round"] for row in rows]
    axes.set_xlim(0.7 * min(times), 1.4 * max(times))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(format_log_tick)
    axes.xaxis.set_minor_formatter(format_log_tick)
    set_titles(axes, "", "µs per round (processor time)", "")
    return figure


def _regret_label(kind: str) -> str:
    """The label of an axis of regret, which names the target."""
    return f"regret ({kind} target)"


def _style(names: Sequence[str], policy: str) -> dict[str, Any]:
    return line_style(names.index(policy))


def mark_policy(artists: Sequence[Any], n: int) -> None:
    """Mark what was drawn for the n-th policy, so that the report can hide it."""
    for artist in artists:
        artist.set_gid(f"policy-{n}")


def _smallest_mean(regret: Any) -> float:
    """The smallest positive mean over replications: where a line of a log axis ends that goes down to 0."""
    means = regret.mean(axis=0)
    return float(means[means > 0.0].min()) if (means > 0.0).any() else 1.0


def _positive(values: Any) -> Any:
    """The values with NaN in place of those that a log axis cannot show."""
    return np.where(values > 0.0, values, np.nan)


def _thin_out(n: int) -> Any:
    """At most ``MAX_POINTS`` evenly spaced positions out of ``n``."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_POINTS)).astype(int))


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


FORMATS = ("svg", "png", "pdf")
"""The formats that figures are written in."""
_FONTS = "'DejaVu Sans', Verdana, 'Segoe UI', sans-serif"


def figure_settings(salt: str) -> Any:
    """matplotlib's settings for a figure: text remains text, and equal figures are written as equal bytes."""
    import matplotlib

    return matplotlib.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": salt, "pdf.fonttype": 42, "font.family": "sans-serif"}
    )


def write_figure(figure: Any, directory: Path, name: str) -> list[str]:
    """Write a figure in every format; return the names of the files."""
    directory.mkdir(parents=True, exist_ok=True)
    dates: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    with figure_settings(name):
        for kind in FORMATS:
            figure.savefig(directory / f"{name}.{kind}", dpi=160, metadata=dates[kind])
    return [f"{name}.{kind}" for kind in FORMATS]


def inline_svg(figure: Any, name: str, description: str) -> str:
    """A figure as an SVG element that scales with the page and uses its text colour.

    ``description`` is for readers who cannot see the figure.
    """
    buffer = io.StringIO()
    with figure_settings(name):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    width = float(re.search(r'width="([\d.]+)pt"', text)[1])  # type: ignore[index]
    head = f'<svg class="figure" viewBox="\\1" role="img" aria-label="{_escape(description)}"'
    head += f' style="max-width:{width * 1.6:.0f}px"'
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', f"{head} {names}>", text, count=1)
    for n, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--c{n})")
    text = text.replace(INK, "currentColor").replace("'sans-serif'", _FONTS).replace("sans-serif;", f"{_FONTS};")
    text = re.sub(r' id="(policy-\d+)"', r' class="\1"', text)  # several panels show the same policy
    used = set(re.findall(r"[#]([\w.-]+)", text))  # ids must be unique on a page with many figures
    text = re.sub(r' id="([\w.-]+)"', lambda found: found[0] if found[1] in used else "", text)
    text = re.sub(r"(\d+\.\d{2})\d+(?=[^<>]*>)", r"\1", text)  # of coordinates, not of labels; it halves the size
    return re.sub(r">\s+<", "><", text)


def data_uri(png: bytes) -> str:
    """A PNG as the address of an ``img`` element."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _escape(text: str) -> str:
    """Text as an attribute, and as a replacement in ``re.sub``."""
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\\", "\\\\")
