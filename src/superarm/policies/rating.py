"""The hopeful parameters of one arm, or of all."""

from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel
from superarm.actions import capacity
from superarm.arrays import Floats
from superarm.indices import Index, level, score
from superarm.noise import Noise
from superarm.policies.base import Moment
from superarm.problem import Problem
from superarm.support import span
from superarm.tally import Tally, estimate


class Estimates(NamedTuple):
    """Empirical mean and standard deviation of every entry, and room for the scores: (n_entries,) each."""

    mean: Floats
    deviation: Floats
    q: Floats


class Glance(NamedTuple):
    """An arm as seen at round ``t``, counted as pulled ``pulls`` times."""

    arm: int
    pulls: float
    t: int


@kernel
def estimated(problem: Problem, tally: Tally) -> Estimates:
    """The estimates of every arm."""
    entries = len(tally.total)
    memory = Estimates(np.zeros(entries), np.zeros(entries), np.zeros(entries))
    for j in range(problem.n_arms):
        estimate(tally, problem.terms.support, j, memory.mean, memory.deviation)
    return memory


@kernel
def rate(confidence: Index, problem: Problem, moment: Moment, memory: Estimates, noise: Noise) -> None:
    """Write the score of every entry of every eligible arm into ``memory.q``."""
    for j in range(problem.n_arms):
        if moment.ranks.eligible[j]:
            first, last = span(problem.terms.support, j)
            glance = Glance(j, moment.ranks.pulls[j], moment.t)
            rate_arm(confidence, problem, moment.tally, memory, glance, noise, memory.q[first:last])


@inlined
def rate_arm(
    confidence: Index, problem: Problem, tally: Tally, memory: Estimates, glance: Glance, noise: Noise, row: Floats
) -> None:
    """Write the scores of one arm's entries into ``row``. An entry that was never seen scores 1."""
    share = capacity(problem.actions, problem.n_arms) / problem.n_arms
    first, last = span(problem.terms.support, glance.arm)
    mean, deviation = memory.mean[first:last], memory.deviation[first:last]
    if tally.missed.size > 0:
        missed = tally.missed[first:last]
        for o in range(last - first):
            seen = glance.pulls - missed[o]
            row[o] = 1.0
            if seen > 0.0:
                row[o] = score(confidence, mean[o], deviation[o], level(confidence, seen, glance.t, share), noise)
    elif glance.pulls == 0.0:
        row[:] = 1.0
    else:
        x = level(confidence, glance.pulls, glance.t, share)
        for o in range(last - first):
            row[o] = score(confidence, mean[o], deviation[o], x, noise)
