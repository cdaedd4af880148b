r"""The upper confidence bound of a mean that needs the mean, the variance and the maximum of a sample only.

For outcomes Y in [0, 1], the bound of a sample with the empirical law :math:`\hat F` at the level x (the index of
empirical KL-UCB, [CappeEtAl2013]_, by the duality of [HondaTakemura2010]_) is

.. math:: U(\hat F, x) = \min_{0 < \kappa \le 1} \frac{1 - \exp(E_{\hat F}\log(1 - \kappa Y) - x)}{\kappa}.

Among all samples with mean m, variance at most v and maximum at most h, the expectation is least for the law on two
points that has mean m, variance v, and one point at h: see ``docs/theory/directional.md``. The bound of that law is
therefore at least that of the sample itself.
"""

import math

from superarm._jit import inlined, kernel
from superarm.indices.kl import upper_confidence


@kernel
def two_moment_bound(mean: float, variance: float, largest: float, x: float) -> float:
    r"""The largest upper confidence bound at level ``x`` of any sample in [0, 1] with these moments.

    .. math:: U = \min_{0 < \kappa \le 1} \frac{1 - e^{G(\kappa) - x}}{\kappa}, \qquad
              G(\kappa) = \pi\log(1 - \kappa h) + (1 - \pi)\log(1 - \kappa a)

    where the law with mass :math:`\pi` at h = ``largest`` and :math:`1 - \pi` at a has the given mean and variance.
    With h = 1 it is :math:`a + (1 - a)\,kl^{-1}(\pi, x)`; a binary sample gives the KL-UCB bound.

    >>> from superarm.indices.kl import upper_confidence
    >>> round(two_moment_bound(0.1, 0.09, 1.0, 0.05) - upper_confidence(0.1, 0.05), 12)
    0.0
    >>> two_moment_bound(0.1, 0.01, 0.5, 0.05) < 0.2
    True
    """
    if x <= 0.0 or mean >= 1.0:
        return min(1.0, mean)
    h = largest if largest < _NEARLY_ONE else 1.0
    room = h - mean
    v = min(variance, mean * room)
    if room <= 0.0 or v <= 0.0:  # a constant sample: only values that were never seen can be above it
        return mean - (1.0 - mean) * math.expm1(-x)
    a = max(0.0, mean - v / room)
    share = v / (v + room * room)
    if h >= 1.0:
        return min(1.0, a + (1.0 - a) * upper_confidence(share, x))
    kappa = _best_kappa(a, h, share, x, v)
    exponent = share * math.log1p(-kappa * h) + (1.0 - share) * math.log1p(-kappa * a) - x
    return min(1.0, max(mean, -math.expm1(exponent) / kappa))


@kernel
def _best_kappa(a: float, h: float, share: float, x: float, variance: float) -> float:
    r"""The minimiser: the root of :math:`\psi(\kappa) = G - x + \log(1 - \kappa G')`, or 1 if it is not below 1.

    :math:`\psi` increases from -x, since :math:`\psi' = \kappa\,\pi(1 - \pi)(\tfrac{h}{1 - \kappa h} -
    \tfrac{a}{1 - \kappa a})^2 / (1 - \kappa G')`. Newton's iteration, kept inside a bracket of the root.
    """
    low, high = 0.0, 1.0
    kappa = min(1.0, math.sqrt(2.0 * x / variance))
    for _ in range(60):
        up, down = h / (1.0 - kappa * h), a / (1.0 - kappa * a)
        outer = 1.0 + kappa * (share * up + (1.0 - share) * down)
        g = share * math.log1p(-kappa * h) + (1.0 - share) * math.log1p(-kappa * a)
        psi = g - x + math.log(outer)
        if psi > 0.0:
            high = kappa
        elif kappa >= 1.0:
            return 1.0
        else:
            low = kappa
        slope = kappa * share * (1.0 - share) * (up - down) * (up - down) / outer
        step = psi / slope if slope > 0.0 else 2.0
        following = kappa - step
        if not low < following < high:
            following = 1.0 if following >= 1.0 and high >= 1.0 else 0.5 * (low + high)
        if abs(following - kappa) <= 1e-9 * kappa:  # the bound is flat at the minimum: this leaves no error
            return following
        kappa = following
    return kappa


@inlined
def two_moment_roof(mean: float, below: float, deviation: float, largest: float, x: float, steep: float) -> float:
    r"""A closed form that :func:`two_moment_bound` does not exceed; the deviation is the root of its variance.

    .. math:: U \le m + \frac{1 - e^{-A}}{\kappa} \le m + \frac{A}{\kappa}\Bigl(1 - \frac A2 + \frac{A^2}6\Bigr),
              \qquad A = x + \kappa^2 v\,\psi(\kappa(h - m)), \quad
              \psi(\varrho) = \tfrac12 + \tfrac13\varrho + \tfrac14\varrho^2 + \tfrac25\varrho^3

    for every :math:`\kappa \le \min\{1/(1-m),\ 1/(2(h-m))\}` (``docs/theory/directional.md``, Lemma 3a), of which one
    near the best is taken: ``steep`` is that of :func:`steepness`. The mean m enters twice: upper bounds of the
    moments will do, with ``below``, a lower bound of the mean, in :math:`h - m` and :math:`1 - m`.

    >>> exact = two_moment_bound(0.1, 0.01, 0.5, 0.05)
    >>> exact < two_moment_roof(0.1, 0.1, 0.1, 0.5, 0.05, steepness(0.05)) < 1.02 * exact
    True
    """
    above = max(0.0, largest - below)
    inverse = max(deviation * steep + (2.0 / 3.0) * above, 1.0 - below, 2.0 * above, _LEAST_INVERSE)
    kappa = 1.0 / inverse
    r = kappa * above
    psi = 0.5 + r * (1.0 / 3.0 + r * (0.25 + 0.4 * r))
    width = x * inverse + kappa * (deviation * deviation) * psi
    a = kappa * width
    return min(1.0, mean + width * (1.0 - a * (0.5 - a * (1.0 / 6.0))))


@inlined
def steepness(x: float) -> float:
    r""":math:`1/\sqrt{2x}`: the best kappa for a small level x is the inverse of this times the deviation."""
    return 1.0 / math.sqrt(2.0 * x) if x > _LEAST_LEVEL else 1.0 / math.sqrt(2.0 * _LEAST_LEVEL)


_NEARLY_ONE = 1.0 - 1e-9
r"""From here on the largest value counts as 1. The bound grows with it, by less than rounding elsewhere. In between,
:math:`\psi` has a pole so narrow at :math:`\kappa = 1` that an iteration which starts there does not leave it."""

_LEAST_INVERSE = 1e-9
"""The least inverse of kappa, for samples whose mean is 1."""

_LEAST_LEVEL = 1e-60
"""Below this level the width is less than the last digit of the mean, whichever kappa is taken."""
