"""The contest's tables and its figure."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from dev.earnings.assumptions import CASES
from dev.earnings.contest import Earnings
from superarm.core.arrays import Floats, Ints

FIRST, EARLY = 1_000, 5_000
"""The visits after which earnings are shown, besides all of them."""

LIST, LEARNT = "pooled_thompson, list", "learnt items"
FROM_LIST, REMEDIED = "from the list", "with the remedy"
"""Policies that the report names: two of the contest, and what is done where assumptions fail."""

WORDS, SEPARATOR = 15, " || "
"""So many words of a warning are in the table, and what stands between warnings."""

Rows = Sequence[Mapping[str, Any]]
"""Rows of ``earnings.csv``, as they are written or as they are read."""


@dataclass
class Entry:
    """What one policy earned in one shop: cumulative sums (R, n) after ``visits`` (n,), and when each draw was ahead.

    ``ahead`` (R,) is the visit from which on the policy's sum stays above the list's; more than all if never. ``says``
    is what the service warns of.
    """

    shop: str
    held_out: bool
    policy: str
    visits: Ints
    earned: Floats
    present: Floats
    best: Floats
    ahead: Ints
    says: str = ""

    def relative(self, visit: int) -> Floats:
        """Earnings of the first visits relative to those of the list, (R,)."""
        at = int(np.searchsorted(self.visits, min(visit, int(self.visits[-1]))))
        return np.asarray(self.earned[:, at] / self.present[:, at])

    def last_half(self) -> Floats:
        """Earnings of the last half of the visits relative to those of the best slates, (R,)."""
        at = int(np.searchsorted(self.visits, max(1, int(self.visits[-1]) // 2)))
        earned, best = (part[:, -1] - part[:, at] for part in (self.earned, self.best))
        return np.asarray(earned / best)


def summarise(shop: str, held_out: bool, policy: str, earnings: Earnings) -> Entry:
    """The sums of a run at some two hundred visits."""
    n = earnings.policy.shape[1]
    marks = [FIRST, EARLY, max(1, n // 2), n]
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


def gather(rows: Rows, part: str) -> tuple[float, float]:
    """The mean over shops, and half of the width of its 95 % interval over draws, which shops have of their own."""
    errors = [float(row[f"{part}_error"]) for row in rows]
    return float(np.mean([float(row[part]) for row in rows])), float(np.linalg.norm(errors)) / len(rows)


def choose(rows: Rows, policy: str) -> Rows:
    """The rows of a policy in the shops that were held out."""
    return [row for row in rows if row["policy"] == policy and str(row["held_out"]) == "True"]


def format_summary(rows: Rows) -> str:
    """Means over the held-out shops for each policy, in Markdown, from the rows of ``earnings.csv``."""
    names = ["policy", "shops", "first 1,000", "first 5,000", "all visits", "of the best", "draws above the list"]
    lines = ["| " + " | ".join([*names, "weakest shop", "worst draw"]) + " |", "|---|" + "---:|" * (len(names) + 1)]
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = choose(rows, policy)
        if own:
            means = ["{:.2f} ± {:.2f}".format(*gather(own, part)) for part in ("first_1000", "first_5000", "total")]
            best, above = (np.mean([float(row[part]) for row in own]) for part in ("share_of_best", "draws_above_list"))
            weakest = min(own, key=lambda row: float(row["total"]))
            least = [f"{float(weakest['total']):.2f}, {weakest['shop']}"]
            least.append(f"{min(float(row['worst_total']) for row in own):.2f}")
            cells = [f"`{policy}`", str(len(own)), *means, f"{best:.2f}", f"{above:.0%}", *least]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def headline(rows: Rows) -> str:
    """What the page and README say, from the rows of ``earnings.csv``: real people first, and where it loses."""
    real, own = (choose(rows, policy) for policy in (LEARNT, LIST))
    known = {row["shop"]: row for row in own}
    words = []
    for row in real:
        plain = known[row["shop"]]
        words.append(
            f"On real people ({row['shop']}), an agent that learns their tastes earned {_say(row, 'total')} the shop's "
            f"list over 20,000 visits, and {_say(row, 'first_1000')} it in the first 1,000; the default, which starts "
            f"from the list and learns no tastes, earned {_say(plain, 'total')} the list."
        )
    mean: dict[str, float] = {}
    for part in ("total", "first_1000"):
        mean[part], mean[f"{part}_error"] = gather(own, part)
    lost = [f"{row['shop']} ({_say(row, 'total')} it)" for row in own if float(row["total"]) < 1.0]
    where = f"it lost in {' and '.join(lost)}" if lost else "it lost in none of them"
    words.append(
        f"In the mean of all {len(own)} held-out shops, the default, starting from the list, earned "
        f"{_say(mean, 'total')} the list over 20,000 visits and {_say(mean, 'first_1000')} it in the first 1,000; "
        f"{where}."
    )
    return " ".join(words)


def _say(row: Mapping[str, Any], part: str) -> str:
    beyond, error = 100.0 * float(row[part]) - 100.0, 100.0 * float(row[f"{part}_error"])
    return f"{abs(beyond):.1f} % (± {error:.1f}) {'less' if beyond < 0.0 else 'more'} than"


CASE_HEADER = ["shop", "what fails", "from the list", "worst", "the service says", "remedy", "with it", "worst"]


def list_cases(entries: list[Entry]) -> list[dict[str, Any]]:
    """A row for every shop whose assumptions fail: what the default earns there, and what it earns with the remedy."""
    rows = []
    for name in dict.fromkeys(entry.shop for entry in entries):
        row: dict[str, Any] = {"shop": name, "fails": CASES[name].fails}
        for entry in (one for one in entries if one.shop == name):
            start, made = ("remedy_" if entry.policy == REMEDIED else ""), make_row(entry)
            parts = ("first_1000", "total", "total_error", "worst_first_1000", "worst_total")
            row |= {start + part: getattr(made, part) for part in parts}
            row |= {} if entry.policy == REMEDIED else {"says": entry.says}
        remedy = CASES[name].remedy
        rows.append(row | {"remedy": "" if remedy is None else remedy.words})
    return rows


def shorten(says: str) -> str:
    """The beginning of each of the warnings, which are in full in ``assumptions.csv``."""
    short = []
    for line in filter(None, says.split(SEPARATOR)):
        words = line.split()
        short.append(" ".join(words[:WORDS]) + (" …" if len(words) > WORDS else ""))
    return "; ".join(short)


def format_cases(rows: list[dict[str, Any]]) -> str:
    """The rows of ``list_cases`` in Markdown."""
    lines = ["| " + " | ".join(CASE_HEADER) + " |", "|---|---|---:|---:|---|---|---:|---:|"]
    for row in rows:
        cells = [row["shop"], row["fails"], f"{float(row['total']):.2f} ± {float(row['total_error']):.2f}"]
        cells += [f"{float(row['worst_total']):.2f}", shorten(row["says"]) or "nothing", row["remedy"]]
        if row["remedy"]:
            cells += [f"{float(row['remedy_total']):.2f} ± {float(row['remedy_total_error']):.2f}"]
            cells += [f"{float(row['remedy_worst_total']):.2f}"]
        lines.append("| " + " | ".join([*cells, *[""] * (len(CASE_HEADER) - len(cells))]) + " |")
    return "\n".join(lines)


def list_draws(entry: Entry) -> list[dict[str, Any]]:
    """What every draw earned, relative to the list and to the best slates."""
    relative: dict[str, Any] = {f"first_{visit}": entry.relative(visit) for visit in (FIRST, EARLY)}
    relative["total"] = entry.relative(int(entry.visits[-1]))
    relative |= {"share_of_best": entry.earned[:, -1] / entry.best[:, -1]}
    relative |= {"last_half_of_best": entry.last_half()}
    relative |= {"list_of_best": entry.present[:, -1] / entry.best[:, -1], "ahead_after": entry.ahead}
    same = {"shop": entry.shop, "held_out": entry.held_out, "policy": entry.policy}
    return [
        same | {"draw": draw} | {name: values[draw] for name, values in relative.items()}
        for draw in range(len(entry.ahead))
    ]


def write_report(entries: list[Entry], directory: Path) -> list[Path]:
    """Write ``earnings.md``, the tables ``earnings``, ``draws``, ``curves`` and ``assumptions``, and a figure."""
    directory.mkdir(parents=True, exist_ok=True)
    contest = [entry for entry in entries if entry.policy not in (FROM_LIST, REMEDIED)]
    cases = list_cases([entry for entry in entries if entry.policy in (FROM_LIST, REMEDIED)])
    rows = [asdict(make_row(entry)) | {"held_out": entry.held_out} for entry in contest]
    tables = {
        "earnings": rows,
        "draws": [row for entry in entries for row in list_draws(entry)],
        "curves": [row for entry in contest for row in list_curve(entry)],
        "assumptions": cases,
    }
    parts = [headline(rows)] if choose(rows, LIST) else []
    parts += [format_summary(rows), format_table(contest)] if contest else []
    parts += [format_cases(cases)] if cases else []
    paths = [directory / "earnings.md", *(directory / f"{name}.csv" for name, found in tables.items() if found)]
    paths[0].write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    for path in paths[1:]:
        _write_rows(path, tables[path.stem])
    if contest:
        paths.append(directory / "earnings.png")
        draw_figure(contest, paths[-1])
    return paths


def publish(directory: Path, docs: Path) -> None:
    """Put the tables and the figure into the documentation: the page, its files, and README's sentence."""
    for name in ("earnings.csv", "assumptions.csv", "earnings.png"):
        (docs / "background" / name).write_bytes((directory / name).read_bytes())
    with (directory / "earnings.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (directory / "assumptions.csv").open(newline="", encoding="utf-8") as file:
        cases = list(csv.DictReader(file))
    parts = {"headline": headline(rows), "summary": format_summary(rows), "assumptions": format_cases(cases)}
    for page in (docs / "background" / "earnings.md", docs.parent / "README.md"):
        text = page.read_text(encoding="utf-8")
        for name, part in parts.items():
            first, last = f"<!-- begin {name} -->", f"<!-- end {name} -->"
            if first in text:
                before, after = text.split(first)[0], text.split(last)[1]
                line = "\n" if before.endswith("\n") else ""  # otherwise within a paragraph
                text = f"{before}{first}{line}{part}{line}{last}{after}"
        page.write_text(text, encoding="utf-8")


def list_curve(entry: Entry) -> list[dict[str, Any]]:
    """Earnings so far over those of the list, at some visits, in the mean of the draws."""
    ratio = (entry.earned / entry.present).mean(0)
    same = {"shop": entry.shop, "policy": entry.policy}
    return [same | {"visits": int(n), "ratio": float(x)} for n, x in zip(entry.visits, ratio, strict=True) if n >= 10]


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
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
