"""Oracles: greedy for coverage, the best arms by worth, and the value of batches."""

# mypy: ignore-errors
import math

import numpy as np

from superarm.core.kernels.numeric import apart, inner, kernel


@inner
def add_items(left, q, r, g):
    """g[j] = sum over items of left[i] q[r, i, j], in natural order; four items a pass save loads and stores."""
    M, L = q.shape[1], q.shape[2]
    for j in range(L):
        g[j] = 0.0
    i = 0
    while i + 4 <= M:
        a, b, c, d = left[i], left[i + 1], left[i + 2], left[i + 3]
        for j in range(L):
            g[j] = (((g[j] + a * q[r, i, j]) + b * q[r, i + 1, j]) + c * q[r, i + 2, j]) + d * q[r, i + 3, j]
        i += 4
    while i < M:
        a = left[i]
        for j in range(L):
            g[j] += a * q[r, i, j]
        i += 1


@apart
def best_arm(g, counts, r):
    """The largest gain, ties by fewest pulls, then the lowest number; -1 if all are -inf."""
    best, most, fewest = -1, -math.inf, math.inf
    for j in range(len(g)):
        if g[j] > most or (g[j] == most and best >= 0 and counts[r, j] < fewest):
            best, most, fewest = j, g[j], counts[r, j]
    return best


@kernel
def greedy_coverage(q, weights, counts, eligible, size, out):
    """Greedy for Coverage on Subsets: fills ``out`` (R, K) from place ``size`` on (those before it are pinned)."""
    R, M, L = q.shape
    K = out.shape[1]
    g, left = np.empty(L), np.empty(M)
    for r in range(R):
        for i in range(M):
            left[i] = weights[i]
        for a in range(size):
            for i in range(M):
                left[i] *= 1.0 - q[r, i, out[r, a]]
        for k in range(size, K):
            add_items(left, q, r, g)
            for j in range(L):
                g[j] = g[j] if eligible[r, j] else -math.inf
            for a in range(k):
                g[out[r, a]] = -math.inf
            b = best_arm(g, counts, r)
            out[r, k] = b
            if b < 0:
                continue
            for i in range(M):
                left[i] *= 1.0 - q[r, i, b]


@kernel
def top_k(worth, counts, eligible, size, out):
    """The arms of largest worth (R, L), ties by fewest pulls: Linear rewards on Subsets, and the first rounds."""
    R, L = worth.shape
    g = np.empty(L)
    for r in range(R):
        for j in range(L):
            g[j] = worth[r, j] if eligible[r, j] else -math.inf
        for a in range(size):
            g[out[r, a]] = -math.inf
        for k in range(size, out.shape[1]):
            b = best_arm(g, counts, r)
            out[r, k] = b
            if b >= 0:
                g[b] = -math.inf


@kernel
def coverage_value(p, weights, action, value):
    R, K = action.shape
    M = p.shape[1]
    left = np.empty(M)
    for r in range(R):
        v = 0.0
        own = r if p.shape[0] > 1 else 0
        for i in range(M):
            left[i] = weights[i]
        for k in range(K):
            j = action[r, k]
            if j >= 0:
                g = 0.0
                for i in range(M):
                    g += left[i] * p[own, i, j]
                    left[i] *= 1.0 - p[own, i, j]
                v += g
        value[r] = v


@kernel
def sparse_sums(start, items, state, q, gains):
    """gains[r, j] = sum over the entries of arm j of state[r, item] q[r, entry], in natural order."""
    for r in range(q.shape[0]):
        for j in range(len(start) - 1):
            g = 0.0
            for e in range(start[j], start[j + 1]):
                g += state[r, items[e]] * q[r, e]
            gains[r, j] = g
