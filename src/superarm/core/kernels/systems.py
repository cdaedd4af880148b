"""Small symmetric systems: Cholesky's method, and sums of outer products on a grid; see ``reference``."""

# mypy: ignore-errors
import math

import numpy as np

from superarm.core.kernels.numeric import kernel


@kernel
def factorise(a):
    N, d = a.shape[:2]
    least = np.empty(d)
    for n in range(N):
        m = a[n]
        for k in range(d):
            least[k] = m[k, k] * 2.0**-40
        for k in range(d):
            pivot = math.sqrt(max(m[k, k], least[k]))
            m[k, k] = pivot
            for r in range(k + 1, d):
                m[r, k] /= pivot
            for r in range(k + 1, d):
                scale = m[r, k]
                for c in range(k + 1, d):
                    m[r, c] -= scale * m[c, k]


@kernel
def solve_systems(factor, x):
    N, d = x.shape
    for n in range(N):
        m, y = factor[n], x[n]
        for r in range(d):
            total = y[r]
            for c in range(r):
                total -= m[r, c] * y[c]
            y[r] = total / m[r, r]
        for r in range(d - 1, -1, -1):
            y[r] /= m[r, r]
            for c in range(r):
                y[c] -= m[r, c] * y[r]


@kernel
def invert_systems(factor, inverse):
    N, d = factor.shape[:2]
    half = np.zeros((d, d))
    for n in range(N):
        m, out = factor[n], inverse[n]
        for r in range(d):
            for c in range(d):
                half[r, c] = 0.0
                out[r, c] = 0.0
            for o in range(r):
                scale = m[r, o]
                for c in range(o + 1):
                    half[r, c] -= scale * half[o, c]
            for c in range(r):
                half[r, c] /= m[r, r]
            half[r, r] = 1.0 / m[r, r]
        for o in range(d):
            for r in range(o + 1):
                scale = half[o, r]
                for c in range(o + 1):
                    out[r, c] += scale * half[o, c]


@kernel
def quadratic_forms(a, u, out):
    N, d = a.shape[:2]
    row = np.empty(d)
    for n in range(N):
        m, v = a[n], u[n if u.shape[0] > 1 else 0]
        for c in range(d):
            row[c] = 0.0
        for r in range(d):
            scale = v[r]
            for c in range(d):
                row[c] += m[r, c] * scale
        total = 0.0
        for c in range(d):
            total += row[c] * v[c]
        out[n] = total


@kernel
def add_terms(phi, scale, group, grid, sign, total):
    N, d = phi.shape
    for n in range(N):
        v, sums = phi[n], total[group[n]]
        at = 0
        for r in range(d):
            scaled = scale[n] * v[r]
            for c in range(r + 1):
                sums[at + c] += sign * (math.floor(scaled * v[c] * grid + 0.5) / grid)
            at += r + 1
