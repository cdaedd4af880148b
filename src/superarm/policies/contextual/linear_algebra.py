"""Small symmetric systems on packed lower triangles, row by row: the same bits compiled and as plain Python.

Cholesky's method, [GolubVanLoan2013]_ (section 4.2).
"""

import math

import numpy as np

from superarm._jit import kernel, lean
from superarm.arrays import Floats

_0, _1, _2 = (
    np.uint64(0),
    np.uint64(1),
    np.uint64(2),
)  # with indices below 0, loops would not become vector instructions


@lean
def factorise(triangle: Floats, d: int, column: Floats) -> None:
    """Replace the lower triangle of a positive definite matrix by its Cholesky factor L, in place.

    A pivot that rounding has made less than 2**-40 of the diagonal is taken as that. ``column`` (d,) is a buffer.
    """
    n, at = np.uint64(d), _0
    for k in range(n):
        diagonal = triangle[at + k]
        pivot = diagonal
        for o in range(k):
            pivot -= triangle[at + o] * triangle[at + o]
        pivot = math.sqrt(max(pivot, diagonal * 2.0**-40))
        triangle[at + k] = pivot
        start = at + k + _1
        for r in range(k + _1, n):  # the differences of a row side by side: they do not wait for one another
            scale = triangle[start + k] / pivot
            triangle[start + k] = scale
            column[r] = scale
            for c in range(k + _1, r):
                triangle[start + c] -= scale * column[c]
            start += r + _1
        at += k + _1


@lean
def invert_factor(factor: Floats, d: int, out: Floats) -> None:
    """Write the lower triangle of the inverse of the Cholesky factor."""
    at = _0
    for r in range(np.uint64(d)):
        pivot = factor[at + r]
        for c in range(r):
            out[at + c] = 0.0
        row = _0
        for o in range(r):  # the sums of a row side by side: they do not wait for one another
            scale = factor[at + o]
            for c in range(o + _1):
                out[at + c] -= scale * out[row + c]
            row += o + _1
        for c in range(r):
            out[at + c] = out[at + c] / pivot
        out[at + r] = 1.0 / pivot
        at += r + _1


@lean
def square_factor(inverse_factor: Floats, d: int, out: Floats) -> None:
    """Write the lower triangle of the transpose of the inverse factor times itself: the inverse of the matrix."""
    n, at = np.uint64(d), _0
    for c in range(n * (n + _1) // _2):
        out[c] = 0.0
    for o in range(n):
        start = _0
        for r in range(o + _1):
            scale = inverse_factor[at + r]
            for c in range(r + _1):
                out[start + c] += scale * inverse_factor[at + c]
            start += r + _1
        at += o + _1


@lean
def solve_factor(factor: Floats, d: int, x: Floats) -> None:
    """Replace x by the solution of (L Lᵀ) y = x."""
    at = 0
    for r in range(d):
        total = x[r]
        for c in range(r):
            total -= factor[at + c] * x[c]
        x[r] = total / factor[at + r]
        at += r + 1
    for n in range(d):
        r = d - 1 - n
        at = r * (r + 1) // 2
        x[r] = x[r] / factor[at + r]
        for c in range(r):
            x[c] -= factor[at + c] * x[r]


@lean
def quadratic(triangle: Floats, u: Floats, d: int) -> float:
    """The quadratic form uᵀ A u of the leading d coordinates."""
    total, at = 0.0, 0
    for r in range(d):
        row = 0.0
        for c in range(r):
            row += triangle[at + c] * u[c]
        total += u[r] * (2.0 * row + triangle[at + r] * u[r])
        at += r + 1
    return total


@kernel
def unpack(triangle: Floats, d: int) -> Floats:
    """The symmetric matrix of a lower triangle."""
    full = np.empty((d, d))
    at = 0
    for r in range(d):
        for c in range(r + 1):
            full[r, c] = triangle[at + c]
            full[c, r] = triangle[at + c]
        at += r + 1
    return full
