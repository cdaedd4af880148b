from typing import NamedTuple

from superarm._jit import component, interpreted, kernel
from superarm.actions import heaviest
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee, Oracle, maximize
from superarm.oracles.gains import batch_states, gains
from superarm.oracles.greedy import Greedy
from superarm.problem import Problem
from superarm.rewards import gain, initial_states, value
from superarm.streams import Stream


@component
class Linearised(NamedTuple):
    r"""Heaviest batches for weights that approach the gains: a heuristic for nonlinear rewards, e.g. on ``Paths``.

    .. math:: A_n = \arg\max_A \sum_{j \in A} v_n(j), \qquad
              v_{n+1}(j) = \tfrac12 v_n(j) + \tfrac12 [r(A_n \cup \{j\}; q) - r(A_n \setminus \{j\}; q)]

    starting with :math:`v_0(j) = r(\{j\}; q)`. Returns the best of ``start``'s batch and :math:`A_0, A_1, …`, and stops
    when a batch is no better than the one before it. The guarantee is that of ``start``; a certificate shows how good
    the batch is. The averaging is that of [FrankWolfe1956]_.

    Parameters
    ----------
    start
        The oracle that finds the first batch.
    rounds
        How many heaviest batches are tried at most.

    Examples
    --------
    >>> import superarm as sa
    >>> ways = sa.Paths(3, [(0, 1), (0, 1), (1, 2), (1, 2)], source=0, target=2)
    >>> problem = sa.Problem(n_arms=4, n_items=2, reward=sa.Coverage(), actions=ways)
    >>> sa.solve(problem, [[0.9, 0.0], [0.0, 0.8], [0.9, 0.0], [0.0, 0.8]], Linearised())
    array([0, 3])
    """

    start: Oracle = Greedy()
    rounds: int = 8

    def _check(self) -> None:
        if self.rounds < 1:
            raise InvalidArgument("rounds", f"{self.rounds}", "give at least 1", "Linearised")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        best = maximize(self.start, problem, q, candidates, stream)
        most = value(problem.reward, problem.terms, q, best)
        weights = gains(problem, initial_states(problem.reward, problem.terms), q, candidates)
        previous = -1.0
        for _ in range(self.rounds):
            action = heaviest(problem.actions, weights, candidates)
            r = value(problem.reward, problem.terms, q, action)
            if r > most:
                best, most = action, r
            if r <= previous:
                break
            previous = r
            _update_weights(problem, q, candidates, action, weights)
        return best

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.start.guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> "Linearised":
        return self._replace(start=self.start.fit(problem))


@kernel
def _update_weights(problem: Problem, q: Floats, candidates: Candidates, action: Ints, weights: Floats) -> None:
    """Average ``weights`` with the marginal gains at ``action``, in place."""
    target = gains(problem, batch_states(problem, q, action), q, candidates)
    for n in range(len(action)):
        rest = action.copy()
        rest[n] = action[-1]
        states = batch_states(problem, q, rest[:-1])
        target[action[n]] = max(0.0, gain(problem.reward, problem.terms, states, q, action[n]))
    for j in range(len(weights)):
        weights[j] = 0.5 * weights[j] + 0.5 * target[j]
