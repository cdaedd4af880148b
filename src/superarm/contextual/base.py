"""The base of policies that learn from contexts."""

from typing import TYPE_CHECKING, Any, ClassVar

from superarm.context.models import Model
from superarm.context.sums import new_context_tally
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Tally, View
from superarm.policies.base import Policy

if TYPE_CHECKING:
    from superarm.core.problem import Problem


class ContextPolicy(Policy):
    """A policy that learns a kind of models, ``learns``, from contexts.

    Its tally is ``new_context_tally``. For explanations it has ``estimates`` and, if it is a regression,
    ``coefficients``.
    """

    reads_context = True
    own_memory: ClassVar[Any] = False
    learns = Model
    """The class of models that the policy learns."""

    def new_tally(self, problem: "Problem", replications: int, partial: bool = False) -> Tally:
        return new_context_tally(problem, replications, partial)

    def validate(self, problem: "Problem") -> None:
        """Refuse a problem without a context, or with a model that the policy does not learn."""
        if problem.context is None:
            wrong = f"{type(self).__name__} needs a context"
            raise InvalidArgument("policy", wrong, "give Problem(…, context=Context(…))")
        if not isinstance(problem.context.model, self.learns):
            wrong = f"{type(self).__name__} does not learn the model {type(problem.context.model).__name__}"
            raise InvalidArgument("policy", wrong, "take a policy that does: docs/guides/context.md lists them")

    def estimates(self, problem: "Problem", view: View, memory: Any) -> tuple[Floats, Floats]:
        """The estimates of all entries, and the parameters at which the oracle chooses."""
        wrong = f"{type(self).__name__} chooses batches by other things than parameters of entries"
        raise InvalidArgument("policy", wrong, "explain decisions of index policies")

    def coefficients(self, problem: "Problem", tally: Tally, memory: Any) -> Floats:
        """The parameter vectors of a regression, (R, n_groups, d)."""
        raise InvalidArgument("policy", f"{type(self).__name__} has no coefficients", "take a regression model")
