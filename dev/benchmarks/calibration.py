"""Whether the default's posterior holds what it says: ``python -m dev.benchmarks.calibration``.

Worlds of its own model: 60 arms, effects of strength 2 about 5 %, items of strength 4. A row gives the share of data
sets in which the central 90 % interval of draws, at sharpness 1, holds the truth: of a random entry, and of the best.
The best is chosen by the truth, so its interval misses it more often; one item shows by how much at least.
"""

import argparse

import numpy as np

import superarm as sa
from superarm.core.arrays import Floats
from superarm.core.tally import Feedback
from superarm.policies.pooling import Posterior

DRAWS, ARMS = 199, 60
WORLDS = {
    "one item, 100 pulls": (1, 100, False),
    "4 items, all seen, 15 pulls": (4, 15, False),
    "4 items, all seen, 60 pulls": (4, 60, False),
    "4 items, all seen, 300 pulls": (4, 300, False),
    "12 items, all seen, 60 pulls": (12, 60, False),
    "4 items that depend on one number, 60 pulls": (4, 60, True),
}
"""The number of items, pulls of an arm in the mean, and whether a pull has one random number for all items."""


def draw_world(rng: np.random.Generator, n_items: int) -> Floats:
    """The means of all entries, (ARMS, n_items)."""
    theta = np.minimum(rng.gamma(2.0, 0.025, ARMS), 0.6)[:, None]
    mean = np.clip(np.repeat(theta, n_items, 1), 1e-6, 0.9)
    return mean if n_items == 1 else np.clip(rng.beta(4.0 * (1 - mean), 4.0 * (1 - mean) ** 2 / mean), 1e-6, 1 - 1e-6)


def one_data_set(rng: np.random.Generator, n_items: int, pulls: int, same: bool) -> tuple[list[bool], float]:
    """Whether the intervals hold for a random entry and the best one, and the strength that was fitted."""
    p = draw_world(rng, n_items)
    policy = sa.pooled_thompson()
    memory = policy.new_memory(sa.Problem(ARMS, n_items, sa.Linear(), sa.Subsets(5)), 1)
    times = rng.poisson(pulls, ARMS)
    for t in range(times.max()):
        arms = np.flatnonzero(times > t)
        hit = rng.random((len(arms), 1 if same else n_items)) < p[arms]
        memory.learn(Feedback(t + 1, arms[None], hit.astype(float)[None]))
    prior = policy.fit(memory, 0)
    draws = Posterior(policy.observed(memory), prior).draw(1.0, rng.integers(0, 2**63, DRAWS).astype(np.uint64), 7)
    held = []
    for arm, item in ((rng.integers(ARMS), rng.integers(n_items)), np.unravel_index(p.argmax(), p.shape)):
        low, high = np.quantile(draws[:, item, arm], [0.05, 0.95])
        held.append(bool(low <= p[arm, item] <= high))
    return held, float(prior.alpha[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200, help="how many data sets of each world")
    sets = parser.parse_args().sets
    print(f"{'world':<46}{'random':>8}{'best':>8}{'strength (truth 2)':>20}")
    for name, world in WORLDS.items():
        rng = np.random.default_rng(0)
        held, strengths = zip(*(one_data_set(rng, *world) for _ in range(sets)), strict=True)
        random, best = np.mean(held, 0)
        print(f"{name:<46}{random:>8.2f}{best:>8.2f}{np.median(strengths):>20.1f}", flush=True)


if __name__ == "__main__":
    main()
