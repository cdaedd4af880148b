"""Slow, obvious references: the formulas as they stand on paper, in NumPy and mpmath.

Nothing here imports superarm. Parameters are dense, ``p[j, i]`` for arm j and item i.
"""

import itertools
import math

import mpmath
import numpy as np

mpmath.mp.dps = 50


# ---- statistics


def statistics(observations):
    """N, mean and biased variance of a list of numbers."""
    n = len(observations)
    if n == 0:
        return 0, 0.0, 0.0
    x = np.asarray(observations, float)
    return n, x.mean(), (x**2).mean() - x.mean() ** 2


# ---- indices, as written in the papers


def bc_ucb(mean, variance, pulls, t):
    return min(1.0, mean + np.sqrt(6.0 * variance * np.log(t) / pulls) + 9.0 * np.log(t) / pulls)


def cucb(mean, pulls, t):
    return min(1.0, mean + np.sqrt(3.0 * np.log(t) / (2.0 * pulls)))


def ucb_v(mean, variance, pulls, t, zeta, c):
    return min(1.0, mean + np.sqrt(2.0 * variance * zeta * np.log(t) / pulls) + 3.0 * c * zeta * np.log(t) / pulls)


def kl(p, q):
    """The Bernoulli divergence, 50 digits."""
    p, q = mpmath.mpf(p), mpmath.mpf(q)
    head = p * mpmath.log(p / q) if p > 0 else mpmath.mpf(0)
    tail = (1 - p) * mpmath.log((1 - p) / (1 - q)) if p < 1 else mpmath.mpf(0)
    return head + tail


def divergence(p, q):
    """The Bernoulli divergence of floats, where the last digits do not matter."""
    head = (p * math.log(p / q) if q > 0 else math.inf) if p > 0 else 0.0
    return head + ((1 - p) * math.log((1 - p) / (1 - q)) if q < 1 else math.inf) if p < 1 else head


def kl_upper(p, x):
    """The largest q with kl(p, q) <= x, by bisection of u = log(1 - q), 50 digits."""
    p, x = mpmath.mpf(p), mpmath.mpf(x)
    if p >= 1:
        return mpmath.mpf(1)
    near, far = mpmath.log1p(-p), mpmath.log1p(-p) - 1
    while _kl_at(p, far) <= x:
        far = near - 2 * (near - far)
    for _ in range(200):
        middle = (near + far) / 2
        near, far = (middle, far) if _kl_at(p, middle) <= x else (near, middle)
    return -mpmath.expm1(near)


def _kl_at(p, u):
    head = p * (mpmath.log(p) - mpmath.log(-mpmath.expm1(u))) if p > 0 else mpmath.mpf(0)
    return head + (1 - p) * (mpmath.log1p(-p) - u)


# ---- rewards: r_i(A; p_i) of one item, from the list of its parameters p_ij, j in A


def coverage(ps):
    """The probability that some arm covers the item, by summing over all 2^n outcomes."""
    chance = 0.0
    for hits in itertools.product((0, 1), repeat=len(ps)):
        if any(hits):
            chance += math.prod(p if hit else 1.0 - p for p, hit in zip(ps, hits, strict=True))
    return chance


def logistic(ps, c):
    return 1.0 / (1.0 + c * math.exp(-sum(ps)))


def linear(ps):
    return sum(ps)


def clipped(ps, slope, shift=0.0):
    return sum(max(min(slope * (p - shift), 1.0), 0.0) for p in ps)


def reward(item, weights, p, action):
    """r(A; p) = sum_i w_i r_i(A; p_i)."""
    return sum(w * item([p[j][i] for j in action]) for i, w in enumerate(weights))


def gradient(item, weights, p, action, h=1e-6):
    """Central differences of r(A; p) in every p_ji."""
    slopes = np.zeros(np.shape(p))
    for place in np.ndindex(slopes.shape):
        above, below = np.array(p, float), np.array(p, float)
        above[place] += h
        below[place] -= h
        slopes[place] = (reward(item, weights, above, action) - reward(item, weights, below, action)) / (2 * h)
    return slopes


def is_submodular(item, qs, tolerance=1e-12):
    """Whether r(A + j) - r(A) >= r(B + j) - r(B) for all A in B, j outside of B, arms having parameters qs."""
    arms = range(len(qs))
    values = {a: item([qs[j] for j in a]) for n in range(len(qs) + 1) for a in itertools.combinations(arms, n)}
    for big, worth in values.items():
        for n in range(len(big) + 1):
            for small in itertools.combinations(big, n):
                for j in set(arms) - set(big):
                    early = values[tuple(sorted((*small, j)))] - values[small]
                    late = values[tuple(sorted((*big, j)))] - worth
                    if late > early + tolerance:
                        return False
    return True


# ---- random numbers


def splitmix(state):
    """SplitMix64's output function in plain integers, after Steele, Lea and Flood (2014)."""
    mask = 2**64 - 1
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def unsplitmix(z):
    """The inverse of ``splitmix``: multiplications by inverses modulo 2^64, shifts undone."""
    mask = 2**64 - 1
    z = _unshift(z, 31)
    z = _unshift((z * pow(0x94D049BB133111EB, -1, 2**64)) & mask, 27)
    return _unshift((z * pow(0xBF58476D1CE4E5B9, -1, 2**64)) & mask, 30)


def _unshift(z, by):
    x = z
    for _ in range(64 // by + 1):
        x = z ^ (x >> by)
    return x


# ---- smoothness


def logistic_gamma_g(c, k):
    """sup of f(1-f) sqrt(s(1-s/k)) over 0 < s < k, from its stationarity (1-2f) + (1/s - 1/(k-s))/2 = 0 by bisection.

    The left side decreases in s: the function is log-concave.
    """
    low, high = mpmath.mpf(0), mpmath.mpf(k)
    for _ in range(150):
        s = (low + high) / 2
        f = 1 / (1 + c * mpmath.exp(-s))
        rising = (1 - 2 * f) + (1 / s - 1 / (k - s)) / 2 > 0
        low, high = (s, high) if rising else (low, s)
    f = 1 / (1 + c * mpmath.exp(-low))
    return float(f * (1 - f) * mpmath.sqrt(low * (1 - low / k)))


def reversed_cascade_ucb1(n_arms, k, gap, rounds, runs, seed=0, clock=lambda t: t - 1, most=np.inf, first="worst"):
    """The final expected regret of CascadeUCB1 on B(L, K, 0.2, gap), lists with the ``first`` of their arms at the top.

    As [KvetonEtAl2015]_ print it: one observation of each arm, then the k largest mean + sqrt(1.5 log(t - 1) / N).
    """
    rng, rows = np.random.default_rng(seed), np.arange(runs)
    p = np.where(np.arange(n_arms) < k, 0.2, 0.2 - gap)
    pulls, hits = np.ones((runs, n_arms)), (rng.random((runs, n_arms)) < p).astype(float)
    regret, best = np.zeros(runs), 1.0 - 0.8**k
    for t in range(1, rounds + 1):
        index = np.minimum(most, hits / pulls + np.sqrt(1.5 * np.log(max(clock(t), 1)) / pulls))
        page = np.argsort(-index, axis=1)[:, :k]
        regret += best - (1.0 - np.prod(1.0 - p[page], axis=1))
        reading = np.ones(runs, bool)
        for place in range(k) if first == "best" else reversed(range(k)):
            arm = page[:, place]
            click = rng.random(runs) < p[arm]
            pulls[rows, arm] += reading
            hits[rows, arm] += reading & click
            reading &= ~click
    return regret
