"""How far from the optimum a batch can be, at most."""

from typing import Any

import numpy as np

from superarm.problem import Problem
from superarm.rewards import absorb, fresh, gain, total


def upper_bound(problem: Problem, p: Any, action: Any) -> float:
    r"""An upper bound of the optimum from the gains that are left, at every stage of building ``action``.

    .. math:: r_{\max} \le \min_n \Bigl\{ r(A_n; p)
              + \sum_{\text{the } k \text{ largest}} [r(A_n + j; p) - r(A_n; p)] \Bigr\}

    for a monotone submodular reward, :math:`A_n` being the first n arms of ``action`` and k the largest batch size,
    [NemhauserWolseyFisher1978]_ (section 4); infinite for other rewards.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> upper_bound(problem, [[0.5], [0.5], [0.5]], [0, 1])
    1.0
    """
    if not problem.reward.submodular:
        return float(np.inf)
    q = problem.entries(p)
    memo = fresh(problem.reward, problem.terms)
    arms = range(problem.n_arms)
    bounds = []
    for j in (*problem.action(action), -1):
        gains = np.sort([gain(problem.reward, problem.terms, memo, q, arm) for arm in arms])
        bounds.append(total(problem.reward, problem.terms, memo) + gains[-problem.k :].sum())
        if j >= 0:
            absorb(problem.reward, problem.terms, memo, q, int(j))
    return float(min(bounds))
