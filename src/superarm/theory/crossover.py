r"""The horizon from which on a bound is better than the trivial one, :math:`\Delta_{\max} T`."""

import math
from collections.abc import Callable

MAX_HORIZON = 1e300
"""The largest horizon that is tried."""


def crossover(bound: Callable[[float], float], largest_gap: float) -> float:
    r"""The horizon from which on ``bound`` lies below the trivial :math:`\Delta_{\max}T` of [MerlisMannor2019]_.

    Once below it stays below: for every bound of :mod:`superarm.theory`, bound(T)/T falls from where it is below the
    largest gap (``docs/theory/vacuity.md``). Infinite if it never is.

    >>> round(crossover(lambda t: 100.0, 0.5), 6)
    200.0
    """
    high = 1.0
    while not bound(high) < largest_gap * high:
        high *= 2.0
        if high > MAX_HORIZON:
            return math.inf
    low = high / 2.0
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if bound(middle) < largest_gap * middle:
            high = middle
        else:
            low = middle
    return high
