"""Whether the slate that is best by the means is the best one up to epsilon, or how much more has to be seen."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from superarm.arrays import Bools, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.offline.estimators.entries import EntryMeans, entry_intervals, pooled_means
from superarm.offline.learning import bound_shortfall
from superarm.oracles import Default, maximize
from superarm.problem import Problem
from superarm.streams import new_stream
from superarm.tally import Tally

TOLERANCE = 0.05
"""By default, epsilon is this share of the slate's value."""
MAX_GROWTH = 2.0**20
"""More observations than this many times the present ones are not foretold."""


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
    >>> import numpy as np, superarm as sa
    >>> log = sa.offline.simulate_log(sa.instances.random_coverage(4, 2, 2), "uniform", 300)
    >>> found = sa.offline.certify_convergence(log.problem, log.tally, np.ones(4, bool))
    >>> found.certified, found.growth > 1.0
    (False, True)
    """
    means = pooled_means(problem, tally)
    candidates = Candidates(tally.pulls, eligible)
    fitted = Default().fit(problem)
    slate = maximize(fitted, problem, means.mean[0], candidates, new_stream(np.random.SeedSequence(0)))
    if not len(slate):
        raise InvalidArgument("eligible", "no slate can be formed", "make enough arms eligible")

    def shortfall(growth: float) -> float:
        low, _, high = (one[0] for one in entry_intervals(EntryMeans(*(growth * one for one in means)), delta))
        return bound_shortfall(problem, low, high, slate, candidates)

    low, mean, high = (float(problem.value(one[0], slate)) for one in entry_intervals(means, delta))
    epsilon = TOLERANCE * mean if epsilon is None else epsilon
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
