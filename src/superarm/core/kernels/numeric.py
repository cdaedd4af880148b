"""What stands inside loops: random numbers, logarithms and the steps of the KL bound; see ``core.numeric``.

Only + - * / and sqrt touch data, so that ``reference`` (NumPy) has the same bits. numba's cache notices changes of a
kernel's own file alone: after a change here, remove the cache (the tests have a new one by themselves).
"""

# mypy: ignore-errors
import math

import numpy as np

try:
    from numba import njit

    kernel = njit(cache=True, nogil=True, error_model="numpy")
    inner = njit(nogil=True, error_model="numpy", forceinline=True)  # inside vectorised loops
    apart = njit(nogil=True, error_model="numpy")  # called now and then: compiled once
except ImportError:  # nothing is called then; it can be imported

    def kernel(function):
        return function

    inner = apart = kernel

STEP, ROUND, INDEX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1342543DE82EF95), np.uint64(0xAF251AF3B0F025B5)
MIX1, MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _1, _32 = (np.uint64(n) for n in (11, 27, 30, 31, 1, 32))
GRID = 2.0**24


@inner
def mix(z):
    z = (z ^ (z >> _30)) * MIX1
    z = (z ^ (z >> _27)) * MIX2
    return z ^ (z >> _31)


@inner
def number(z):
    return float(mix(z) >> _11) * 2.0**-53


@inner
def to_grid(x):
    return math.floor(x * GRID + 0.5) / GRID


_MANTISSA, _52, _TWO_52 = np.uint64((1 << 52) - 1), np.uint64(52), np.uint64(0x433 << 52)
_SHIFT, _BASE = np.uint64((0x3FF << 52) - (0x3FE6A09E << 32)), np.uint64(0x3FE6A09E << 32)


@inner
def _log(y, lost):
    """log(y) from + - * / alone (the polynomial of fdlibm's log), so that loops vectorise and NumPy agrees."""
    bits = np.uint64(np.float64(y).view(np.uint64) + _SHIFT)
    k = np.uint64((bits >> _52) | _TWO_52).view(np.float64) - (4503599627370496.0 + 1023.0)
    f = np.uint64((bits & _MANTISSA) + _BASE).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    tail = z * (0.1818357216161805012 + z * (0.1531383769920937332 + z * 0.1479819860511658591))
    tail = z * (0.2857142874366239149 + z * (0.2222219843214978396 + tail))
    tail = z * (0.6666666666666735130 + z * (0.3999999999940941908 + tail))
    half = 0.5 * f * f
    small = s * (half + tail) + (k * 1.90821492927058770002e-10 + lost)
    return k * 6.93147180369123816490e-01 - ((half - small) - f)


@inner
def log1p(u):
    y = 1.0 + u
    return _log(y, (u - (y - 1.0)) / y if y > 0.0 else 0.0)


@inner
def log_of_chance(u):
    return _log(u, 0.0)


@inner
def fall(y):
    """1 - exp(-y), y >= 0, from + - * / and a power of two."""
    if y > 700.0:
        return 1.0
    k = math.floor(0.5 - y * 1.4426950408889634)
    r = (-y - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    e = 1.0
    for n in range(14, 1, -1):
        e = 1.0 + r * e / n
    return (1.0 - 2.0**k) - (r * e) * 2.0**k


@inner
def decay(y):
    """exp(-y), y >= 0, from + - * / and a power of two."""
    if y > 700.0:
        return 0.0
    k = math.floor(0.5 - y * 1.4426950408889634)
    r = (-y - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    e = 1.0
    for n in range(14, 1, -1):
        e = 1.0 + r * e / n
    return 2.0**k + (r * e) * 2.0**k


@inner
def kl_step(p, x, q):
    """One step of Householder's third-order iteration for kl(p, q) = x; ``q`` itself where that is of no use."""
    d, rest, left = q - p, 1.0 - p, 1.0 - q
    excess = -p * log1p(d / p) - rest * log1p(-d / rest) - x
    second = d * d + p * rest
    third = 2.0 * (rest * (q * q * q) - p * (left * left * left))
    above = excess * (q * left) * (6.0 * (d * d) - 3.0 * excess * second)
    below = 6.0 * (d * d * d) - 6.0 * excess * d * second + excess * excess * third
    new = q - (above / below if below != 0.0 else math.inf)
    good = (d > 0.0) & (left > 1e-8 * rest) & (new >= p) & (new <= 1.0)
    return new if good else q


@inner
def kl_first(p, x):
    b = x * (4.0 / 3.0 - 2.0 * p)
    return p + (b + math.sqrt(b * b + 2.0 * x * (1.0 + 2.0 * x) * p * (1.0 - p))) / (1.0 + 2.0 * x)


@apart
def kl_sharp(p, x, q):
    """The start near 1: the smaller of ``q`` and 1 - exp(-(x + entropy) / (1 - p))."""
    if p <= 0.0:
        return fall(x)
    if p >= 1.0:
        return 1.0
    entropy = -p * log1p(p - 1.0) - (1.0 - p) * log1p(-p)
    s = fall((x + entropy) / (1.0 - p))
    return s if s < q else q


@inner
def kl_line(p, x, q):
    """The KL bound of a line of entries (n,): a closed start, two vectorised steps, a third where levels are large."""
    n, high, hard, some, last, at_0 = len(p), 0, 0, 0, -1.0, 0.0
    for j in range(n):
        v = kl_first(p[j], x[j])
        q[j] = v
        high += (v > 0.9) | (p[j] <= 0.0)
        hard += x[j] > 0.3 * (p[j] * (1.0 - p[j]))
    if high > 0:
        for j in range(n):
            if p[j] <= 0.0:
                if x[j] != last:
                    last, at_0 = x[j], fall(x[j])
                q[j] = at_0
            elif q[j] > 0.9:
                q[j] = kl_sharp(p[j], x[j], q[j])
    for j in range(n):
        some += (p[j] > 0.0) & (q[j] < 1.0) & (q[j] > p[j])
    if some > 0:
        for j in range(n):
            inside = (p[j] > 0.0) & (q[j] < 1.0) & (q[j] > p[j])
            a, b = p[j] if inside else 0.25, q[j] if inside else 0.5
            w = kl_step(a, x[j], kl_step(a, x[j], b))
            q[j] = w if inside else q[j]
    if some > 0 and hard > 0:
        for j in range(n):
            inside = (p[j] > 0.0) & (q[j] < 1.0) & (q[j] > p[j]) & (x[j] > 0.3 * (p[j] * (1.0 - p[j])))
            a, b = p[j] if inside else 0.25, q[j] if inside else 0.5
            w = kl_step(a, x[j], b)
            q[j] = w if inside else q[j]
    for j in range(n):
        v = q[j] if x[j] > 0.0 else p[j]
        q[j] = v if v < 1.0 else 1.0
