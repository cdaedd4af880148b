"""One step of a directional policy: the arm with the largest confidence bound of what it would add to the batch."""

# mypy: ignore-errors
import math

import numpy as np

from superarm.next.kernels.numeric import apart, fall, kernel, kl_first, kl_sharp, kl_step, log1p

_NEARLY_ONE, _CERTAIN = 1.0 - 1e-9, 700.0
_SLACK = 1.0 + 1e-7  # more than rounding, and the last step of the iteration in a bound, can add to it
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
def direction_bound(c, u, ratio, order, b, total, dev, top, covariance, spread, peak, x):
    """The bound of one arm: see ``directions.direction_bounds``. ``dev`` and ``top`` are those of its items."""
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
    root, high, square = a * spread, other * peak, 0.0
    for i in range(M):
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


@kernel
def directional_step(
    mean, dev, top, covariance, spread, peak, level, limit, u, c, ratio, order, counts, allowed, arm, bound
):
    """A closed form in one pass over all arms, which no bound exceeds, leaves few arms for the bound itself."""
    R, L = level.shape
    M = mean.shape[1]
    total, rest, most_, roof = np.empty(L), np.empty(L), np.empty(L), np.empty(L)
    for r in range(R):
        own = r if mean.shape[0] > 1 else 0
        middle_peak, b = 0.0, 0.0
        for j in range(L):
            total[j], rest[j], most_[j] = 0.0, 0.0, 0.0
            middle_peak += peak[own, j] / L
        n, above = M, 0.0  # one a and one a' serve all arms: the middle ratio, and the best a' of an arm of middle peak
        while n > 0 and above + u[order[r, n - 1]] <= middle_peak:
            n -= 1
            above += u[order[r, n]]
        a, other = ratio[r, order[r, M // 2]], ratio[r, order[r, n - 1]] if n > 0 else 0.0
        for i in range(M):
            ci, da, dh = c[r, i], abs(c[r, i] - a * u[i]), max(0.0, c[r, i] - other * u[i])
            b += ci
            for j in range(L):
                total[j] += ci * mean[own, i, j]
                rest[j] += da * dev[own, i, j]
                most_[j] += dh * top[own, i, j]
        share, lead = 1.0 / b if b > 0.0 else 0.0, -1
        for j in range(L):
            x, m = level[r, j], share * total[j]
            s = share * (a * spread[own, j] + rest[j])
            up = max(0.0, min(1.0, share * (other * peak[own, j] + most_[j])) - m)
            inverse = max(s / math.sqrt(2.0 * max(x, _LEAST_LEVEL)) + (2.0 / 3.0) * up, 1.0 - m, 2.0 * up, 1e-9)
            w = up / inverse
            width = x * inverse + s * s / inverse * (0.5 + w * (1.0 / 3.0 + w * (0.25 + 0.4 * w)))
            e = width / inverse
            v = m + width * (1.0 - e * (0.5 - e * (1.0 / 6.0)))
            roof[j] = b * _SLACK * (v if v < 1.0 else 1.0)
        for j in range(L):
            if allowed[r, j] and (lead < 0 or roof[j] > roof[lead]):
                lead = j
        best, most = -1, -math.inf
        for n in range(-1, L):
            j = lead if n < 0 else n
            if j < 0 or not allowed[r, j] or roof[j] < most or (n >= 0 and j == lead):
                continue
            v = direction_bound(
                c[r], u, ratio[r], order[r], b, total[j], dev[own, :, j], top[own, :, j],
                covariance[own, j], spread[own, j], peak[own, j], level[r, j],
            )  # fmt: skip
            v = min(v, limit[r, j])
            fewer = best < 0 or counts[r, j] < counts[r, best] or (counts[r, j] == counts[r, best] and j < best)
            if best < 0 or v > most or (v == most and fewer):
                best, most = j, v
        arm[r], bound[r] = best, most
