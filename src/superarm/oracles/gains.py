r"""Marginal gains of arms, shared by oracles and certificates.

:math:`r(A + j; q) - r(A; q)`, the marginal gain of [NemhauserWolseyFisher1978]_.
"""

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.problem import Problem
from superarm.rewards import gain, initial_states, join_arm


@kernel
def gains(problem: Problem, states: Floats, q: Floats, candidates: Candidates) -> Floats:
    """r(A + j; q) - r(A; q) of every eligible arm j, at least 0, (n_arms,); ``states`` are the item states of A."""
    found = np.zeros(problem.n_arms)
    for j in range(problem.n_arms):
        if candidates.eligible[j]:
            found[j] = max(0.0, gain(problem.reward, problem.terms, states, q, j))
    return found


@kernel
def batch_states(problem: Problem, q: Floats, action: Ints) -> Floats:
    """The item states of ``action``, (n_items,)."""
    states = initial_states(problem.reward, problem.terms)
    for j in action:
        join_arm(problem.reward, problem.terms, states, q, j)
    return states


@kernel
def wins_tie(candidates: Candidates, a: int, b: int) -> bool:
    """Whether arm ``a`` wins a tie against arm ``b``: it has fewer pulls, or as many and the lower number."""
    return candidates.counts[a] < candidates.counts[b] or (candidates.counts[a] == candidates.counts[b] and a < b)
