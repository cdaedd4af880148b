"""The KL bound against the divergence in 50 digits, at random and in the corners."""

import math

import mpmath
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superarm.indices import KL, KLMoss, bound_entries
from superarm.indices.kl import divergence
from superarm.indices.kl_bound import (
    _LOOSE_LEVEL,
    _loose_bounds,
    log1p,
    loose_bounds,
    tangent_bounds,
    upper_confidence,
    upper_confidences,
    upper_relaxation,
)

CORNERS = [0.0, 1e-300, 1e-16, 1e-9, 1e-4, 0.01, 0.3, 0.5, 0.9, 1 - 1e-4, 1 - 1e-9, 1 - 1e-15, 1 - 2**-53, 1.0]
LEVELS = [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.7, 2.0, 10.0, 36.0, 100.0, 700.0]
LAST_PLACES = mpmath.mpf("1e-15")

inside = st.floats(1e-9, 1.0, exclude_max=True)
levels = st.floats(1e-9, 50.0)


def reaches(p, x, q):
    """Whether the exact bound, the largest q' with kl(p, q') <= x, is at least q: kl grows with q' from p on."""
    return q <= p or (q < 1 and naive.kl(p, q) <= x)


def agrees(p, x):
    """Whether the exact bound lies within the last places of the computed one."""
    q = mpmath.mpf(upper_confidence(p, x))
    return reaches(p, x, q / (1 + LAST_PLACES)) and not reaches(p, x, q / (1 - LAST_PLACES))


@pytest.mark.parametrize(("p", "x"), [(0.0, 1e-9), (1e-9, 0.1), (0.3, 2.0), (1 - 1e-9, 10.0), (1.0, 0.1)])
def test_bisection_finds_where_the_bound_is(p, x):
    exact, little = naive.kl_upper(p, x), mpmath.mpf("1e-40")
    assert reaches(p, x, exact * (1 - little))
    assert not reaches(p, x, exact * (1 + little))


@pytest.mark.parametrize("p", CORNERS)
def test_corners(p):
    for x in LEVELS:
        assert agrees(p, x), (p, x, upper_confidence(p, x), naive.kl_upper(p, x))


@given(inside, levels)
def test_random(p, x):
    assert agrees(p, x)


@given(st.integers(1, 40), st.integers(0, 40), st.integers(2, 10**6))
def test_means_of_few_hits(n, hits, t):
    assert agrees(min(hits, n) / n, (math.log(t) + 3 * math.log(max(1.0, math.log(t)))) / n)


def test_closed_forms():
    assert upper_confidence(0.0, 0.5) == pytest.approx(1.0 - math.exp(-0.5), rel=1e-15)  # kl(0, q) = -log(1 - q)
    assert upper_confidence(1.0, 0.5) == 1.0
    assert upper_confidence(0.3, 0.0) == 0.3
    # kl(1/2, q) = -log(4 q (1 - q)) / 2 = x gives q = (1 + sqrt(1 - e^-2x)) / 2.
    for x in (1e-6, 0.01, 1.0):
        assert upper_confidence(0.5, x) == pytest.approx(0.5 + 0.5 * math.sqrt(-math.expm1(-2.0 * x)), rel=1e-15)


@pytest.mark.parametrize("x", [1e-320, 1e-100, 1e-40, 1e-30])
def test_a_radius_below_the_spacing_of_floats_is_none(x):
    for p in (1e-4, 0.5, 0.9999, 1 - 1e-12, 1 - 2**-53):
        assert upper_confidence(p, x) == pytest.approx(p, rel=1e-12)
        assert p <= upper_confidence(p, x) <= 1.0


@given(inside, levels, st.floats(1.001, 3.0))
def test_larger_levels_and_means_give_larger_bounds(p, x, factor):
    q = upper_confidence(p, x)
    assert p <= q <= upper_confidence(p, factor * x) <= 1.0
    assert q <= upper_confidence(min(1.0, p * factor), x) * (1 + 1e-15)


@given(inside, levels)
def test_the_relaxation_is_an_upper_bound(p, x):
    assert not reaches(p, x, mpmath.mpf(upper_relaxation(p, x)) / (1 - LAST_PLACES))


@pytest.mark.parametrize("p", [1e-9, 1e-4, 0.02, 0.3, 0.5, 0.8, 0.999, 1 - 1e-9])
def test_the_relaxation_is_an_upper_bound_in_corners(p):
    for x in LEVELS:
        assert not reaches(p, x, mpmath.mpf(upper_relaxation(p, x)) / (1 - LAST_PLACES))


def tangent(p, x, step):
    bounds = np.zeros(1)
    tangent_bounds(np.array([p]), 0, 1, np.array([upper_confidence(p, x)]), step, bounds)
    return float(bounds[0])


@given(inside, levels, st.floats(0.0, 1.0))
def test_tangents_are_upper_bounds_at_lower_levels(p, x, share):
    assert not reaches(p, x - share * x, mpmath.mpf(tangent(p, x, share * x)) * (1 + mpmath.mpf("1e-9")))


@pytest.mark.parametrize("p", CORNERS)
def test_tangents_are_upper_bounds_in_corners(p):
    for x in LEVELS:
        assert p <= tangent(p, x, x) <= 1.0
        for step in (0.0, 1e-9 * x, 0.01 * x, 0.9 * x):
            assert not reaches(p, x - step, mpmath.mpf(tangent(p, x, step)) * (1 + mpmath.mpf("1e-9")))


@given(inside, levels, st.floats(0.0, 0.25))
def test_loose_bounds_and_their_tangents_at_higher_levels_are_upper_bounds(p, x, share):
    found = np.zeros(1)
    _loose_bounds(np.array([p]), 0, 1, x, found)
    assert not reaches(p, x, mpmath.mpf(float(found[0])) * (1 + mpmath.mpf("1e-9")))
    assert p <= found[0] <= 1.0
    tangent_bounds(np.array([p]), 0, 1, found, -share * x, found)
    assert not reaches(p, x + share * x, mpmath.mpf(float(found[0])) * (1 + mpmath.mpf("1e-9")))


@pytest.mark.parametrize("p", CORNERS)
def test_loose_bounds_are_upper_bounds_in_corners(p):
    found = np.zeros(1)
    for x in LEVELS:
        _loose_bounds(np.array([p]), 0, 1, x, found)
        assert p <= found[0] <= 1.0
        assert not reaches(p, x, mpmath.mpf(float(found[0])) * (1 + mpmath.mpf("1e-9")))


def test_loose_bounds_are_closed_forms_at_the_ends_and_near_the_bound_between():
    p, found = np.array([0.0, 1.0, 0.05, 0.2]), np.zeros(4)
    loose_bounds(p, 0, 4, 0.01, found)
    assert found[:2].tolist() == [upper_confidence(0.0, 0.01), 1.0]
    assert found[2:] == pytest.approx([upper_confidence(0.05, 0.01), upper_confidence(0.2, 0.01)], rel=1e-4)
    loose_bounds(p, 0, 4, 0.18, found)
    assert found[2:] == pytest.approx([upper_confidence(0.05, 0.18), upper_confidence(0.2, 0.18)], rel=1e-3)
    loose_bounds(p, 0, 4, 0.0, found)
    assert found.tolist() == p.tolist()


@pytest.mark.parametrize("index", [KL(), KLMoss()])
def test_bounds_are_loose_up_to_a_level_and_left_to_the_scores_above_it(index):
    p, found = np.array([0.05, 0.2]), np.zeros(2)
    assert not bound_entries(index, p, p, 0, 2, 1.01 * _LOOSE_LEVEL, found)
    assert found.tolist() == [0.0, 0.0]
    assert bound_entries(index, p, p, 0, 2, _LOOSE_LEVEL, found)
    exact = [upper_confidence(x, _LOOSE_LEVEL) for x in (0.05, 0.2)]
    assert np.all(found >= exact)
    assert found == pytest.approx(exact, rel=2e-3)


def test_tangents_are_near_the_bound_a_little_below_their_level():
    for p, x in [(0.0, 0.01), (0.05, 0.003), (0.2, 0.02)]:
        exact = upper_confidence(p, 0.99 * x)
        assert 0.0 <= tangent(p, x, 0.01 * x) - exact < 1e-4 * (exact - p)


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_divergence(p, q):
    # Rounding of the two logarithms is of the order of eps, whatever is left of their sum.
    assert divergence(p, q) == pytest.approx(float(naive.kl(p, q)), rel=1e-12, abs=2e-15)


def test_divergence_at_the_ends():
    assert divergence(0.0, 0.5) == pytest.approx(math.log(2.0))
    assert divergence(1.0, 0.5) == pytest.approx(math.log(2.0))
    assert divergence(0.0, 0.0) == divergence(1.0, 1.0) == 0.0
    assert divergence(0.5, 0.0) == divergence(0.5, 1.0) == divergence(0.0, 1.0) == math.inf


def test_levels():
    assert KL().level(10.0, 1000, 0.1) == pytest.approx((math.log(1000) + 3 * math.log(math.log(1000))) / 10, rel=1e-14)
    assert KL(3, 0).level(10.0, 1000, 0.1) == pytest.approx(0.3 * math.log(1000), rel=1e-14)
    assert KL().level(1.0, 1, 0.1) == 0.0
    assert KL().level(1.0, 2, 0.1) == pytest.approx(math.log(2))  # log log 2 < 0 counts as 0
    # KL-MOSS, log+(t k / (L N)) / N: 0 once an arm has had its share t k / L = 100 of the pulls.
    assert KLMoss().level(50.0, 1000, 0.1) == pytest.approx(math.log(2.0) / 50.0, rel=1e-14)
    assert KLMoss().level(100.0, 1000, 0.1) == KLMoss().level(500.0, 1000, 0.1) == 0.0


@given(inside, st.integers(1, 1000), st.integers(1, 10**6), st.sampled_from([KL(), KL(3, 0), KLMoss()]))
def test_scores_are_the_bound_at_their_level(mean, n, t, index):
    x = index.level(float(n), t, 0.2)
    assert index.score(mean, 0.1, x, None) == upper_confidence(mean, x)


def test_the_logarithm_agrees_with_50_digits():
    for u in (*(-1.0 + 10.0**-n for n in range(1, 16)), *(s * 10.0**n for n in range(-18, 300, 3) for s in (1.0, 3.7))):
        exact = mpmath.log1p(mpmath.mpf(u))
        assert abs(mpmath.mpf(log1p(u)) - exact) <= mpmath.mpf("4e-16") * abs(exact), u


@pytest.mark.compiled("vector registers")
def test_bounds_in_vector_registers_are_those_one_at_a_time():
    rng = np.random.default_rng(3)
    means = np.concatenate([CORNERS, rng.uniform(0.0, 1.0, 500), 10.0 ** -rng.uniform(0, 12, 500)])
    for x in [0.0, *LEVELS, *(10.0 ** rng.uniform(-9, 1, 20))]:
        for first, n in ((0, len(means)), (3, 7), (5, 0), (11, 1)):
            q = np.full(len(means), -1.0)
            upper_confidences(means, first, n, x, q)
            alone = np.array([upper_confidence(p, x) for p in means[first : first + n]])
            assert np.array_equal(q[first : first + n], alone), x
            assert np.all(q[:first] == -1.0)
            assert np.all(q[first + n :] == -1.0)
