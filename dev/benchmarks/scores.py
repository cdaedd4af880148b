"""How good the sets are that policies find by scores: ``python -m dev.benchmarks.scores``.

Six families of distributions of scores, 30 arms, sets of three, 1,000 decisions. Prints the mean true worth of the sets
that were chosen, as a share of that of the best set, in all decisions, in the last half and in the first 100, and what
the bins claim of the last sets over what these are worth. ``--seed`` is that of the first instance: 1000 and more are
those that nothing was chosen on. ``--rho`` is the correlation of the scores of one decision. Ten minutes;
``--policies shapes mean`` takes two.
"""

import argparse

import numpy as np
from scipy import stats
from scipy.special import ndtr

import superarm as sa
from superarm.core import streams
from superarm.core.arrays import Floats
from superarm.environments import Answer, Scores
from superarm.simulation.engine import Run

FINE = 400
X = (np.arange(FINE) + 0.5) / FINE
FLOORS = {"bold": 0.96, "beta": 0.94, "mixture": 0.96, "heavy": 0.92, "jackpot": 0.94, "means": 0.96}
"""The share of the best set that ``shapes`` has to find in each world, over all decisions."""


def distributions(world: str, n: int, seed: int) -> Floats:
    """The distribution function of each arm of an instance at the points X, (n, FINE)."""
    rng = np.random.default_rng(seed)
    if world == "bold":  # safe, bold and middling: clipped normals
        kind = rng.integers(3, size=n)
        mean, deviation = (
            np.array([0.55, 0.40, 0.48])[kind] + rng.normal(0, 0.03, n),
            np.array([0.03, 0.22, 0.10])[kind],
        )
        return ndtr((X - mean[:, None]) / deviation[:, None])
    if world == "beta":  # any mean, any concentration
        mean, total = rng.uniform(0.25, 0.6, n), np.exp(rng.uniform(np.log(0.7), np.log(60), n))
        return stats.beta.cdf(X, (mean * total)[:, None], ((1 - mean) * total)[:, None])
    if world == "mixture":  # an agent fails or succeeds, more or less well
        fail, high = rng.uniform(0.2, 0.85, n)[:, None], rng.uniform(0.5, 0.95, n)[:, None]
        low = rng.uniform(0.02, 0.2, n)[:, None]
        return fail * ndtr((X - low) / 0.05) + (1 - fail) * ndtr((X - high) / 0.06)
    if world == "heavy":  # Pareto tails with a median near 0.1
        tail, scale = rng.uniform(0.8, 4.0, n)[:, None], rng.uniform(0.03, 0.12, n)[:, None]
        return np.where(X > scale, 1 - (scale / X) ** tail, 0.0)
    if world == "jackpot":  # safe arms near 0.5, and arms that seldom hit 0.95
        chance, safe = rng.uniform(0.02, 0.35, n)[:, None], (rng.random(n) < 0.5)[:, None]
        level = rng.uniform(0.4, 0.52, n)[:, None]
        lucky = (1 - chance) * ndtr((X - 0.15) / 0.05) + chance * ndtr((X - 0.92) / 0.03)
        return np.where(safe, ndtr((X - level) / 0.03), lucky)
    return ndtr((X - rng.uniform(0.3, 0.6, n)[:, None]) / 0.12)  # means: equal spread, the mean says everything


def scores_of(world: str, n: int, seed: int, many: int = 1000) -> Floats:
    """Equally likely scores of each arm, (n, many), all in [0, 1]."""
    f = distributions(world, n, seed)
    f = (f - f[:, :1]) / np.maximum(f[:, -1:] - f[:, :1], 1e-12)
    u = (np.arange(many) + 0.5) / many
    return np.stack([np.interp(u, row + 1e-12 * np.arange(FINE), X) for row in f])


class Means(sa.Environment):
    """The same scores told as outcomes of one item: what one can do without thresholds."""

    scores: Scores
    own_reward = True

    def draw(self, problem: sa.Problem, action: object, t: int, keys: object) -> Answer:
        return Answer(self.scores.scores(action, t, keys)[..., None])  # type: ignore[arg-type]

    def means(self, problem: sa.Problem, t: int) -> Floats:
        return np.array([own.mean() for own in self.scores.values])[None, None]

    def expected(self, problem: sa.Problem, action: object, t: int) -> Floats:
        return self.scores.expected(SCALED, action, t)  # type: ignore[arg-type]


SCALED = sa.Problem(n_arms=2, items=sa.Thresholds(0, 1), actions=sa.Subsets(2))
POLICIES = {  # the policy, and how many bins it is told scores in; 0 is one item, and the sum of the means
    "mean": (sa.pooled_thompson(), 0),
    "shapes": (sa.policies.shapes(), 20),
    "pooled_thompson": (sa.pooled_thompson(), 20),
    "kl_ucb": (sa.kl_ucb(), 20),
    "cucb": (sa.cucb(), 20),
}


def play(world: str, name: str, args: argparse.Namespace) -> Floats:
    """The three shares and the claim of a policy in a world, means over instances."""
    policy, bins = POLICIES[name]
    rows = []
    for seed in range(args.seed, args.seed + args.instances):
        scores = Scores(scores_of(world, args.arms, seed, 100 if args.rho else 1000), args.rho)
        scaled = sa.Problem(n_arms=args.arms, items=sa.Thresholds(0, 1, bins or 20), actions=sa.Subsets(args.k))
        plain = sa.Problem(args.arms, 1, sa.Linear(), sa.Subsets(args.k))
        problem, environment = (scaled, scores) if bins else (plain, Means(scores))
        best, _ = scores.best(scaled)  # with a shared factor that of the best set that is found
        run = Run(problem, environment, policy, streams.run_keys(np.random.SeedSequence(seed).spawn(args.replications)))
        earned = []
        for _ in range(args.decisions):
            run.play_round()
            earned.append(run.earned.copy())
        worth = np.diff(np.array(earned), axis=0, prepend=0.0).mean(1) / best
        claimed = scaled.values(scores.means(scaled, 1), run.last) / scores.expected(scaled, run.last, 1)
        rows.append([worth.mean(), worth[len(worth) // 2 :].mean(), worth[:100].mean(), claimed.mean()])
    return np.mean(rows, axis=0)


def main() -> None:
    """Print a line for each world and policy, and whether shapes is above its floors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (("arms", 30), ("k", 3), ("decisions", 1000), ("instances", 4), ("replications", 8)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--rho", type=float, default=0.0)
    parser.add_argument("--worlds", nargs="*", default=list(FLOORS), choices=list(FLOORS))
    parser.add_argument("--policies", nargs="*", default=list(POLICIES), choices=list(POLICIES))
    args = parser.parse_args()
    print("world    policy           all   last half  first 100  claimed / realised")
    for world in args.worlds:
        found = {name: play(world, name, args) for name in args.policies}
        for name, (every, last, first, claimed) in found.items():
            print(f"{world:8} {name:15} {every:.3f}  {last:.3f}      {first:.3f}      {claimed:.3f}", flush=True)
        if {"shapes", "mean"} <= set(found):
            share, other = found["shapes"][0], found["mean"][0]
            above = share >= FLOORS[world] and share >= other - 0.01
            print(
                f"{world:8} floor {FLOORS[world]:.2f}, by mean {other:.3f}: {'held' if above else 'MISSED'}", flush=True
            )


if __name__ == "__main__":
    main()
