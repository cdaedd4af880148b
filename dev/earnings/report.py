"""The contest's tables and its figure."""

import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from dev.earnings.contest import Earnings
from superarm.core.arrays import Floats, Ints

FIRST, EARLY = 1_000, 5_000
"""The visits after which earnings are shown, besides all of them."""


@dataclass
class Entry:
    """What one policy earned in one shop: cumulative sums (R, n) after ``visits`` (n,), and when each draw was ahead.

    ``ahead`` (R,) is the visit from which on the policy's sum stays above the list's; more than all if never.
    """

    shop: str
    held_out: bool
    policy: str
    visits: Ints
    earned: Floats
    present: Floats
    best: Floats
    ahead: Ints

    def relative(self, visit: int) -> Floats:
        """Earnings of the first visits relative to those of the list, (R,)."""
        at = int(np.searchsorted(self.visits, min(visit, int(self.visits[-1]))))
        return np.asarray(self.earned[:, at] / self.present[:, at])


def summarise(shop: str, held_out: bool, policy: str, earnings: Earnings) -> Entry:
    """The sums of a run at some two hundred visits."""
    n = earnings.policy.shape[1]
    marks = [FIRST, EARLY, max(1, n - FIRST), n]
    visits = np.unique(np.concatenate([np.geomspace(1, n, 200).astype(np.int64), [v for v in marks if v <= n]]))
    earned, present, best = (np.cumsum(part, 1) for part in (earnings.policy, earnings.present, earnings.best))
    behind = earned <= present
    ahead = np.where(behind.any(1), n - behind[:, ::-1].argmax(1) + 1, 1)
    at = visits - 1
    return Entry(shop, held_out, policy, visits, earned[:, at], present[:, at], best[:, at], ahead)


@dataclass
class Row:
    """A line of the table; earnings are relative to the list's, with half the width of a 95 % interval."""

    shop: str
    policy: str
    first_1000: float
    first_1000_error: float
    first_5000: float
    first_5000_error: float
    total: float
    total_error: float
    way_to_best: float
    way_to_best_error: float
    share_of_best: float
    worst_share_of_best: float
    ahead_after: float
    draws_above_list: float
    worst_first_1000: float
    worst_total: float


def make_row(entry: Entry) -> Row:
    """The figures of an entry: means over draws, and the worst draw."""
    first, early, total = (entry.relative(visit) for visit in (FIRST, EARLY, int(entry.visits[-1])))
    gained, possible = (part[:, -1] - entry.present[:, -1] for part in (entry.earned, entry.best))
    way = gained.sum() / possible.sum()
    of_best = entry.earned[:, -1] / entry.best[:, -1]
    return Row(
        entry.shop,
        entry.policy,
        *_mean(first),
        *_mean(early),
        *_mean(total),
        float(way),
        _mean((gained - way * possible) / possible.mean())[1],
        float(np.median(of_best)),
        float(of_best.min()),
        float(np.median(entry.ahead)),
        float((total >= 1.0).mean()),
        float(first.min()),
        float(total.min()),
    )


def _mean(values: Floats) -> tuple[float, float]:
    """The mean, and half of the width of its 95 % interval."""
    n = len(values)
    width = float(student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return float(values.mean()), width


HEADER = [
    *("shop", "policy", "first 1,000", "first 5,000", "all visits", "way from list to best"),
    *("of the best: median, worst", "ahead after", "draws above the list", "worst draw: first 1,000, all"),
]


def format_table(entries: list[Entry]) -> str:
    """The table in Markdown: one line per shop and policy; held-out shops are marked by a star."""
    lines = ["| " + " | ".join(HEADER) + " |", "|---|---|" + "---:|" * (len(HEADER) - 2)]
    for entry in entries:
        row, n = make_row(entry), int(entry.visits[-1])
        ahead = f"{row.ahead_after:,.0f}" if row.ahead_after <= n else "not yet"
        cells = [
            f"{row.shop}{'*' if entry.held_out else ''}",
            f"`{row.policy}`",
            f"{row.first_1000:.2f} ± {row.first_1000_error:.2f}",
            f"{row.first_5000:.2f} ± {row.first_5000_error:.2f}",
            f"{row.total:.2f} ± {row.total_error:.2f}",
            f"{row.way_to_best:.0%} ± {row.way_to_best_error:.0%}",
            f"{row.share_of_best:.2f}, {row.worst_share_of_best:.2f}",
            ahead,
            f"{row.draws_above_list:.0%}",
            f"{row.worst_first_1000:.2f}, {row.worst_total:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def format_summary(entries: list[Entry]) -> str:
    """Means over shops for each policy, those for development and those held out apart, in Markdown."""
    names = ["policy", "shops", "first 1,000", "first 5,000", "all visits", "of the best", "draws above the list"]
    lines = ["| " + " | ".join([*names, "weakest shop", "worst draw"]) + " |", "|---|---|" + "---:|" * len(names)]
    for policy in dict.fromkeys(entry.policy for entry in entries):
        for held_out in (False, True):
            rows = [make_row(one) for one in entries if (one.policy, one.held_out) == (policy, held_out)]
            if rows:
                parts = ("first_1000", "first_5000", "total", "share_of_best")
                means = [f"{np.mean([getattr(row, part) for row in rows]):.2f}" for part in parts]
                above = f"{np.mean([row.draws_above_list for row in rows]):.0%}"
                kind = f"{len(rows)} {'held out' if held_out else 'for development'}"
                weakest = min(rows, key=lambda row: row.total)
                least = [f"{weakest.total:.2f}, {weakest.shop}", f"{min(row.worst_total for row in rows):.2f}"]
                lines.append("| " + " | ".join([f"`{policy}`", kind, *means, above, *least]) + " |")
    return "\n".join(lines)


def list_draws(entry: Entry) -> list[dict[str, Any]]:
    """What every draw earned, relative to the list and to the best slates."""
    relative: dict[str, Any] = {f"first_{visit}": entry.relative(visit) for visit in (FIRST, EARLY)}
    relative["total"] = entry.relative(int(entry.visits[-1]))
    relative |= {"share_of_best": entry.earned[:, -1] / entry.best[:, -1]}
    relative |= {"list_of_best": entry.present[:, -1] / entry.best[:, -1], "ahead_after": entry.ahead}
    same = {"shop": entry.shop, "held_out": entry.held_out, "policy": entry.policy}
    return [
        same | {"draw": draw} | {name: values[draw] for name, values in relative.items()}
        for draw in range(len(entry.ahead))
    ]


def write_report(entries: list[Entry], directory: Path) -> list[Path]:
    """Write ``earnings.md``, ``earnings.csv``, ``draws.csv`` and ``earnings.png``; their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / name for name in ("earnings.md", "earnings.csv", "draws.csv", "earnings.png")]
    paths[0].write_text(f"{format_summary(entries)}\n\n{format_table(entries)}\n", encoding="utf-8")
    _write_rows(paths[1], [asdict(make_row(entry)) | {"held_out": entry.held_out} for entry in entries])
    _write_rows(paths[2], [row for entry in entries for row in list_draws(entry)])
    draw_figure(entries, paths[3])
    return paths


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def draw_figure(entries: list[Entry], path: Path) -> None:
    """Earnings so far relative to the list's, over visits: a small figure for every shop."""
    import matplotlib.pyplot as plt

    shops = list(dict.fromkeys(entry.shop for entry in entries))
    columns = min(4, len(shops))
    rows = -(-len(shops) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 2.5 * rows), squeeze=False, layout="constrained")
    handles: dict[str, Any] = {}
    for place, shop in zip(axes.flat, shops, strict=False):
        for entry in (one for one in entries if one.shop == shop):
            from_tenth = entry.visits >= 10
            ratio = (entry.earned / entry.present).mean(0)[from_tenth]
            number = list(dict.fromkeys(one.policy for one in entries)).index(entry.policy)
            (handles[entry.policy],) = place.plot(entry.visits[from_tenth], ratio, color=f"C{number}", linewidth=1.3)
        place.axhline(1.0, color="0.4", linewidth=0.8)
        place.set(xscale="log", title=shop + ("*" if entry.held_out else ""))
    for unused in axes.flat[len(shops) :]:
        unused.set_visible(False)
    figure.supxlabel("visits")
    figure.supylabel("earnings so far / those of the list")
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=len(handles), frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
