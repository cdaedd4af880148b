"""Turn the state into replies."""

import numpy as np
from msgspec import UNSET

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.warnings import list_warnings
from superarm.service.schemas import ArmRow, DecisionReply, ProblemReply


def decision(record: DecisionRecord, learner: ProblemState, created: bool = False) -> DecisionReply:
    """The reply that shows a decision, with the names of its arms."""
    asked, names = record.asked, learner.arms.all
    return DecisionReply(
        asked.id,
        asked.problem,
        [names[j] for j in record.action],
        list(record.action),
        asked.t,
        asked.version,
        record.state,
        created,
        None if asked.propensities is None else list(asked.propensities),
        None if asked.policy_action is None else [names[j] for j in asked.policy_action],
        list(asked.slots) or None,
        None if asked.items is None else [learner.items.all[i] for i in asked.items],
        None if asked.inclusion is None else list(asked.inclusion),
    )


def problem(name: str, learner: ProblemState, pending: int) -> ProblemReply:
    """The reply that shows the current state of a problem."""
    return ProblemReply(
        name,
        learner.problem.n_arms,
        learner.problem.n_items,
        learner.k,
        learner.asked,
        pending,
        len(learner.versions),
        learner.settings,
        list(learner.items.all),
        learner.problem.weights.tolist(),
        list_warnings(learner),
    )


def arm(learner: ProblemState, arm: int) -> ArmRow:
    """What is known of an arm: the estimates of ``superarm.tally.estimate``, without a kernel to be compiled first."""
    tally, own = learner.tally, learner.items_of(arm)
    span = slice(*learner.problem.support.span(arm))
    counts = tally.pulls[arm] - (tally.missed[span] if tally.missed.size else np.zeros(span.stop - span.start))
    known = np.where(counts > 0.0, counts, 1.0)
    mean = tally.total[span] / known
    deviation = np.sqrt(np.maximum(0.0, tally.square[span] / known - mean * mean))
    seen = counts.astype(int).tolist()
    return ArmRow(
        learner.arms.all[arm],
        int(tally.pulls[arm]),
        int(learner.pending[arm]),
        bool(learner.retired[arm]),
        seen,
        [x if s else None for x, s in zip(mean.tolist(), seen, strict=True)],
        [x * x if s else None for x, s in zip(deviation.tolist(), seen, strict=True)],
        UNSET if own is None else [learner.items.all[i] for i in own],
    )
