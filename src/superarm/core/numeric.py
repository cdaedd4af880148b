"""Logarithms and exponentials from + - * / alone: the same bits on every machine, in NumPy and in kernels.

The polynomial is that of fdlibm's ``log``. Kernels have the same formulas in ``kernels/numeric.py``.
"""

import math
from typing import Any

import numpy as np

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SPLIT = 0.7071067094802856  # the float with bits 0x3FE6A09E << 32: where fdlibm changes the exponent


def _tail(z: Any) -> Any:
    tail = z * (0.1818357216161805012 + z * (0.1531383769920937332 + z * 0.1479819860511658591))
    tail = z * (0.2857142874366239149 + z * (0.2222219843214978396 + tail))
    return z * (0.6666666666666735130 + z * (0.3999999999940941908 + tail))


def _log(y: Any, lost: Any) -> Any:
    """log(y) of an array, where ``lost`` is the relative error of y."""
    m, k = np.frexp(y)
    low = m < SPLIT
    k, f = np.where(low, k - 1.0, k), np.where(low, 2.0 * m - 1.0, m - 1.0)
    s = f / (2.0 + f)
    half = 0.5 * f * f
    small = s * (half + _tail(s * s)) + (k * LN2_LOW + lost)
    return k * LN2_HIGH - ((half - small) - f)


def log1p(u: Any) -> Any:
    """log(1 + u) of an array; -inf and NaN as the formula gives them, so callers mask u <= -1."""
    y = 1.0 + u
    return _log(y, np.where(y > 0.0, (u - (y - 1.0)) / y, 0.0))


def log_of_chance(u: Any) -> Any:
    """log(u) of an array of numbers in (0, 1), exact to rounding however small they are.

    >>> log_of_chance(np.array([1e-300])).round(6).tolist()
    [-690.775528]
    """
    return _log(u, 0.0)


def log(y: Any) -> Any:
    """The logarithm of positive numbers, an array or a float.

    >>> bool(abs(log(10.0) - math.log(10.0)) < 1e-15)
    True
    """
    if isinstance(y, np.ndarray):
        return log1p(y - 1.0)
    u = y - 1.0
    y = 1.0 + u
    m, exponent = math.frexp(y)
    k, f = (exponent - 1.0, 2.0 * m - 1.0) if m < SPLIT else (float(exponent), m - 1.0)
    s = f / (2.0 + f)
    half = 0.5 * f * f
    small = s * (half + _tail(s * s)) + (k * LN2_LOW + (u - (y - 1.0)) / y)
    return k * LN2_HIGH - ((half - small) - f)


def _power(y: Any) -> Any:
    """A power of two p and a number s with exp(-y) = p + s p, for an array of numbers >= 0."""
    k = np.floor(0.5 - np.minimum(y, 700.0) * 1.4426950408889634)
    r = (-y - k * LN2_HIGH) - k * LN2_LOW
    e = 1.0
    for n in range(14, 1, -1):
        e = 1.0 + r * e / n
    return np.ldexp(1.0, k.astype(int)), r * e


def fall(y: Any) -> Any:
    """1 - exp(-y) of an array of numbers >= 0."""
    two_k, part = _power(y)
    return np.where(y > 700.0, 1.0, (1.0 - two_k) - part * two_k)


def decay(y: Any) -> Any:
    """exp(-y) of an array of numbers >= 0."""
    two_k, part = _power(y)
    return np.where(y > 700.0, 0.0, two_k + part * two_k)


def sigmoid(x: Any) -> Any:
    """The logistic function 1 / (1 + exp(-x)) of an array; exact to rounding for large negative numbers.

    >>> sigmoid(np.array([0.0, -800.0])).tolist()
    [0.5, 0.0]
    """
    e = decay(np.abs(x))
    return np.where(x >= 0.0, 1.0, e) / (1.0 + e)


def at_least(x: Any, low: float) -> Any:
    """The larger of ``x``, an array or a number, and ``low``."""
    return np.maximum(x, low) if isinstance(x, np.ndarray) else max(x, low)
