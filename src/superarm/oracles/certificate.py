"""Certificates: upper bounds of the optimum, which show how far from it a batch can be at most."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.actions import ceiling
from superarm.actions.weights import exceed_total
from superarm.arrays import Floats, Ints, arms
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee, Oracle, maximize
from superarm.oracles.gains import batch_states, gains
from superarm.problem import Problem
from superarm.rewards import initial_states, join_arm, value_of_states
from superarm.rewards.traits import additive, monotone
from superarm.streams import new_stream

TARGET_STAGES = 8
"""At about how many stages of building a batch the bound is computed; the smallest one counts."""


class Certificate(NamedTuple):
    """The value of a batch, and an upper ``bound`` of the value of any batch at the same parameters.

    ``measured_alpha`` holds for these parameters only; it is not the oracle's guarantee, and regret does not use it.
    """

    value: float
    bound: float

    @property
    def measured_alpha(self) -> float:
        """The batch has at least this share of the optimum."""
        return min(1.0, self.value / self.bound) if self.bound > 0.0 else 1.0

    @property
    def gap(self) -> float:
        """The value of the batch is below the optimum by at most this."""
        return max(0.0, self.bound - self.value)


class Solution(NamedTuple):
    """A batch, the guarantee of the oracle that found it, and the certificate of this batch."""

    action: Ints
    guarantee: Guarantee
    certificate: Certificate


def certified(problem: Problem, p: Any, oracle: Oracle, eligible: Any = None, seed: int = 0) -> Solution:
    """Find a batch for known parameters, together with its certificate.

    Parameters
    ----------
    problem
        Arms, items, reward and action set.
    p
        The parameters, (n_arms, n_items).
    oracle
        The algorithm.
    eligible
        The arms that may be played; all by default.
    seed
        For oracles that draw random numbers.

    Raises
    ------
    InvalidArgument
        If the reward is not a sum over items, or the oracle does not apply.

    Examples
    --------
    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=2, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> found = certified(problem, [[0.9, 0.0], [0.8, 0.0], [0.0, 0.5]], sa.Greedy())
    >>> found.action, round(found.guarantee.alpha, 3), round(found.certificate.measured_alpha, 3)
    (array([0, 2]), 0.75, 0.946)
    """
    fitted, q, candidates = oracle.fit(problem), problem.entries(p), _candidates(problem, eligible)
    action = maximize(fitted, problem, q, candidates, new_stream(np.random.SeedSequence(seed)))
    return Solution(action, fitted.guarantee(problem), _certificate(problem, q, candidates, action))


def certify(problem: Problem, p: Any, action: Any, eligible: Any = None) -> Certificate:
    """The certificate of ``action``, however it was found.

    Parameters
    ----------
    problem
        Arms, items, reward and action set.
    p
        The parameters, (n_arms, n_items).
    action
        The arms of a batch.
    eligible
        The arms that may be played; all by default.

    Examples
    --------
    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=sa.Subsets(2))
    >>> certify(problem, [[0.5], [0.25], [0.125]], [0, 2])
    Certificate(value=0.625, bound=0.75)
    """
    return _certificate(problem, problem.entries(p), _candidates(problem, eligible), problem.action(action))


def upper_bound(problem: Problem, p: Any, action: Any) -> float:
    r"""An upper bound of the optimum, from the marginal gains at the stages of building ``action``.

    .. math:: r_{\max} \le \min_n \Bigl\{ r(A_n; p)
              + \max_{B} \sum_{j \in B \setminus A_n} [r(A_n + j; p) - r(A_n; p)] \Bigr\}

    for a monotone submodular reward, where :math:`A_n` is the first n arms of ``action`` and B any batch of the action
    set, or of a relaxation where the heaviest batch is hard to find, [NemhauserWolseyFisher1978]_ (section 4). For
    every monotone reward, the value of all arms together is a bound, too.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> upper_bound(problem, [[0.5], [0.5], [0.5]], [0, 1])
    0.875
    """
    return certify(problem, p, action).bound


def _certificate(problem: Problem, q: Floats, candidates: Candidates, action: Ints) -> Certificate:
    if not additive(problem.reward):
        raise InvalidArgument("problem", "its reward is not a sum over items", "certificates need such a reward")
    value = value_of_states(problem.reward, problem.terms, batch_states(problem, q, action))
    high = value_of_all(problem, q, candidates)
    if not monotone(problem.reward):  # each arm lowers the value: the empty batch is the bound
        high = value_of_states(problem.reward, problem.terms, initial_states(problem.reward, problem.terms))
    if problem.reward.submodular:
        high = min(high, bound(problem, q, candidates, action, 0))
    return Certificate(float(value), float(max(value, high)))


def _candidates(problem: Problem, eligible: Any) -> Candidates:
    candidates = problem.candidates()
    if eligible is not None:
        candidates.eligible[:] = False
        candidates.eligible[arms(eligible, "eligible", problem.n_arms)] = True
    return candidates


@kernel
def value_of_all(problem: Problem, q: Floats, candidates: Candidates) -> float:
    """The value of all eligible arms together."""
    return value_of_states(problem.reward, problem.terms, batch_states(problem, q, np.flatnonzero(candidates.eligible)))


@kernel
def bound(problem: Problem, q: Floats, candidates: Candidates, action: Ints, held: int) -> float:
    """An upper bound of the value of any batch of eligible arms that contains the first ``held`` arms of ``action``.

    For submodular rewards only. The value of such a batch B is at most r(C) plus the gains at C of its arms outside of
    C, for every stage C of building ``action``. The first ``held`` arms get so large a weight that no batch without
    them attains the maximum.
    """
    stride = max(1, (len(action) - held) // TARGET_STAGES)
    states = batch_states(problem, q, action[:held])
    least = np.inf
    for n in range(held, len(action) + 1):
        if n == len(action) or (n - held) % stride == 0:
            weights = gains(problem, states, q, candidates)
            for j in action[:n]:
                weights[j] = 0.0
            bonus = exceed_total(weights) if held > 0 else 0.0
            for j in action[:held]:
                weights[j] = bonus
            heaviest = ceiling(problem.actions, weights, candidates) - held * bonus
            least = min(least, value_of_states(problem.reward, problem.terms, states) + heaviest)
        if n < len(action):
            join_arm(problem.reward, problem.terms, states, q, action[n])
    return least
