"""A shop run by agents that learn the items of its visitors while they decide."""

from typing import Any

import numpy as np

from dev.earnings.contest import ServedShop
from dev.earnings.shops import Shop
from superarm.core.arrays import Ints
from superarm.items import ItemAgent
from superarm.policies import Policy
from superarm.simulation.replicate import seeds


class LearntShop(ServedShop):
    """Each draw has an ``ItemAgent`` of its own, which is told all answers of a visit at once, late.

    What is lost is told as silence, when the latest click could have come.
    """

    def __init__(self, shop: Shop, policy: Policy[Any] | None, visits: int, seed: int = 0) -> None:
        super().__init__(shop, None, visits, seed)
        actions = shop.problem.actions
        self.agents = [ItemAgent(shop.problem.n_arms, actions, policy, one) for one in seeds(seed, len(shop))]
        self.answers: dict[int, list[Any]] = {}

    def serve(self, t: int, segment: int) -> Ints:
        for name, outcome in self.answers.pop(t, ()):
            for agent, own in zip(self.agents, outcome, strict=True):
                agent.tell(name, own)
        for_sale = [np.flatnonzero(row).tolist() for row in self._for_sale]
        slates = np.stack([one.ask(None, sale, str(t)).action for one, sale in zip(self.agents, for_sale, strict=True)])
        outcome = self.outcome(t, segment, slates)[0][:, :, 0]
        outcome[self.lost(t)] = 0.0
        later = t + (int(self.delays[t - 1]) if self.kind.delay else 1)
        self.answers.setdefault(later, []).append((str(t), outcome))
        return slates
