"""The oracle that suits the problem."""

from typing import TYPE_CHECKING

from superarm.arrays import Floats, Ints
from superarm.next.oracles.base import Guarantee, Oracle
from superarm.next.oracles.greedy import Greedy, Modular

if TYPE_CHECKING:
    from superarm.next.core.problem import Problem
    from superarm.next.core.tally import View


class Default(Oracle):
    """The oracle that suits the problem."""

    def maximize(self, problem: "Problem", q: Floats, view: "View") -> Ints:
        return self.resolve(problem).maximize(problem, q, view)

    def guarantee(self, problem: "Problem") -> Guarantee:
        return self.resolve(problem).guarantee(problem)

    def resolve(self, problem: "Problem") -> Oracle:
        """The oracle itself."""
        held = problem.__dict__.get("_oracle")
        if held is None:
            held = problem.__dict__["_oracle"] = _choose(problem)
        return held  # type: ignore[no-any-return]


def _choose(problem: "Problem") -> Oracle:
    return Modular() if problem.reward.modular and problem.actions.tractable else Greedy()
