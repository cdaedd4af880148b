"""Turn the state into replies."""

import numpy as np
from msgspec import UNSET

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.warnings import list_warnings
from superarm.service.schemas import ArmRow, DecisionReply, ProblemReply
from superarm.support import Dense
from superarm.tally import Tally, estimate


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
    """What is known of an arm."""
    tally, own = learner.tally, learner.items_of(arm)
    pulls, span = tally.pulls[arm], slice(*learner.problem.support.span(arm))
    missed = tally.missed[span] if tally.missed.size else np.zeros(span.stop - span.start)
    alone = Tally(tally.pulls[arm : arm + 1], tally.total[span], tally.square[span], missed)
    mean, deviation = np.zeros(span.stop - span.start), np.zeros(span.stop - span.start)
    estimate(alone, Dense(1, span.stop - span.start), 0, mean, deviation)
    seen = (pulls - missed).astype(int).tolist()
    return ArmRow(
        learner.arms.all[arm],
        int(pulls),
        int(learner.pending[arm]),
        bool(learner.retired[arm]),
        seen,
        [x if s else None for x, s in zip(mean.tolist(), seen, strict=True)],
        [x * x if s else None for x, s in zip(deviation.tolist(), seen, strict=True)],
        UNSET if own is None else [learner.items.all[i] for i in own],
    )
