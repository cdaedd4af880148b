"""Turn the state into replies."""

import numpy as np
from msgspec import UNSET

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.problem import ProblemState
from superarm.service.schemas import ArmRow, ArmsReply, DecisionReply, ProblemReply
from superarm.tally import estimate


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
    )


def arms(learner: ProblemState, first: int, last: int) -> ArmsReply:
    """The arms from ``first`` up to ``last``, with their estimates."""
    total = learner.problem.n_arms
    mean, deviation = np.zeros_like(learner.tally.total), np.zeros_like(learner.tally.total)
    rows = []
    for arm in range(min(first, total), min(last, total)):
        estimate(learner.tally, learner.problem.support, arm, mean, deviation)
        rows.append(_arm(learner, arm, mean, deviation))
    return ArmsReply(rows, total)


def _arm(learner: ProblemState, arm: int, mean: np.ndarray, deviation: np.ndarray) -> ArmRow:
    pulls, own = learner.tally.pulls[arm], learner.items_of(arm)
    span = slice(*learner.problem.support.span(arm))
    missed = learner.tally.missed[span] if learner.tally.missed.size else np.zeros(span.stop - span.start)
    seen = [int(pulls - gone) for gone in missed]
    return ArmRow(
        learner.arms.all[arm],
        int(pulls),
        int(learner.pending[arm]),
        bool(learner.retired[arm]),
        seen,
        [float(x) if s else None for x, s in zip(mean[span], seen, strict=True)],
        [float(x * x) if s else None for x, s in zip(deviation[span], seen, strict=True)],
        UNSET if own is None else [learner.items.all[i] for i in own],
    )
