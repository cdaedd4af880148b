"""Curves over time as points of a picture; a template draws them. The horizontal axis is time."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from superarm.service.console.address import date_label, moment
from superarm.service.domain.history import History, Stretch, join_stretches
from superarm.service.domain.lift import MeanInterval, mean_interval
from superarm.service.domain.problem import ProblemState

MAX_POINTS, FEWEST_POINTS, DECISIONS_PER_POINT = 48, 8, 10
KNOWN_SHARE = 0.9
"""A curve has gaps at few points, and many decisions at each, as far as that leaves ``FEWEST_POINTS`` of them."""

LEFT, RIGHT, TOP, BOTTOM = 46.0, 10.0, 8.0, 24.0
SMALLEST = 1e-100
"""Curves below it are drawn as 0."""

SIZES = {"broad": (720.0, 250.0, 5), "narrow": (350.0, 250.0, 2)}
"""Width, height, and how many dates have room below: on a desktop, and on a phone."""


class Point(NamedTuple):
    """A value at a time (milliseconds), and how far its interval reaches; None where it is not known."""

    at: int
    value: float | None
    reach: float = 0.0


def draw(curves: Sequence[tuple[str, Sequence[Point]]]) -> list[dict[str, Any]]:
    """Curves, each with its name, as pictures for both kinds of screens; empty if there is no value.

    A picture has ``lines`` (curves without gaps and the bands around them: kind, path and first point), and ``ticks``
    and ``dates`` beside its axes.
    """
    known = [p for _, points in curves for p in points if p.value is not None]
    if not known:
        return []
    top = max(p.value + p.reach for p in known if p.value is not None) * 1.05
    top = top if top > SMALLEST else 1.0
    times = [p.at for _, points in curves for p in points if p.at]
    first, span = min(times), max(1, max(times) - min(times))
    charts = []
    for screen, (width, height, n_dates) in SIZES.items():
        right, low = width - RIGHT, height - BOTTOM

        def x(at: float, right: float = right) -> float:
            return LEFT + (right - LEFT) * (at - first) / span

        def y(value: float, low: float = low) -> float:
            return low - (low - TOP) * min(max(value, 0.0), top) / top

        lines = list[tuple[str, str, tuple[float, float]]]()
        for name, points in curves:
            for run in _runs(points):
                places = [(x(p.at), p.value or 0.0, p.reach) for p in run]
                if len(run) > 1 and any(p.reach for p in run):
                    over = [(a, y(value + reach)) for a, value, reach in places]
                    under = [(a, y(value - reach)) for a, value, reach in reversed(places)]
                    lines.append((f"band {name}", f"{_path(over + under)}Z", over[0]))
                spots = [(a, y(value)) for a, value, _ in places]
                lines.append((f"{'curve' if len(run) > 1 else 'dot'} {name}", _path(spots), spots[0]))
        ticks = [(y(value), label) for value, label in _ticks(top)]
        places_of_dates = [n / (n_dates - 1) for n in range(n_dates)] if max(times) > first else [0.0]
        anchors = {0.0: "start", 1.0: "end"}
        dates = [
            (x(first + share * span), date_label(first + share * span, span), anchors.get(share, "middle"))
            for share in places_of_dates
        ]
        size = {"screen": screen, "width": width, "height": height}
        charts.append(size | {"lines": lines, "ticks": ticks, "dates": dates})
    return charts


def _between(history: History, dates: tuple[int, int]) -> list[Stretch]:
    return [one for one in history.stretches if one.at and dates[0] <= one.at < (dates[1] or math.inf)]


def means_between(
    history: History, needed: frozenset[int], stratum: int | None, dates: tuple[int, int]
) -> dict[str, tuple[int, MeanInterval | None]]:
    """How many decisions of some dates have finished, and their mean reward, of the policy and of the baseline."""
    joined = join_stretches(_between(history, dates))
    parts = {of: getattr(joined, of).of(stratum) for of in ("policy", "baseline")}
    return {of: (part.count, mean_interval(part, needed)) for of, part in parts.items()}


def reward_points(
    history: History, needed: frozenset[int], stratum: int | None = None, dates: tuple[int, int] = (0, 0)
) -> dict[str, list[Point]]:
    """Rewards per decision over time, of the policy and of the baseline, in total or of one stratum, and some dates."""
    chosen = _between(history, dates)
    enough = sum(one.policy.of(stratum).count for one in chosen) // DECISIONS_PER_POINT
    k = max(1, -(-len(chosen) // min(MAX_POINTS, max(FEWEST_POINTS, enough))))
    while True:
        joined = [join_stretches(chosen[n : n + k]) for n in range(0, len(chosen), k)]
        points = {of: [_point(one, of, needed, stratum) for one in joined] for of in ("policy", "baseline")}
        seen = [point for point, one in zip(points["policy"], joined, strict=True) if one.policy.count]
        if len(joined) <= FEWEST_POINTS or sum(p.value is not None for p in seen) >= KNOWN_SHARE * len(seen):
            return points
        k *= 2


def _point(stretch: Stretch, of: str, needed: frozenset[int], stratum: int | None) -> Point:
    mean = mean_interval(getattr(stretch, of).of(stratum), needed)
    if mean is None:
        return Point(stretch.at, None)
    return Point(stretch.at, mean.value, mean.reach if math.isfinite(mean.reach) else 0.0)


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """The points that follow each other without a gap."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if point.value is not None:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _ticks(top: float) -> list[tuple[float, str]]:
    """Round numbers from 0 to ``top``, and how they are written."""
    size = 10.0 ** math.floor(math.log10(top / 3.0))
    size *= next(m for m in (1.0, 2.0, 5.0, 10.0) if top / (m * size) <= 5.0)
    decimals = max(0, -math.floor(math.log10(size) + 1e-9))
    return [(n * size, f"{n * size:,.{decimals}f}") for n in range(int(top / size) + 1)]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)


def export_rewards(state: ProblemState) -> Iterable[list[Any]]:
    """The curve of rewards, in total, by item and by segment, where that is known."""
    state.flush()
    words, needed = state.words, state.weighty_items
    unit = f" ({words.unit})" if words.unit else ""
    one, many = words.one("decision"), words.many("decision")
    rows = list[list[Any]]()
    rows.append([f"last {one} (UTC)", "shown", words.one("item"), many, f"mean reward{unit}", "95 % ±"])
    for stretch in state.history.stretches:
        for group, moments in (("superarm", stretch.policy), ("baseline", stretch.baseline)):
            parts = [("", mean_interval(moments, needed), moments.count)]
            for name, stratum in state.strata.items():
                parts.append((name, mean_interval(moments.of(stratum)), moments.of(stratum).n))
            rows += [[moment(stretch.at), group, name, n, *mean] for name, mean, n in parts if mean is not None]
    return rows
