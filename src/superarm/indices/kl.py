import math
from typing import NamedTuple

from superarm._jit import component, kernel, lean
from superarm.arrays import Floats
from superarm.indices.kl_bound import (
    loose_bounds,
    tangent_bounds,
    upper_confidence,
    upper_confidences,
    upper_relaxation,
)
from superarm.parameters import nonnegative, positive
from superarm.streams import Stream

__all__ = ["KL", "KLMoss", "divergence", "upper_confidence", "upper_relaxation"]


@kernel
def divergence(p: float, q: float) -> float:
    r"""The Bernoulli divergence kl(p, q) = p log(p/q) + (1-p) log((1-p)/(1-q)).

    >>> round(divergence(0.25, 0.5), 12)
    0.130812035941
    """
    d = 0.0
    if p > 0.0:
        d += p * math.log(p / q) if q > 0.0 else math.inf
    if p < 1.0:
        d += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else math.inf
    return max(0.0, d)


@component
class KL(NamedTuple):
    r"""The KL upper confidence bound: the inversion of Chernoff's bound for binary outcomes.

    .. math:: q = \max\{q : kl(mean, q) \le x\}, \qquad
              x = \frac{\rho \log t + c \log^+ \log t}{pulls}

    Implements [GarivierCappe2011]_ for the semi-bandit.

    Parameters
    ----------
    rho, c
        The constants of the level. ``rho=1, c=3`` is the choice of [GarivierCappe2011]_ and the default. For it and for
        ``rho=3, c=0`` there are theorems with explicit constants (``docs/theory/kl-ucb.md``).
    """

    rho: float = 1.0
    c: float = 3.0

    def _check(self) -> None:
        positive(self, "rho")
        nonnegative(self, "c")

    @property
    def monotone(self) -> bool:
        return True

    def level(self, pulls: float, t: int, share: float) -> float:
        log_t = math.log(t)
        return (self.rho * log_t + self.c * math.log(log_t if log_t > 1.0 else 1.0)) / pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        return upper_confidence(mean, level)

    @lean
    def score_entries(
        self, mean: Floats, deviation: Floats, first: int, n: int, level: float, stream: Stream, q: Floats
    ) -> None:
        upper_confidences(mean, first, n, level, q)

    @lean
    def bound_entries(self, mean: Floats, deviation: Floats, first: int, n: int, level: float, q: Floats) -> bool:
        return loose_bounds(mean, first, n, level, q)

    @lean
    def bound_by_tangents(self, mean: Floats, first: int, n: int, bounds: Floats, step: float, q: Floats) -> bool:
        return tangent_bounds(mean, first, n, bounds, step, q)


@component
class KLMoss(NamedTuple):
    r"""The anytime KL-MOSS bound: the level is 0 once an arm has had its share t k / n_arms of the pulls.

    .. math:: q = \max\{q : kl(mean, q) \le x\}, \qquad
              x = \log^+\Bigl(\frac{t}{pulls}\cdot\frac{k}{n\_arms}\Bigr) / pulls

    After [AudibertBubeck2009]_ (MOSS) and [MenardGarivier2017]_ (kl-UCB++), with k arms per round.
    Differs: no regret bound is known for it on semi-bandits. Where :math:`kl(\hat p, p) \le x`, which this level does
    not make likely, the width has the form :math:`u\sqrt{p(1-p)} + v`.
    """

    @property
    def monotone(self) -> bool:
        return True

    def level(self, pulls: float, t: int, share: float) -> float:
        return max(0.0, math.log(t * share / pulls)) / pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        return upper_confidence(mean, level)

    @lean
    def score_entries(
        self, mean: Floats, deviation: Floats, first: int, n: int, level: float, stream: Stream, q: Floats
    ) -> None:
        upper_confidences(mean, first, n, level, q)

    @lean
    def bound_entries(self, mean: Floats, deviation: Floats, first: int, n: int, level: float, q: Floats) -> bool:
        return loose_bounds(mean, first, n, level, q)

    @lean
    def bound_by_tangents(self, mean: Floats, first: int, n: int, bounds: Floats, step: float, q: Floats) -> bool:
        return tangent_bounds(mean, first, n, bounds, step, q)
