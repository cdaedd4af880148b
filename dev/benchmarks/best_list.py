"""What it costs to start from a list that is already the best: ``python -m dev.benchmarks.best_list``.

One hundred products, pages of six. Those of the list are clicked at one rate, all others at a third of it, so there is
nothing to win. Prints the share of the list's earnings that was lost so far, in percent: mean and largest of the runs.
"""

import argparse

import numpy as np

import superarm as sa
from superarm.core.arrays import Floats


def losses(rate: float, rounds: list[int], runs: int, seed: int = 0) -> Floats:
    """The share of the list's earnings that each run has lost after so many rounds, (runs, n)."""
    p = np.append(np.full(6, rate), np.full(94, rate / 3.0))[:, None]
    problem = sa.Problem(100, 1, sa.Linear(), sa.Subsets(6))
    instance = sa.Instance(problem, sa.environments.Bernoulli(p))
    policy = sa.pooled_thompson(baseline=list(range(100)))
    done = sa.simulate(instance, {"": policy}, rounds[-1], runs, seed=seed, rounds=rounds, progress=False)
    lost: Floats = done.regret[""] / (6.0 * rate * done.rounds)
    return lost


def main() -> None:
    """Print a line for each rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--rounds", type=int, nargs="+", default=[1000, 3000])
    args = parser.parse_args()
    for rate in (0.002, 0.006, 0.02):
        lost = 100.0 * losses(rate, args.rounds, args.runs)
        cells = zip(args.rounds, lost.mean(0), lost.max(0), strict=True)
        print(f"{rate:.1%}: " + "; ".join(f"after {t}: {mean:.1f}, at most {most:.1f}" for t, mean, most in cells))


if __name__ == "__main__":
    main()
