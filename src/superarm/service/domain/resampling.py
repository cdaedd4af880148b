"""Counting how likely arms were, by drawing slates again from the state of a decision."""

from typing import NamedTuple

from superarm.learner.other_policies import choose_by
from superarm.policies import Policy
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import Slate, SlateRequest, actions_of, choose_slate, count_inclusion, playable_arms


class Inclusion(NamedTuple):
    """The chance of each arm of a slate to be in it; None without chance. ``draws`` is 0 if it is exact."""

    chances: tuple[float, ...] | None
    draws: int


def again(learner: ProblemState, id: str, request: SlateRequest, draws: int) -> Slate:
    """The slate of a decision, chosen again, with inclusion counted from ``draws`` where no formula is known."""
    slate = choose_slate(learner, id, request)
    known = slate.inclusion is not None and not slate.draws
    if known or (slate.propensities is not None and all(chance == 1.0 for chance in slate.propensities)):
        return slate
    return slate._replace(inclusion=count_inclusion(learner, id, request, slate.action, draws), draws=draws)


class TargetPolicy(NamedTuple):
    """Another policy, and how many of its slates are drawn for each decision."""

    policy: Policy
    draws: int


def inclusion_by(
    learner: ProblemState, target: TargetPolicy, id: str, request: SlateRequest, action: tuple[int, ...]
) -> tuple[float, ...]:
    """The share of the slates of another policy, in the state of a decision, that hold each arm of ``action``."""
    playable, actions = playable_arms(learner, request), actions_of(learner, request)
    streams = (learner.stream("target", f"{id}/{n}") for n in range(target.draws))
    batches = choose_by(learner.learner, target.policy, learner.t, playable, streams, actions, learner.reserved_arms())
    held = dict.fromkeys(action, 0)
    for batch in batches:
        rest = [j for j in batch if j not in request.pinned]
        for arm in (*request.pinned, *rest[: (request.k or learner.k) - len(request.pinned)]):
            if arm in held:
                held[arm] += 1
    return tuple(n / target.draws for n in held.values())
