"""What deciding from tables costs in earnings: the held-out shops of the contest, one by one and from growing tables.

    python -m dev.benchmarks.growing_tables [--draws 5] [--visits 20000] [--shop brands] [--every 1000]

A table is published after the lifetime of the one before it, ``superarm.tables.lifetime``, at most every 1,000 visits.
Its rows are drawn at the tally of that moment, and a visit takes one by its number, as a hash would. Clicks come late,
as in the contest. ``--every 5000`` publishes at fixed intervals instead: the first table then serves as many visits as
all before it, which is refused otherwise.
"""

import argparse
import copy
from typing import Any

import numpy as np

from dev.earnings import shops
from dev.earnings.contest import ServedShop
from superarm.core import streams
from superarm.core.arrays import Ints
from superarm.policies import pooled_thompson
from superarm.tables import lifetime

ROWS, LONGEST = 256, 1_000


class TabledShop(ServedShop):
    """A shop whose visitors are served from tables; ``every`` gives fixed lifetimes."""

    def __init__(self, *given: Any, every: int = 0, **more: Any) -> None:
        super().__init__(*given, **more)
        self.every, self.due, self.version = every, 1, 0

    def serve(self, t: int, segment: int) -> Ints:
        policy: Any = self.policy
        for silent, clicked in self.told.pop(t, ()):
            self.memory.learn(silent, -1.0)
            self.memory.learn(clicked)
        if t >= self.due:
            self._publish(t)
        row = int(streams.mix(np.array([t], np.uint64))[0] % np.uint64(ROWS))
        live, keys = self.memory, self.keys.policy
        self.memory = self.frozen
        view = self._view(self.published, segment)
        view.keys = streams.round_keys(streams.round_keys(keys, self.version), row)
        slates: Ints = policy.choose(self.problem, view, self.frozen)
        self.memory = live
        self._answer(t, segment, slates, view.context)
        return slates

    def _publish(self, t: int) -> None:
        self.version, self.published = self.version + 1, t
        self.frozen: Any = copy.deepcopy(self.memory, {id(self.problem): self.problem})
        self.frozen.due = 0
        self.frozen.accept(self.frozen.plan(t))
        self.due = t + (self.every or min(LONGEST, lifetime(t)))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("draws", 5), ("visits", 20_000), ("every", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--shop", action="append")
    given = parser.parse_args()
    print("| shop | first 1,000, of the list | all visits | one by one | ratio |\n|---|---:|---:|---:|---:|")
    found = []
    for name in given.shop or shops.HELD_OUT:
        shop = shops.draw_shop(name, given.draws)
        policy = pooled_thompson(baseline=shop.ranking.tolist())
        tabled = TabledShop(shop, policy, given.visits, every=given.every).run()
        alone = ServedShop(shop, policy, given.visits).run()
        first = (tabled.policy[:, :1_000].sum(1) / tabled.present[:, :1_000].sum(1)).mean()
        both = [(one.policy.sum(1) / one.present.sum(1)).mean() for one in (tabled, alone)]
        found.append((first, *both, both[0] / both[1]))
        print(f"| {name} | {first:.3f} | {both[0]:.3f} | {both[1]:.3f} | {both[0] / both[1]:.3f} |", flush=True)
    first, tables, ones, ratio = np.mean(found, axis=0)
    print(f"| mean | {first:.3f} | {tables:.3f} | {ones:.3f} | {ratio:.3f} |")


if __name__ == "__main__":
    main()
