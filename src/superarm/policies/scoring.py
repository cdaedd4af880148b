"""The optimistic parameters of one arm, or of all: [MerlisMannor2019]_ (Algorithm 1, line 6)."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined, lean
from superarm.actions import capacity
from superarm.arrays import Floats
from superarm.indices import Index, bound_entries, level, score, score_entries, unknown
from superarm.intake import Intake
from superarm.policies.base import Round
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import Support, span
from superarm.tally import Feedback, Tally, estimate, record


class Estimates(NamedTuple):
    """Empirical mean and standard deviation of every entry, and a buffer for the scores: (n_entries,) each."""

    mean: Floats
    deviation: Floats
    q: Floats


class ArmView(NamedTuple):
    """An arm as seen at round ``t``, counted as pulled ``pulls`` times, its level scaled by ``scale``."""

    arm: int
    pulls: float
    t: int
    scale: float


@for_kernels
def estimate_arms(problem: Problem, tally: Tally) -> Estimates:
    """The estimates of every arm."""
    entries = len(tally.total)
    memory = Estimates(np.zeros(entries), np.zeros(entries), np.zeros(entries))
    if tally.pulls.any():  # otherwise there is nothing to estimate, and no kernel to compile
        estimate_all(tally, problem.terms.support, memory)
    return memory


@lean
def update_estimates(
    tally: Tally, support: Support, feedback: Feedback, intake: Intake, stream: Stream, sign: float, memory: Any
) -> None:
    """Record feedback (``sign=1.0``) or take it back (``sign=-1.0``), and update the estimates of its arms.

    ``memory`` has the estimates ``mean`` and ``deviation``, (n_entries,) each.
    """
    record(tally, support, feedback, intake, stream, sign)
    for j in feedback.action:
        estimate(tally, support, j, memory.mean, memory.deviation)


@lean
def estimate_all(tally: Tally, support: Support, memory: Any) -> None:
    """Write ``mean`` and ``deviation`` of every entry into ``memory``."""
    for j in range(len(tally.pulls)):
        estimate(tally, support, j, memory.mean, memory.deviation)


@lean
def score_arms(confidence: Index, problem: Problem, current: Round, memory: Estimates, stream: Stream) -> None:
    """Write the score of every entry of every eligible arm into ``memory.q``."""
    for j in range(problem.n_arms):
        if current.candidates.eligible[j]:
            score_arm(
                confidence,
                problem,
                current.tally,
                memory,
                ArmView(j, current.candidates.counts[j], current.t, 1.0),
                stream,
            )


@inlined
def score_arm(confidence: Index, problem: Problem, tally: Tally, memory: Any, view: ArmView, stream: Stream) -> None:
    """Write the scores of one arm's entries into ``memory.q``; an entry never observed gets the largest score."""
    if not score_missed(confidence, problem, tally, memory, view, stream):
        first, last = span(problem.terms.support, view.arm)
        x = view.scale * arm_level(confidence, problem, view)
        score_entries(confidence, memory.mean, memory.deviation, first, last - first, x, stream, memory.q)


@inlined
def bound_scores(confidence: Index, problem: Problem, tally: Tally, memory: Any, view: ArmView, stream: Stream) -> None:
    """Write numbers that the scores of one arm's entries do not exceed into ``memory.q``: see ``bound_entries``."""
    if not score_missed(confidence, problem, tally, memory, view, stream):
        first, last = span(problem.terms.support, view.arm)
        x = view.scale * arm_level(confidence, problem, view)
        if not bound_entries(confidence, memory.mean, memory.deviation, first, last - first, x, memory.q):
            score_entries(confidence, memory.mean, memory.deviation, first, last - first, x, stream, memory.q)


@inlined
def arm_level(confidence: Index, problem: Problem, view: ArmView) -> float:
    """The level of an arm, if all its entries were seen in all its pulls."""
    return level(confidence, view.pulls, view.t, capacity(problem.actions, problem.n_arms) / problem.n_arms)


@inlined
def score_missed(confidence: Index, problem: Problem, tally: Tally, memory: Any, view: ArmView, stream: Stream) -> bool:
    """Do so for an arm that was never observed, or if entries were missed; otherwise return False."""
    share = capacity(problem.actions, problem.n_arms) / problem.n_arms
    first, last = span(problem.terms.support, view.arm)
    # No slices, no stores through the tuple, unsigned offsets: each costs reference counts or vectors, 5x in all.
    q, at, n = memory.q, np.uint64(first), np.uint64(last - first)
    observed = tally.pulls[view.arm]
    if observed == 0.0:
        for o in range(n):
            q[at + o] = unknown(confidence)
    elif tally.missed.size > 0:
        for o in range(n):
            missed = tally.missed[at + o]
            x = view.scale * level(confidence, view.pulls - missed, view.t, share) if observed > missed else 0.0
            optimistic = score(confidence, memory.mean[at + o], memory.deviation[at + o], x, stream)
            q[at + o] = optimistic if observed > missed else unknown(confidence)
    return observed == 0.0 or tally.missed.size > 0
