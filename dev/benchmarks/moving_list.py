"""A list that is renewed every day: ``python -m dev.benchmarks.moving_list``.

Each day two products come and two go for good, and tastes drift. The list has the best sellers of the last seven days
in the whole shop, of which the page sees a part. Prints what the policy earns as a share of today's list, in total and
in the first 1,000 visits, and the list as a share of the best page: mean and worst of the seeds. With ``--stale`` the
policy is never told of another list than the first.
"""

import argparse

import numpy as np

from dev.benchmarks.best_list import make_shop
from dev.earnings.contest import ServedShop
from superarm.core.arrays import Bools, Floats
from superarm.policies import pooled_thompson


def draw_days(seed: int, days: int, drift: float) -> tuple[Floats, Bools, list[list[int]]]:
    """Click rates and what is for sale, (days, n_arms), and the list of every day."""
    rng, n = np.random.default_rng([77, seed]), 100 + 2 * days
    arm, day, appeal = np.arange(n), np.arange(days)[:, None], rng.normal(size=n)
    comes, goes = np.maximum(0, arm - 100) // 2 + (arm >= 100), np.where(arm < 2 * days, arm // 2 + 1, days)
    there, rates = (comes <= day) & (day < goes), []
    for _ in range(days):
        appeal = drift * appeal + np.sqrt(1.0 - drift**2) * rng.normal(size=n)
        rates.append(0.025 * np.exp(0.6 * appeal))
    p = np.array(rates)
    sales = rng.poisson(200.0 * p * there)
    sold = [rng.poisson(600.0 * p[0]), *(sales[max(0, d - 7) : d].sum(0) for d in range(1, days))]
    ranked = [np.where(now, count, 0) for now, count in zip(there, sold, strict=True)]
    lists = [np.argsort(-count, kind="stable")[: (count > 0).sum()].tolist() for count in ranked]
    return p, there, lists


class RenewedShop(ServedShop):
    """A shop, in one draw, whose list changes in every phase; the policy is told of it unless it is ``stale``."""

    def __init__(self, seed: int, days: int, visits: int, drift: float = 0.99, stale: bool = False) -> None:
        p, there, self.lists = draw_days(seed, days, drift)
        self.stale, shop = stale, make_shop(p[0], 6, 1)
        chances, for_sale = p[None, :, None], there[None]
        for name, value in (("chances", chances), ("means", chances), ("for_sale", for_sale)):
            object.__setattr__(shop, name, value)
        super().__init__(shop, pooled_thompson(baseline=self.lists[0]), visits, seed)

    def _enter_phase(self, phase: int) -> None:
        before = self.phase
        super()._enter_phase(phase)
        if phase == before:
            return
        self._list = np.array([self.lists[phase][: self.kind.k]])
        self._list_value = self._value(self._list, 0)[:, None]
        if before >= 0 and not self.stale:
            old, self.policy = self.memory, pooled_thompson(baseline=self.lists[phase])
            self.memory = self.policy.new_memory(self.problem, 1)
            self.memory.inherit(old, phase * self.visits // len(self.lists))


def main() -> None:
    """Print a line for each drift."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--days", type=int, default=40)
    parser.add_argument("--visits", type=int, default=20_000)
    parser.add_argument("--stale", action="store_true")
    args = parser.parse_args()
    for drift in (0.99, 0.9):
        rows = []
        for seed in range(args.first, args.first + args.seeds):
            earned = RenewedShop(seed, args.days, args.visits, drift, args.stale).run()
            first = earned.policy[:, :1000].sum() / earned.present[:, :1000].sum()
            of_best = earned.present.sum() / earned.best.sum()
            rows.append((earned.policy.sum() / earned.present.sum(), first, of_best))
        cells = zip(("total", "first 1,000", "list of best"), zip(*rows, strict=True), strict=True)
        print(f"drift {drift}: " + "; ".join(f"{name} {np.mean(x):.3f}, worst {min(x):.3f}" for name, x in cells))


if __name__ == "__main__":
    main()
