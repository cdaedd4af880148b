"""The systems of ``linear_algebra`` for eight matrices at once, number by number the same operations in the same order.

A triangle of lanes holds each coordinate of eight packed triangles side by side, so that loops over the eight lanes
become vector instructions. Cholesky's method, [GolubVanLoan2013]_ (section 4.2).
"""

import math

import numpy as np

from superarm._jit import lean
from superarm._lanes import add_lanes
from superarm.arrays import Floats, Ints

_1 = np.uint64(1)

LANES = 8
"""How many matrices are factorised at once: two vector registers of four numbers, or one of eight."""


@lean
def factorise_lanes(triangle: Floats, d: int, total: Floats) -> None:
    """As ``linear_algebra.factorise``; ``total`` (LANES,) is a buffer."""
    at = 0
    for r in range(d):
        start = 0
        for c in range(r):
            for n in range(LANES):
                total[n] = triangle[(at + c) * LANES + n]
            for o in range(c):
                for n in range(LANES):
                    total[n] -= triangle[(at + o) * LANES + n] * triangle[(start + o) * LANES + n]
            for n in range(LANES):
                triangle[(at + c) * LANES + n] = total[n] / triangle[(start + c) * LANES + n]
            start += c + 1
        for n in range(LANES):
            total[n] = triangle[(at + r) * LANES + n]
        for o in range(r):
            for n in range(LANES):
                total[n] -= triangle[(at + o) * LANES + n] * triangle[(at + o) * LANES + n]
        for n in range(LANES):
            diagonal = triangle[(at + r) * LANES + n]
            triangle[(at + r) * LANES + n] = math.sqrt(max(total[n], diagonal * 2.0**-40))
        at += r + 1


@lean
def invert_lanes(factor: Floats, d: int, out: Floats, total: Floats) -> None:
    """As ``linear_algebra.invert_factor``."""
    at = 0
    for r in range(d):
        for c in range(r):
            for n in range(LANES):
                total[n] = 0.0
            for o in range(c, r):
                row = o * (o + 1) // 2 + c
                for n in range(LANES):
                    total[n] -= factor[(at + o) * LANES + n] * out[row * LANES + n]
            for n in range(LANES):
                out[(at + c) * LANES + n] = total[n] / factor[(at + r) * LANES + n]
        for n in range(LANES):
            out[(at + r) * LANES + n] = 1.0 / factor[(at + r) * LANES + n]
        at += r + 1


@lean
def square_lanes(inverse_factor: Floats, d: int, out: Floats) -> None:
    """As ``linear_algebra.square_factor``."""
    out[:] = 0.0
    at = 0
    for o in range(d):
        start = 0
        for r in range(o + 1):
            for c in range(r + 1):
                for n in range(LANES):
                    scale = inverse_factor[(at + r) * LANES + n]
                    out[(start + c) * LANES + n] += scale * inverse_factor[(at + c) * LANES + n]
            start += r + 1
        at += o + 1


@lean
def solve_lanes(factor: Floats, d: int, x: Floats, total: Floats) -> None:
    """As ``linear_algebra.solve_factor``, where ``x`` (d * LANES,) holds the eight right-hand sides side by side."""
    at = 0
    for r in range(d):
        for n in range(LANES):
            total[n] = x[r * LANES + n]
        for c in range(r):
            for n in range(LANES):
                total[n] -= factor[(at + c) * LANES + n] * x[c * LANES + n]
        for n in range(LANES):
            x[r * LANES + n] = total[n] / factor[(at + r) * LANES + n]
        at += r + 1
    for m in range(d):
        r = d - 1 - m
        at = r * (r + 1) // 2
        for n in range(LANES):
            x[r * LANES + n] = x[r * LANES + n] / factor[(at + r) * LANES + n]
        for c in range(r):
            for n in range(LANES):
                x[c * LANES + n] -= factor[(at + c) * LANES + n] * x[r * LANES + n]


@lean
def quadratic_lanes(triangles: Floats, row: Ints, u: Floats, out: Floats) -> None:
    """Write uᵀ A u, as of ``linear_algebra.quadratic``, for the packed triangles in eight rows.

    Eight sums that do not wait for one another: a sum alone takes as long as its chain of additions.
    """
    a, b, c, e = triangles[row[0]], triangles[row[1]], triangles[row[2]], triangles[row[3]]
    f, g, h, i = triangles[row[4]], triangles[row[5]], triangles[row[6]], triangles[row[7]]
    total = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    at = np.uint64(0)
    for r in range(np.uint64(len(u))):
        part, y = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), u[r]
        for column in range(r):
            x, o = u[column], at + column
            part = add_lanes(part, a[o] * x, b[o] * x, c[o] * x, e[o] * x, f[o] * x, g[o] * x, h[o] * x, i[o] * x)
        o = at + r
        total = add_lanes(
            total,
            y * (2.0 * part[0] + a[o] * y),
            y * (2.0 * part[1] + b[o] * y),
            y * (2.0 * part[2] + c[o] * y),
            y * (2.0 * part[3] + e[o] * y),
            y * (2.0 * part[4] + f[o] * y),
            y * (2.0 * part[5] + g[o] * y),
            y * (2.0 * part[6] + h[o] * y),
            y * (2.0 * part[7] + i[o] * y),
        )
        at = o + _1
    out[0], out[1], out[2], out[3] = total[0], total[1], total[2], total[3]
    out[4], out[5], out[6], out[7] = total[4], total[5], total[6], total[7]
