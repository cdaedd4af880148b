"""Why the slate of a decision was chosen, by the explanation of the library: the request, and the reply."""

import numpy as np
from msgspec import Struct

from superarm.agent.decisions import Decision, DecisionEntry
from superarm.agent.explanations import Explanation, explain_decision
from superarm.service.domain.decision import DecisionRecord, counted_rows, pending_arms
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.runtime.coordinator import THREAD_SIZE, Coordinator


class FeatureEffect(Struct, frozen=True):
    """What a feature adds to the estimate of an arm.

    Parameters
    ----------
    feature
        The feature.
    effect
        What it adds to the estimated mean; of a logistic model, to its log-odds.
    """

    feature: str
    effect: float


class ExplainedArmReply(Struct, frozen=True):
    """An arm of a slate, and why it was chosen.

    Parameters
    ----------
    arm
        Its name.
    estimate
        Its estimated parameters, one per item that it can touch.
    optimistic
        The parameters that the policy hoped for, or drew.
    gain
        What it added to the arms before it, at the parameters that were hoped for.
    estimated_gain
        What it added at the estimates.
    features
        The features that mattered most.
    """

    arm: str
    estimate: list[float]
    optimistic: list[float]
    gain: float
    estimated_gain: float
    features: list[FeatureEffect]


class ExplanationReply(Struct, frozen=True):
    """Why these arms, by what is known now; a pending decision as if it was not made yet.

    Parameters
    ----------
    id
        The decision's id.
    problem
        Its problem.
    arms
        The arms in the order of picking.
    """

    id: str
    problem: str
    arms: list[ExplainedArmReply]


async def explain(coordinator: Coordinator, key: Key, most: int) -> Explanation:
    """Why the slate of a decision was chosen, with the ``most`` largest effects of features; computed in a thread."""
    record = await coordinator.record(key)
    name = record.asked.problem
    return await coordinator.read(key[0], name, lambda state: explain_record(state, record, most), THREAD_SIZE)


def explain_record(state: ProblemState, record: DecisionRecord, most: int) -> Explanation:
    """Explain a decision by what is known now; one that is pending is explained as if it was not made yet."""
    asked, held = record.asked, pending_arms(record)
    context = None if state.contexts is None else state.contexts.restore(asked)
    words = None if state.contexts is None else state.contexts.words(asked)
    action = np.array(record.action or asked.action, np.int64)
    names = tuple(state.arms.all[j] for j in action)
    made = DecisionEntry(Decision(asked.id, asked.t, action, names), asked.n_items, 0, context, words)
    silent = {} if record.closed or asked.silence is None else counted_rows(record)
    state.change_pending(asked, held, ())
    state.count(asked, silent, -1.0)
    if silent and state.learnt is not None:
        state.learnt.record(asked, {})
    try:
        return explain_decision(state.chooser, made, most, state.key("mind", asked.id))
    finally:
        state.change_pending(asked, (), held)
        state.count(asked, silent, 1.0)
        if silent and state.learnt is not None:
            state.learnt.record(asked, silent)


def to_reply(problem: str, found: Explanation) -> ExplanationReply:
    """The reply that explains a decision."""
    arms = []
    for arm in found.arms:
        effects = [FeatureEffect(name, effect) for name, effect in arm.features]
        estimates = arm.estimate.tolist(), arm.optimistic.tolist()
        arms.append(ExplainedArmReply(arm.name, *estimates, arm.gain, arm.estimated_gain, effects))
    return ExplanationReply(found.decision.id, problem, arms)
