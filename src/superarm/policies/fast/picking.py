"""How a dense sieve finds the arm with the largest gain, from bounds of all gains: [Minoux1978]_.

``memory`` is that of the sieve.
"""

from typing import Any

import numpy as np

from superarm._jit import inlined
from superarm.indices import Index, bound_by_tangents
from superarm.policies.base import Round
from superarm.policies.fast.sieving import score_once
from superarm.policies.fast.tiles import bound_gains, largest_reach, next_reaching, refine_bounds
from superarm.policies.fast.tournament import precedes
from superarm.policies.scoring import ArmView, arm_level
from superarm.problem import Problem
from superarm.rewards import gain
from superarm.streams import Stream

_SLACK = 1.0 + 1e-9
"""More than rounding can change of a gain from bounds by tangents."""


@inlined
def pick_arm(confidence: Index, problem: Problem, current: Round, memory: Any, stream: Stream) -> int:
    """The arm with the largest gain among those that may join, ties by the tournament; -1 if all gains are 0.

    It is compiled into its caller: ``memory`` would be hundreds of arguments, written for each arm of a batch.
    """
    screen, tournament = memory.screen, memory.tournament
    largest = gain(problem.reward, problem.terms, memory.states, memory.ones, 0)  # no arm can gain more
    if largest == 0.0:
        return -1
    best = tournament.winner[1]
    if screen.all_one[best] and _gain(confidence, problem, current, memory, best, stream) == largest:
        return best  # type: ignore[no-any-return]
    scale = bound_gains(screen, problem.reward, problem.terms, memory.states)  # type: ignore[arg-type]
    best = largest_reach(screen.reach, screen.top)
    if screen.reach[best] == 0.0:
        return -1
    if screen.rough[0]:
        most = _gain(confidence, problem, current, memory, best, stream)
        refine_bounds(screen, np.float32(most / scale * (1.0 - 1.2e-7)))
        best = largest_reach(screen.reach, screen.top)
    best = _most_promising(confidence, problem, current, memory, best, scale)
    most = _gain(confidence, problem, current, memory, best, stream)
    enough = np.float32(most / scale * (1.0 - 1.2e-7))
    first, j = best, next_reaching(screen.reach, screen.top, 0, enough)
    while j >= 0:
        if j != first and _bound_gain(confidence, problem, current, memory, j) >= most:
            g = _gain(confidence, problem, current, memory, j, stream)
            if g > most or (g == most and precedes(tournament, j, best)):
                best, most = j, g
                enough = np.float32(most / scale * (1.0 - 1.2e-7))
        j = next_reaching(screen.reach, screen.top, j + 1, enough)
    return best


@inlined
def _most_promising(confidence: Index, problem: Problem, current: Round, memory: Any, best: int, scale: float) -> int:
    """The arm whose gain is computed first: that of the largest bound by tangents or, without these, ``best``.

    Any arm would do, but the more it gains the fewer others are computed.
    """
    screen = memory.screen
    most = _bound_gain(confidence, problem, current, memory, best)
    if most == np.inf:
        return best
    reach, j = screen.reach, next_reaching(screen.reach, screen.top, 0, np.float32(most / scale))
    while j >= 0:
        g = _bound_gain(confidence, problem, current, memory, j)
        reach[j] = np.float32(g / scale * (1.0 + 2e-7))
        best, most = (j, g) if g > most else (best, most)
        j = next_reaching(screen.reach, screen.top, j + 1, np.float32(most / scale))
    return best


@inlined
def _bound_gain(confidence: Index, problem: Problem, current: Round, memory: Any, arm: int) -> float:
    """A bound of an arm's gain by tangents of the bounds of its scores at a later round; infinite without these."""
    estimates, bounded, call = memory.estimates, memory.bounded, memory.calls[0]
    if bounded[arm] != call and memory.stamp[arm] != call:
        view, n = ArmView(arm, memory.counted[arm], current.t, 1.0), problem.n_items
        step = memory.levels[arm] - arm_level(confidence, problem, view)
        if current.tally.missed.size > 0 or not bound_by_tangents(
            confidence, estimates.mean, arm * n, n, memory.later.q, step, estimates.q
        ):
            return np.inf
        bounded[arm] = call
    return gain(problem.reward, problem.terms, memory.states, estimates.q, arm) * _SLACK


@inlined
def _gain(confidence: Index, problem: Problem, current: Round, memory: Any, arm: int, stream: Stream) -> float:
    """The exact gain, from exact scores that are computed once per call."""
    score_once(confidence, problem, current, memory, arm, stream)
    return gain(problem.reward, problem.terms, memory.states, memory.estimates.q, arm)
