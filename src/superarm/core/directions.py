r"""The confidence bound of a weighted sum of an arm's items, from its moments: the bounds of directional policies.

For outcomes Y in [0, 1], the bound of a sample with the empirical law :math:`\hat F` at the level x (the index of
empirical KL-UCB, [CappeEtAl2013]_, by the duality of [HondaTakemura2010]_) is

.. math:: U(\hat F, x) = \min_{0 < \kappa \le 1} \frac{1 - \exp(E_{\hat F}\log(1 - \kappa Y) - x)}{\kappa}.

Among all samples with mean m, variance at most v and maximum at most h, the expectation is least for the law on two
points that has mean m, variance v, and one point at h: see ``docs/theory/directional.md``. The bound of that law is
therefore at least that of the sample itself.

Bounds of v and h hold for the sample itself, for all weights :math:`c \ge 0`, however these were chosen: they compare
the sums :math:`\sum_i c_i X_{ij}` and :math:`\sum_i u_i X_{ij}` pull by pull; covariances of items enter bounds as in
[DegennePerchet2016]_. ``kernels/directional.py`` has the same formulas with the same bits.
"""

from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.numeric import fall, log1p

NEARLY_ONE = 1.0 - 1e-9
r"""From here on the largest value counts as 1. The bound grows with it, by less than rounding elsewhere. In between,
:math:`\psi` has a pole so narrow at :math:`\kappa = 1` that an iteration which starts there does not leave it."""

CERTAIN = 700.0
"""From this level on every bound is 1: e^-700 is less than the last digit."""


def two_moment_bound(mean: Any, variance: Any, largest: Any, x: Any) -> Floats:
    r"""The largest upper confidence bound at level ``x`` of any sample in [0, 1] with these moments, (n,) each.

    .. math:: U = \min_{0 < \kappa \le 1} \frac{1 - e^{G(\kappa) - x}}{\kappa}, \qquad
              G(\kappa) = \pi\log(1 - \kappa h) + (1 - \pi)\log(1 - \kappa a)

    where the law with mass :math:`\pi` at h = ``largest`` and :math:`1 - \pi` at a has the given mean and variance.
    With h = 1 it is :math:`a + (1 - a)\,kl^{-1}(\pi, x)`; a binary sample gives the KL-UCB bound.

    >>> from superarm.indices import kl_upper
    >>> mean, x = np.array([[0.1]]), np.array([[0.05]])
    >>> two_moment_bound(mean[0], np.array([0.09]), np.array([1.0]), x[0]).round(9) == kl_upper(mean, x)[0].round(9)
    array([ True])
    >>> two_moment_bound(mean[0], np.array([0.01]), np.array([0.5]), x[0]) < 0.2
    array([ True])
    """
    h = np.where(largest < NEARLY_ONE, largest, 1.0)
    room = h - mean
    v = np.minimum(variance, mean * room)
    bound = np.minimum(1.0, mean)
    moving = (x > 0.0) & (mean < 1.0)
    constant = moving & ((room <= 0.0) | (v <= 0.0))  # only values that were never seen can be above it
    with np.errstate(all="ignore"):
        bound[constant] = (mean + (1.0 - mean) * fall(x))[constant]
        bound[moving & (x > CERTAIN)] = 1.0
        two = np.flatnonzero(moving & ~constant & (x <= CERTAIN))
        a, share = np.maximum(0.0, mean - v / room), v / (v + room * room)
        binary = h[two] >= 1.0
        for rows, invert in ((two[binary], _invert_kl), (two[~binary], _invert_two_points)):
            bound[rows] = np.minimum(1.0, invert(a[rows], h[rows], share[rows], x[rows], v[rows], mean[rows]))
    return bound


def _invert_kl(a: Any, h: Any, share: Any, x: Any, v: Any, mean: Any) -> Any:
    from superarm.core.reference import kl_first, kl_sharp, kl_step

    q = kl_first(share, x)
    q = np.where(q > 0.9, kl_sharp(share, x, q), q)
    inside = (share < q) & (q < 1.0)
    step = kl_step(share, x, kl_step(share, x, kl_step(share, x, q)))
    return a + (1.0 - a) * np.where(inside, step, q)


def _invert_two_points(a: Any, h: Any, share: Any, x: Any, v: Any, mean: Any) -> Any:
    r"""The bound at the minimiser: the root of :math:`\psi(\kappa) = G - x + \log(1 - \kappa G')`, at most 1.

    :math:`\psi` increases from -x, since :math:`\psi' = \kappa\,\pi(1 - \pi)(\tfrac{h}{1 - \kappa h} -
    \tfrac{a}{1 - \kappa a})^2 / (1 - \kappa G')`. Newton's iteration, kept inside a bracket of the root.
    """
    kappa, left = np.minimum(1.0, np.sqrt(2.0 * x / v)), np.arange(len(x))
    low, high = np.zeros(len(x)), np.ones(len(x))
    for _ in range(60):
        k, hs, as_, s, lo, hi = kappa[left], h[left], a[left], share[left], low[left], high[left]
        up, down = hs / (1.0 - k * hs), as_ / (1.0 - k * as_)
        outer = 1.0 + k * (s * up + (1.0 - s) * down)
        psi = s * log1p(-k * hs) + (1.0 - s) * log1p(-k * as_) - x[left] + log1p(outer - 1.0)
        above, end = psi > 0.0, (psi <= 0.0) & (k >= 1.0)
        lo, hi = np.where(above | end, lo, k), np.where(above, k, hi)
        slope = k * s * (1.0 - s) * (up - down) * (up - down) / outer
        new = k - np.where(slope > 0.0, psi / slope, 2.0)
        back = np.where((new >= 1.0) & (hi >= 1.0), 1.0, 0.5 * (lo + hi))
        new = np.where(end, k, np.where((lo < new) & (new < hi), new, back))
        kappa[left], low[left], high[left] = new, lo, hi
        left = left[~(end | (np.abs(new - k) <= 1e-9 * k))]  # the bound is flat at the minimum: this leaves no error
        if not left.size:
            break
    exponent = share * log1p(-kappa * h) + (1.0 - share) * log1p(-kappa * a) - x
    return np.maximum(mean, fall(-exponent) / kappa)


def direction_bounds(c: Any, u: Any, sample: tuple[Any, ...], level: Any, order: Ints | None = None) -> Floats:
    r"""The bounds of :math:`\sum_i c_i X_i` of n arms at the levels (n,).

    The weights ``c`` and the reference ``u`` are rows (n, w), one per arm. ``sample`` are mean, deviation and top, rows
    (n, w), spread and peak (n,), and the covariance (n, n_pairs), with no pairs if it is not kept. The variance of the
    sum is the least of two bounds, the second exact for all weights:

    .. math:: \sqrt v = \min_{a \ge 0}\ a\,S_j + \sum_i |c_i - a u_i|\,\sqrt{\hat V_{ij}}, \qquad
              v = \sum_{i, l} c_i c_l\,\hat\Sigma_{il}

    with :math:`S_j` the empirical standard deviation of :math:`\sum_i u_i X_{ij}`. The largest value is at most

    .. math:: \min_{a \ge 0}\ a\,H_j + \sum_i (c_i - a u_i)^+ x_{ij}

    with :math:`H_j` the largest value of :math:`\sum_i u_i X_{ij}` and :math:`x_{ij}` that of :math:`X_{ij}`. Both
    minima are at a = 0 or at one of the ratios :math:`c_i/u_i`; ``order`` sorts these.
    """
    mean, deviation, top, spread, peak, covariance = sample
    ratio = np.divide(c, u, out=np.zeros(c.shape), where=u > 0.0)
    order = np.argsort(ratio, 1, kind="stable") if order is None else order
    breaks = np.concatenate([np.zeros((len(c), 1)), np.take_along_axis(ratio, order, 1)], 1)
    rows, column = np.arange(len(c)), (len(c), 1)
    part = np.take_along_axis(u * deviation, order, 1)
    slope = spread - np.cumsum(part, 1)[:, -1]
    slopes = np.cumsum(np.concatenate([slope.reshape(column), 2.0 * part], 1), 1)
    slopes[:, -1] = np.inf
    a = breaks[rows, np.argmax(slopes >= 0.0, 1)]
    root = _sum(a * spread, np.abs(c - a[:, None] * u) * deviation)
    part = np.take_along_axis(u * top, order, 1)[:, ::-1]
    falls = np.cumsum(np.concatenate([peak.reshape(column), -part], 1), 1)[:, 1:] < 0.0
    a = breaks[rows, np.where(falls.any(1), falls.shape[1] - np.argmax(falls, 1), 0)]
    high = _sum(a * peak, np.maximum(0.0, c - a[:, None] * u) * top)
    b, total, v = _sum(0.0, c), _sum(0.0, c * mean), root * root
    if covariance.shape[1]:
        i, k = np.tril_indices(c.shape[1], -1)
        own = _sum(0.0, c * c * deviation * deviation)
        v = np.minimum(v, np.maximum(0.0, own + 2.0 * _sum(0.0, c[:, i] * c[:, k] * covariance)))
    safe = np.where(b > 0.0, b, 1.0)
    return np.where(b > 0.0, b * two_moment_bound(total / safe, v / (safe * safe), high / safe, level), 0.0)


def _sum(first: Any, rows: Any) -> Any:
    """``first`` plus each row (n, w), from left to right."""
    start = np.broadcast_to(first, len(rows))[:, None]
    return np.cumsum(np.concatenate([start, rows], 1), 1)[:, -1]
