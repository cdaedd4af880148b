"""BC-UCB as one would write it from the paper: plain NumPy, and nothing else."""

from typing import Any

import numpy as np


def greedy(q: Any, weights: Any, pulls: Any, k: int) -> Any:
    """The greedy batch; ties go to the fewest pulls, then the lowest arm."""
    left, gains, chosen = weights.copy(), np.empty(len(q)), []
    for _ in range(k):
        gains[:] = q @ left
        gains[chosen] = -np.inf
        tied = np.flatnonzero(gains == gains.max())
        best = int(tied[np.argmin(pulls[tied])])
        chosen.append(best)
        left *= 1.0 - q[best]
    return np.array(chosen)


def run(k: int, p: Any, weights: Any, pulls: Any, total: Any, t: int, rounds: int) -> float:
    """Play ``rounds`` rounds of BC-UCB on coverage from round ``t`` on; ``pulls`` and ``total`` change in place."""
    rng = np.random.default_rng(0)
    square, earned = total.copy(), 0.0
    for now in range(t + 1, t + rounds + 1):
        n = pulls[:, None]
        mean = total / n
        variance = np.maximum(0.0, square / n - mean**2)
        q = np.minimum(1.0, mean + np.sqrt(6.0 * variance * np.log(now) / n) + 9.0 * np.log(now) / n)
        action = greedy(q, weights, pulls, k)
        outcome = (rng.random((k, p.shape[1])) < p[action]).astype(float)
        pulls[action] += 1.0
        total[action] += outcome
        square[action] += outcome**2
        earned += float(weights @ (1.0 - np.prod(1.0 - p[action], axis=0)))
    return earned
