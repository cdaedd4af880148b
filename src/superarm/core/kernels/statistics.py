"""Outcomes and statistics: Bernoulli draws, and adding feedback to tallies."""

# mypy: ignore-errors
import math

import numpy as np

from superarm.core.kernels.numeric import INDEX, ROUND, STEP, kernel, mix, number, to_grid


@kernel
def flip(keys, t, action, p, x):
    R, K = action.shape
    M = p.shape[1]
    for r in range(R):
        base = mix(keys[r] ^ np.uint64(t) * ROUND)
        own = r if p.shape[0] > 1 else 0
        for k in range(K):
            j = action[r, k]
            if j < 0:
                x[r, k, :] = 0.0
                continue
            s = mix(base + np.uint64(j) * INDEX)
            for i in range(M):
                x[r, k, i] = 1.0 if number(s + np.uint64(i + 1) * STEP) < p[own, i, j] else 0.0


@kernel
def flip_sparse(keys, t, action, start, p, x):
    x[:] = 0.0
    for r in range(action.shape[0]):
        base = mix(keys[r] ^ np.uint64(t) * ROUND)
        for k in range(action.shape[1]):
            j = action[r, k]
            if j >= 0:
                s = mix(base + np.uint64(j) * INDEX)
                for o in range(start[j + 1] - start[j]):
                    x[r, k, o] = 1.0 if number(s + np.uint64(o + 1) * STEP) < p[start[j] + o] else 0.0


@kernel
def record(action, x, seen, sign, unit, pulls, total, square, missed, mean, dev):
    R, K = action.shape
    M = total.shape[1]
    partial = missed.size > 0
    for r in range(R):
        for k in range(K):
            j = action[r, k]
            if j < 0:
                continue
            anything = not partial
            if partial:
                for i in range(M):
                    anything = anything or seen[r, k, i]
            if not anything:
                continue
            pulls[r, j] += sign
            n = pulls[r, j]
            for i in range(M):
                if partial and not seen[r, k, i]:
                    missed[r, i, j] += sign
                else:
                    y = to_grid(x[r, k, i] / unit)
                    total[r, i, j] += sign * unit * y
                    square[r, i, j] += sign * unit * unit * to_grid(y * y)
                c = n - missed[r, i, j] if partial else n
                c = c if c > 0.0 else 1.0
                m = total[r, i, j] / c
                v = square[r, i, j] / c - m * m
                mean[r, i, j] = m
                dev[r, i, j] = math.sqrt(v) if v > 0.0 else 0.0


@kernel
def record_sparse(start, action, x, seen, sign, unit, pulls, total, square, missed, mean, dev):
    R, K = action.shape
    partial = missed.size > 0
    for r in range(R):
        for k in range(K):
            j = action[r, k]
            if j < 0:
                continue
            width = start[j + 1] - start[j]
            anything = not partial or width == 0
            if partial:
                for o in range(width):
                    anything = anything or seen[r, k, o]
            if not anything:
                continue
            pulls[r, j] += sign
            for o in range(width):
                e = start[j] + o
                if partial and not seen[r, k, o]:
                    missed[r, e] += sign
                else:
                    y = to_grid(x[r, k, o] / unit)
                    total[r, e] += sign * unit * y
                    square[r, e] += sign * unit * unit * to_grid(y * y)
                c = pulls[r, j] - missed[r, e] if partial else pulls[r, j]
                c = c if c > 0.0 else 1.0
                m = total[r, e] / c
                v = square[r, e] / c - m * m
                mean[r, e] = m
                dev[r, e] = math.sqrt(v) if v > 0.0 else 0.0
