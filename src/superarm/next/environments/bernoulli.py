"""Independent binary outcomes."""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.arrays import Floats, Ints, probabilities
from superarm.next.core.ops import op
from superarm.next.core.support import Dense
from superarm.next.environments.base import Answer, Environment

if TYPE_CHECKING:
    from superarm.next.core.problem import Problem


class Bernoulli(Environment):
    """Independent binary outcomes with means ``p``.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items); of a sparse problem, a SciPy sparse matrix or its entries (n_entries,).

    Examples
    --------
    >>> Bernoulli([[0.1], [0.2]]).p.tolist()
    [[0.1], [0.2]]
    """

    p: Any

    def check(self) -> None:
        self.convert("p", probabilities(self.p, "p"))

    def draw(self, problem: "Problem", action: Ints, t: int, keys: Any) -> Answer:
        x = np.empty((*action.shape, problem.support.widest))
        if isinstance(problem.support, Dense):
            op("flip", 8 * x.size)(keys, t, action, self.means(problem, t), x)
        else:
            op("flip_sparse", 8 * x.size)(keys, t, action, problem.support.start, self.means(problem, t)[0], x)
        return Answer(x)

    def means(self, problem: "Problem", t: int) -> Floats:
        held = self.__dict__.get("_entries")
        if held is None or held[0] is not problem.support:
            held = problem.support, problem.entries(self.p, "environment")
            self.__dict__["_entries"] = held
        return held[1]  # type: ignore[no-any-return]

    def validate(self, problem: "Problem") -> None:
        problem.entries(self.p, "environment")
