"""The inversion of the Bernoulli divergence: one bound at a time, or those of many entries in vector registers.

Both perform the same operations on every entry, so they agree to the last bit. The logarithms are polynomials, since a
call of the C library's function would keep a loop out of the vector registers. Kernels compare numbers themselves,
since numba would compile a function for every use of ``min`` and ``max``.
"""

import math
from typing import Any

import numba
import numpy as np

from superarm._jit import inlined, kernel, lean, separate
from superarm.arrays import Floats

_MANTISSA = np.uint64((1 << 52) - 1)
_EXPONENT_BITS = np.uint64(52)
_SQRT_HALF = 0x3FE6A09E << 32
"""The bits of a number just below the square root of 1/2."""
_SHIFT = np.uint64((0x3FF << 52) - _SQRT_HALF)
_BASE = np.uint64(_SQRT_HALF)
_TWO_52 = np.uint64(0x433 << 52)
"""The bits of 2**52: with a small whole number in its lowest bits, the float 2**52 plus that number."""

_HARD = 0.3
"""A third refinement is needed where x exceeds this times p (1 - p); ``tests/indices/test_kl.py`` checks it."""

_FEW_HARD = 4
"""Up to one entry in four takes its third step by itself; if there are more, all do in vector registers."""

_NEAR_ONE = 1e-8
"""Where 1 - q is below this share of 1 - p, the relaxation exceeds the root by less than the last digit of q."""


def _split_by_bits(y: float) -> Any:
    bits = np.uint64(np.float64(y).view(np.uint64) + _SHIFT)
    k = np.uint64((bits >> _EXPONENT_BITS) | _TWO_52).view(np.float64) - (4503599627370496.0 + 1023.0)
    return k, np.uint64((bits & _MANTISSA) + _BASE).view(np.float64) - 1.0


def _split_by_frexp(y: float) -> Any:
    m, k = math.frexp(y)
    return (k - 1.0, 2.0 * m - 1.0) if m < _LEAST else (float(k), m - 1.0)


_LEAST = float(_BASE.view(np.float64))

split: Any = _split_by_frexp if numba.config.DISABLE_JIT else inlined(_split_by_bits)  # type: ignore[attr-defined]
"""``(k, f)`` with y = 2**k (1 + f) and 1 + f between the square roots of 1/2 and 2, for y > 0."""


@inlined
def log1p(u: float) -> float:
    r"""The logarithm of 1 + u > 0, to the last digits.

    With y = 1 + u as rounded, 1 + u = y (1 + c/y), and y = 2**k (1 + f). With s = f / (2 + f), log(1 + f) is
    2 artanh(s), of which a polynomial of degree 14 gives the part beyond f - f**2/2. The polynomial is that of
    ``log`` in Sun's fdlibm.
    """
    y = 1.0 + u
    k, f = split(y)
    s = f / (2.0 + f)
    z = s * s
    tail = z * (0.1818357216161805012 + z * (0.1531383769920937332 + z * 0.1479819860511658591))
    tail = z * (0.2857142874366239149 + z * (0.2222219843214978396 + tail))
    tail = z * (0.6666666666666735130 + z * (0.3999999999940941908 + tail))
    half = 0.5 * f * f
    lost = (u - (y - 1.0)) / y if y > 0.0 else 0.0
    small = s * (half + tail) + (k * 1.90821492927058770002e-10 + lost)
    return k * 6.93147180369123816490e-01 - ((half - small) - f)  # type: ignore[no-any-return]


@inlined
def _refine(p: float, x: float, q: float) -> float:
    r"""One step of Householder's third-order iteration for kl(p, q) = x; the error afterwards is of its fourth power.

    With d = q - p the divergence is -p log(1 + d/p) - (1-p) log(1 - d/(1-p)), whose rounding error is of the order of
    d, so that the root is accurate to the last digits however small x is. Its derivatives in q, times q(1-q), its
    square and its cube, are d, d**2 + p(1-p) and 2 ((1-p) q**3 - p (1-q)**3).
    """
    d, rest, left = q - p, 1.0 - p, 1.0 - q
    excess = -p * log1p(d / p) - rest * log1p(-d / rest) - x
    second = d * d + p * rest
    third = 2.0 * (rest * (q * q * q) - p * (left * left * left))
    above = excess * (q * left) * (6.0 * (d * d) - 3.0 * excess * second)
    below = 6.0 * (d * d * d) - 6.0 * excess * d * second + excess * excess * third
    refined = q - (above / below if below != 0.0 else math.inf)
    # So close to p or to 1 the start is accurate to the last digits, and the quotient may not be a number.
    useful = (d > 0.0) & (left > _NEAR_ONE * rest)
    return refined if useful & (refined >= p) & (refined <= 1.0) else q


@inlined
def _first_relaxation(p: float, x: float) -> float:
    b = x * (4.0 / 3.0 - 2.0 * p)
    return p + (b + math.sqrt(b * b + 2.0 * x * (1.0 + 2.0 * x) * p * (1.0 - p))) / (1.0 + 2.0 * x)


@kernel
def upper_relaxation(p: float, x: float) -> float:
    r"""A closed-form upper bound of :func:`upper_confidence` for 0 < p < 1, x > 0.

    .. math:: \min\Bigl\{p + \frac{b + \sqrt{b^2 + 2x(1+2x)p(1-p)}}{1+2x},\ 1 - e^{-(x + h(p))/(1-p)}\Bigr\},
              \qquad b = x(\tfrac43 - 2p)

    with h the entropy. The first follows from a Bernstein-type lower bound of kl, the second from dropping
    p log(1/q) >= 0, so it is sharp as q tends to 1. Derived for superarm; the proof is in ``docs/theory``.
    """
    q = _first_relaxation(p, x)
    if q > 0.9:
        entropy = -p * math.log(p) - (1.0 - p) * math.log1p(-p)
        sharp = -math.expm1(-(x + entropy) / (1.0 - p))
        return sharp if sharp < q else q
    return q


@lean
def _start(p: float, x: float) -> float:
    """Where the iteration for an entry starts, for x > 0; the bound itself where that has a closed form."""
    if p <= 0.0:
        return -math.expm1(-x)
    q = upper_relaxation(p, x) if p < 1.0 else 1.0
    return q if q < 1.0 else 1.0


@separate
def upper_confidence(p: float, x: float) -> float:
    r"""The largest q with kl(p, q) <= x, to full precision.

    .. math:: q(p, x) = \max\{q \in [p, 1] : kl(p, q) \le x\}

    Householder's third-order iteration on kl(p, ·) - x, from a closed-form point above the root. Two steps reach the
    root where x <= 0.3 p (1-p), three everywhere. Implements [GarivierCappe2011]_ (KL-UCB, section 3).

    >>> round(upper_confidence(0.1, 0.05), 12)
    0.220078601107
    """
    if x <= 0.0:
        return p if p < 1.0 else 1.0
    q = _start(p, x)
    if 0.0 < p < q < 1.0:
        q = _refine(p, x, _refine(p, x, q))
        if x > _HARD * (p * (1.0 - p)):
            q = _refine(p, x, q)
    return q


def _upper_confidences_one_by_one(p: Floats, first: int, n: int, x: float, q: Floats) -> None:
    for i in range(first, first + n):
        q[i] = upper_confidence(float(p[i]), x)


def _write_starts(p: Floats, first: int, n: int, x: float, q: Floats) -> int:
    """Write where the iterations start, for x > 0; return how many take a third step. Those for p = 0 take none."""
    at, end = np.uint64(first), np.uint64(first + n)  # unsigned, for the vector registers
    high = hard = 0
    at_0 = _start(0.0, x)
    for i in range(at, end):
        q[i] = _first_relaxation(p[i], x) if p[i] > 0.0 else at_0
        high += (p[i] > 0.0) & (q[i] > 0.9)
        hard += (p[i] > 0.0) & (x > _HARD * (p[i] * (1.0 - p[i])))
    if high > 0:
        for i in range(at, end):
            if p[i] > 0.0 and q[i] > 0.9:
                q[i] = _start(p[i], x)
    return hard


_starts_in_lanes: Any = lean(_write_starts)


def _upper_confidences_in_lanes(p: Floats, first: int, n: int, x: float, q: Floats) -> None:
    at, end = np.uint64(first), np.uint64(first + n)  # unsigned, for the vector registers
    if x <= 0.0:
        for i in range(at, end):
            q[i] = p[i] if p[i] < 1.0 else 1.0
        return
    hard = _starts_in_lanes(p, first, n, x, q)
    for i in range(at, end):
        q[i] = _refine(p[i], x, _refine(p[i], x, q[i]))
    if hard > n // _FEW_HARD:
        for i in range(at, end):
            refined = _refine(p[i], x, q[i])
            q[i] = refined if x > _HARD * (p[i] * (1.0 - p[i])) else q[i]
    elif hard > 0:
        for i in range(at, end):
            if p[i] > 0.0 and x > _HARD * (p[i] * (1.0 - p[i])):
                q[i] = _refine(p[i], x, q[i])


upper_confidences: Any = (
    _upper_confidences_one_by_one if numba.config.DISABLE_JIT else separate(_upper_confidences_in_lanes)  # type: ignore[attr-defined]
)
"""Writes ``upper_confidence(p[i], x)`` into ``q[i]`` for ``n`` entries i from ``first`` on."""


@inlined
def _near_root(p: float, x: float) -> float:
    """Near the root of kl(p, q) = x: that of the expansion of kl at q = p to the third order, as a quotient."""
    c = (2.0 / 3.0) * (1.0 - 2.0 * p) * x
    return p + (c + math.sqrt(c * c + 2.0 * x * (p * (1.0 - p))))


@inlined
def _step_above(p: float, x: float, q: float) -> float:
    """One step of Newton's iteration for kl(p, q) = x; since kl is convex, it is not below the root."""
    d, rest, left = q - p, 1.0 - p, 1.0 - q
    excess = -p * log1p(d / p) - rest * log1p(-d / rest) - x
    above = q - excess * (q * left) / d
    bound = above if above < 1.0 else 1.0
    return bound if (d > 0.0) & (left > _NEAR_ONE * rest) & (above >= p) else q


def _loose_bounds_one_by_one(p: Floats, first: int, n: int, x: float, q: Floats) -> None:
    for i in range(first, first + n):
        mean = float(p[i])
        q[i] = _near_root(mean, x) if 0.0 < mean < 1.0 and x > 0.0 else 0.0
        if x <= 0.0:
            q[i] = min(1.0, mean)
        elif mean <= 0.0 or mean >= 1.0 or q[i] > 0.9:
            q[i] = _start(mean, x)
        for _ in range(2 if x > _HARD * (mean * (1.0 - mean)) else 1):
            if 0.0 < mean < q[i] < 1.0:
                q[i] = _step_above(mean, x, float(q[i]))


def _loose_bounds_in_lanes(p: Floats, first: int, n: int, x: float, q: Floats) -> None:
    at, end = np.uint64(first), np.uint64(first + n)
    if x <= 0.0:
        for i in range(at, end):
            q[i] = p[i] if p[i] < 1.0 else 1.0
        return
    high = hard = 0
    at_0 = _start(0.0, x)
    for i in range(at, end):
        q[i] = _near_root(p[i], x) if p[i] > 0.0 else at_0
        high += q[i] > 0.9
        hard += (p[i] > 0.0) & (x > _HARD * (p[i] * (1.0 - p[i])))
    if high > 0:
        for i in range(at, end):
            if q[i] > 0.9:
                q[i] = _start(p[i], x)
    for i in range(at, end):
        q[i] = _step_above(p[i], x, q[i]) if p[i] > 0.0 else q[i]
    if hard > n // _FEW_HARD:
        for i in range(at, end):
            above = _step_above(p[i], x, q[i])
            q[i] = above if (p[i] > 0.0) & (x > _HARD * (p[i] * (1.0 - p[i]))) else q[i]
    elif hard > 0:
        for i in range(at, end):
            if p[i] > 0.0 and x > _HARD * (p[i] * (1.0 - p[i])):
                q[i] = _step_above(p[i], x, q[i])


_LOOSE_LEVEL = 0.25
"""Above it scores are bounded by themselves: loose bounds would rule out too few arms, and more would be computed."""

_loose_bounds: Any = (
    _loose_bounds_one_by_one if numba.config.DISABLE_JIT else separate(_loose_bounds_in_lanes)  # type: ignore[attr-defined]
)


@lean
def loose_bounds(p: Floats, first: int, n: int, x: float, q: Floats) -> bool:
    """Write an upper bound of ``upper_confidence(p[i], x)`` into ``q[i]`` for ``n`` entries i from ``first`` on.

    One step of an iteration, or two where ``upper_confidence`` takes three; it exceeds that bound by little. At a level
    where it would not, it writes nothing and returns False.
    """
    if x > _LOOSE_LEVEL:
        return False
    _loose_bounds(p, first, n, x, q)
    return True


@lean
def tangent_bounds(p: Floats, first: int, n: int, q: Floats, step: float, bounds: Floats) -> bool:
    r"""Write upper bounds of ``upper_confidence(p[i], x - step)``, for 0 <= step <= x, from q = upper_confidence(p, x).

    .. math:: q(p, x - s) \le q - s\,\frac{q(1-q)}{q-p}

    The bound is a concave function of the level, as the inverse of a convex and increasing one, so that it does not
    exceed its tangents: for q above the bound at x, this is the one at a higher level, moved up. Up to rounding.
    Returns True.
    """
    for i in range(np.uint64(first), np.uint64(first + n)):
        d = q[i] - p[i]
        fall = step * (q[i] * (1.0 - q[i])) / d if d > 0.0 else 0.0
        bound = q[i] - fall if q[i] - fall > p[i] else p[i]
        bounds[i] = bound if bound < 1.0 else 1.0
    return True
