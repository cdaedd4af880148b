"""What regret to expect in ``superarm run items`` with independent items: ``python -m dev.benchmarks.items``.

A policy at the level of KL-MOSS stops playing a worse arm after about N pulls, where N I = log(T / (L N)) and I is how
much a pull tells, by the policy's lights. For each number of items the table has the regret (L - 1) N gap for four I:

- told: the divergence of independent items, for a policy that is told that they are independent;
- kl_inf: the least divergence to any law of the weighted sum, which no policy can exceed that does not know it;
- directional: what the index of ``directional_kl_moss`` uses, the mean, the variance and the largest value seen;
- entries: the bounds of single entries added up, as KL-MOSS has them.

and the rates of regret per log t that cannot be undercut as t grows. The last line has slopes of log regret in log M.
"""

import argparse
import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from superarm.core.directions import two_moment_bound
from superarm.theory import kl_inf
from superarm.theory.lower import divergence

ITEMS = (1, 4, 16, 64)
COLUMNS = ("rate, told", "rate, kl_inf", "told", "kl_inf", "directional", "entries")


def pulls(information: Callable[[float], float], horizon: float, n_arms: int) -> float:
    """The number of pulls at which the level of KL-MOSS falls below the information."""
    return float(brentq(lambda n: n * information(n) - math.log(horizon / (n_arms * n)), 2.0, horizon / n_arms))


def directional_information(n_items: int, gap: float, n: float) -> float:
    """The level at which the bound of an arm of mean 1/2 - gap reaches 1/2, with the largest value of n pulls."""
    mean = 0.5 - gap
    variance = mean * (1.0 - mean) / n_items
    largest = min(1.0, float(binom.ppf(1.0 - 1.0 / n, n_items, mean)) / n_items)
    return float(
        brentq(lambda x: float(two_moment_bound(*map(np.atleast_1d, (mean, variance, largest, x)))[0]) - 0.5, 1e-9, 2.0)
    )


def expect(n_items: int, gap: float, horizon: float, n_arms: int) -> list[float]:
    """One row of the table."""
    count = np.arange(n_items + 1)
    told = n_items * divergence(0.5 - gap, 0.5)
    least = kl_inf(count / n_items, binom.pmf(count, n_items, 0.5 - gap), 0.5)
    lost = (n_arms - 1) * gap * n_items
    informations: list[Callable[[float], float]] = [
        lambda n: told,
        lambda n: least,
        lambda n: directional_information(n_items, gap, n),
        lambda n: divergence(0.5 - gap, 0.5),
    ]
    return [lost / told, lost / least, *(lost * pulls(i, horizon, n_arms) for i in informations)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=float, default=30_000.0)
    parser.add_argument("--gap", type=float, default=0.02, help="per item")
    parser.add_argument("--arms", type=int, default=4)
    arguments = parser.parse_args()
    rows = np.array([expect(m, arguments.gap, arguments.horizon, arguments.arms) for m in ITEMS])
    print(f"{'M':>6}" + "".join(f"{name:>14}" for name in COLUMNS))
    for m, row in zip(ITEMS, rows, strict=True):
        print(f"{m:>6}" + "".join(f"{x:>14.1f}" for x in row))
    slopes = [np.polyfit(np.log(ITEMS), np.log(column), 1)[0] for column in rows.T]
    print(f"{'slope':>6}" + "".join(f"{abs(x):>14.2f}" if abs(x) < 5e-3 else f"{x:>14.2f}" for x in slopes))


if __name__ == "__main__":
    main()
