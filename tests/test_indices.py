"""Indices against the formulas of the papers, the divergence in 50 digits, and the laws that sampled ones follow.

Statistical tests have fixed seeds; each fails falsely with probability below 1e-5.
"""

import math

import mpmath
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from superarm.core.numeric import log1p
from superarm.core.support import Dense
from superarm.indices import (
    KL,
    UCBV,
    Bernstein,
    BetaPosterior,
    Chance,
    GaussianSample,
    Hoeffding,
    KLMoss,
    Mean,
    kl_upper,
)

means = st.floats(0.0, 1.0)
pulls = st.integers(1, 10**9)
times = st.integers(1, 10**12)


def entry(x):
    return np.array([[[float(x)]]])


def score(index, mean, variance, n, t):
    """The score of one entry."""
    return index.score(entry(mean), entry(math.sqrt(variance)), index.level(entry(n), t, 0.5), None).item()


@given(means, st.floats(0.0, 1.0), pulls, times)
def test_bernstein_is_the_formula_of_the_paper(mean, share, n, t):
    variance = share * mean * (1.0 - mean)
    assert score(Bernstein(), mean, variance, n, t) == pytest.approx(naive.bc_ucb(mean, variance, n, t), rel=1e-12)


@given(means, st.floats(0.0, 1.0), pulls, times, st.floats(0.01, 10.0), st.floats(0.0, 3.0))
def test_ucb_v_is_its_formula_and_bc_ucb_with_zeta_3_and_c_1(mean, share, n, t, zeta, c):
    variance = share * mean * (1.0 - mean)
    wanted = naive.ucb_v(mean, variance, n, t, zeta, c)
    assert score(UCBV(zeta, c), mean, variance, n, t) == pytest.approx(wanted, rel=1e-12)
    assert score(UCBV(3, 1), mean, variance, n, t) == score(Bernstein(3), mean, variance, n, t)


@given(means, pulls, times)
def test_hoeffding_is_the_formula_of_cucb_and_mean_is_the_mean(mean, n, t):
    assert score(Hoeffding(), mean, 0.1, n, t) == pytest.approx(naive.cucb(mean, n, t), rel=1e-12)
    assert score(Mean(), mean, 0.1, n, t) == mean


def test_by_hand():
    # With log t = 2, N = 300, V = 1/4: 6 V log t / N = 6 * 0.25 * 2 / 300 = 0.01, and 9 log t / N = 0.06.
    level = entry(3.0 * 2.0 / 300.0)
    assert Bernstein().score(entry(0.5), entry(0.5), level, None).item() == pytest.approx(0.66, rel=1e-15)
    # After 100 pulls at t = 100 the last term alone is 9 * 4.605170186 / 100.
    assert score(Bernstein(), 0.0, 0.0, 100, 100) == pytest.approx(0.4144653167, rel=1e-9)
    # sqrt(3 log t / 2N) with log t = 2, N = 300: sqrt(0.01) = 0.1.
    assert Hoeffding().score(entry(0.25), entry(0.4), level, None).item() == pytest.approx(0.35, rel=1e-15)
    assert Hoeffding().score(entry(0.95), entry(0.4), level, None).item() == 1.0
    # log 1 = 0: no radius in the first round. At t = 10^4, 9 log t = 82.9: an arm that never hit is at 1 for 82 pulls.
    assert score(Bernstein(), 0.25, 0.1, 1, 1) == 0.25
    assert score(Bernstein(), 0.0, 0.0, 82, 10_000) == 1.0
    assert score(Bernstein(), 0.0, 0.0, 83, 10_000) < 1.0


@given(pulls, times, st.floats(0.01, 10.0))
def test_rho_scales_the_level(n, t, rho):
    for index in (Hoeffding(rho), Bernstein(rho)):
        assert index.level(entry(n), t, 0.1).item() == pytest.approx(rho * math.log(t) / n, rel=1e-13)


@pytest.mark.parametrize("index", [Bernstein(), Bernstein(0.2), UCBV(), UCBV(2.0, 0.0)], ids=repr)
def test_scores_grow_with_mean_variance_and_time_and_shrink_with_pulls(index):
    grid = np.linspace(0.0, 1.0, 21)
    mean, share = (axis[:, :, None] for axis in np.meshgrid(grid, grid, indexing="ij"))
    deviation = np.sqrt(share * mean * (1.0 - mean))
    for t, n in ((2, 1.0), (50, 20.0), (10_000, 900.0)):
        q, later, more = (
            index.score(mean, deviation, np.full(mean.shape, index.level(count, time, 0.5)), None)
            for time, count in ((t, n), (2 * t, n), (t, 2 * n))
        )
        assert (mean <= q).all()
        assert (np.diff(q, axis=1) >= 0.0).all()
        assert (more <= q).all()
        assert (q <= later).all()
        assert (later <= 1.0).all()


# --- the KL bound

CORNERS = [0.0, 1e-300, 1e-16, 1e-9, 1e-4, 0.01, 0.3, 0.5, 0.9, 1 - 1e-4, 1 - 1e-9, 1 - 1e-15, 1 - 2**-53, 1.0]
LEVELS = [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.7, 2.0, 10.0, 36.0, 100.0, 700.0]
LAST_PLACES = mpmath.mpf("1e-15")
inside = st.floats(1e-9, 1.0, exclude_max=True)
levels = st.floats(1e-9, 50.0)


def upper(p, x):
    return kl_upper(entry(p), entry(x)).item()


def reaches(p, x, q):
    """Whether the exact bound, the largest q' with kl(p, q') <= x, is at least q: kl grows with q' from p on."""
    return q <= p or (q < 1 and naive.kl(p, q) <= x)


def agrees(p, x):
    """Whether the exact bound lies within the last places of the computed one."""
    q = mpmath.mpf(upper(p, x))
    return reaches(p, x, q / (1 + LAST_PLACES)) and not reaches(p, x, q / (1 - LAST_PLACES))


@pytest.mark.parametrize(("p", "x"), [(0.0, 1e-9), (1e-9, 0.1), (0.3, 2.0), (1 - 1e-9, 10.0), (1.0, 0.1)])
def test_bisection_finds_where_the_bound_is(p, x):
    exact, little = naive.kl_upper(p, x), mpmath.mpf("1e-40")
    assert reaches(p, x, exact * (1 - little))
    assert not reaches(p, x, exact * (1 + little))


@pytest.mark.parametrize("p", CORNERS)
def test_the_kl_bound_in_corners(p):
    for x in LEVELS:
        assert agrees(p, x), (p, x, upper(p, x), naive.kl_upper(p, x))


@given(inside, levels)
def test_the_kl_bound_anywhere(p, x):
    assert agrees(p, x)


@given(st.integers(1, 40), st.integers(0, 40), st.integers(2, 10**6))
def test_the_kl_bound_of_few_hits(n, hits, t):
    assert agrees(min(hits, n) / n, (math.log(t) + 3 * math.log(max(1.0, math.log(t)))) / n)


def test_closed_forms_of_the_kl_bound():
    assert upper(0.0, 0.5) == pytest.approx(1.0 - math.exp(-0.5), rel=1e-15)  # kl(0, q) = -log(1 - q)
    assert upper(1.0, 0.5) == 1.0
    assert upper(0.3, 0.0) == 0.3
    # kl(1/2, q) = -log(4 q (1 - q)) / 2 = x gives q = (1 + sqrt(1 - e^-2x)) / 2.
    for x in (1e-6, 0.01, 1.0):
        assert upper(0.5, x) == pytest.approx(0.5 + 0.5 * math.sqrt(-math.expm1(-2.0 * x)), rel=1e-15)


@pytest.mark.parametrize("x", [1e-320, 1e-100, 1e-40, 1e-30])
def test_a_radius_below_the_spacing_of_floats_is_none(x):
    for p in (1e-4, 0.5, 0.9999, 1 - 1e-12, 1 - 2**-53):
        assert upper(p, x) == pytest.approx(p, rel=1e-12)
        assert p <= upper(p, x) <= 1.0


@given(inside, levels, st.floats(1.001, 3.0))
def test_larger_levels_and_means_give_larger_bounds(p, x, factor):
    q = upper(p, x)
    assert p <= q <= upper(p, factor * x) <= 1.0
    assert q <= upper(min(1.0, p * factor), x) * (1 + 1e-15)


def test_levels():
    thousand = math.log(1000)
    assert KL().level(10.0, 1000, 0.1) == pytest.approx((thousand + 3 * math.log(thousand)) / 10, rel=1e-14)
    assert KL(3, 0).level(10.0, 1000, 0.1) == pytest.approx(0.3 * thousand, rel=1e-14)
    assert KL().level(1.0, 1, 0.1) == 0.0
    assert KL().level(1.0, 2, 0.1) == pytest.approx(math.log(2))  # log log 2 < 0 counts as 0
    # KL-MOSS, log+(t k / (L N)) / N: 0 once an arm has had its share t k / L = 100 of the pulls.
    assert KLMoss().level(50.0, 1000, 0.1) == pytest.approx(math.log(2.0) / 50.0, rel=1e-14)
    assert KLMoss().level(100.0, 1000, 0.1) == KLMoss().level(500.0, 1000, 0.1) == 0.0


@given(inside, st.integers(1, 1000), st.integers(1, 10**6), st.sampled_from([KL(), KL(3, 0), KLMoss()]))
def test_scores_are_the_bound_at_their_level(mean, n, t, index):
    assert score(index, mean, 0.01, n, t) == upper(mean, index.level(entry(n), t, 0.5).item())


def test_the_logarithm_agrees_with_50_digits():
    for u in (*(-1.0 + 10.0**-n for n in range(1, 16)), *(s * 10.0**n for n in range(-18, 300, 3) for s in (1.0, 3.7))):
        exact = mpmath.log1p(mpmath.mpf(u))
        assert abs(mpmath.mpf(float(log1p(np.array(u)))) - exact) <= mpmath.mpf("4e-16") * abs(exact), u


# --- sampled indices

N = 4000


def sampled(index, mean, n):
    """Samples of ``N`` entries with the same mean and pulls."""
    shape, support = (1, 1, N), Dense(1, N)
    chance = Chance(np.array([17], np.uint64), 123, support)
    level = index.level(np.full(shape, float(n)), 123, 0.5)
    return index.score(np.full(shape, mean), np.full(shape, 0.3), level, chance).ravel()


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 50), (7, 20), (300, 400), (2**39, 2**40)])
def test_beta_posterior(hits, n):
    law = stats.beta(1 + hits, 1 + n - hits)
    assert stats.kstest(sampled(BetaPosterior(), hits / n, n), law.cdf).pvalue > 1e-6


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (7, 20), (390, 400)])
def test_gaussian_sample(hits, n):
    mean, width = hits / n, 0.3 / np.sqrt(n + 1.0)
    q = sampled(GaussianSample(0.3), mean, n)
    for end, tail in ((0.0, stats.norm.cdf(-mean / width)), (1.0, stats.norm.sf((1.0 - mean) / width))):
        assert stats.binomtest(int((q == end).sum()), N, tail).pvalue > 1e-6
    law = stats.truncnorm(-mean / width, (1.0 - mean) / width, mean, width)
    assert stats.kstest(q[(q > 0.0) & (q < 1.0)], law.cdf).pvalue > 1e-6


@pytest.mark.parametrize("index", [BetaPosterior(), GaussianSample()], ids=repr)
def test_samples_shrink_to_the_mean(index):
    wide, narrow = (sampled(index, 0.4, n) for n in (10, 10_000))
    assert narrow.std() < wide.std() / 20
    assert narrow.mean() == pytest.approx(0.4, abs=0.001)
