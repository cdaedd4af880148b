"""Scores of entries: the Bernstein and KL bounds, and Beta draws."""

# mypy: ignore-errors
import math

import numpy as np

from superarm.core.kernels.numeric import (
    INDEX,
    ROUND,
    STEP,
    apart,
    decay,
    inner,
    kernel,
    kl_line,
    log1p,
    log_of_chance,
    mix,
    number,
)

_FLIP, _BOOST = np.uint64(1 << 32), np.uint64(1 << 33)


@kernel
def bernstein(mean, dev, level, q):
    R, M, L = mean.shape
    root, add = np.empty(L), np.empty(L)
    per = level.shape[1] > 1
    for r in range(R):
        for i in range(M):
            if per or i == 0:
                for j in range(L):
                    x = level[r, i, j]
                    root[j], add[j] = math.sqrt(2.0 * x), 3.0 * x
            for j in range(L):
                v = mean[r, i, j] + dev[r, i, j] * root[j] + add[j]
                q[r, i, j] = v if v < 1.0 else 1.0


@kernel
def kl(mean, level, q):
    """max{q : kl(mean, q) <= level}."""
    R, M = mean.shape[:2]
    per = level.shape[1] > 1
    for r in range(R):
        for i in range(M):
            kl_line(mean[r, i], level[r, i if per else 0], q[r, i])


@inner
def _centre(d):
    r = 0.180625 - d * d
    a = (2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853
    a = ((a * r + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427
    a = (a * r + 133.14166789178437745) * r + 3.387132872796366608
    b = (5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061
    b = ((b * r + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.1870074920579083
    return d * a / ((b * r + 42.313330701600911252) * r + 1.0)


@apart
def normal(u):
    d = u - 0.5
    if abs(d) <= 0.425:
        return _centre(d)
    depth = math.sqrt(-log_of_chance(u if d < 0.0 else 1.0 - u))
    z = _near_tail(depth - 1.6) if depth <= 5.0 else _far_tail(depth - 5.0)
    return -z if d < 0.0 else z


@apart
def _near_tail(r):
    a = (7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177
    a = ((a * r + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055
    b = (1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966
    b = ((b * r + 0.14810397642748007459) * r + 0.68976733498510000455) * r + 1.6763848301838038494
    return ((a * r + 4.6303378461565452959) * r + 1.42343711074968357734) / ((b * r + 2.05319162663775882187) * r + 1.0)


@apart
def _far_tail(r):
    a = (2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386
    a = ((a * r + 0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358
    b = (2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5
    b = ((b * r + 7.868691311456132591e-4) * r + 0.0148753612908506148525) * r + 0.13692988092273580531
    return ((a * r + 5.4637849111641143699) * r + 6.6579046435011037772) / ((b * r + 0.59983220655588793769) * r + 1.0)


@apart
def gamma(s, shape):
    """Gamma(shape >= 1) by Marsaglia and Tsang; ``s`` is the state of this entry's own numbers."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        s += STEP
        z = normal(min(number(s) + 5.551115123125783e-17, 1.0 - 2.0**-53))
        v = 1.0 + c * z
        s += STEP
        u = 1.0 - number(s)
        if v > 0.0:
            v = v * v * v
            if u < 1.0 - 0.0331 * z * z * z * z or log1p(u - 1.0) < 0.5 * z * z + d * (1.0 - v + log1p(v - 1.0)):
                return d * v


@inner
def gamma_at_once(s, shape):
    """What ``gamma`` returns if its first try is near the middle and accepted at sight, five times in six; else -1."""
    d = shape - 1.0 / 3.0
    z_u, u = number(s + STEP) + 5.551115123125783e-17 - 0.5, 1.0 - number(s + (STEP + STEP))
    z = _centre(z_u)
    v = 1.0 + 1.0 / math.sqrt(9.0 * d) * z
    good = (abs(z_u) <= 0.425) & (v > 0.0) & (u < 1.0 - 0.0331 * z * z * z * z)
    return d * (v * v * v) if good else -1.0


@kernel
def gammas(own, shape, x):
    """Gamma draws of any shape > 0: below 1, those of shape + 1 times a power of one more uniform number."""
    for j in range(len(x)):
        a = shape[j]
        x[j] = gamma_at_once(own[j], a if a >= 1.0 else a + 1.0)
    for j in range(len(x)):
        a = shape[j]
        if x[j] < 0.0:
            x[j] = gamma(own[j], a if a >= 1.0 else a + 1.0)
        if a < 1.0:
            x[j] *= decay(-log1p(-number(own[j] ^ _BOOST)) / a)


@inner
def beta_line(own, mean, pulls, x, y, q):
    """Beta draws of a line of entries (n,): a vectorised pass for most of them; ``x`` and ``y`` are scratch."""
    for j in range(len(q)):
        a = mean[j] * pulls[j]
        x[j], y[j] = gamma_at_once(own[j], 1.0 + a), gamma_at_once(own[j] ^ _FLIP, 1.0 + (pulls[j] - a))
    for j in range(len(q)):
        if x[j] < 0.0:
            x[j] = gamma(own[j], 1.0 + mean[j] * pulls[j])
        if y[j] < 0.0:
            y[j] = gamma(own[j] ^ _FLIP, 1.0 + (pulls[j] - mean[j] * pulls[j]))
        q[j] = x[j] / (x[j] + y[j])


@kernel
def beta(keys, t, mean, pulls, q):
    R, M, L = mean.shape
    s, own, x, y = np.empty(L, np.uint64), np.empty(L, np.uint64), np.empty(L), np.empty(L)
    for r in range(R):
        base = mix(keys[r] ^ np.uint64(t) * ROUND)
        for j in range(L):
            s[j] = mix(base + np.uint64(j) * INDEX)
        for i in range(M):
            for j in range(L):
                own[j] = mix(s[j] + np.uint64(i + 1) * STEP)
            beta_line(own, mean[r, i], pulls[r, i], x, y, q[r, i])


@kernel
def beta_sparse(keys, t, start, mean, pulls, q):
    E = mean.shape[1]
    own, x, y = np.empty(E, np.uint64), np.empty(E), np.empty(E)
    for r in range(mean.shape[0]):
        base = mix(keys[r] ^ np.uint64(t) * ROUND)
        for j in range(len(start) - 1):
            s = mix(base + np.uint64(j) * INDEX)
            for e in range(start[j], start[j + 1]):
                own[e] = mix(s + np.uint64(e - start[j] + 1) * STEP)
        beta_line(own, mean[r], pulls[r], x, y, q[r])
