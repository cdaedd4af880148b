"""The screen: the decisions of greedy for coverage from the exact scores of few arms, on large problems.

Scores of a monotone index grow with t while an arm is not observed. So scores at a later round are bounds for all
rounds until then. Each step, one pass over the bounds finds the arms that could win; only these are scored exactly.
While some arm has all its scores at 1, pulls decide and no pass is needed. A screen is a policy's memory: it is told
which arms were observed, and makes their bounds anew.
"""

from typing import Any

import numpy as np

from superarm.actions.subsets import Subsets
from superarm.core.arrays import Ints
from superarm.core.ops import kernels_allowed, op
from superarm.core.support import Dense
from superarm.core.tally import Tally, View
from superarm.indices import KL, Bernstein, Index, KLMoss
from superarm.problem import Problem
from superarm.rewards import Coverage

FROM_ENTRIES: dict[type, int] = {Bernstein: 50_000, KL: 2_000, KLMoss: 2_000}
"""From how many entries on a dense problem is screened: below, plain scores are as fast."""

_ALWAYS = 1 << 60
"""The size of operations that exist as kernels only."""


def new_screen(index: Index, problem: Problem, tally: Tally) -> "Screen | SparseScreen | None":
    """A screen, or None where the plain way is as fast or the only one."""
    pair = type(problem.reward) is Coverage and type(problem.actions) is Subsets
    if not pair or type(index) not in FROM_ENTRIES or tally.partial:
        return None
    if not isinstance(problem.support, Dense):
        return SparseScreen(index, problem, tally) if type(index) is not KLMoss and kernels_allowed() else None
    large = problem.n_entries >= FROM_ENTRIES[type(index)]
    return Screen(index, problem, tally) if large and kernels_allowed() else None


class _Renewed:
    """Which bounds must be made anew: those of arms that were observed or counted since, and all after some rounds."""

    def __init__(self, index: Any, problem: Problem, tally: Tally) -> None:
        self.index, self.problem, self.tally = index, problem, tally
        self.until = np.zeros(len(tally), int)
        self.counted = np.full((len(tally), problem.n_arms), -1.0)

    def observe(self, action: Ints) -> None:
        """The statistics of the arms of ``action`` (R, n) have changed."""
        rows, places = np.nonzero(action >= 0)
        self.counted[rows, action[rows, places]] = -1.0

    def suits(self, view: View) -> bool:
        """Whether the screen can decide: nothing is pinned, and every entry of an eligible arm was seen."""
        return view.pinned.shape[1] == 0 and not self.tally.partial

    def renew(self, r: int, t: int) -> bool:
        """Whether all bounds of replication ``r`` are due in round ``t``."""
        if t <= self.until[r]:
            return False
        self.until[r] = t + max(32, t // 128)
        return True


class Screen(_Renewed):
    """The screen of a dense problem."""

    def __init__(self, index: Any, problem: Problem, tally: Tally) -> None:
        super().__init__(index, problem, tally)
        R, M, L = tally.mean.shape  # noqa: N806
        self.mean, self.deviation, self.roof, self.q = (np.zeros((R, L, M)) for _ in range(4))
        self.bound, self.ones = np.ones((R, M, L), np.float32), np.zeros((R, L), np.int8)

    def choose(self, view: View) -> Ints:
        """The batches of greedy, (R, K)."""
        t, tally, problem = view.t, self.tally, self.problem
        out, share = np.full((len(view), problem.k), -1), problem.k / problem.n_arms
        known = np.maximum(view.counts, 1.0)
        level, screened = self.index.level(known, t, share), op("screened", _ALWAYS)
        for r, counts in enumerate(view.counts):
            due = counts != self.counted[r]
            if self.renew(r, t):
                due |= self.ones[r] < 2
            later = self.index.level(known[r], int(self.until[r]), share)
            kept = (self.mean[r], self.deviation[r], self.roof[r], self.q[r], self.bound[r], self.ones[r])
            statistics = (tally.mean[r], tally.deviation[r], level[r], later, np.flatnonzero(due))
            limits = (counts, self.counted[r], view.eligible[r], problem.weights)
            screened(self.index.kind, *statistics, *limits, *kept, out[r])
        return out


class SparseScreen(_Renewed):
    """The screen of a sparse problem: bounds of first gains, lowered where they lead; few of many arms are touched."""

    def __init__(self, index: Any, problem: Problem, tally: Tally) -> None:
        super().__init__(index, problem, tally)
        R, L = tally.pulls.shape  # noqa: N806
        self.held, self.first = np.zeros((R, L)), np.zeros((R, L))
        self.blocks, self.fewest = np.zeros((R, -(-L // 64))), np.zeros((R, -(-L // 64)))
        self.groups = np.repeat(np.arange(0, -(-L // 64), 64)[None], R, 0)  # some block of each group
        self.clock, self.steps = np.zeros((R, L), np.int64), np.zeros((R, 1), np.int64)
        self.left, self.q = np.repeat(problem.weights[None], R, 0), np.zeros(tally.mean.shape)
        self.eligible, self.x = np.zeros((R, L), bool), np.empty(problem.support.widest)

    def choose(self, view: View) -> Ints:
        """The batches of greedy, (R, K)."""
        t, tally, support = view.t, self.tally, self.problem.support
        out, now = np.full((len(view), self.problem.k), -1), self.index.numerator(t)
        screened = op("sparse_screened", _ALWAYS)
        for r, counts in enumerate(view.counts):
            due = (counts != self.counted[r]) | (view.eligible[r] != self.eligible[r])
            if self.renew(r, t):
                due[:] = True
            later = self.index.numerator(int(self.until[r]))
            statistics = (support.start, support.items, tally.mean[r], tally.deviation[r], now, later)
            limits = (np.flatnonzero(due), counts, self.counted[r], view.eligible[r], self.problem.weights)
            tops = (self.blocks[r], self.fewest[r], self.groups[r])
            kept = (self.held[r], self.first[r], *tops, self.clock[r], self.steps[r], self.left[r])
            screened(self.index.kind, *statistics, *limits, *kept, self.x, self.q[r], out[r])
            self.eligible[r] = view.eligible[r]
        return out
