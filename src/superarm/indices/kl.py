import math
from typing import NamedTuple

from superarm._jit import component, kernel
from superarm.parameters import nonnegative, positive
from superarm.streams import Stream


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


@kernel
def upper_confidence(p: float, x: float) -> float:
    r"""The largest q with kl(p, q) <= x, to full precision.

    .. math:: q(p, x) = \max\{q \in [p, 1] : kl(p, q) \le x\}

    Halley's iteration on kl(p, ·) - x, which starts at a closed-form point above the root and is kept inside a bracket
    of the root. With d = q - p the divergence is -p log(1 + d/p) - (1-p) log(1 - d/(1-p)), whose rounding error is of
    the order of d, so that the root is accurate to the last digits however small x is.
    Implements [GarivierCappe2011]_ (KL-UCB, section 3).

    >>> round(upper_confidence(0.1, 0.05), 12)
    0.220078601107
    """
    if x <= 0.0 or p >= 1.0:
        return min(1.0, p)
    if p <= 0.0:
        return -math.expm1(-x)
    low, high = p, upper_relaxation(p, x)
    if high >= 1.0:
        return 1.0
    if high <= p:  # the radius is below the spacing of floats
        return p
    q = high
    for _ in range(80):
        d = q - p
        excess = -p * math.log1p(d / p) - (1.0 - p) * math.log1p(-d / (1.0 - p)) - x
        slope = d / (q * (1.0 - q))
        curve = p / (q * q) + (1.0 - p) / ((1.0 - q) * (1.0 - q))
        if excess > 0.0:
            high = q
        else:
            low = q
        step = excess / (slope - 0.5 * excess * curve / slope)
        middle = 0.5 * (low + high)
        if not low <= q - step <= high:
            step = q - middle
        q -= step
        if (abs(step) <= 1e-6 * d and abs(step) <= 1e-6 * (1.0 - q)) or not low < middle < high:
            break  # the iteration is cubic: a relative step of 1e-6 leaves an error of 1e-18
    return min(1.0, q)


@kernel
def upper_relaxation(p: float, x: float) -> float:
    r"""A closed-form upper bound of :func:`upper_confidence` for 0 < p < 1, x > 0.

    .. math:: \min\Bigl\{p + \frac{b + \sqrt{b^2 + 2x(1+2x)p(1-p)}}{1+2x},\ 1 - e^{-(x + h(p))/(1-p)}\Bigr\},
              \qquad b = x(\tfrac43 - 2p)

    with h the entropy. The first follows from a Bernstein-type lower bound of kl, the second from dropping
    p log(1/q) >= 0, so it is sharp as q tends to 1. Derived for superarm; the proof is in ``docs/theory``.
    """
    b = x * (4.0 / 3.0 - 2.0 * p)
    q = p + (b + math.sqrt(b * b + 2.0 * x * (1.0 + 2.0 * x) * p * (1.0 - p))) / (1.0 + 2.0 * x)
    if q > 0.9:
        entropy = -p * math.log(p) - (1.0 - p) * math.log1p(-p)
        q = min(q, -math.expm1(-(x + entropy) / (1.0 - p)))
    return q


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
        return (self.rho * log_t + self.c * math.log(max(1.0, log_t))) / pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        return upper_confidence(mean, level)


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
