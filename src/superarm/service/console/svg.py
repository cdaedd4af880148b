"""Pictures as inline SVG: sizes in units of the picture, colours by class, words in titles. No style attributes: the
Content-Security-Policy forbids them."""

import math
from collections.abc import Sequence

from superarm.service.console.markup import Html, shorten, tag
from superarm.service.console.times import date_label
from superarm.service.domain.history import MeanInterval, Stretch, join_moments, mean_interval

WIDTH, HEIGHT, LEFT, BOTTOM = 720, 220, 48, 24
ARM_LETTERS, ITEM_LETTERS = 18, 10
"""How many letters of a name are shown."""

LABEL_WIDTH = 100
"""A date takes about so much of the width."""

KNOWN_SHARE = 0.9
FEWEST_STRETCHES = 8
"""A curve has gaps at fewer than a tenth of its stretches, if that leaves so many of them."""


def rewards(stretches: Sequence[Stretch], length: int, needed: frozenset[int] = frozenset()) -> Html:
    """Reward per decision over time: the policy's with its band, and the baseline's."""
    policy = [mean_interval(stretch.policy, needed) for stretch in stretches]
    baseline = [mean_interval(stretch.baseline, needed) for stretch in stretches]
    known = [m for m in (*policy, *baseline) if m is not None]
    if not known:
        return tag("p", "No decision to show has finished.", class_="empty")
    top = max(m.value + (m.reach if math.isfinite(m.reach) else 0.0) for m in known) * 1.05 or 1.0
    step = (WIDTH - LEFT - 8) / max(1, len(stretches) - 1)
    scale = _ticks(top)

    def x(n: int) -> float:
        return LEFT + n * step

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 8) * min(max(value, 0.0), top) / top

    lines = [
        (
            tag("line", x1=LEFT, x2=WIDTH - 8, y1=y(v), y2=y(v), class_="grid"),
            tag("text", v, x=LEFT - 6, y=y(v) + 4, class_="tick end"),
        )
        for v in scale
    ]
    total = sum(s.policy.count + s.baseline.count for s in stretches)
    words = f"Reward per decision of {total} finished decisions, in stretches of {length} rounds, by date"
    return tag(
        "svg",
        tag("title", words),
        lines,
        [_band([(x(n), m) for n, m in run], y) for run in _runs(policy)],
        [_curve([(x(n), y(m.value)) for n, m in run], "curve baseline") for run in _runs(baseline)],
        [_curve([(x(n), y(m.value)) for n, m in run], "curve") for run in _runs(policy)],
        _dates([(x(n), stretch.at) for n, stretch in enumerate(stretches) if stretch.at]),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=words,
        class_="chart",
    )


def _dates(places: Sequence[tuple[float, int]], most: int = 5) -> list[Html]:
    """Labels of some places of a time axis, as many as do not overlap."""
    if not places:
        return []
    first, last, n_labels = places[0], places[-1], min(most, len(places))
    between = [places[round(n * (len(places) - 1) / (n_labels - 1))] for n in range(1, n_labels - 1)]
    span = last[1] - first[1]
    labels = [_date(first, span, "start")]
    right = first[0] + LABEL_WIDTH
    for place in between:
        if right + LABEL_WIDTH / 2 <= place[0] <= last[0] - 1.5 * LABEL_WIDTH:
            labels.append(_date(place, span, "middle"))
            right = place[0] + LABEL_WIDTH / 2
    return labels if last == first else [*labels, _date(last, span, "end")]


def _date(place: tuple[float, int], span: int, anchor: str) -> Html:
    x, at = place
    return tag("text", date_label(at, span), x=f"{x:.1f}", y=HEIGHT - 6, class_=f"tick {anchor}")


def time_curve(times: Sequence[int], values: Sequence[float | None], words: str) -> Html:
    """Values over time, with dates; where there is none, the curve has a gap."""
    top = max((value for value in values if value is not None), default=0.0) * 1.05 or 1.0
    first, span = times[0], max(1, times[-1] - times[0])
    points = [(LEFT + (WIDTH - LEFT - 8) * (at - first) / span, value) for at, value in zip(times, values, strict=True)]

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 8) * value / top

    lines = [
        (
            tag("line", x1=LEFT, x2=WIDTH - 8, y1=y(v), y2=y(v), class_="grid"),
            tag("text", v, x=LEFT - 6, y=y(v) + 4, class_="tick end"),
        )
        for v in _ticks(top)
    ]
    runs: list[list[tuple[float, float]]] = [[]]
    for x, value in points:
        if value is not None:
            runs[-1].append((x, y(value)))
        elif runs[-1]:
            runs.append([])
    return tag(
        "svg",
        tag("title", words),
        lines,
        [_curve(run, "curve") for run in runs],
        _dates([(x, at) for (x, _), at in zip(points, times, strict=True)]),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=words,
        class_="chart",
    )


def spark(values: Sequence[float | None]) -> Html:
    """A small curve without axes."""
    known = [(n, value) for n, value in enumerate(values) if value is not None]
    top, step = max((value for _, value in known), default=0.0) or 1.0, 118.0 / max(1, len(values) - 1)
    points = [(1.0 + n * step, 25.0 - 23.0 * max(value, 0.0) / top) for n, value in known]
    return tag("svg", _curve(points, "curve"), viewBox="0 0 120 26", class_="spark", aria_hidden="true")


def merge_stretches(
    stretches: list[Stretch], needed: frozenset[int] = frozenset(), most: int = 48
) -> tuple[list[Stretch], int]:
    """At most ``most`` stretches, neighbours joined; how many went into one.

    Where decisions are about some items only, a reward is known if each of the ``needed`` ones was seen: as many
    are joined as make the reward of most stretches known.
    """
    k = max(1, -(-len(stretches) // most))
    while True:
        wide = _join_neighbours(stretches, k)
        tried = [stretch.policy for stretch in wide if stretch.policy.count]
        known = sum(mean_interval(policy, needed) is not None for policy in tried)
        if known >= KNOWN_SHARE * len(tried) or len(wide) <= FEWEST_STRETCHES:
            return wide, k
        k *= 2


def _join_neighbours(stretches: list[Stretch], k: int) -> list[Stretch]:
    """Stretches, each made of ``k``."""
    parts = [stretches[n : n + k] for n in range(0, len(stretches), k)]
    return [
        Stretch(
            join_moments([s.policy for s in part]), join_moments([s.baseline for s in part]), max(s.at for s in part)
        )
        for part in parts
    ]


def _runs(means: Sequence[MeanInterval | None]) -> list[list[tuple[int, MeanInterval]]]:
    """The means that follow each other without a gap, with their places."""
    runs: list[list[tuple[int, MeanInterval]]] = [[]]
    for n, m in enumerate(means):
        if m is not None:
            runs[-1].append((n, m))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _ticks(top: float) -> list[float]:
    size = 10.0 ** math.floor(math.log10(top / 3.0))
    size *= next(m for m in (1.0, 2.0, 5.0, 10.0) if top / (m * size) <= 5.0)
    return [round(n * size, 12) for n in range(int(top / size) + 1)]


def _curve(points: list[tuple[float, float]], kind: str) -> Html | None:
    if not points:
        return None
    if len(points) == 1:
        return tag("circle", cx=f"{points[0][0]:.1f}", cy=f"{points[0][1]:.1f}", r=3, class_=kind)
    return tag("path", d="M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points), class_=kind)


def _band(points: list[tuple[float, MeanInterval]], y: object) -> Html | None:
    sure = [(x, m) for x, m in points if math.isfinite(m.reach)]
    if len(sure) < 2 or not callable(y):
        return None
    over = [f"{x:.1f} {y(m.value + m.reach):.1f}" for x, m in sure]
    under = [f"{x:.1f} {y(m.value - m.reach):.1f}" for x, m in reversed(sure)]
    return tag("path", d="M" + "L".join(over + under) + "Z", class_="band")


def waterfall(names: Sequence[str], gains: Sequence[float], high: float) -> Html:
    """What each arm adds to those above it."""
    most = max(high, sum(gains), 1e-12)
    row, left, width = 26, 140, 520
    scale = (width - left - 70) / most
    rows, at, labels = [], 0.0, shorten(names, ARM_LETTERS)
    for n, (name, gain) in enumerate(zip(names, gains, strict=True)):
        y, start = n * row + 4, left + at * scale
        rows += [
            tag("text", labels[n], tag("title", name), x=left - 8, y=y + 13, class_="label end"),
            tag("rect", x=f"{start:.1f}", y=y, width=f"{max(gain * scale, 1.0):.1f}", height=18, class_="gain"),
            tag("text", f"+{gain:.3g}", x=f"{start + gain * scale + 5:.1f}", y=y + 13, class_="tick"),
        ]
        at += gain
        if n + 1 < len(names):
            end = f"{left + at * scale:.1f}"
            rows.append(tag("line", x1=end, x2=end, y1=y + 18, y2=y + row, class_="grid"))
    words = f"Marginal gains of {len(names)} arms, {at:.3g} together"
    return tag(
        "svg",
        tag("title", words),
        rows,
        viewBox=f"0 0 {width} {len(names) * row + 6}",
        role="img",
        class_="chart",
        aria_label=words,
    )


def interval(low: float, value: float, high: float, most: float) -> Html:
    """An estimate with its interval, on a scale that ends at ``most``."""
    scale = 100.0 / (most or 1.0)
    return tag(
        "svg",
        tag("title", f"{value:.4g}, from {low:.4g} to {high:.4g}"),
        tag("rect", x=0, y=7, width=100, height=2, class_="rail"),
        tag(
            "rect", x=f"{low * scale:.2f}", y=5, width=f"{max((high - low) * scale, 0.5):.2f}", height=6, class_="reach"
        ),
        tag("rect", x=f"{max(value * scale - 0.75, 0.0):.2f}", y=1, width=1.5, height=14, class_="dot"),
        viewBox="0 0 100 16",
        preserveAspectRatio="none",
        class_="interval",
        aria_hidden="true",
    )


def heat(arms: Sequence[str], items: Sequence[str], means: Sequence[Sequence[float | None]]) -> Html:
    """Arms by items: the darker, the likelier; an empty box where nothing is known."""
    size, left, top = (18 if len(items) > 12 else 28), 150, 70
    top_value = max((v for row in means for v in row if v is not None), default=0.0) or 1.0
    cells, labels = [], shorten(arms, ARM_LETTERS)
    for j, (arm, row) in enumerate(zip(arms, means, strict=True)):
        y = top + j * size
        cells.append(tag("text", labels[j], tag("title", arm), x=left - 8, y=y + size / 2 + 4, class_="label end"))
        for i, value in enumerate(row):
            x = left + i * size
            word = tag("title", f"{arm} · {items[i]}: {'unknown' if value is None else format(value, '.3g')}")
            if value is None:
                cells.append(tag("rect", word, x=x, y=y, width=size - 1, height=size - 1, class_="unknown"))
            else:
                depth = f"{0.04 + 0.96 * value / top_value:.3f}"
                cells.append(
                    tag("rect", word, x=x, y=y, width=size - 1, height=size - 1, class_="cell", fill_opacity=depth)
                )
    heads = zip(items, shorten(items, ITEM_LETTERS), strict=True)
    cells += [_rotated_label(*head, left + i * size + size // 2 + 4, top - 6) for i, head in enumerate(heads)]
    width, height = left + len(items) * size + 40, top + len(arms) * size + 4
    words = f"Estimated means of {len(arms)} arms for {len(items)} items; the largest is {top_value:.3g}"
    return tag(
        "svg",
        tag("title", words),
        cells,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=words,
        class_="heat",
    )


def _rotated_label(name: str, text: str, x: int, y: int) -> Html:
    return tag("text", text, tag("title", name), x=x, y=y, transform=f"rotate(-60 {x} {y})", class_="label")
