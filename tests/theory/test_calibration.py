"""The deviation inequalities of the proofs at their stated rates, for outcomes of several laws.

Fixed seeds; a frequency may exceed its bound by 5 standard errors, so that a true bound fails with probability below
3e-7 in each of the comparisons, 1e-5 in all.
"""

import math

import numpy as np
import pytest

RUNS = 20_000
LAWS = {
    "rare": lambda rng, n: (rng.random((RUNS, n)) < 0.05, 0.05),
    "fair": lambda rng, n: (rng.random((RUNS, n)) < 0.5, 0.5),
    "beta": lambda rng, n: (rng.beta(0.6, 1.4, (RUNS, n)), 0.3),
}


def below(frequency, rate):
    rate = min(1.0, rate)
    return frequency <= rate + 5.0 * math.sqrt(rate * (1.0 - rate) / RUNS) + 1.0 / RUNS


def divergence(a, p):
    """kl(a, p) of arrays, 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(a > 0, a * np.log(a / p), 0.0)
        return left + np.where(a < 1, (1 - a) * np.log((1 - a) / (1 - p)), 0.0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [5, 40])
def test_the_variance_event(law, n):
    # H^V of the paper: P(V > 2 p (1 - p) + 7 x / (6 n)) <= exp(-x), of which it takes x = 3 log t
    outcomes, p = LAWS[law](np.random.default_rng(5), n)
    variance = np.var(outcomes.astype(float), axis=1)
    for x in (0.1, 0.5, 2.0):
        assert below(np.mean(variance > 2 * p * (1 - p) + 7 * x / (6 * n)), math.exp(-x))


@pytest.mark.parametrize("law", LAWS)
def test_deviations_at_any_number_of_pulls(law):
    # (4) of docs/theory/kl-ucb.md: P(s kl(mean_s, p) > delta, mean_s < p for some s <= t), and the other side
    t = 120
    outcomes, p = LAWS[law](np.random.default_rng(6), t)
    s = np.arange(1, t + 1)
    mean = np.cumsum(outcomes, axis=1) / s
    far = s * divergence(mean, p)
    for side in (mean < p, mean > p):
        worst = np.where(side, far, 0.0).max(axis=1)
        for delta in (2.0, 4.0, 6.0):
            rate = min(t * math.exp(-delta), math.e * math.ceil(delta * math.log(t)) * math.exp(-delta))
            assert below(np.mean(worst > delta), rate)
        # one fixed s: Chernoff's bound, nearly attained by a rare event
        assert below(np.mean((side & (far > 1.0))[:, -1]), math.exp(-1.0))
    if law != "beta":  # binary outcomes have the largest deviations: a rate several times smaller would be refuted
        assert np.mean(far[:, -1] > 1.0) > 0.1
