"""What superarm's policies are compared with: a rule of an afternoon, and one that knows the rates."""

from typing import Any

import numpy as np

from dev.earnings.shops import Kind
from superarm.core import streams
from superarm.core.arrays import Ints
from superarm.core.tally import Feedback, View
from superarm.oracles.default import Default
from superarm.policies.base import Policy
from superarm.policies.memory import Memory
from superarm.problem import Problem


class BinnedThompson(Policy[Memory]):
    """Thompson sampling from Beta posteriors whose prior is fitted to what was seen of products of similar rank.

    The bins of ranks are the first k products, the next k, the next 2 k, 4 k and so on; those without a rank are in the
    last one. A bin's mean starts at that of all products, and its deviation is found by moments.
    """

    ranking: tuple[int, ...] = ()
    random = True

    def choose(self, problem: Problem, view: View, memory: Memory) -> Ints:
        tally = memory.tally
        n, s = np.broadcast_to(tally.counts(tally.pulls), tally.total.shape), np.clip(tally.total, 0.0, None)
        bins = self.bins(problem)
        inside = (bins == np.arange(bins.max() + 1)[:, None]).astype(float)  # (n_bins, n_arms)
        seen, clicks = np.einsum("rij,bj->rib", n, inside), np.einsum("rij,bj->rib", s, inside)
        overall = (clicks.sum(2, keepdims=True) + 1.0) / (seen.sum(2, keepdims=True) + 30.0)
        mean = np.minimum((clicks + 2.0) / (seen + 2.0 / overall), 0.99)[:, :, bins]
        beyond = np.einsum("rij,bj->rib", (s - n * mean) ** 2 - s, inside) + 1.0
        spread = np.clip(beyond / (np.einsum("rij,bj->rib", (n * mean) ** 2, inside) + 4.0), 1.0 / 32.0, 1.0)
        events = (1.0 / spread)[:, :, bins]
        rng = np.random.default_rng([view.t, int(view.keys[0]) & 0xFFFFFFFF])
        missed = np.maximum(n - s, 0.0) + events * (1.0 - mean) / mean
        return Default().maximize(problem, rng.beta(events + s, missed), view)

    def bins(self, problem: Problem) -> Ints:
        """The bin of each product, (n_arms,)."""
        rank = np.full(problem.n_arms, problem.n_arms - 1)
        rank[list(self.ranking)] = np.arange(len(self.ranking))
        bins: Ints = np.ceil(np.log2(np.maximum((rank + 1) / problem.k, 1.0))).astype(np.int64)
        return bins if self.ranking else np.zeros(problem.n_arms, np.int64)


class Rates(Memory):
    """For each product of each draw, the chance that it is the one with each vector of rates: (R, n_arms, n_arms)."""

    def __init__(self, policy: Any, problem: Problem, rows: int = 1, partial: bool = False) -> None:
        super().__init__(policy, problem, rows, partial)
        rates = policy.shop.chances[:, 0]  # (R, n_segments, n_arms)
        self.click, self.none = np.log(rates), np.log1p(-rates)
        self.likely = np.zeros((rows, problem.n_arms, problem.n_arms))
        self.steps = np.tile(np.arange(1, problem.n_arms + 1) / problem.n_arms, (rows, problem.n_arms, 1))

    def note(self, feedback: Feedback, weight: float) -> None:
        r, k = np.nonzero(feedback.action >= 0)
        arms, x = feedback.action[r, k], feedback.outcome[r, k]
        seen = np.ones(x.shape) if feedback.seen is None else feedback.seen[r, k].astype(float)
        likely = np.einsum("mi,mij->mj", x * seen, self.click[r]) + np.einsum(
            "mi,mij->mj", (1.0 - x) * seen, self.none[r]
        )
        self.likely[r, arms] += weight * self.policy.power * likely
        now = self.likely[r, arms]
        chances = np.exp(now - now.max(1, keepdims=True))
        self.steps[r, arms] = np.cumsum(chances, 1) / chances.sum(1, keepdims=True)


class KnownRates(Policy[Rates]):
    """Thompson sampling that has the shop's own table of rates, without the products' names.

    It knows more than any learner can. ``power`` is that to which the likelihood is raised. For one slate and clicks.
    """

    shop: Any = None
    power: float = 1.0
    remembers = Rates
    random = True

    def choose(self, problem: Problem, view: View, memory: Rates) -> Ints:
        steps, n = memory.steps, problem.n_arms
        u = streams.uniform(view.keys, view.t, np.tile(np.arange(n), (len(steps), 1)), 1)[:, :, :1]
        low, width = np.zeros(u.shape, np.int64), 1 << (n - 1).bit_length()
        while width > 1:  # how many steps lie below u
            width //= 2
            at = np.minimum(low + width - 1, n - 1)
            low += width * ((low + width <= n) & (np.take_along_axis(steps, at, 2) < u))
        rates = memory.policy.shop.chances[:, 0]
        drawn = np.take_along_axis(rates, np.minimum(np.swapaxes(low, 1, 2), n - 1), 2)
        return Default().maximize(problem, drawn, view)


def knows(kind: Kind) -> bool:
    """Whether ``KnownRates`` can serve a kind of shop: one slate for all visitors, and clicks."""
    return kind.form in ("one", "items") and not kind.spread
