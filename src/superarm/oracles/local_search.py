import math
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import capacity, contains, joins, pins
from superarm.actions.traits import budgeted, exchange
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee, Oracle, maximize
from superarm.oracles.gains import batch_states, wins_tie
from superarm.oracles.greedy import Greedy, grow
from superarm.problem import Problem
from superarm.rewards import gain, value
from superarm.streams import Stream


@component
class LocalSearch(NamedTuple):
    r"""Exchange one arm of ``start``'s batch for another while that adds at least ``step`` of its value.

    .. math:: A \leftarrow A - i + j \quad\text{while}\quad r(A - i + j; q) > (1 + step)\, r(A; q)

    Never worse than the batch it starts from, whose guarantee it keeps: with ``Greedy``, :math:`1 - (1 - 1/k)^k` on
    ``Subsets`` and 1/2 on a matroid. Exchanges alone guarantee no more than 1/2 on a matroid, and that is tight,
    [FisherNemhauserWolsey1978]_; ``ContinuousGreedy`` comes close to :math:`1 - 1/e` there. Certificates show the
    improvement over greedy. Arms that can join after an exchange, which may lower the cost or free a node, are added
    greedily.

    Parameters
    ----------
    start
        The oracle that finds the first batch.
    step
        By which share of the value an exchange has to improve it.
    rounds
        How many exchanges are made at most.

    Examples
    --------
    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=2, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> p = [[0.6, 0.6], [1.0, 0.0], [0.0, 1.0]]
    >>> [sa.solve(problem, p, oracle).tolist() for oracle in (sa.Greedy(), LocalSearch())]
    [[0, 1], [2, 1]]
    """

    start: Oracle = Greedy()
    step: float = 1e-6
    rounds: int = 100

    def _check(self) -> None:
        if not 0.0 <= self.step < 1.0 or self.rounds < 1:
            raise InvalidArgument("step", f"{self.step}, {self.rounds} rounds", "give 0 <= step < 1 <= rounds")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        action = maximize(self.start, problem, q, candidates, stream)
        if len(action) == 0:
            return chosen[:0]
        chosen[: len(action)] = action
        for _ in range(self.rounds):
            if not _exchange(problem, q, candidates, chosen[: len(action)], self.step):
                break
        return chosen[: grow(problem, q, candidates, chosen, len(action))]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.start.guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> "LocalSearch":
        if exchange(problem.actions) == math.inf and not budgeted(problem.actions):
            raise InvalidArgument(
                "oracle", "LocalSearch needs batches whose arms can be exchanged one by one", "take Linearised()"
            )
        return self._replace(start=self.start.fit(problem))


@kernel
def _exchange(problem: Problem, q: Floats, candidates: Candidates, action: Ints, step: float) -> bool:
    """Make the best exchange of one arm in place; return whether one improved the value enough."""
    place, arm, most = -1, -1, 0.0
    last = len(action) - 1
    kept = np.empty(len(action), np.int64)
    n_kept = pins(problem.actions, candidates, kept)
    for n in range(len(action)):
        if contains(kept, n_kept, action[n]):
            continue
        rest = action.copy()
        rest[n], rest[last] = action[last], action[n]
        states = batch_states(problem, q, rest[:last])
        lost = gain(problem.reward, problem.terms, states, q, action[n])
        for j in range(problem.n_arms):
            if not candidates.eligible[j] or contains(action, len(action), j):
                continue
            extra = gain(problem.reward, problem.terms, states, q, j) - lost
            tied = extra == most and n == place and wins_tie(candidates, j, arm)
            if (extra > most or tied) and joins(problem.actions, candidates, rest, last, j):
                place, arm, most = n, j, extra
    if place < 0 or most <= step * value(problem.reward, problem.terms, q, action):
        return False
    action[place] = arm
    return True
