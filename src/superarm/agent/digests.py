"""Digests of feedback, by which repeated feedback is recognised."""

import hashlib

import numpy as np

from superarm.agent.decisions import DecisionEntry
from superarm.problem import Problem
from superarm.support import Dense
from superarm.tally import Feedback


def digest_feedback(feedback: Feedback, problem: Problem, made: DecisionEntry) -> list[str]:
    """The digests of feedback about a decision; the first is the one to keep.

    Items that were added since the decision and of which nothing was seen do not matter. The first digest leaves them
    out; the others take in one more of them each, as the digests of agents did that were saved by version 0.1.0.
    """
    values, mask = feedback.outcome, feedback.seen
    own = feedback.action.tobytes()
    end = b"" if own == made.decision.action.tobytes() else own
    if not isinstance(problem.support, Dense) or made.n_items == problem.n_items:
        return [_hash(values.tobytes() + mask.tobytes() + end)]
    shape = (len(feedback.action), problem.n_items)
    table, seen = values.reshape(shape), mask.reshape(shape)
    least = max([made.n_items, *(1 + np.flatnonzero(seen.any(axis=0)))])
    widths = range(int(least), problem.n_items + 1)
    return [_hash(table[:, :width].tobytes() + seen[:, :width].tobytes() + end) for width in widths]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
