"""Which policies suit which problems with a context."""

from typing import Any

from superarm.context import Segments
from superarm.errors import InvalidArgument
from superarm.intake import Intake
from superarm.policies import traits
from superarm.policies.base import Policy
from superarm.policies.contextual.forgetting_contexts import ContextForgetting, RegressionLayout, SegmentLayout
from superarm.policies.contextual.segment_policy import SegmentPolicy
from superarm.policies.forgetting import Forgetting
from superarm.problem import Problem


def for_context(policy: Policy, problem: Problem) -> Policy:
    """``policy`` for ``problem``: on the tally of the user's segment, where the problem has segments.

    >>> import superarm as sa
    >>> context = sa.Context(sa.Features(categorical={"country": ["NO", "SE"]}), model=sa.models.Segments())
    >>> problem = sa.Problem(5, 1, sa.Coverage(), sa.Subsets(2), context=context)
    >>> type(for_context(sa.kl_ucb(), problem)).__name__
    'SegmentPolicy'
    """
    if problem.context is None:
        if traits.reads_context(policy):
            raise InvalidArgument(
                "policy", f"{type(policy).__name__} needs a context", "give Problem(…, context=Context(…))"
            )
        return policy
    model: Any = problem.context.model
    if isinstance(policy, Forgetting):
        layout: Any = SegmentLayout() if isinstance(model, Segments) else RegressionLayout()
        recent: Any = ContextForgetting(for_context(policy.policy, problem), policy.block, policy.weights, layout)
        return recent  # type: ignore[no-any-return]
    if traits.learns_from(policy, model):
        return policy
    if traits.reads_context(policy):
        wrong = f"{type(policy).__name__} does not learn the model {type(model).__name__}"
        raise InvalidArgument("policy", wrong, "take a policy that does: docs/context.md lists them")
    if isinstance(model, Segments):
        on_segments: Any = SegmentPolicy(policy, model.pooling, traits.intake(policy))
        return on_segments  # type: ignore[no-any-return]
    wrong = f"{type(policy).__name__} does not read features"
    raise InvalidArgument("policy", wrong, "give e.g. vac2_ucb() or comb_lin_ts(), or use models.Segments()")


def record_as(policy: Any, intake: Intake) -> Any:
    """``policy``, recording outcomes in another way than its own."""
    return policy.record_as(intake) if isinstance(policy, ContextForgetting) else policy._replace(intake=intake)
