from typing import NamedTuple

from superarm._jit import component, interpreted
from superarm.actions import heaviest
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles import traits
from superarm.oracles.base import Guarantee, Oracle, maximize
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import Dense


@component
class TopArms(NamedTuple):
    """The arms with the largest parameters, the largest first: the list of a cascading bandit.

    For problems with one item. Exact on a matroid for every reward that is increasing and symmetric in the parameters,
    [KvetonEtAl2015]_ (section 4); the order of picking is the order on the page. Parameters may be any numbers, such as
    those of an index that is not clipped. Equal ones go to the arm with the fewest pulls, then the lowest.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> sa.solve(problem, [[0.1], [0.3], [0.2]], TopArms())
    array([1, 2])
    """

    @property
    def ranking(self) -> bool:
        return True

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        return heaviest(problem.actions, q, candidates)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "TopArms":
        if problem.n_items != 1 or not isinstance(problem.support, Dense) or not problem.actions.matroid:
            raise InvalidArgument(
                "oracle", "TopArms needs one item and a matroid, e.g. Subsets(k)", "take Greedy() or Exhaustive()"
            )
        return self


@component
class Reversed(NamedTuple):
    """The batch of another oracle in the opposite order: the best arm last.

    A cascade with the worst arm first shows more of its arms for the same reward; [KvetonEtAl2015]_ compare both
    orders.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> sa.solve(problem, [[0.1], [0.3], [0.2]], Reversed(TopArms()))
    array([2, 1])
    """

    oracle: Oracle = TopArms()

    @property
    def ranking(self) -> bool:
        return traits.ranking(self.oracle)

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        return maximize(self.oracle, problem, q, candidates, stream)[::-1].copy()

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> "Reversed":
        return Reversed(self.oracle.fit(problem))
