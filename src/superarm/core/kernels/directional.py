"""One step of a directional policy: the arm with the largest confidence bound of what it would add to the batch."""

# mypy: ignore-errors
import math

import numpy as np

from superarm.core.kernels.numeric import apart, fall, kernel, kl_first, kl_sharp, kl_step, log1p

_NEARLY_ONE, _CERTAIN = 1.0 - 1e-9, 700.0
_SLACK = 1.0 + 1e-7  # more than rounding, and the last step of the iteration in a bound, can add to it
_SINGLE = 1.2e-7  # more than rounding to single precision, and a sum of two numbers in it, can lose
_LEAST_LEVEL = 1e-60  # below it the width is less than the last digit of the mean, whichever kappa is taken


@apart
def two_moment_bound(mean, variance, largest, x):
    """See ``directions.two_moment_bound``."""
    if x <= 0.0 or mean >= 1.0:
        return min(1.0, mean)
    if x > _CERTAIN:
        return 1.0
    h = largest if largest < _NEARLY_ONE else 1.0
    room = h - mean
    v = min(variance, mean * room)
    if room <= 0.0 or v <= 0.0:
        return mean + (1.0 - mean) * fall(x)
    a, share = max(0.0, mean - v / room), v / (v + room * room)
    if h >= 1.0:
        q = kl_first(share, x)
        q = kl_sharp(share, x, q) if q > 0.9 else q
        if share < q < 1.0:
            q = kl_step(share, x, kl_step(share, x, kl_step(share, x, q)))
        return min(1.0, a + (1.0 - a) * q)
    low, high, kappa = 0.0, 1.0, min(1.0, math.sqrt(2.0 * x / v))
    for _ in range(60):
        up, down = h / (1.0 - kappa * h), a / (1.0 - kappa * a)
        outer = 1.0 + kappa * (share * up + (1.0 - share) * down)
        psi = share * log1p(-kappa * h) + (1.0 - share) * log1p(-kappa * a) - x + log1p(outer - 1.0)
        if psi > 0.0:
            high = kappa
        elif kappa >= 1.0:
            break
        else:
            low = kappa
        slope = kappa * share * (1.0 - share) * (up - down) * (up - down) / outer
        new = kappa - (psi / slope if slope > 0.0 else 2.0)
        if not low < new < high:
            new = 1.0 if new >= 1.0 and high >= 1.0 else 0.5 * (low + high)
        done = abs(new - kappa) <= 1e-9 * kappa
        kappa = new
        if done:
            break
    exponent = share * log1p(-kappa * h) + (1.0 - share) * log1p(-kappa * a) - x
    return min(1.0, max(mean, fall(-exponent) / kappa))


@apart
def direction_bound(c, u, ratio, order, b, mean, dev, top, covariance, spread, peak, x):
    """The bound of one arm: see ``directions.direction_bounds``. ``mean``, ``dev`` and ``top`` are of its items."""
    M = len(c)
    if b <= 0.0:
        return 0.0
    slope = 0.0
    for n in range(M):
        slope += u[order[n]] * dev[order[n]]
    slope, n = spread - slope, 0
    while n < M and slope < 0.0:
        slope += 2.0 * (u[order[n]] * dev[order[n]])
        n += 1
    a = ratio[order[n - 1]] if n > 0 else 0.0
    slope, n = peak, M
    while n > 0:
        slope += -(u[order[n - 1]] * top[order[n - 1]])
        if slope < 0.0:
            break
        n -= 1
    other = ratio[order[n - 1]] if n > 0 else 0.0
    root, high, square, total = a * spread, other * peak, 0.0, 0.0
    for i in range(M):
        total += c[i] * mean[i]
        root += abs(c[i] - a * u[i]) * dev[i]
        high += max(0.0, c[i] - other * u[i]) * top[i]
        square += c[i] * c[i] * dev[i] * dev[i]
    v = root * root
    if len(covariance) > 0:
        pairs, place = 0.0, 0
        for i in range(1, M):
            for k in range(i):
                pairs += c[i] * c[k] * covariance[place]
                place += 1
        v = min(v, max(0.0, square + 2.0 * pairs))
    return b * two_moment_bound(total / b, v / (b * b), high / b, x)


@apart
def best_direction(
    coarse, mean, dev, top, covariance, spread, peak, level, limit, u, c, ratio, order, counts, allowed, work
):
    """The allowed arm of the largest bound in one replication, and the bound.

    A closed form that no bound exceeds, in one pass over all arms in single precision, leaves few for the bound itself.
    ``coarse`` (2, M, L) are mean and deviation in single precision. ``_roofs`` in
    ``policies/directional.py`` has the proof.
    """
    M, L = mean.shape
    total, rest, roof = work[0], work[1], work[2]
    middle_peak, b, most_ = 0.0, 0.0, 0.0
    for j in range(L):
        total[j], rest[j] = np.float32(0.0), np.float32(0.0)
        middle_peak += peak[j] / L
    n, above = M, 0.0  # one a and one a' serve all arms: the middle ratio, and the best a' of an arm of middle peak
    while n > 0 and above + u[order[n - 1]] <= middle_peak:
        n -= 1
        above += u[order[n]]
    a, other = ratio[order[M // 2]], ratio[order[n - 1]] if n > 0 else 0.0
    for i in range(M):
        ci, da = np.float32(c[i]), np.float32(abs(c[i] - a * u[i]))
        b += c[i]
        most_ += max(0.0, c[i] - other * u[i])
        for j in range(L):
            total[j] += ci * coarse[0, i, j]
            rest[j] += da * coarse[1, i, j]
    share, lead, lost = 1.0 / b if b > 0.0 else 0.0, -1, (M + 8) * _SINGLE
    for j in range(L):
        x, m = level[j], share * total[j]
        s, below = share * (a * spread[j] + rest[j]) * (1.0 + lost), m * (1.0 - lost)
        up = max(0.0, min(1.0, share * (other * peak[j] + most_)) - below)
        inverse = max(s / math.sqrt(2.0 * max(x, _LEAST_LEVEL)) + (2.0 / 3.0) * up, 1.0 - below, 2.0 * up, 1e-9)
        w = up / inverse
        width = x * inverse + s * s / inverse * (0.5 + w * (1.0 / 3.0 + w * (0.25 + 0.4 * w)))
        e = width / inverse
        v = m * (1.0 + lost) + width * (1.0 - e * (0.5 - e * (1.0 / 6.0)))
        roof[j] = b * _SLACK * (1.0 + _SINGLE) * (v if v < 1.0 else 1.0)
    for j in range(L):
        if allowed[j] and (lead < 0 or roof[j] > roof[lead]):
            lead = j
    best, most = -1, -math.inf
    for n in range(-1, L):
        j = lead if n < 0 else n
        if j < 0 or not allowed[j] or roof[j] < most or (n >= 0 and j == lead):
            continue
        own = (mean[:, j], dev[:, j], top[:, j], covariance[j], spread[j], peak[j], level[j])
        v = min(direction_bound(c, u, ratio, order, b, *own), limit[j])
        fewer = best < 0 or counts[j] < counts[best] or (counts[j] == counts[best] and j < best)
        if best < 0 or v > most or (v == most and fewer):
            best, most = j, v
    return best, most


@apart
def round_to_single(mean, dev, coarse):
    for i in range(mean.shape[0]):
        for j in range(mean.shape[1]):
            coarse[0, i, j], coarse[1, i, j] = np.float32(mean[i, j]), np.float32(dev[i, j])


@kernel
def directional_step(
    mean, dev, top, covariance, spread, peak, level, limit, u, c, ratio, order, counts, allowed, arm, bound
):
    work, coarse = np.empty((3, level.shape[1]), np.float32), np.empty((2, *mean.shape[1:]), np.float32)
    for r in range(len(level)):
        s = r if mean.shape[0] > 1 else 0
        round_to_single(mean[s], dev[s], coarse)
        sample = (coarse, mean[s], dev[s], top[s], covariance[s], spread[s], peak[s])
        direction = (level[r], limit[r], u, c[r], ratio[r], order[r], counts[r], allowed[r], work)
        arm[r], bound[r] = best_direction(*sample, *direction)


@apart
def sort_by(key, order):
    """Sort ``order`` by key, ties by number, from the order of the last call, which is near."""
    for n in range(1, len(order)):
        i, place = order[n], n
        while place > 0 and (
            key[order[place - 1]] > key[i] or (key[order[place - 1]] == key[i] and order[place - 1] > i)
        ):
            order[place] = order[place - 1]
            place -= 1
        order[place] = i


@kernel
def directional_coverage(
    mean, dev, top, covariance, spread, peak, level, u, weights, joining, counts, eligible, size, out
):
    R, L = level.shape
    M = mean.shape[1]
    work, coarse = np.empty((3, L), np.float32), np.empty((2, M, L), np.float32)
    limit, allowed = np.empty(L), np.empty(L, np.bool_)
    c, ratio, order = np.empty(M), np.empty(M), np.empty(M, np.int64)
    for i in range(M):  # loops: array expressions take longer to compile
        order[i] = i
    for j in range(L):
        limit[j] = math.inf
    for r in range(R):
        s = r if mean.shape[0] > 1 else 0
        for i in range(M):
            c[i] = weights[i]
        for j in range(L):
            allowed[j] = eligible[r, j]
        round_to_single(mean[s], dev[s], coarse)
        for k in range(out.shape[1]):
            if k >= size:
                for i in range(M):
                    ratio[i] = c[i] / u[i] if u[i] > 0.0 else 0.0
                sort_by(ratio, order)
                sample = (coarse, mean[s], dev[s], top[s], covariance[s], spread[s], peak[s])
                out[r, k], _ = best_direction(*sample, level[r], limit, u, c, ratio, order, counts[r], allowed, work)
            j = out[r, k]
            if j >= 0:
                allowed[j] = False
                for i in range(M):
                    c[i] *= 1.0 - joining[s, i, j]
