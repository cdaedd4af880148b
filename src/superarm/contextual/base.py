"""The base of policies that learn from contexts, and the memory of regressions."""

from typing import Any, Generic, TypeVar

from superarm.context.models import Model
from superarm.context.sums import RegressionTally
from superarm.core.errors import InvalidArgument
from superarm.policies.base import Policy
from superarm.policies.memory import Memory
from superarm.problem import Problem

M = TypeVar("M", bound=Memory)


class RegressionMemory(Memory):
    """The sums of a regression. Rows of parameter vectors are not split."""

    divisible = False
    tally: RegressionTally

    def new_tally(self, rows: int, partial: bool) -> RegressionTally:
        return RegressionTally(self.problem, rows, partial)

    def inherit(self, old: Memory, t: int) -> None:
        if isinstance(old, RegressionMemory):
            self.tally.regression.follow(old.tally.regression)
        super().inherit(old, t)

    def carry(self, frames: Any) -> None:
        self.tally.regression.begin(frames)
        self.adopt(self.tally)


class ContextPolicy(Policy[M], Generic[M]):
    """A policy that learns a kind of models, ``learns``, from contexts."""

    reads_context = True
    learns = Model
    """The class of models that the policy learns."""

    def validate(self, problem: Problem) -> None:
        """Refuse a problem without a context, or with a model that the policy does not learn."""
        if problem.context is None:
            wrong = f"{type(self).__name__} needs a context"
            raise InvalidArgument("policy", wrong, "give Problem(…, context=Context(…))")
        if not isinstance(problem.context.model, self.learns):
            wrong = f"{type(self).__name__} does not learn the model {type(problem.context.model).__name__}"
            raise InvalidArgument("policy", wrong, "take a policy that does: docs/guides/context.md lists them")
