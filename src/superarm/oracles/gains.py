r"""What each arm would add to a batch: the one loop over arms that oracles and certificates share.

:math:`r(A + j; q) - r(A; q)`, the marginal gain of [NemhauserWolseyFisher1978]_.
"""

import numpy as np

from superarm._jit import kernel
from superarm.actions import Ranks
from superarm.arrays import Floats, Ints
from superarm.problem import Problem
from superarm.rewards import absorb, fresh, gain


@kernel
def gains(problem: Problem, memo: Floats, q: Floats, ranks: Ranks) -> Floats:
    """r(A + j; q) - r(A; q) of every eligible arm j, at least 0, where ``memo`` is the state of A; (n_arms,)."""
    found = np.zeros(problem.n_arms)
    for j in range(problem.n_arms):
        if ranks.eligible[j]:
            found[j] = max(0.0, gain(problem.reward, problem.terms, memo, q, j))
    return found


@kernel
def state(problem: Problem, q: Floats, action: Ints) -> Floats:
    """The state of ``action``."""
    memo = fresh(problem.reward, problem.terms)
    for j in action:
        absorb(problem.reward, problem.terms, memo, q, j)
    return memo


@kernel
def before(ranks: Ranks, a: int, b: int) -> bool:
    """Whether arm ``a`` stands before arm ``b`` among equals."""
    return ranks.pulls[a] < ranks.pulls[b] or (ranks.pulls[a] == ranks.pulls[b] and a < b)
