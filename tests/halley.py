"""The KL bound as version 0.1.0 computed it, with the C library's logarithms, to the last bit.

Stored trajectories were recorded with it. It agrees with ``superarm.indices.kl.upper_confidence`` up to the last
places.
"""

import math


def _start(p, x):
    b = x * (4.0 / 3.0 - 2.0 * p)
    q = p + (b + math.sqrt(b * b + 2.0 * x * (1.0 + 2.0 * x) * p * (1.0 - p))) / (1.0 + 2.0 * x)
    if q > 0.9:
        entropy = -p * math.log(p) - (1.0 - p) * math.log1p(-p)
        q = min(q, -math.expm1(-(x + entropy) / (1.0 - p)))
    return q


def _iterate(p, x, low, high):
    q = high
    for _ in range(80):
        d = q - p
        excess = -p * math.log1p(d / p) - (1.0 - p) * math.log1p(-d / (1.0 - p)) - x
        slope = d / (q * (1.0 - q))
        curve = p / (q * q) + (1.0 - p) / ((1.0 - q) * (1.0 - q))
        low, high = (low, q) if excess > 0.0 else (q, high)
        step = excess / (slope - 0.5 * excess * curve / slope)
        middle = 0.5 * (low + high)
        if not low <= q - step <= high:
            step = q - middle
        q -= step
        if (abs(step) <= 1e-6 * d and abs(step) <= 1e-6 * (1.0 - q)) or not low < middle < high:
            break
    return min(1.0, q)


def kl_upper_by_halley(p, x):
    """The largest q with kl(p, q) <= x, by Halley's iteration."""
    if x <= 0.0 or p >= 1.0:
        return min(1.0, p)
    if p <= 0.0:
        return -math.expm1(-x)
    high = _start(p, x)
    if high >= 1.0:
        return 1.0
    return _iterate(p, x, p, high) if high > p else p
