"""Why a slate was chosen, by the explanation of the library."""

import numpy as np

from superarm.agent.decisions import Decision, DecisionEntry
from superarm.agent.explanations import Explanation, explain_decision
from superarm.core.arrays import Ints
from superarm.service.domain.compilation import ask_once
from superarm.service.domain.decision import DecisionRecord, open_record, pending_arms
from superarm.service.domain.events import Created
from superarm.service.domain.problem import ProblemState


def explain_record(learner: ProblemState, record: DecisionRecord, most: int) -> Explanation:
    """Explain a decision by what is known now, with the ``most`` largest effects of features.

    A decision that is pending is explained as if it was not made yet. Nobody else may use the problem meanwhile.
    """
    asked, held = record.asked, pending_arms(record)
    context = None if learner.contexts is None else learner.contexts.restore(asked)[1]
    action: Ints = np.array(record.action or asked.action, np.int64)
    names = tuple(learner.arms.all[j] for j in action)
    words = learner.contexts.words(asked) if learner.contexts is not None else None
    made = DecisionEntry(Decision(asked.id, asked.t, action, names), asked.n_items, 0, context, words)
    learner.change_pending(asked, held, ())
    try:
        return explain_decision(learner.flushed, made, most, learner.stream("mind", asked.id))
    finally:
        learner.change_pending(asked, (), held)


def compile_explanation(created: Created) -> None:
    """Explain a decision of a problem like this one, so that its kernels are compiled."""
    trial = ProblemState(created)
    record = open_record(ask_once(trial, 1))
    trial.move(None, record)
    explain_record(trial, record, 1)
