"""The NumPy twins of ``kernels``: the same names, arguments and bits. They are the specification, and do small work.

Arguments are C-contiguous arrays or numbers; results are written into arguments. Entries are (R, M, L).
"""

from typing import Any

import numpy as np

from superarm.core.arrays import best_arms
from superarm.core.directions import direction_bounds
from superarm.core.numeric import decay, fall, log1p
from superarm.core.streams import STEP, mix, move_inside, number, quantile, states
from superarm.core.tally import round_to_grid

# --- outcomes ---


def flip(keys: Any, t: int, action: Any, p: Any, x: Any) -> None:
    """Bernoulli outcomes ``x`` (R, K, M) of ``action`` (R, K) with means ``p`` (1 or R, M, L); -1 is no arm."""
    steps = np.arange(1, p.shape[1] + 1, dtype=np.uint64) * STEP
    rows = np.arange(len(action))[:, None] if len(p) > 1 else np.zeros((len(action), 1), int)
    drawn = number(states(keys, t, np.maximum(action, 0))[:, :, None] + steps) < p[rows, :, action]
    x[...] = drawn & (action >= 0)[:, :, None]


def flip_sparse(keys: Any, t: int, action: Any, start: Any, p: Any, x: Any) -> None:
    """The same for a sparse support: ``p`` (E,), ``x`` (R, K, widest)."""
    steps = np.arange(1, x.shape[2] + 1, dtype=np.uint64) * STEP
    u = number(states(keys, t, np.maximum(action, 0))[:, :, None] + steps)
    x[...] = 0.0
    for r, k in np.argwhere(action >= 0):
        a, z = start[action[r, k]], start[action[r, k] + 1]
        x[r, k, : z - a] = u[r, k, : z - a] < p[a:z]


# --- statistics ---


def record(
    action: Any,
    x: Any,
    seen: Any,
    sign: float,
    unit: float,
    pulls: Any,
    total: Any,
    square: Any,
    missed: Any,
    mean: Any,
    dev: Any,
) -> None:
    """Add feedback or take it back, and bring the estimates of its arms up to date; see ``core.tally``."""
    for k in range(action.shape[1]):
        r = np.flatnonzero((action[:, k] >= 0) & (seen[:, k].any(1) if missed.size else True))
        j = action[r, k]
        pulls[r, j] += sign
        y = round_to_grid(x[r, k] / unit)
        z = round_to_grid(y * y)
        n = pulls[r, j][:, None]
        if missed.size:
            s = seen[r, k]
            missed[r, :, j] += sign * ~s
            y, z, n = np.where(s, y, 0.0), np.where(s, z, 0.0), n - missed[r, :, j]
        total[r, :, j] += sign * unit * y
        square[r, :, j] += sign * unit * unit * z
        n = np.where(n > 0.0, n, 1.0)
        m = total[r, :, j] / n
        mean[r, :, j] = m
        dev[r, :, j] = np.sqrt(np.maximum(square[r, :, j] / n - m * m, 0.0))


def record_sparse(
    start: Any,
    action: Any,
    x: Any,
    seen: Any,
    sign: float,
    unit: float,
    pulls: Any,
    total: Any,
    square: Any,
    missed: Any,
    mean: Any,
    dev: Any,
) -> None:
    """The same for a sparse support: entries (R, E), ``x`` (R, K, widest)."""
    for r, k in np.argwhere(action >= 0):
        j = action[r, k]
        e, w = slice(start[j], start[j + 1]), start[j + 1] - start[j]
        s = seen[r, k, :w] if missed.size else np.ones(w, bool)
        if missed.size and w > 0 and not s.any():
            continue
        pulls[r, j] += sign
        y = round_to_grid(x[r, k, :w] / unit)
        z = round_to_grid(y * y)
        n = pulls[r, j]
        if missed.size:
            missed[r, e] += sign * ~s
            y, z, n = np.where(s, y, 0.0), np.where(s, z, 0.0), n - missed[r, e]
        total[r, e] += sign * unit * y
        square[r, e] += sign * unit * unit * z
        n = np.where(n > 0.0, n, 1.0)
        m = total[r, e] / n
        mean[r, e] = m
        dev[r, e] = np.sqrt(np.maximum(square[r, e] / n - m * m, 0.0))


# --- small symmetric systems, (N, d, d): Cholesky's method, [GolubVanLoan2013]_ (section 4.2) ---


def factorise(a: Any) -> None:
    """Replace positive definite matrices by their Cholesky factors, lower triangles; what is above them is left over.

    A pivot that rounding has made less than 2**-40 of the diagonal is taken as that.
    """
    d = a.shape[1]
    least = np.diagonal(a, axis1=1, axis2=2) * 2.0**-40
    for k in range(d):
        pivot = np.sqrt(np.maximum(a[:, k, k], least[:, k]))
        a[:, k, k] = pivot
        column = a[:, k + 1 :, k] / pivot[:, None]
        a[:, k + 1 :, k] = column
        a[:, k + 1 :, k + 1 :] -= column[:, :, None] * column[:, None, :]


def solve_systems(factor: Any, x: Any) -> None:
    """Replace ``x`` (N, d) by the solutions of (L Lᵀ) y = x."""
    d = x.shape[1]
    for r in range(d):
        x[:, r] /= factor[:, r, r]
        x[:, r + 1 :] -= factor[:, r + 1 :, r] * x[:, r, None]
    for r in range(d - 1, -1, -1):
        x[:, r] /= factor[:, r, r]
        x[:, :r] -= factor[:, r, :r] * x[:, r, None]


def invert_systems(factor: Any, inverse: Any) -> None:
    """Write the inverses of the matrices of Cholesky factors."""
    d = factor.shape[1]
    half = np.zeros(factor.shape)
    for r in range(d):
        half[:, r, :r] /= factor[:, r, r, None]
        half[:, r, r] = 1.0 / factor[:, r, r]
        half[:, r + 1 :, : r + 1] -= factor[:, r + 1 :, r, None] * half[:, r, None, : r + 1]
    inverse[...] = 0.0
    for r in range(d):
        inverse += half[:, r, :, None] * half[:, r, None, :]


def quadratic_forms(a: Any, u: Any, out: Any) -> None:
    """The quadratic forms uᵀ A u of symmetric matrices ``a`` (N, d, d) and vectors ``u`` (1 or N, d)."""
    out[:] = np.cumsum((a * u[:, :, None]).sum(1) * u, 1)[:, -1] if u.shape[1] > 1 else a[:, 0, 0] * u[:, 0] * u[:, 0]


def add_terms(phi: Any, scale: Any, group: Any, grid: float, sign: float, total: Any) -> None:
    """Add sign scale phi phiᵀ, each number rounded to 1 / grid, to the lower triangle total[group] of each row."""
    rows, columns = np.tril_indices(phi.shape[1])
    step = max(1, 500_000 // len(rows))
    for n in range(0, len(phi), step):
        part = phi[n : n + step]
        terms = np.floor((scale[n : n + step, None] * part[:, rows]) * part[:, columns] * grid + 0.5) / grid
        order = np.argsort(group[n : n + step], kind="stable")
        own = group[n : n + step][order]
        first = np.flatnonzero(np.diff(own, prepend=-1))
        total[own[first]] += np.add.reduceat(sign * terms[order], first, axis=0)


# --- indices: mean, dev (R, M, L), level (R, 1 or M, L) -> q (R, M, L) ---


def bernstein(mean: Any, dev: Any, level: Any, q: Any) -> None:
    """min{1, mean + dev sqrt(2 level) + 3 level}."""
    np.minimum(1.0, mean + dev * np.sqrt(2.0 * level) + 3.0 * level, out=q)


def kl_step(p: Any, x: Any, q: Any) -> Any:
    """One step of Householder's third-order iteration for kl(p, q) = x; ``q`` itself where that is of no use."""
    d, rest, left = q - p, 1.0 - p, 1.0 - q
    excess = -p * log1p(d / p) - rest * log1p(-d / rest) - x
    second = d * d + p * rest
    third = 2.0 * (rest * (q * q * q) - p * (left * left * left))
    above = excess * (q * left) * (6.0 * (d * d) - 3.0 * excess * second)
    below = 6.0 * (d * d * d) - 6.0 * excess * d * second + excess * excess * third
    new = q - np.where(below != 0.0, above / below, np.inf)
    good = (d > 0.0) & (left > 1e-8 * rest) & (new >= p) & (new <= 1.0)
    return np.where(good, new, q)


def kl_first(p: Any, x: Any) -> Any:
    r"""A closed form that is near the KL bound q, and not below it.

    Let d = q - p. Legendre's transform and Bernstein's inequality for q - X, X Bernoulli(q), give
    :math:`kl(p,q)\ge\sup_{0\le\lambda<3}(\lambda d-\lambda^2q(1-q)/(2(1-\lambda/3)))\ge d^2/(2(q(1-q)+d/3))`, at
    :math:`\lambda=d/(q(1-q)+d/3)`. So :math:`d^2\le2x(q(1-q)+d/3)`; insert :math:`q(1-q)=p(1-p)+(1-2p)d-d^2`
    and solve for d.
    """
    b = x * (4.0 / 3.0 - 2.0 * p)
    return p + (b + np.sqrt(b * b + 2.0 * x * (1.0 + 2.0 * x) * p * (1.0 - p))) / (1.0 + 2.0 * x)


def kl_sharp(p: Any, x: Any, q: Any) -> Any:
    """The start near 1: the smaller of ``q`` and 1 - exp(-(x + h) / (1 - p)), h the entropy of p.

    It is not below the KL bound, as kl(p, q) >= -h + (1 - p) log(1 / (1 - q)).
    """
    s = fall((x + (-p * log1p(p - 1.0) - (1.0 - p) * log1p(-p))) / (1.0 - p))
    return np.where(p <= 0.0, fall(x), np.where(p >= 1.0, 1.0, np.where(s < q, s, q)))


def kl(mean: Any, level: Any, q: Any) -> None:
    """max{q : kl(mean, q) <= level}: a closed start, two steps, and a third where the level is large."""
    with np.errstate(all="ignore"):
        p, x = mean, np.broadcast_to(level, mean.shape)
        v = kl_first(p, x)
        high = (v > 0.9) | (p <= 0.0)
        v[high] = kl_sharp(p[high], x[high], v[high])
        inside = (p > 0.0) & (v < 1.0) & (v > p)
        pi, xi = p[inside], x[inside]
        w = kl_step(pi, xi, kl_step(pi, xi, v[inside]))
        again = (xi > 0.3 * (pi * (1.0 - pi))) & (w < 1.0) & (w > pi)
        v[inside] = np.where(again, kl_step(pi, xi, w), w)
        np.minimum(1.0, np.where(x > 0.0, v, mean), out=q)


def _gamma(own: Any, shape: Any) -> Any:
    """Gamma(shape >= 1) numbers by Marsaglia and Tsang; ``own`` are the states of each entry's own numbers."""
    s, result, left = own.copy(), np.empty(shape.shape), np.arange(shape.size)
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    with np.errstate(all="ignore"):
        while left.size:
            first, second = s[left] + STEP, s[left] + STEP + STEP
            s[left] = second
            z, u = quantile(move_inside(number(first))), 1.0 - number(second)
            v = 1.0 + c[left] * z
            cube = v * v * v
            squeeze = u < 1.0 - 0.0331 * z * z * z * z
            slow = log1p(u - 1.0) < 0.5 * z * z + d[left] * (1.0 - cube + log1p(cube - 1.0))
            done = (v > 0.0) & (squeeze | slow)
            result[left[done]] = d[left[done]] * cube[done]
            left = left[~done]
    return result


def gammas(own: Any, shape: Any, x: Any) -> None:
    """Gamma numbers ``x`` (n,) of any ``shape`` (n,) > 0; ``own`` (n,) are the states of each one's own numbers."""
    small = shape < 1.0
    x[...] = _gamma(own, np.where(small, shape + 1.0, shape))
    x[small] *= decay(-log1p(-number(own[small] ^ np.uint64(1 << 33))) / shape[small])


def _beta(own: Any, mean: Any, pulls: Any) -> Any:
    a = mean * pulls
    x, y = _gamma(own, 1.0 + a), _gamma(own ^ np.uint64(1 << 32), 1.0 + (pulls - a))
    return x / (x + y)


def beta_draws(own: Any, a: Any, b: Any) -> Any:
    """Beta(a, b) numbers for any a, b > 0; ``own`` are the states of each entry's own numbers. It has no kernel."""
    parts, chances = [], []
    for n, shape in enumerate((a, b)):
        word = own ^ np.uint64(n << 32)
        u = 1.0 - number(word ^ np.uint64(1 << 33))
        small = shape < 1.0
        drawn = _gamma(word, np.where(small, shape + 1.0, shape))
        parts.append(np.where(small, drawn * u ** (1.0 / shape), drawn))
        chances.append(u)
    total = parts[0] + parts[1]
    with np.errstate(all="ignore"):  # both underflow: the distribution is concentrated at 0 and 1
        return np.where(total > 0.0, parts[0] / total, chances[0] * (a + b) < a)


def beta(keys: Any, t: int, mean: Any, pulls: Any, q: Any) -> None:
    """Beta(1 + successes, 1 + failures) draws (R, M, L); that of entry (i, j) depends on (key, t, j, i) alone."""
    steps = np.arange(1, mean.shape[1] + 1, dtype=np.uint64) * STEP
    own = mix(states(keys, t, np.arange(mean.shape[2]))[:, None, :] + steps[:, None])
    q[...] = _beta(own.reshape(-1), mean.reshape(-1), pulls.reshape(-1)).reshape(mean.shape)


def beta_sparse(keys: Any, t: int, start: Any, mean: Any, pulls: Any, q: Any) -> None:
    """The same for a sparse support: entries (R, E)."""
    arm = np.repeat(np.arange(len(start) - 1), np.diff(start))
    place = (np.arange(len(arm)) - start[arm] + 1).astype(np.uint64) * STEP
    own = mix(states(keys, t, arm) + place)
    q[...] = _beta(own.reshape(-1), mean.reshape(-1), pulls.reshape(-1)).reshape(mean.shape)


# --- oracles ---


def greedy_coverage(q: Any, weights: Any, counts: Any, eligible: Any, size: int, out: Any) -> None:
    """Greedy for Coverage on Subsets: fills ``out`` (R, K) from place ``size`` on; those before it are pinned."""
    rows = np.arange(len(q))
    left = np.repeat(weights[None], len(q), 0)
    free = eligible.copy()
    for k in range(out.shape[1]):
        if k >= size:
            g = (left[:, :, None] * q).sum(1) if q.shape[2] > 1 else np.cumsum(left[:, :, None] * q, 1)[:, -1]
            out[:, k] = best_arms(np.where(free, g, -np.inf), counts)
        there = out[:, k] >= 0
        left *= np.where(there[:, None], 1.0 - q[rows, :, out[:, k]], 1.0)
        free[rows[there], out[there, k]] = False


def top_k(worth: Any, counts: Any, eligible: Any, size: int, out: Any) -> None:
    """The arms of largest worth (R, L), ties by fewest pulls: fills ``out`` (R, K) from place ``size`` on."""
    rows, free = np.arange(len(worth)), eligible.copy()
    for k in range(out.shape[1]):
        if k >= size:
            out[:, k] = best_arms(np.where(free, worth, -np.inf), counts)
        there = out[:, k] >= 0
        free[rows[there], out[there, k]] = False


def coverage_value(q: Any, weights: Any, action: Any, value: Any) -> None:
    """The coverage of ``action`` (R, K) at the entries ``q`` (1 or R, M, L)."""
    left, v = np.repeat(weights[None], len(action), 0), np.zeros(len(action))
    rows = np.arange(len(action)) if len(q) > 1 else np.zeros(len(action), int)
    for j in action.T:
        x = np.where((j >= 0)[:, None], q[rows, :, j], 0.0)
        v += np.cumsum(left * x, 1)[:, -1]
        left *= 1.0 - x
    value[:] = v


def sparse_sums(start: Any, items: Any, state: Any, q: Any, gains: Any) -> None:
    """gains[r, j] = the sum over the entries of arm j of state[r, item] q[r, entry], in natural order."""
    arm = np.repeat(np.arange(len(start) - 1), np.diff(start))
    for r in range(len(q)):
        gains[r] = np.bincount(arm, state[r, items] * q[r], len(start) - 1)


# --- graphs ---


def assignment(gain: Any, pulls: Any, column_of: Any) -> None:
    r"""The column of each row in an assignment of largest total ``gain`` (R, n, m), n <= m: fills ``column_of`` (R, n).

    .. math:: \max_\sigma \sum_r gain_{r \sigma(r)}

    Of several such assignments, the one with the fewest total ``pulls`` (same shape): costs are pairs, compared
    first by gain and then by pulls, and added componentwise. The method is shortest augmenting paths with dual prices,
    [Kuhn1955]_, in the form of [JonkerVolgenant1987]_; it takes O(n² m) steps.
    """
    costs, m = np.stack([-gain, pulls], axis=3), gain.shape[2]
    for cost, columns in zip(costs, column_of, strict=True):
        row_price, column_price, row_of = np.zeros((len(cost), 2)), np.zeros((m, 2)), np.full(m, -1)
        for row in range(len(cost)):
            slack, previous, visited = np.full((m, 2), np.inf), np.full(m, -1), np.zeros(m, bool)
            at, last = row, -1
            while at >= 0:
                new = cost[at] - row_price[at] - column_price
                less = (new[:, 0] < slack[:, 0]) | ((new[:, 0] == slack[:, 0]) & (new[:, 1] < slack[:, 1]))
                less &= ~visited
                slack[less], previous[less] = new[less], last
                least = np.where(visited, np.inf, slack[:, 0]).min()
                last = int(np.where(~visited & (slack[:, 0] == least), slack[:, 1], np.inf).argmin())
                step = slack[last].copy()
                row_price[[row, *row_of[visited]]] += step
                column_price[visited] -= step
                slack[~visited] -= step
                visited[last] = True
                at = row_of[last]
            while last >= 0:  # the augmenting path, backwards
                row_of[last] = row if previous[last] < 0 else row_of[previous[last]]
                last = previous[last]
        columns[row_of[row_of >= 0]] = np.flatnonzero(row_of >= 0)


def heaviest_path(
    edges: Any, sweep: Any, n_nodes: int, source: int, target: int, worth: Any, counts: Any, usable: Any, out: Any
) -> None:
    """The heaviest path of usable edges, in order, into ``out`` (R, K) of -1; of several, that of the fewest pulls.

    ``edges`` (n_arms, 2) are directed, ``sweep`` has them in topological order. [Bellman1958]_.
    """
    R = len(worth)  # noqa: N806
    weight, fewest, via = np.full((R, n_nodes), -np.inf), np.zeros((R, n_nodes)), np.full((R, n_nodes), -1)
    weight[:, source] = 0.0
    for j in sweep:
        tail, head = edges[j]
        w = np.where(usable[:, j], weight[:, tail] + worth[:, j], -np.inf)
        pulls = fewest[:, tail] + counts[:, j]
        better = (w > weight[:, head]) | ((w == weight[:, head]) & (pulls < fewest[:, head]) & (w > -np.inf))
        weight[better, head], fewest[better, head], via[better, head] = w[better], pulls[better], j
    for r in range(R):
        path, node = [], target
        while via[r, node] >= 0:
            path.append(via[r, node])
            node = edges[via[r, node], 0]
        out[r, : len(path)] = path[::-1]


# --- directional policies ---


def directional_step(
    mean: Any,
    dev: Any,
    top: Any,
    covariance: Any,
    spread: Any,
    peak: Any,
    level: Any,
    limit: Any,
    u: Any,
    c: Any,
    ratio: Any,
    order: Any,
    counts: Any,
    allowed: Any,
    arm: Any,
    bound: Any,
) -> None:
    """The arm (R,) of the largest ``bound`` (R,) min{U_j, limit_j} among the ``allowed`` ones; -1 and -inf: none.

    ``mean``, ``dev``, ``top`` (1 or R, M, L), ``covariance`` (1 or R, L, pairs), ``spread``, ``peak`` (1 or R, L) are
    a sample; ``level``, ``limit``, ``counts``, ``allowed`` are (R, L), ``u`` (M,), ``c`` the weights of the sum (R, M),
    ``ratio`` (R, M) is c / u and ``order`` (R, M) sorts it.
    """
    r, j = np.nonzero(allowed)
    own = r if len(mean) > 1 else np.zeros_like(r)
    sample = (mean[own, :, j], dev[own, :, j], top[own, :, j], spread[own, j], peak[own, j], covariance[own, j])
    bounds = np.full(level.shape, -np.inf)
    rows = np.broadcast_to(u, (len(r), len(u)))
    bounds[r, j] = np.minimum(direction_bounds(c[r], rows, sample, level[r, j], order[r]), limit[r, j])
    arm[:], bound[:] = best_arms(bounds, counts), bounds.max(1)


def directional_coverage(
    mean: Any,
    dev: Any,
    top: Any,
    covariance: Any,
    spread: Any,
    peak: Any,
    level: Any,
    u: Any,
    weights: Any,
    joining: Any,
    counts: Any,
    eligible: Any,
    size: int,
    out: Any,
) -> None:
    """All steps for Coverage on Subsets: fills ``out`` (R, K) from place ``size`` on; those before it are pinned.

    ``joining`` (1 or R, M, L) are the means by which the weights of the next step fall; the rest as above.
    """
    sample, c, allowed = (
        (mean, dev, top, covariance, spread, peak),
        np.repeat(weights[None], len(out), 0),
        eligible.copy(),
    )
    arm, bound, limit, rows = (
        np.empty(len(out), int),
        np.empty(len(out)),
        np.full(level.shape, np.inf),
        np.arange(len(out)),
    )
    for k in range(out.shape[1]):
        if k >= size:
            ratio = np.divide(c, u, out=np.zeros(c.shape), where=u > 0.0)
            order = np.argsort(ratio, 1, kind="stable")
            directional_step(*sample, level, limit, u, c, ratio, order, counts, allowed, arm, bound)
            out[:, k] = arm
        there = out[:, k] >= 0
        c *= np.where(there[:, None], 1.0 - joining[rows if len(joining) > 1 else 0 * rows, :, out[:, k]], 1.0)
        allowed[rows[there], out[there, k]] = False
