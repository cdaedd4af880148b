"""How soon does the lift speak, and how often wrongly? ``python -m dev.benchmarks.verdicts``.

For kinds of rewards and policies, prints of so many runs, looked at a hundred times each: how many had a false verdict
while both groups earned the same (5 % may), in how many the interval missed the truth at some look, and after how many
visits half of the runs had a verdict where the policy earns more. ``none`` is a run without one in ``--visits`` visits.
Looks while few rewards matter are left out: their intervals are those of a theorem, and far wider.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from superarm.core.arrays import Floats
from superarm.offline.mean_sequences import ENOUGH, BoundedSums, Stratum, effective_number
from superarm.service.domain.lift import GroupSums, LiftSums, measure_lift

Rng = np.random.Generator
LOOKS = 100
UNEQUAL = ("learning", "contrary")
"""Kinds whose policy earns something else than the control also without a gain: here only the truth is asked for."""


class Kind(NamedTuple):
    """Rewards of n visits given whether each is control: what came, and its mean given the past; the largest one.

    ``gain`` is how much more the policy earns, as a share.
    """

    draw: Callable[[Rng, Floats, float], tuple[Floats, Floats]]
    scale: float
    gain: float = 0.2
    control: float = 0.1


def clicks(rate: float, k: int = 6) -> Callable[[Rng, Floats, float], tuple[Floats, Floats]]:
    """Clicks on ``k`` products."""

    def draw(rng: Rng, control: Floats, gain: float) -> tuple[Floats, Floats]:
        chance = rate * np.where(control, 1.0, 1.0 + gain)
        return rng.binomial(k, chance).astype(float), k * chance

    return draw


def amounts(rate: float, sizes: Callable[[Rng, int], Floats], mean: float) -> Callable[..., tuple[Floats, Floats]]:
    """At most one purchase a visit, of an amount whose ``mean`` is known."""

    def draw(rng: Rng, control: Floats, gain: float) -> tuple[Floats, Floats]:
        chance = rate * np.where(control, 1.0, 1.0 + gain)
        return np.where(rng.random(len(control)) < chance, sizes(rng, len(control)), 0.0), mean * chance

    return draw


def moving(rng: Rng, control: Floats, gain: float) -> tuple[Floats, Floats]:
    """Clicks whose rate follows days and falls once for good, in both groups alike."""
    t = np.arange(len(control))
    chance = (0.15 + 0.1 * np.sin(t / 400.0) - 0.05 * (t > len(t) // 3)) * np.where(control, 1.0, 1.0 + gain)
    return rng.binomial(1, chance).astype(float), chance


def learning(rng: Rng, control: Floats, gain: float) -> tuple[Floats, Floats]:
    """A policy that begins at 0.7 of the control and follows its own luck: the last clicks decide what it shows."""
    seen, chance = np.zeros(len(control)), np.empty(len(control))
    level, drawn = 0.7, rng.random(len(control))
    for t in range(len(control)):
        chance[t] = 0.15 if control[t] else 0.15 * min(level, 1.0 + gain)
        seen[t] = drawn[t] < chance[t]
        if not control[t]:
            level = 0.999 * level + 0.001 * (1.4 if seen[t] else 0.95) * (1.0 + gain)
    return seen, chance


def contrary(rng: Rng, control: Floats, gain: float) -> tuple[Floats, Floats]:
    """A policy that earns more while it is behind, and less while it is ahead: its mean depends on all of its past."""
    seen, chance = np.zeros(len(control)), np.empty(len(control))
    lead, drawn = 0.0, rng.random(len(control))
    for t in range(len(control)):
        chance[t] = 0.15 if control[t] else (0.2 if lead < 0.0 else 0.1) * (1.0 + gain)
        seen[t] = drawn[t] < chance[t]
        lead += 0.0 if control[t] else seen[t] - chance[t]
    return seen, chance


def log_normal(rng: Rng, n: int) -> Floats:
    """Amounts whose largest of ten thousand is sixty times the median."""
    return np.minimum(rng.lognormal(3.0, 1.1, n), 20_000.0)


def pareto(rng: Rng, n: int) -> Floats:
    """Amounts with a tail of exponent 2.5: the variance is finite, the third moment is not."""
    return np.minimum(10.0 * (1.0 + rng.pareto(2.5, n)), 200_000.0)


KINDS = {
    "clicks, 0.6 a view": Kind(clicks(0.1), 6.0, 0.13),
    "the same, half control": Kind(clicks(0.1), 6.0, 0.13, 0.5),
    "clicks, 0.15 a view": Kind(clicks(0.025), 6.0, 0.2),
    "purchases, 0.012, half control": Kind(clicks(0.002), 6.0, 0.3, 0.5),
    "purchases, 0.012": Kind(clicks(0.002), 6.0, 0.3),
    "purchases, 0.002, one place": Kind(clicks(0.002, 1), 1.0, 0.3),
    "nearly all, 0.98": Kind(clicks(0.98, 1), 1.0, 0.01),
    "log-normal money, half control": Kind(amounts(0.06, log_normal, np.exp(3.0 + 0.605)), 20_000.0, 0.2, 0.5),
    "log-normal money": Kind(amounts(0.06, log_normal, np.exp(3.0 + 0.605)), 20_000.0, 0.2),
    "Pareto 2.5 money": Kind(amounts(0.06, pareto, 10.0 * 2.5 / 1.5), 200_000.0, 0.3),
    "moving": Kind(moving, 1.0),
    "learning": Kind(learning, 1.0),
    "contrary": Kind(contrary, 1.0),
}


class Group(NamedTuple):
    """Sums of a group after each of its rewards."""

    total: Floats
    spread: Floats
    truth: Floats

    @classmethod
    def of(cls, values: Floats, means: Floats) -> "Group":
        """The sums of rewards with their means, as the service adds them up."""
        total = np.cumsum(values)
        guess = (total - values) / np.arange(1, len(values) + 1)
        return cls(total, np.cumsum((values - guess) ** 2), np.cumsum(means))

    def sums(self, n: int) -> GroupSums:
        """What the service knows after ``n`` of them."""
        known = BoundedSums(n, float(self.total[n - 1]), float(self.spread[n - 1])) if n else BoundedSums()
        return GroupSums(known.n, known.total, known.spread)


class Run(NamedTuple):
    """When the first verdict came, in visits (0: never), what it was, whether an interval missed, what was foretold."""

    at: int
    verdict: str
    missed: bool
    foretold: list[tuple[int, int]]


def run(kind: Kind, gain: float, visits: int, seed: int) -> Run:
    """One comparison, looked at again and again."""
    rng = np.random.default_rng(seed)
    control = rng.random(visits) < kind.control
    values, means = kind.draw(rng, control, gain)
    groups = [Group.of(values[own], means[own]) for own in (~control, control)]
    count, at, verdict, missed, foretold = np.cumsum(control), 0, "open", False, []
    for t in np.unique(np.geomspace(50, visits, LOOKS).astype(int)).tolist():
        n = t - int(count[t - 1]), int(count[t - 1])
        policy, beside = (one.sums(m) for one, m in zip(groups, n, strict=True))
        if min(effective_number(Stratum(one, kind.scale)) if one.n else 0.0 for one in (policy, beside)) < ENOUGH:
            continue
        found = measure_lift(LiftSums(policy, beside, scale=kind.scale, scales=[kind.scale]))
        truth = float(groups[0].truth[n[0] - 1] / n[0] - groups[1].truth[n[1] - 1] / n[1])
        missed |= not found.difference.low <= truth <= found.difference.high
        if found.needed:
            foretold.append((t, found.needed))
        if found.verdict != "open" and not at:
            at, verdict = t, found.verdict
    return Run(at, verdict, missed, foretold)


def main() -> None:
    """Print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--visits", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    print(f"{'rewards':32} {'false':>6} {'missed':>7} {'median':>8} {'foretold in half to twice':>26}")
    for name, kind in KINDS.items():
        if args.only not in name:
            continue
        equal = [run(kind, 0.0, args.visits, 10_000 * args.seed + n) for n in range(args.runs)]
        some = max(1, args.runs // 4)
        more = [run(kind, kind.gain, args.visits, 10_000 * args.seed + 5_000 + n) for n in range(some)]
        told = sorted(one.at or 10**9 for one in more)[some // 2]
        halves = [(one, next(((t, n) for t, n in one.foretold if t >= one.at / 2), None)) for one in more if one.at]
        good = [0.5 <= half[1] / (one.at - half[0]) <= 2.0 for one, half in halves if half and half[0] < one.at]
        false = "" if name in UNEQUAL else sum(one.verdict != "open" for one in equal)
        missed = sum(one.missed for one in [*equal, *more])
        print(
            f"{name:32} {false:6} {missed:7} {told if told < 10**9 else 'none':>8} {sum(good):>12} of {len(good)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
