"""What was promised of the default policy, beside what it does: ``python -m dev.benchmarks.floors``.

Reads ``draws.csv`` and ``assumptions.csv`` of ``python -m dev.earnings``, and plays a best list, plain instances and
those of ``dev.benchmarks.adversary`` itself: some ten minutes. Misses are said.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from dev.benchmarks.adversary import Arm, Plan, assess, known
from dev.benchmarks.best_list import losses
from dev.earnings.commands import KNOWN
from dev.earnings.report import LIST
from superarm.core.arrays import Floats
from superarm.policies import kl_moss, pooled_thompson

RATE, SEED = 0.002, 2_000
PLAIN = ((0.1, 0.8, 5), (0.02, 0.5, 10), (0.6, 5.0 / 6.0, 5), (0.95, 0.9 / 0.95, 10), (0.97, 0.95 / 0.97, 10))
"""Plain instances: the mean of the best arm, that of the others as a share of it, and how many arms there are."""


class Floor(NamedTuple):
    """What was promised, what was found, and whether it is kept."""

    words: str
    found: str
    met: bool


class Draws:
    """The draws of a contest: what each policy earned in each shop."""

    def __init__(self, directory: Path) -> None:
        self.values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        with (directory / "draws.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                for name in ("total", "first_1000", "share_of_best", "last_half_of_best"):
                    self.values[row["policy"], row["shop"], name].append(float(row[name]))

    def shops(self, policy: str) -> list[str]:
        return list(dict.fromkeys(shop for one, shop, _ in self.values if one == policy))

    def get(self, policy: str, shop: str, name: str) -> Floats:
        return np.array(self.values[policy, shop, name])

    def all(self, policy: str, name: str) -> Floats:
        """The values of all shops, one after the other."""
        return np.concatenate([self.get(policy, shop, name) for shop in self.shops(policy)])


def of_contest(draws: Draws) -> Iterator[Floor]:
    """Floors about the shops of the contest."""
    for name, words in (("share_of_best", "in all"), ("last_half_of_best", "in the last half")):
        shares = {s: draws.get("pooled_thompson", s, name) / draws.get(KNOWN, s, name) for s in draws.shops(KNOWN)}
        found = "; ".join(f"{shop} {np.median(x):.3f}, {x.min():.3f}" for shop, x in shares.items())
        every = np.concatenate(list(shares.values()))
        if name == "share_of_best":
            yield Floor(f"from nothing, of known rates {words}: median ≥ .97", found, float(np.median(every)) >= 0.97)
            yield Floor(f"from nothing, of known rates {words}: worst ≥ .93", f"{every.min():.3f}", every.min() >= 0.93)
        else:
            yield Floor(f"from nothing, of known rates {words}: worst ≥ .92", f"{every.min():.3f}", every.min() >= 0.92)
    behind = []
    for shop in draws.shops("pooled_thompson"):
        mine, other = (draws.get(one, shop, "total").mean() for one in ("pooled_thompson", "kl_moss"))
        behind += [f"{shop} ({mine:.3f}, {other:.3f})"] if mine <= other else []
    yield Floor("from nothing: ahead of kl_moss in every shop", f"behind in {', '.join(behind) or 'none'}", not behind)
    total, first = draws.all(LIST, "total"), draws.all(LIST, "first_1000")
    yield Floor(
        "from the list: above it in 99 % of runs", f"{(total >= 1.0).mean():.1%}", (total >= 1.0).mean() >= 0.99
    )
    yield Floor("from the list: worst ≥ .98", f"{total.min():.3f}", total.min() >= 0.98)
    yield Floor("from the list, first 1,000: median ≥ 1.01", f"{np.median(first):.3f}", np.median(first) >= 1.01)
    yield Floor("from the list, first 1,000: worst ≥ .95", f"{first.min():.3f}", first.min() >= 0.95)


def of_cases(directory: Path) -> Iterator[Floor]:
    """Floors about shops whose assumptions fail, with the remedy if there is one."""
    with (directory / "assumptions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for part, floor, words in (("total", 1.0, "mean ≥ 1.0"), ("worst_total", 0.95, "worst ≥ .95")):
        found = {row["shop"]: float(row[f"remedy_{part}"] or row[part]) for row in rows}
        low = {shop: x for shop, x in found.items() if x < floor}
        said = ", ".join(f"{shop} {x:.3f}" for shop, x in low.items()) or f"least {min(found.values()):.3f}"
        yield Floor(f"where assumptions fail, with the remedy: {words} in every shop", said, not low)


def of_list(runs: int) -> Iterator[Floor]:
    """Floors about a list that is the best already."""
    lost = 100.0 * losses(RATE, 10_000, runs, seed=SEED)
    for visits in (3_000, 10_000):
        mean, most = lost[:, visits - 1].mean(), lost[:, visits - 1].max()
        words = f"best list at {RATE:.1%}, after {visits:,} visits: loss ≤ 3 % in the mean, ≤ 6 % at most"
        yield Floor(words, f"{mean:.1f} %, {most:.1f} %", mean <= 3.0 and most <= 6.0)


def of_instances(runs: int) -> Iterator[Floor]:
    """Floors about runs that keep to a wrong arm."""
    locked, policy = 0, pooled_thompson()
    for mean, share, n in PLAIN:
        plan = Plan(
            (Arm("independent", 0.0, 1.0), *[Arm("independent", 0.0, share)] * (n - 1)), 1, mean, "equal", 20_000
        )
        locked += round(assess(policy, plan, runs, SEED).locked * runs)
    yield Floor("locked runs of 320 on plain instances: ≤ 1", f"{locked} of {runs * len(PLAIN)}", locked <= 1)
    pairs = {name: [assess(one, plan, 20, SEED) for one in (policy, kl_moss())] for name, plan in known().items()}
    more = {name: [one.locked for one in pair] for name, pair in pairs.items() if pair[0].locked > pair[1].locked}
    said = ", ".join(f"{name} {mine:.0%} and {other:.0%}" for name, (mine, other) in more.items())
    yield Floor("adversarial instances: no more locked runs than kl_moss", said or "no more in any", not more)


@click.command()
@click.option("--results", type=click.Path(exists=True, path_type=Path), default=Path("results/earnings"))
@click.option("--runs", type=click.IntRange(1), default=60, show_default=True, help="Runs of the best list.")
def main(results: Path, runs: int) -> None:
    """Print a line for each promise."""
    click.echo("| promised | found | |\n|---|---|---|")
    for part in (of_contest(Draws(results)), of_cases(results), of_list(runs), of_instances(64)):
        for floor in part:
            click.echo(f"| {floor.words} | {floor.found} | {'met' if floor.met else '**missed**'} |")


if __name__ == "__main__":
    main()
