"""The screen of dense problems: bounds for all arms, exact scores for few; ``screen.py`` says when it is used."""

# mypy: ignore-errors
import math

import numpy as np

from superarm.core.kernels.numeric import apart, inner, kernel, kl_line


@inner
def add_items32(left, bound, g):
    M, L = bound.shape
    for j in range(L):
        g[j] = np.float32(0.0)
    i = 0
    while i + 4 <= M:
        a, b, c, d = left[i], left[i + 1], left[i + 2], left[i + 3]
        for j in range(L):
            g[j] += (a * bound[i, j] + b * bound[i + 1, j]) + (c * bound[i + 2, j] + d * bound[i + 3, j])
        i += 4
    while i < M:
        a = left[i]
        for j in range(L):
            g[j] += a * bound[i, j]
        i += 1


@inner
def score_line(kind, mean, dev, level, x, q):
    """The scores of one arm (M,) at one level; ``x`` (M,) is scratch."""
    if kind == 0:
        root, add = math.sqrt(2.0 * level), 3.0 * level
        for i in range(len(mean)):
            v = mean[i] + dev[i] * root + add
            q[i] = v if v < 1.0 else 1.0
    else:
        for i in range(len(mean)):
            x[i] = level
        kl_line(mean, x, q)


@inner
def least(q):
    low = q[0]
    for i in range(len(q)):
        low = q[i] if q[i] < low else low
    return low


@inner
def line_gain(left, q):
    g = 0.0
    for i in range(len(left)):
        g += left[i] * q[i]
    return g


@inner
def tangent_gain(left, p, roof, step):
    """At least the gain at a level lower by ``step``: the KL bound is concave in the level, tangents lie above."""
    g = 0.0
    for i in range(len(p)):
        d = roof[i] - p[i]
        v = roof[i] - step * (roof[i] * (1.0 - roof[i])) / d if d > 0.0 else roof[i]
        g += left[i] * (v if v > p[i] else p[i])
    return g * (1.0 + 1e-9)


@apart
def precedes(g, j, most, best, counts):
    """Whether arm ``j`` of gain ``g`` comes before ``best``: larger gain, fewer pulls, lower number."""
    if best < 0 or g != most:
        return best < 0 or g > most
    return counts[j] < counts[best] or (counts[j] == counts[best] and j < best)


@apart
def renew(kind, mean, dev, later, due, counts, counted, mean_, dev_, roof, bound, ones, x):
    """Make the bounds of the arms ``due`` anew, for all rounds up to the one of the levels ``later``."""
    M = bound.shape[0]
    for j in due:
        if counts[j] != counted[j]:
            for i in range(M):
                mean_[j, i], dev_[j, i] = mean[i, j], dev[i, j]
            counted[j] = counts[j]
        score_line(kind, mean_[j], dev_[j], later[j], x, roof[j])
        ones[j] = least(roof[j]) >= 1.0
        for i in range(M):
            bound[i, j] = np.float32(roof[j, i]) * np.float32(1.0 + 3e-7)


@apart
def fewest_pulls(taken, ones, counts, anything):
    """The arm with fewest pulls of those whose scores are all 1, or of all if ``anything`` will do; -1 if none."""
    best = -1
    for j in range(len(taken)):
        if not taken[j] and (ones[j] == 2 or anything) and (best < 0 or counts[j] < counts[best]):
            best = j
    return best


@apart
def pick(kind, level, later, counts, taken, left, left_most, mean_, dev_, roof, q, bound, known, g32, x):
    """The arm of the largest gain: a pass over the bounds, then exact scores of the arms that could win."""
    M, L = bound.shape
    left32 = np.empty(M, np.float32)
    for i in range(M):
        left32[i] = np.float32(left[i] / left_most)
    add_items32(left32, bound, g32)
    lead, best, most = -1, -1, -1.0
    for j in range(L):
        if not taken[j] and (lead < 0 or g32[j] > g32[lead]):
            lead = j
    slack = 1.0 - 1.2e-7 * (M + 16)  # more than sums in float32 lose
    enough = np.float32(-1.0)
    for n in range(-1, L):
        j = lead if n < 0 else n
        if j < 0 or taken[j] or g32[j] < enough or n == lead:
            continue
        if not known[j]:
            if kind == 1 and best >= 0 and tangent_gain(left, mean_[j], roof[j], later[j] - level[j]) < most:
                continue
            score_line(kind, mean_[j], dev_[j], level[j], x, q[j])
            known[j] = True
        g = line_gain(left, q[j])
        if precedes(g, j, most, best, counts):
            best, most = j, g
            enough = np.float32(most / left_most * slack)
    return best


@kernel
def screened(
    kind, mean, dev, level, later, due, counts, counted, free, weights, mean_, dev_, roof, q, bound, ones, out
):
    """Greedy for Coverage on Subsets, one replication, with exact scores of few arms.

    mean, dev (M, L); level, later (L,) are the levels now and at the round until which bounds hold; ``due`` the arms
    whose bounds are made anew; counted (L,) the pulls that bounds are for; mean_, dev_, roof, q (L, M) are arm-major
    copies, scores at the later level, and exact scores; bound (M, L) float32 is at least the score. ones (L,) is 2 for
    arms whose scores are all 1, and stay so until pulled, and 1 for those that may become so before their bounds are
    made anew.
    """
    M, L = bound.shape
    known, taken, left = np.zeros(L, np.bool_), ~free, weights.copy()
    x, g32 = np.empty(M), np.empty(L, np.float32)
    renew(kind, mean, dev, later, due, counts, counted, mean_, dev_, roof, bound, ones, x)
    for j in range(L):
        if ones[j] == 1 and not taken[j]:
            score_line(kind, mean_[j], dev_[j], level[j], x, q[j])
            known[j] = True
            ones[j] = 2 if least(q[j]) >= 1.0 else 1
    for k in range(len(out)):
        left_most = 0.0
        for i in range(M):
            left_most = left[i] if left[i] > left_most else left_most
        best = fewest_pulls(taken, ones, counts, left_most == 0.0)
        if best >= 0 and not known[best]:
            q[best, :] = 1.0
        if best < 0 and left_most > 0.0:
            best = pick(kind, level, later, counts, taken, left, left_most, mean_, dev_, roof, q, bound, known, g32, x)
        out[k] = best
        if best >= 0:
            taken[best] = True
            for i in range(M):
                left[i] *= 1.0 - q[best, i]
