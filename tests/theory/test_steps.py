"""The steps of the KL theorems along runs of a plain NumPy policy: whenever the good event holds, so does the width."""

import itertools
import math

import numpy as np
import pytest
from naive import divergence

from superarm.indices import kl_upper

ARMS, ITEMS, K = 5, 2, 2
BATCHES = list(itertools.combinations(range(ARMS), K))
WEIGHTS = np.array([1.0, 0.5])
LEVELS = {"3 log t": lambda t: 3 * math.log(t), "default": lambda t: math.log(t) + 3 * math.log(max(1.0, math.log(t)))}


def value(p, batch):
    return float(WEIGHTS @ (1 - np.prod(1 - p[list(batch)], axis=0)))


def rounds(p, level, horizon, seed, delay=0):
    """Play KL-UCB with exact batches; yield t, the batch, pulls with and without pending ones, means, scores."""
    rng = np.random.default_rng(seed)
    asked, seen, total = np.zeros(ARMS), np.zeros(ARMS), np.zeros((ARMS, ITEMS))
    pending = []
    for t in range(1, horizon + 1):
        while pending and pending[0][0] + delay < t:
            _, batch, outcome = pending.pop(0)
            seen[list(batch)] += 1
            total[list(batch)] += outcome
        if (asked == 0).any():
            batch = next(b for b in BATCHES if int(np.argmin(asked)) in b)
        else:
            mean = total / np.maximum(1.0, seen)[:, None]
            bounds = kl_upper(mean, np.repeat(level(t) / asked[:, None], ITEMS, axis=1))
            q = np.where(seen[:, None] > 0, bounds, 1.0)
            batch = max(BATCHES, key=lambda b: value(q, b))
            yield t, batch, asked.copy(), seen.copy(), mean, q
        asked[list(batch)] += 1
        u = rng.uniform(size=(1, ITEMS)) if seed % 2 else rng.uniform(size=(K, ITEMS))  # arms alike, or independent
        pending.append((t, batch, (u < p[list(batch)]).astype(float)))


def holds(p, mean, counts, limit):
    """Whether N kl(mean, p) is at most ``limit`` for every entry that was observed."""
    return all(
        counts[j] == 0 or counts[j] * divergence(float(mean[j, i]), float(p[j, i])) <= limit
        for j, i in itertools.product(range(ARMS), range(ITEMS))
    )


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", LEVELS)
def test_the_gap_of_what_is_played(name, seed):
    p = np.random.default_rng(seed).uniform(0.05, 0.6, (ARMS, ITEMS))
    best, level, good = max(value(p, b) for b in BATCHES), LEVELS[name], 0
    nearest = nearest_local = 0.0
    for t, batch, pulls, _, mean, q in rounds(p, level, 250, seed):
        if not holds(p, mean, pulls, level(t)):
            continue
        good += 1
        arms = list(batch)
        assert (p <= q + 1e-12).all()
        share = (level(t) / pulls[arms]).sum()
        above = value(q, batch) - value(p, batch)
        assert best - value(p, batch) <= above + 1e-9
        assert above <= math.sqrt(2.0) * WEIGHTS.sum() * math.sqrt(share) + 1e-9  # 2 sqrt 2 gamma_g Mbar sqrt S
        nearest = max(nearest, above / (math.sqrt(2.0) * WEIGHTS.sum() * math.sqrt(share)))
        slopes = WEIGHTS * (1 - p[arms[::-1]])  # coverage by two arms: what the other one leaves
        main = math.sqrt(((slopes * np.sqrt(p[arms] * (1 - p[arms]))).sum(axis=1) ** 2).sum())
        local = 2 * math.sqrt(2.0) * main * math.sqrt(share) + 2 * slopes.sum(axis=1).max() * share
        assert above <= local + 1e-9
        nearest_local = max(nearest_local, above / local)
    assert good > 200
    assert nearest > 0.3  # so that much smaller constants would have been refuted
    assert nearest_local > 0.2


@pytest.mark.parametrize("delay", [1, 6])
def test_late_feedback(delay):
    # pending pulls count in the radius; where they are at most half of those observed, 2 log t suffices
    p = np.random.default_rng(7).uniform(0.05, 0.6, (ARMS, ITEMS))
    best, level = max(value(p, b) for b in BATCHES), LEVELS["3 log t"]
    good = waiting = 0
    for t, batch, pulls, seen, mean, q in rounds(p, level, 250, 2, delay):
        assert (pulls - seen <= delay).all()
        if (2 * (pulls - seen) > seen).any():
            waiting += 1
        elif holds(p, mean, seen, 2 * math.log(t)):
            good += 1
            assert (p <= q + 1e-12).all()
            share = (level(t) / pulls[list(batch)]).sum()
            above = value(q, batch) - value(p, batch)
            assert best - value(p, batch) <= above + 1e-9
            assert above <= math.sqrt(2.0) * WEIGHTS.sum() * math.sqrt(share) + 1e-9
    assert waiting <= ARMS * delay * (3 * delay - 1)
    assert good > 150
