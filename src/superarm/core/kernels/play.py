"""Many rounds in one call, for the most common composition."""

# mypy: ignore-errors
import numpy as np

from superarm.core.kernels.greedy import coverage_value, greedy_coverage
from superarm.core.kernels.indices import bernstein, kl
from superarm.core.kernels.numeric import kernel
from superarm.core.kernels.statistics import flip, record


@kernel
def play(kind, f, keys, t0, p, weights, pulls, total, square, missed, mean, dev, eligible, last, earned):
    """Rounds t0 + 1 … t0 + len(f) of (Bernstein or KL) x Coverage x Subsets x Bernoulli, after the first pulls.

    ``f`` (rounds,) is the numerator of the level, computed by the index in Python: level = f / pulls.
    """
    R, M, L = mean.shape
    q, level, x = np.empty((R, M, L)), np.empty((R, 1, L)), np.empty((R, last.shape[1], M))
    seen, value = np.empty((0, 0, 0), np.bool_), np.empty(R)
    for n in range(len(f)):
        for r in range(R):
            for j in range(L):
                level[r, 0, j] = f[n] / pulls[r, j]
        if kind == 0:
            bernstein(mean, dev, level, q)
        else:
            kl(mean, level, q)
        greedy_coverage(q, weights, pulls, eligible, 0, last)
        flip(keys, t0 + n + 1, last, p, x)
        record(last, x, seen, 1.0, 1.0, pulls, total, square, missed, mean, dev)
        coverage_value(p, weights, last, value)
        for r in range(R):
            earned[r] += value[r]
