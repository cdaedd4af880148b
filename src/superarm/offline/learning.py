"""Learning from a log: the slate to ship, what that guarantees, and whether the best slate is known by now.

The slate to ship is the best one at the lower ends of all intervals. The one that is best by the means is the best one
up to epsilon, or it is said how much more has to be seen.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.actions import Subsets
from superarm.actions.explicit import tabulate
from superarm.core.arrays import Bools, Floats, Ints, count
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Tally
from superarm.offline.estimators.entries import EntryMeans, entry_intervals, pooled_means
from superarm.offline.estimators.slates import difference_bounds
from superarm.offline.result import warn_of_assumption, warn_of_outcomes
from superarm.oracles import Default, Oracle, certify
from superarm.problem import Problem
from superarm.rewards import smoothness_of

if TYPE_CHECKING:
    from superarm.offline.log import Log

MAX_LISTED_SLATES = 5_000
"""Up to this many slates, every slate is compared with the one to ship."""
TOLERANCE = 0.05
"""By default, epsilon is this share of the slate's value."""
MAX_GROWTH = 2.0**20
"""More observations than this many times the present ones are not foretold."""


@dataclass(frozen=True, repr=False)
class Recommendation:
    """The slate that a log recommends, with its guarantee.

    Parameters
    ----------
    slate, arms
        The arms by number, in the order of picking, and by name.
    value, low, high
        The value of the slate at the means, the lower ends and the upper ends of the intervals.
    alpha
        The share of the optimum that the oracle guarantees.
    shortfall
        With probability 1 - delta, the slate's value falls short of the best slate's by at most this much.
    delta
        All intervals hold together with probability 1 - delta, whatever policy made the log.
    warnings
        What may be wrong, in plain words.
    """

    slate: Ints
    arms: tuple[str, ...]
    value: float
    low: float
    high: float
    alpha: float
    shortfall: float
    delta: float
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        sure = f"{100 * (1 - self.delta):g} %"
        lines = [
            f"slate: {', '.join(self.arms)}",
            f"worth at least {self.low:.4g} per round ({sure}), {self.value:.4g} by the means of the log",
            f"at most {self.shortfall:.4g} below the best slate ({sure})",
        ]
        return "\n".join(lines + [f"warning: {text}" for text in self.warnings])


def recommend(log: "Log", k: int | None, delta: float, oracle: Any, eligible: Any) -> Recommendation:
    r"""The pessimistic slate: :math:`\hat A = Oracle(\underline p)` at the lower ends of the KL intervals (KL-CLCB).

    After [LiuEtAl2025]_ (CLCB), with KL intervals in place of Hoeffding's. On the event that all intervals hold,

    .. math:: r(\hat A; p) \ge r(\hat A; \underline p), \qquad
              \max_A r(A; p) - r(\hat A; p) \le \max_A \max_{\underline p \le q \le \overline p} r(A; q) - r(\hat A; q),

    and with an oracle of guarantee alpha, for every slate A,
    :math:`\alpha r(A; p) - r(\hat A; p) \le \alpha [r(A; p) - r(A; \underline p)]` (:func:`kl_clcb_bound`).
    """
    problem = log.problem if k is None else log.problem.changed(actions=_subsets(k, log.problem.n_arms))
    low, mean, high = (one[0] for one in entry_intervals(pooled_means(log.problem, log.tally), delta))
    solver, mask = oracle or Default(), _eligible(log, eligible)
    slate = best_slate(problem, low, log.tally, mask, solver)
    values = [problem.value(q, slate) for q in (low, mean, high)]
    return Recommendation(
        slate,
        tuple(log.arms[j] for j in slate),
        values[1],
        values[0],
        values[2],
        solver.guarantee(problem).alpha,
        bound_shortfall(problem, low, high, slate, mask),
        delta,
        tuple(warn_of_outcomes(log) + warn_of_assumption(log)),
    )


def best_slate(problem: Problem, q: Floats, tally: Tally, eligible: Bools, oracle: Oracle) -> Ints:
    """The slate of eligible arms that the oracle finds at the parameters ``q`` (n_entries,); ties by fewest pulls."""
    oracle.validate(problem)
    view = replace(problem.view(), counts=tally.pulls[:1], eligible=eligible[None])
    batch = oracle.maximize(problem, problem.support.to_entries(q), view)[0]
    if not (batch >= 0).any():
        raise InvalidArgument("eligible", "no slate can be formed", "make enough arms eligible")
    return batch[batch >= 0]


def bound_shortfall(problem: Problem, low: Floats, high: Floats, slate: Ints, eligible: Bools) -> float:
    """How much more any slate may be worth: over all of them if they are few, else from an upper bound of the best."""
    if not problem.reward.additive:
        return math.inf
    best = certify(problem, high, slate, np.flatnonzero(eligible)).bound
    upper = best + problem.floor - problem.value(low, slate)
    if problem.actions.n_batches(problem.n_arms) > MAX_LISTED_SLATES:
        return float(upper)
    others = tabulate([batch for batch in problem.actions.batches(problem.n_arms) if eligible[list(batch)].all()])
    least, _ = difference_bounds(problem, low, high, slate, others)
    return float(min(upper, max(0.0, -least.min(initial=0.0))))


def _subsets(k: int, n_arms: int) -> Subsets:
    if count(k, "k", 1) > n_arms:
        raise InvalidArgument("k", f"{k} of {n_arms} arms", f"give 1 to {n_arms}")
    return Subsets(k)


def _eligible(log: "Log", eligible: Any) -> Any:
    mask = np.ones(log.problem.n_arms, bool)
    if eligible is not None:
        mask[:] = False
        mask[log.numbers(eligible)] = True
    return mask


def kl_clcb_bound(problem: Problem, pulls: Any, slate: Any, delta: float = 0.05, alpha: float = 1.0) -> float:
    r"""How far the pessimistic slate may fall short of alpha times a slate A, given how often A's arms were observed.

    .. math:: \alpha r(A; p) - r(\hat A; p) \le 2\sqrt2\,\alpha \gamma_g \bar M \sqrt{\sum_{j \in A} \frac{x_j}{N_j}},
              \qquad x_j = \log\frac{L M}{\delta} + \tfrac12 \log N_j + \log 2

    with probability 1 - delta, for all slates A at once, any logging policy that looks at the past only, and any
    dependence of the outcomes of a round; :math:`\bar M` is the sum of the weights. The theorem of
    ``docs/theory/offline.md``.

    Parameters
    ----------
    problem
        Arms, items, weights and reward; :math:`\gamma_g` is that of slates of ``len(slate)`` arms.
    pulls
        :math:`N_j`, how often each arm was observed with all its items, (n_arms,).
    slate
        The arms of A.
    delta, alpha
        The probability of an error, and the guarantee of the oracle.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> problem = Problem(n_arms=20, n_items=5, reward=Coverage(), actions=Subsets(3))
    >>> bound = kl_clcb_bound(problem, [10_000] * 20, [0, 1, 2])
    >>> round(bound, 3)
    0.44
    """
    n = np.ravel(pulls)[np.asarray(slate, int)]
    if not (n > 0).all():
        return math.inf
    gamma_g = smoothness_of(problem.reward, len(n)).gamma_g
    x = math.log(problem.n_entries / delta) + 0.5 * np.log(n) + math.log(2.0)
    return float(math.sqrt(8.0) * alpha * gamma_g * problem.weights.sum() * math.sqrt((x / n).sum()))


def clcb_bound(problem: Problem, pulls: Any, slate: Any, delta: float = 0.05, alpha: float = 1.0) -> float:
    r"""The same for the radius of CLCB, which is Hoeffding's, [LiuEtAl2025]_.

    .. math:: \alpha r(A; p) - r(\hat A; p) \le 2 \alpha B_1 \sum_{j \in A} \sum_i w_i
              \sqrt{\frac{\log(4 L M n/\delta)}{2 N_j}}

    with :math:`B_1 = \gamma_\infty`, the largest derivative, and n the sum of all pulls in place of the number of
    rounds (it is at least that number, which the bound needs).
    """
    counts = np.asarray(np.ravel(pulls), float)
    n = counts[np.asarray(slate, int)]
    if not (n > 0).all():
        return math.inf
    steepest = smoothness_of(problem.reward, len(n)).gamma_inf
    x = math.log(4.0 * problem.n_entries * counts.sum() / delta)
    return float(2.0 * alpha * steepest * problem.weights.sum() * np.sqrt(x / (2.0 * n)).sum())


class Convergence(NamedTuple):
    """The slate that is best by the means, and by how much another may be better, with probability 1 - ``delta``.

    ``growth`` is how many times the present number of observations is expected to be needed until ``shortfall`` is at
    most ``epsilon``, if arms go on to be observed in the present proportions and the means stay; infinite if that
    is not foreseeable.
    """

    slate: Ints
    value: float
    low: float
    high: float
    shortfall: float
    epsilon: float
    delta: float
    growth: float

    @property
    def certified(self) -> bool:
        """Whether the slate is best up to epsilon."""
        return self.shortfall <= self.epsilon


def certify_convergence(
    problem: Problem, tally: Tally, eligible: Bools, epsilon: float | None = None, delta: float = 0.05
) -> Convergence:
    r"""A certificate that holds at all times: with probability 1 - delta, whenever it is given, it is right.

    .. math:: \max_A r(A; p) - r(\hat A; p) \le \max_A \max_{\underline p \le q \le \overline p} r(A; q) - r(\hat A; q)

    for :math:`\hat A = Oracle(\hat p)`, on the event that all intervals of the entries hold; see
    ``docs/theory/offline.md``. The right side is ``shortfall``.

    Parameters
    ----------
    problem, tally
        What was observed; of a :class:`Log`, ``log.problem`` and ``log.tally``.
    eligible
        Which arms a slate may hold, (n_arms,).
    epsilon
        How much worse than the best the slate may be; by default 5 % of its value.
    delta
        The certificate is right with probability 1 - delta.

    Examples
    --------
    >>> import numpy as np
    >>> from superarm import offline
    >>> from superarm.simulation import instances
    >>> log = offline.simulate_log(instances.random_coverage(4, 2, 2), "uniform", 300)
    >>> found = offline.certify_convergence(log.problem, log.tally, np.ones(4, bool))
    >>> found.certified, found.growth > 1.0
    (False, True)
    """
    means = pooled_means(problem, tally)
    slate = best_slate(problem, means.mean[0], tally, eligible, Default())

    def shortfall(growth: float) -> float:
        low, _, high = (one[0] for one in entry_intervals(EntryMeans(*(growth * one for one in means)), delta))
        return bound_shortfall(problem, low, high, slate, eligible)

    low, mean, high = (float(problem.value(one[0], slate)) for one in entry_intervals(means, delta))
    epsilon = TOLERANCE * (mean - problem.floor) if epsilon is None else epsilon
    now = shortfall(1.0)
    growth = 1.0 if now <= epsilon else _needed_growth(shortfall, epsilon) if np.isfinite(now) else math.inf
    return Convergence(slate, mean, low, high, now, epsilon, delta, growth)


def _needed_growth(shortfall: Callable[[float], float], epsilon: float) -> float:
    """How many times as many observations give a shortfall of at most epsilon, to within a tenth."""
    high = 2.0
    while shortfall(high) > epsilon:
        high *= 4.0
        if high > MAX_GROWTH:
            return math.inf
    low = max(1.0, high / 4.0)
    while high / low > 1.1:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if shortfall(middle) <= epsilon else (middle, high)
    return high
