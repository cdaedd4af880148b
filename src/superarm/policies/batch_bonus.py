"""One exploration bonus for the whole batch, for rewards of any shape."""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import component, interpreted, kernel, verb
from superarm.actions import capacity
from superarm.arrays import Floats
from superarm.parameters import nonnegative, positive
from superarm.policies.base import Round
from superarm.problem import Problem
from superarm.rewards.base import derivative, join
from superarm.support import item, span
from superarm.tally import missed_count, most_missed, seen_count


class Bonus(Protocol):
    """The bonus of a batch under construction: ``room`` is what it keeps of the batch, ``states`` the items' states."""

    def spare(self, problem: Problem) -> Floats:
        """Room for the empty batch."""
        ...

    def bonus(self, problem: Problem, current: Round, mean: Floats, states: Floats, room: Floats, arm: int) -> float:
        """The bonus of the batch with ``arm``, where ``states`` and ``room`` are those of the batch without it."""
        ...

    def extend(self, problem: Problem, current: Round, mean: Floats, states: Floats, room: Floats, arm: int) -> None:
        """Turn ``room`` into that of the batch with ``arm``; ``states`` is still that of the batch without it."""
        ...

    def fit(self, problem: Problem) -> Any:
        """The bonus made ready for this problem."""
        ...


spare = verb(Bonus.spare)
bonus = verb(Bonus.bonus)
extend = verb(Bonus.extend)


class Change(NamedTuple):
    """What an arm does to the variance of one item: it scales that of the others by ``fade``, and adds ``own``."""

    fade: float
    own: float


@component
class Delta(NamedTuple):
    r"""The standard deviation of the estimated reward, by the delta method: ESCB-delta.

    .. math:: \sqrt{2\rho\log t\ Var(A)}, \qquad Var(A) = \sum_{j \in A}\sum_i
              \Bigl(\frac{\partial r(A; \hat p)}{\partial p_{ij}}\Bigr)^2
              \frac{\tilde p_{ij}(1 - \tilde p_{ij})}{N_{ij}}

    with :math:`\tilde p = (S + 1)/(N + 2)`.

    The bonus of [CombesEtAl2015]_ (ESCB-2) for a reward that is not linear. The state of an item is a function of a sum
    over arms, so one more arm scales the derivatives in all others by the same number, and a candidate costs as much
    as its entries. Assumes that arms and items are independent: the variances are added.
    """

    rho: float = 1.0

    def _check(self) -> None:
        positive(self, "rho")

    @property
    def caveat(self) -> str:
        return "Its bonus adds up variances: it assumes that arms and the items of an arm are independent."

    def spare(self, problem: Problem) -> Floats:
        return np.zeros(problem.n_items + 1)  # the variance of each item, and their sum

    def bonus(self, problem: Problem, current: Round, mean: Floats, states: Floats, room: Floats, arm: int) -> float:
        first, last = span(problem.terms.support, arm)
        variance = room[problem.n_items]
        for o in range(last - first):
            i = item(problem.terms.support, first, o)
            change = _change(problem, current, mean, states, arm, first, o)
            variance += (change.fade - 1.0) * room[i] + change.own
        return math.sqrt(2.0 * self.rho * math.log(current.t) * max(0.0, variance))

    def extend(self, problem: Problem, current: Round, mean: Floats, states: Floats, room: Floats, arm: int) -> None:
        first, last = span(problem.terms.support, arm)
        for o in range(last - first):
            i = item(problem.terms.support, first, o)
            change = _change(problem, current, mean, states, arm, first, o)
            room[problem.n_items] += (change.fade - 1.0) * room[i] + change.own
            room[i] = change.fade * room[i] + change.own

    @interpreted
    def fit(self, problem: Problem) -> "Delta":
        return self


@kernel
def _change(problem: Problem, current: Round, mean: Floats, states: Floats, arm: int, first: int, o: int) -> Change:
    i = item(problem.terms.support, first, o)
    weight, q = problem.terms.weights[i], mean[first + o]
    n = max(1.0, current.candidates.counts[arm] - missed_count(current.tally, first + o))
    told = seen_count(current.tally, arm, first + o)
    smooth = (current.tally.total[first + o] + 1.0) / (told + 2.0)
    slope = derivative(problem.reward, weight, states[i], q)
    before = derivative(problem.reward, weight, states[i], 0.0)
    ratio = (
        derivative(problem.reward, weight, join(problem.reward, states[i], q), 0.0) / before if before > 0.0 else 0.0
    )
    return Change(ratio * ratio, slope * slope * smooth * (1.0 - smooth) / n)


@component
class LeastPlayed(NamedTuple):
    r"""A bonus for the arm of the batch that was played least: superarm's own, without a regret bound.

    .. math:: scale\,\sqrt{f(t) / \min_{j \in A} N_j}, \qquad f(t) = \log t + c\,k\,n\_items\log\log t,
              \qquad scale = 2\gamma_g\lVert w\rVert_2

    For independent arms and items and ``c=4``, on the event
    :math:`\sum_{i, j \in A} N_j\,kl(\hat p_{ij}, p_{ij}) \le f(t)` of [CombesEtAl2015]_ for a *fixed* batch A it covers
    :math:`r(A; p)`, with the norm of the weights in place of their sum. That is no regret bound: the batch that is
    played is random, so that the event would be needed for all batches at once, and it is grown greedily, so that it
    need not maximise value plus bonus. ``fit`` sets ``scale``. An arm counts the pulls of its entry that was seen
    least.
    """

    c: float = 4.0
    scale: float = 1.0

    def _check(self) -> None:
        nonnegative(self, "c", "scale")

    @property
    def caveat(self) -> str:
        return "It assumes independent arms and items; with dependent ones its bonus is too small."

    def spare(self, problem: Problem) -> Floats:
        return np.full(1, np.inf)  # the fewest pulls of an arm in the batch

    def bonus(self, problem: Problem, current: Round, mean: Floats, states: Floats, room: Floats, arm: int) -> float:
        f = math.log(current.t)
        if current.t > 2:
            f += self.c * capacity(problem.actions, problem.n_arms) * problem.n_items * math.log(f)
        return self.scale * math.sqrt(f / min(room[0], _fewest(problem, current, arm)))

    def extend(self, problem: Problem, current: Round, mean: Floats, states: Floats, room: Floats, arm: int) -> None:
        room[0] = min(room[0], _fewest(problem, current, arm))

    @interpreted
    def fit(self, problem: Problem) -> "LeastPlayed":
        norm = float(np.sqrt(np.sum(problem.weights**2)))
        return self._replace(scale=2.0 * problem.reward.smoothness(problem.k).gamma_g * norm)


@kernel
def _fewest(problem: Problem, current: Round, arm: int) -> float:
    """How often the entry of ``arm`` that was seen least was seen, at least 1."""
    return max(1.0, float(current.candidates.counts[arm]) - most_missed(current.tally, problem.terms.support, arm))
