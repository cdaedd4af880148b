"""What both sieves share: when they decide as the plain policy does, the order of arms for ties, and exact scores."""

from typing import Any

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.actions import Subsets
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.indices import Index, monotone
from superarm.oracles import Oracle
from superarm.oracles.traits import greedy
from superarm.policies.base import Round
from superarm.policies.fast.tournament import Tournament, update_key
from superarm.policies.scoring import ArmView, score_arm
from superarm.problem import Problem
from superarm.rewards import gain, initial_states
from superarm.rewards.base import has_bound_slope
from superarm.streams import Stream


def decides_alike(confidence: Index, oracle: Oracle, problem: Problem) -> bool:
    """Whether an index policy that skips arms by upper bounds of their gains decides as the plain policy does."""
    greedily = greedy(oracle) and isinstance(problem.actions, Subsets)
    return bool(greedily and monotone(confidence) and has_bound_slope(problem.reward))


@lean
def is_overridden(current: Round) -> bool:
    """Whether the round uses counts or eligibility other than the tally's."""
    eligible, every_arm = current.candidates.eligible, True
    for j in range(np.uint64(len(eligible))):  # bits, not a count: 32 arms to a register
        every_arm &= eligible[j]
    return not every_arm or current.candidates.counts is not current.tally.pulls


@lean
def align_tournament(tournament: Tournament, candidates: Candidates, last: Ints, every_arm: bool) -> None:
    """Order the arms by their counts, without those that are not eligible.

    Updates every arm, or only those of the ``last`` batch (k,), padded with -1.
    """
    if every_arm:
        for j in range(len(candidates.counts)):
            update_key(tournament, j, candidates.counts[j] if candidates.eligible[j] else np.inf, 0.0)
    else:
        for j in last:
            if j >= 0:
                update_key(tournament, j, candidates.counts[j], 0.0)


@inlined
def score_once(confidence: Index, problem: Problem, current: Round, memory: Any, arm: int, stream: Stream) -> bool:
    """Compute the exact scores of ``arm`` unless this call of ``choose`` already has; return whether it did so now."""
    estimates, stamp = memory.estimates, memory.stamp
    if stamp[arm] == memory.calls[0]:
        return False
    stamp[arm] = memory.calls[0]
    view = ArmView(arm, current.candidates.counts[arm], current.t, 1.0)
    score_arm(confidence, problem, current.tally, estimates, view, stream)
    return True


@kernel
def largest_gains(problem: Problem, n_entries: int) -> Floats:
    """What each arm adds to the empty batch if all its parameters are 1."""
    states, ones = initial_states(problem.reward, problem.terms), np.ones(n_entries)
    return np.array([gain(problem.reward, problem.terms, states, ones, j) for j in range(problem.n_arms)])
