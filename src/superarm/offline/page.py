"""A comparison as one self-contained HTML page: values and differences as a picture, warnings, the log."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm import __version__
from superarm.offline.check import check_log
from superarm.offline.estimators.methods import METHODS
from superarm.offline.result import MODEL_BASED, PolicyValue
from superarm.output.pages import render_page

if TYPE_CHECKING:
    from superarm.offline.log import Log
    from superarm.offline.value import LogComparison

MAX_LISTED_ARMS = 8
"""How many of the arms with the fewest observations the page lists."""


def write_page(comparison: "LogComparison", path: Path) -> Path:
    """Write the page of a comparison to ``path``."""
    path.write_text(render_comparison(comparison), encoding="utf-8")
    return path


def render_comparison(comparison: "LogComparison") -> str:
    """The page of a comparison."""
    log, values = comparison.log, comparison.values
    first = next(iter(values.values()))
    check, found = check_log(log), list(values.items())
    context = {
        "log": log,
        "check": check,
        "values": [(name, value, describe_effective(value)) for name, value in found],
        "first": first,
        "sure": f"{100 * (1 - first.delta):g} %",
        "verdicts": {
            verdict: [name for name, value in found if value.verdict == verdict]
            for verdict in ("better", "worse", "not decided", "equal")
        },
        "differences": draw_differences(found),
        "amounts": draw_values(found),
        "warnings": group_warnings(found),
        "assumptions": {METHODS[value.method].title: value.assumptions for _, value in found},
        "reasons": {METHODS[value.method].title: value.reason for _, value in found},
        "rarest": rarest_arms(log),
        "best": log.best(delta=first.delta),
        "version": __version__,
    }
    return render_page(__package__, "comparison.html", context, {})


def describe_effective(value: PolicyValue) -> str:
    """What ``effective`` counts."""
    return "observations of its rarest arm" if value.method in MODEL_BASED else "effective rounds"


def group_warnings(found: list[tuple[str, PolicyValue]]) -> dict[str, list[str]]:
    """Each warning once, with the names of the targets that it is about."""
    grouped: dict[str, list[str]] = {}
    for name, value in found:
        for text in value.warnings:
            grouped.setdefault(text, []).append(name)
    return grouped


def rarest_arms(log: "Log") -> list[tuple[str, int]]:
    """The arms with the fewest observations."""
    pulls = log.tally.pulls[0]
    return [(log.arms[j], int(pulls[j])) for j in np.argsort(pulls, kind="stable")[:MAX_LISTED_ARMS]]


def draw_differences(found: list[tuple[str, PolicyValue]]) -> dict[str, Any]:
    """The picture of the differences from the baseline, with a line at 0."""
    rows = []
    for name, value in found:
        d, near = value.difference, value.approximate_difference
        rows.append((name, (d.low, d.value, d.high), near and (near.low, near.high), value.verdict))
    return draw_strips(rows, 0.0)


def draw_values(found: list[tuple[str, PolicyValue]]) -> dict[str, Any]:
    """The picture of the values, with a line at the baseline's."""
    rows = []
    for name, value in found:
        near = value.approximate
        rows.append((name, (value.low, value.value, value.high), near and (near.low, near.high), value.verdict))
    return draw_strips(rows, found[0][1].baseline_value.value)


def draw_strips(rows: list[Any], reference: float) -> dict[str, Any]:
    """One strip per row on a common scale, as positions in percent; an end that is not finite is cut off."""
    ends = [x for _, interval, near, _ in rows for x in (*interval, *(near or ())) if math.isfinite(x)] + [reference]
    low, high = min(ends), max(ends)
    margin = 0.04 * (high - low) or 0.5
    low, high = low - margin, high + margin

    def place(x: float) -> float:
        return float(round(100.0 * (min(max(x, low), high) - low) / (high - low), 3))

    return {
        "ticks": [(place(x), f"{x:g}".replace("-", "−")) for x in choose_ticks(low, high)],
        "reference": place(reference),
        "rows": [
            {
                "name": name,
                "low": place(interval[0]),
                "value": None if math.isnan(interval[1]) else place(interval[1]),
                "high": place(interval[2]),
                "near": near and (place(near[0]), place(near[1])),
                "numbers": interval,
                "verdict": verdict.replace(" ", "-"),
            }
            for name, interval, near, verdict in rows
        ],
    }


def choose_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends, at most five.

    >>> choose_ticks(-0.3, 1.04)
    [0.0, 0.5, 1.0]
    """
    step = 10.0 ** math.floor(math.log10((high - low) / 2.0))
    step *= next(m for m in (1.0, 2.0, 5.0, 10.0) if (high - low) / (m * step) <= 5.0)
    first = math.ceil(low / step)
    return [round(n * step, 12) for n in range(first, math.floor(high / step) + 1)]
