"""The dependence asked for is there, and no other.

Fixed seeds. Joint frequencies over 20,000 rounds may be off by 5.2 standard errors: false alarm 2e-7 each, about 60
comparisons.
"""

import math

import numpy as np
import pytest
from scipy import stats

from superarm.environments import Bernoulli, Beta, CommonShock, Comonotone, Copula, draw
from superarm.core.streams import new_stream
from superarm.core.support import Dense

pytestmark = pytest.mark.compiled("too many rounds for plain Python")

N = 20_000


def played(environment, n=N):
    shape = environment.p.shape
    source, everyone = new_stream(np.random.SeedSequence(11)), np.arange(shape[0])
    outcome, seen = np.empty((n, shape[0] * shape[1])), np.ones(shape[0] * shape[1], bool)
    for t in range(n):
        draw(environment, Dense(*shape), everyone, t + 1, source, outcome[t], seen)
    return outcome.reshape(n, *shape)


def joint(x, y):
    return float((x * y).mean())


def close(found, wanted):
    return abs(found - wanted) <= 5.2 * math.sqrt(wanted * (1.0 - wanted) / N)


def test_independent_entries_are_independent():
    p = np.array([[0.2, 0.5], [0.5, 0.8]])
    x = played(Bernoulli(p)).reshape(N, 4)
    for a in range(4):
        for b in range(a):
            assert close(joint(x[:, a], x[:, b]), p.flat[a] * p.flat[b])


@pytest.mark.parametrize(
    ("arms", "items", "all_"), [(0.5, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.5), (0.2, 0.3, 0.4), (0.0, 1.0, 0.0)]
)
def test_the_copula_has_the_correlations_of_its_parts(arms, items, all_):
    # At p = 1/2 both latents are below 0 with probability 1/4 + arcsin(rho) / (2 pi) (Sheppard 1899).
    x = played(Copula(np.full((2, 2), 0.5), arms, items, all_))
    for pair, rho in (
        ((x[:, 0, 0], x[:, 1, 0]), arms + all_),  # one item, two arms
        ((x[:, 0, 0], x[:, 0, 1]), items + all_),  # one arm, two items
        ((x[:, 0, 0], x[:, 1, 1]), all_),
        ((x[:, 0, 1], x[:, 1, 0]), all_),
    ):
        assert close(joint(*pair), 0.25 + math.asin(rho) / (2.0 * math.pi))


def test_the_copula_away_from_one_half():
    x = played(Copula([[0.1, 0.7]], items=0.6))
    law = stats.multivariate_normal(cov=[[1.0, 0.6], [0.6, 1.0]])
    assert close(joint(x[:, 0, 0], x[:, 0, 1]), law.cdf(stats.norm.ppf([0.1, 0.7])))


def test_full_copulas_are_comonotone():
    p = np.array([[0.3, 0.6], [0.3, 0.6]])
    by_arm, by_item, by_all = (played(Copula(p, **{kind: 1.0}), 2000) for kind in ("arms", "items", "all"))
    assert np.array_equal(by_arm[:, 0], by_arm[:, 1])
    assert (by_item[..., 0] <= by_item[..., 1]).all()
    assert np.array_equal(by_all[:, 0], by_all[:, 1])
    assert (by_all[..., 0] <= by_all[..., 1]).all()
    assert not np.array_equal(by_item[:, 0], by_item[:, 1])


@pytest.mark.parametrize("share", [0.0, 0.35, 1.0])
def test_the_common_shock_mixes_two_worlds(share):
    p = np.array([[0.2, 0.5], [0.5, 0.8]])
    x = played(CommonShock(p, share)).reshape(N, 4)
    for a in range(4):
        for b in range(a):
            low, high = sorted((p.flat[a], p.flat[b]))
            assert close(joint(x[:, a], x[:, b]), share * low + (1.0 - share) * low * high)


def test_comonotone_items_hang_together_and_arms_do_not():
    x = played(Comonotone([[0.2, 0.5], [0.5, 0.5]]))
    assert (x[:, 0, 0] <= x[:, 0, 1]).all()
    assert np.array_equal(x[:, 1, 0], x[:, 1, 1])  # the construction of the lower bound: X_ij = X_j
    assert close(joint(x[:, 0, 1], x[:, 1, 1]), 0.25)


@pytest.mark.parametrize("strength", [0.5, 2.0, 30.0])
def test_beta_outcomes_follow_their_law(strength):
    p = np.array([[0.1, 0.5, 0.9]])
    x = played(Beta(p, strength), 8000)[:, 0]
    for i in range(3):
        law = stats.beta(p[0, i] * strength, (1.0 - p[0, i]) * strength)
        assert law.var() == pytest.approx(p[0, i] * (1.0 - p[0, i]) / (strength + 1.0))
        cells = np.searchsorted([0.001, 0.1, 0.5, 0.9, 0.999], x[:, i])
        wanted = np.diff(law.cdf([0.0, 0.001, 0.1, 0.5, 0.9, 0.999, 1.0])) * len(x)
        occupied = wanted > 5.0
        found = np.bincount(cells, minlength=6)[occupied]
        assert stats.chisquare(found, wanted[occupied] * found.sum() / wanted[occupied].sum()).pvalue > 2e-7
        if min(p[0, i], 1.0 - p[0, i]) * strength >= 0.2:  # below, much of the law's mass is nearer to 1 than any float
            assert stats.kstest(x[:, i], law.cdf).pvalue > 2e-7
    assert np.abs(np.corrcoef(x.T)[np.triu_indices(3, 1)]).max() < 5.2 / math.sqrt(8000)


def test_beta_at_the_ends_is_certain():
    x = played(Beta([[0.0, 1.0]], 3.0), 100)
    assert not x[:, 0, 0].any()
    assert x[:, 0, 1].all()
