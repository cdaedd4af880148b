r"""Branch and bound over the subsets of k arms: the values closest to a target, with a proof that they are.

A node is an incomplete batch A, to which m more arms are added from those that come later in a fixed order. The value
of every completion is at most

.. math:: U = \min\Bigl\{\sum_i w_i\, r_i(A + m \text{ largest } p_{ij}),\
          r(A; p) + \text{the sum of the } m \text{ largest gains}\Bigr\}

where in the first bound every item has its own m arms, and where the second holds for submodular rewards only
[NemhauserWolseyFisher1978]_. It is at least :math:`\sum_i w_i\, r_i(A + m \text{ smallest } p_{ij})`. Both
bounds need only monotonicity, which [MerlisMannor2019]_ (definition of monotone Gini-smooth rewards) requires.
"""

import math
from typing import NamedTuple

import numpy as np

from superarm.core.arrays import Bools, Floats, Ints
from superarm.problem import Problem

ROUNDING = 1e-12
"""Values and bounds closer than this times the scale of the reward may be equal."""

_FIRST, _CELLS = 4, 1 << 22
"""How many nodes are split at once: so many until a first batch is complete; then as their gains fit into 32 MB."""


class SearchRecord:
    """What a search finds: the largest value below a ceiling and its batch, and the smallest value."""

    def __init__(self, below: float = -math.inf, lowest: float = -math.inf) -> None:
        self.below, self.lowest, self.batch = below, lowest, np.empty(0, np.int64)


class _Nodes(NamedTuple):
    """Incomplete batches of one size: item states, arms, position of the last arm, and bounds of all completions."""

    states: Floats
    arms: Ints
    position: Ints
    low: Floats
    high: Floats

    def take(self, rows: Ints | Bools | slice) -> "_Nodes":
        return _Nodes._make(part[rows] for part in self)


class SubsetSearch:
    """Searches over the subsets of one problem at the parameters ``p``; ``nodes`` counts what all of them visited.

    Arms are ordered by the value that each has alone. ``large[c, i]`` are the k largest parameters of item i among
    the arms from position c on, in descending order, ``small`` the k smallest in ascending order.
    """

    def __init__(self, problem: Problem, p: Floats, limit: int) -> None:
        self.problem, self.q, self.limit, self.nodes = problem, problem.entries(p), limit, 0
        start = problem.reward.empty_states(problem, 1)
        self.order = np.argsort(-problem.reward.gains(problem, start, self.q)[0], kind="stable")
        everyone = np.arange(problem.n_arms)[None]
        rows = problem.support.rows_to_items(problem.support.rows(self.q, everyone), everyone)[0][self.order]
        self.large, self.small = _sort_parameters(rows, problem.k)
        self.slack = ROUNDING * float(problem.weights.sum())

    def value(self, states: Floats) -> Floats:
        """The values (n,) of item states (n, n_items)."""
        return np.asarray(self.problem.reward.worth(self.problem.weights[None], states).sum(1))

    def start(self, forced: int) -> tuple[Floats, Ints]:
        """The state (1, n_items) and the arms (1, n) of the batch of arm ``forced`` alone; empty if it is -1."""
        arms = np.array([[forced]] if forced >= 0 else [[]], np.int64)
        return self.problem.reward.states(self.problem, self.q, arms), arms

    def descend(self, forced: int) -> float:
        """The value of the batch that grows from ``forced`` by the smallest gain each time: a start for a search."""
        problem, (states, arms) = self.problem, self.start(forced)
        taken = np.zeros(problem.n_arms, bool)
        taken[arms] = True
        for _ in range(problem.k - arms.shape[1]):
            gains = np.where(taken, np.inf, problem.reward.gains(problem, states, self.q)[0])
            arm = np.array([gains.argmin()])
            problem.support.join(states, self.q, arm, problem.reward.join)
            taken[arm] = True
        return float(self.value(states)[0])

    def relaxation(self, forced: int, ranked: Floats) -> float:
        """A bound of the value of every batch with arm ``forced`` (any if -1); each item has its ``ranked`` arms."""
        states, arms = self.start(forced)
        return float(self._join_ranked(states, ranked[None], self.problem.k - arms.shape[1])[0])

    def search(self, ceiling: float, forced: int, record: SearchRecord) -> bool:
        """Visit every batch of k arms with arm ``forced`` (any if -1) that could improve the record.

        Returns False if the limit of nodes was reached; the record then proves nothing.
        """
        states, arms = self.start(forced)
        if arms.shape[1] == self.problem.k:
            self._update(record, ceiling, states, arms)
            return True
        ends = np.full(1, -math.inf), np.full(1, math.inf)
        waiting, size = [_Nodes(states, arms, np.full(1, -1), *ends)], _FIRST
        while waiting:
            block = waiting.pop()
            block = block.take(self._can_improve(record, ceiling, block.low, block.high))
            if len(block.low) > size:
                waiting.append(block.take(slice(size, None)))
            children = self._split(block.take(slice(size)), forced)
            self.nodes += len(children.low)
            if children.arms.shape[1] == self.problem.k:
                size = max(_FIRST, _CELLS // (self.problem.n_entries * self.problem.n_arms))
                self._update(record, ceiling, children.states, children.arms)
            elif self.nodes > self.limit:
                return False
            else:
                children = self._bound(children, forced, record, ceiling)
                waiting.append(children.take(np.argsort(-children.high, kind="stable")))
        return True

    def _split(self, nodes: _Nodes, forced: int) -> _Nodes:
        """Every node with one more arm, from a later position, that leaves enough arms to complete the batch."""
        n_arms, left = self.problem.n_arms, self.problem.k - nodes.arms.shape[1]
        places = np.arange(n_arms)
        later = (places > nodes.position[:, None]) & (self.order != forced)
        enough = np.cumsum(later[:, ::-1], axis=1)[:, ::-1] >= left
        parent, position = np.nonzero(later & enough)
        states, arm = nodes.states[parent], self.order[position]
        self.problem.support.join(states, self.q, arm, self.problem.reward.join)
        arms = np.concatenate([nodes.arms[parent], arm[:, None]], axis=1)
        return _Nodes(states, arms, position, nodes.low[parent], nodes.high[parent])

    def _bound(self, nodes: _Nodes, forced: int, record: SearchRecord, ceiling: float) -> _Nodes:
        """The nodes that could improve the record, with bounds of their completions."""
        problem, m = self.problem, self.problem.k - nodes.arms.shape[1]
        low = self._join_ranked(nodes.states, self.small[nodes.position + 1], m)
        high = self._join_ranked(nodes.states, self.large[nodes.position + 1], m)
        kept = self._can_improve(record, ceiling, low, high)
        nodes = nodes._replace(low=low, high=high).take(kept)
        if m == 1 or not problem.reward.submodular or not len(nodes.low):
            return nodes  # with one arm to add, trying all of them costs no more than a bound
        gains = problem.reward.gains(problem, nodes.states, self.q)[:, self.order]
        later = (np.arange(problem.n_arms) > nodes.position[:, None]) & (self.order != forced)
        top = np.partition(np.where(later, gains, 0.0), -m, axis=1)[:, -m:].sum(1)
        high = np.minimum(nodes.high, self.value(nodes.states) + top)
        return nodes._replace(high=high).take(self._can_improve(record, ceiling, nodes.low, high))

    def _can_improve(self, record: SearchRecord, ceiling: float, low: Floats, high: Floats) -> Bools:
        """Whether a completion may lie below the smallest value, or between the largest below the ceiling and it."""
        between = (low < ceiling) & (high > record.below + self.slack)
        return np.asarray((low < record.lowest - self.slack) | between)

    def _update(self, record: SearchRecord, ceiling: float, states: Floats, arms: Ints) -> None:
        value = self.value(states)
        under = np.where(value < ceiling, value, -math.inf)
        if under.max(initial=-math.inf) > record.below:
            record.below, record.batch = float(under.max()), arms[under.argmax()]
        record.lowest = min(record.lowest, float(value.min(initial=math.inf)))

    def _join_ranked(self, states: Floats, ranked: Floats, m: int) -> Floats:
        """The values of item states after every item has taken its first ``m`` parameters of ``ranked`` (n, M, k)."""
        for n in range(m):
            states = self.problem.reward.join(states, ranked[:, :, n])
        return self.value(states)


def _sort_parameters(rows: Floats, k: int) -> tuple[Floats, Floats]:
    n_arms, n_items = rows.shape
    large, small = np.zeros((n_arms + 1, n_items, k)), np.ones((n_arms + 1, n_items, k))
    for c in range(n_arms - 1, -1, -1):
        new = rows[c][:, None]
        large[c] = -np.sort(-np.concatenate([large[c + 1], new], axis=1), axis=1)[:, :k]
        small[c] = np.sort(np.concatenate([small[c + 1], new], axis=1), axis=1)[:, :k]
    return large, small
