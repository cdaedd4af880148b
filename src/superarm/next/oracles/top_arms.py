"""The arms with the largest parameters, and batches in the opposite order."""

from typing import TYPE_CHECKING

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.next.core.support import Dense
from superarm.next.oracles.base import Guarantee, Oracle

if TYPE_CHECKING:
    from superarm.next.core.problem import Problem
    from superarm.next.core.tally import View


class TopArms(Oracle):
    """The arms with the largest parameters, the largest first: the list of a cascading bandit.

    For problems with one item. Exact on a matroid for every reward that is increasing and symmetric in the parameters,
    [KvetonEtAl2015]_ (section 4); the order of picking is the order on the page. Parameters may be any numbers, such as
    those of an index that is not clipped. Equal ones go to the arm with the fewest pulls, then the lowest.
    """

    ranking = True

    def maximize(self, problem: "Problem", q: Floats, view: "View") -> Ints:
        return problem.actions.heaviest(np.ascontiguousarray(q[:, 0]), view)

    def guarantee(self, problem: "Problem") -> Guarantee:
        return Guarantee(1.0)

    def validate(self, problem: "Problem") -> None:
        if problem.n_items != 1 or not isinstance(problem.support, Dense) or not problem.actions.matroid:
            wrong = "TopArms needs one item and a matroid, e.g. Subsets(k)"
            raise InvalidArgument("oracle", wrong, "take Greedy() or Exhaustive()")
