from typing import NamedTuple

from superarm._jit import component, interpreted
from superarm.actions import heaviest
from superarm.actions.traits import tractable
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.oracles.gains import gains
from superarm.problem import Problem
from superarm.rewards import initial_states
from superarm.streams import Stream


@component
class Modular(NamedTuple):
    r"""The heaviest batch, where the weight of an arm is its reward alone: exact for modular rewards.

    .. math:: A \in \arg\max_{A} \sum_{j \in A} r(\{j\}; q)

    The action set finds it: greedily on a matroid, [Edmonds1971]_; as an assignment on a ``Matching``, [Kuhn1955]_; in
    one pass over the edges on ``Paths``, [Bellman1958]_; by evaluating all batches of ``Explicit``.

    >>> import superarm as sa
    >>> pairs = sa.Matching(2, 2, [(0, 0), (0, 1), (1, 0)])
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=pairs)
    >>> sa.solve(problem, [[0.9], [0.5], [0.6]], Modular())
    array([1, 2])
    """

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        weights = gains(problem, initial_states(problem.reward, problem.terms), q, candidates)
        return heaviest(problem.actions, weights, candidates)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0 if problem.reward.modular and tractable(problem.actions) else 0.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "Modular":
        if not (problem.reward.modular and tractable(problem.actions)):
            raise InvalidArgument(
                "oracle",
                "Modular needs a modular reward, and a matroid, matching, paths or a list of batches",
                "take Greedy() or Exhaustive()",
            )
        return self
