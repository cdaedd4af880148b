"""Beta numbers of many entries at once, bit for bit those that ``streams.beta`` draws one after the other.

Nearly every Gamma number is accepted at its first try, [MarsagliaTsang2000]_. Then an entry takes four uniform numbers
of the stream, two for each of its Gamma numbers: one for a normal number, and one for the decision. So they can be
drawn for a block of entries in vector registers. Where a first try may be refused, the entry is drawn by ``beta``; if
that took more than four numbers, the entries after it are drawn anew, again as a block.
"""

import math
from typing import Any

import numpy as np

from superarm._jit import allocating, inlined, lean
from superarm.arrays import Floats
from superarm.streams import (
    CENTRAL,
    Stream,
    beta,
    central_quantile,
    later_state,
    move_inside,
    number_at,
    quantile,
    tail_quantile,
)

_BLOCK = 32
"""How many entries are drawn together, at most: few enough that few are drawn again after a refusal."""

_FAR = 2e-11
"""Above this part of the distribution, ``sqrt(-log p)`` is below 5, up to which ``tail_quantile`` holds."""

_N = np.uint64(_BLOCK)
_1, _2, _3, _4, _6, _8 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(6), np.uint64(8)


@allocating
def draw_betas(mean: Floats, pulls: float, first: int, n: int, stream: Stream, q: Floats) -> None:
    """Write Beta(1 + S, 1 + pulls - S) numbers into ``q[first : first + n]``, where S is ``mean * pulls``."""
    draws = np.empty(10 * _BLOCK)
    done = 0
    while done < n:
        size = min(_BLOCK, n - done)
        _draw_normals(stream.state[0], draws, size)
        _correct_tails(draws, size)
        _divide(draws, mean, pulls, first + done, size, q)
        done += _settle(stream, mean, pulls, first + done, size, q)


@lean
def _draw_normals(state: Any, draws: Floats, n: int) -> None:
    """Write what ``n`` entries take of the stream into ``draws``: rows of ``_BLOCK`` numbers.

    In rows 0 and 1 are two uniform numbers inside (0, 1), in rows 2 and 3 the other two, and in rows 4 and 5 the normal
    quantiles of the first, which are right in the centre only.
    """
    for e in range(np.uint64(n)):
        before = later_state(state, _4 * e)
        a, b = move_inside(number_at(later_state(before, _1))), move_inside(number_at(later_state(before, _3)))
        draws[e], draws[_N + e] = a, b
        draws[_2 * _N + e] = number_at(later_state(before, _2))
        draws[_3 * _N + e] = number_at(later_state(before, _4))
        draws[_4 * _N + e], draws[(_4 + _1) * _N + e] = central_quantile(a - 0.5), central_quantile(b - 0.5)


@lean
def _correct_tails(draws: Floats, n: int) -> None:
    """Compute the quantiles outside of the centre, as ``quantile`` does.

    They are gathered first, their places in rows 6 and 7 and their arguments in rows 8 and 9: nothing in these loops
    is a condition that cannot be predicted, and all but the logarithms are computed in vector registers.
    """
    places, values, count = _6 * _N, _8 * _N, np.uint64(0)
    for row in range(_2):
        for place in range(row * _N, row * _N + np.uint64(n)):
            draws[places + count], draws[values + count] = place, draws[place]
            count += np.uint64(abs(draws[place] - 0.5) > CENTRAL)
    for c in range(values, values + count):
        draws[c] = math.sqrt(-math.log(draws[c] if draws[c] < 0.5 else 1.0 - draws[c]))
    for c in range(values, values + count):
        draws[c] = tail_quantile(draws[c] - 1.6)
    for c in range(count):
        at = np.uint64(draws[places + c])
        u, z = draws[at], draws[values + c]
        far = min(u, 1.0 - u) < _FAR
        draws[_4 * _N + at] = quantile(u) if far else -z if u < 0.5 else z


@lean
def _divide(draws: Floats, mean: Floats, pulls: float, first: int, n: int, q: Floats) -> None:
    """Write the Beta numbers into ``q``, and -1 where a first try may be refused."""
    at = np.uint64(first)
    for e in range(np.uint64(n)):
        successes = mean[at + e] * pulls
        x, accepted = _try(1.0 + successes, draws[_4 * _N + e], draws[_2 * _N + e])
        y, also = _try(1.0 + (pulls - successes), draws[(_4 + _1) * _N + e], draws[_3 * _N + e])
        q[at + e] = x / (x + y) if accepted & also else -1.0


@inlined
def _try(shape: float, z: float, uniform: float) -> tuple[float, bool]:
    r"""The first try of ``gamma`` for a shape of at least 1, and whether it is certain that it is accepted.

    It is accepted if :math:`u = 1 - uniform < 1 - 0.0331 z^4`, or if

    .. math:: \log u < z^2/2 + d\,(1 - v + \log v) = 3 d \sum_{k \ge 4} (-1)^{k+1} x^k / k

    where :math:`x = cz` and :math:`v = (1 + x)^3`. For :math:`|x| \le 1/2` the sum is at least :math:`-x^4/2`, and
    :math:`d x^2 = z^2/9`, so the right side is at least :math:`-x^2 z^2/6`; the left side is at most ``-uniform``.
    Rounding changes the two by less than 1e-12 (1 + d).
    """
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    x = c * z
    v = 1.0 + x
    likely = (v > 0.0) & (1.0 - uniform < 1.0 - 0.0331 * z * z * z * z)
    certain = (abs(x) <= 0.5) & (uniform > x * x * z * z / 6.0 + 1e-12 * (1.0 + d))
    return d * (v * v * v), (shape >= 1.0) & (likely | certain)


@lean
def _settle(stream: Stream, mean: Floats, pulls: float, first: int, n: int, q: Floats) -> int:
    """Draw the entries marked with -1 one by one, up to the first that takes more than four numbers of the stream.

    Moves the stream behind them and returns how many of the ``n`` entries are final.
    """
    state, before = stream.state, stream.state[0]
    for e in range(n):
        if q[first + e] < 0.0:
            successes = mean[first + e] * pulls
            state[0] = later_state(before, 4 * e)
            q[first + e] = beta(stream, 1.0 + successes, 1.0 + (pulls - successes))
            if state[0] != later_state(before, 4 * e + 4):
                return e + 1
    state[0] = later_state(before, 4 * n)
    return n
