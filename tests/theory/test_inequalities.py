"""The inequalities behind every derived statement, one by one, on random and on extreme points."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from naive import divergence
from scipy.optimize import brentq

from superarm.indices import kl_upper

inside = st.floats(1e-9, 1.0 - 1e-9)
level = st.floats(1e-7, 3.0)
many = settings(max_examples=200, deadline=None)


def upper_confidence(p, x):
    return float(kl_upper(np.array([[p]]), np.array([[x]])).item())


def g(z):
    """2 arcsin sqrt z."""
    return 2.0 * math.asin(math.sqrt(min(1.0, max(0.0, z))))


def kl(p, q):
    """The divergence to 40 digits."""
    with mp.workdps(40):
        p, q = mp.mpf(p), mp.mpf(q)
        return float(sum(x * mp.log(x / y) for x, y in ((p, q), (1 - p, 1 - q)) if x > 0))


@many
@given(inside, inside)
@example(0.5, 0.5)
@example(1e-9, 1.0 - 1e-9)
def test_divergence_against_the_angles(p, q):
    # kl >= -2 log cos(theta_p - theta_q) >= (theta_p - theta_q)^2
    psi = abs(g(p) - g(q)) / 2.0
    middle = -2.0 * math.log(math.cos(psi))
    assert kl(p, q) >= middle * (1 - 1e-9) - 1e-15
    assert middle >= psi**2 * (1 - 1e-9) - 1e-15


def test_the_angle_bound_is_sharp():
    # kl(p, p + d) / (theta difference)^2 tends to 2: the constant 1 loses at most that factor
    p, d = 0.3, 1e-4
    assert kl(p, p + d) / ((g(p + d) - g(p)) / 2) ** 2 == pytest.approx(2.0, rel=1e-3)


@many
@given(inside, st.floats(0.0, 1.0))
@example(0.5, 1.0)
def test_sensitivity_with_constant_two(x, share):
    # delta = u sqrt(x (1 - x)) moves the angle by at most 2 u
    with mp.workdps(40):
        x = mp.mpf(x)
        delta = mp.mpf(share) * (1 - x)
        u = delta / mp.sqrt(x * (1 - x))
        moved = 2 * mp.asin(mp.sqrt(x + delta)) - 2 * mp.asin(mp.sqrt(x))
        assert moved <= 2 * u + mp.mpf(10) ** -35


def test_sensitivity_constant_two_cannot_be_smaller():
    # at x + delta = 1 the ratio is 2 psi / tan psi, which tends to 2 as x tends to 1
    x = 1.0 - 1e-10
    u = (1.0 - x) / math.sqrt(x * (1.0 - x))
    assert (g(1.0) - g(x)) / u > 1.9999


@many
@given(st.lists(st.tuples(inside, st.floats(0.0, 3.0), st.floats(0.0, 0.5)), min_size=1, max_size=6))
def test_sensitivity_lemma_for_coverage(rows):
    # f(x + eps) - f(x) <= 2 gamma_g sqrt(sum u^2) + gamma_inf sum v, with gamma_g = 1/2, gamma_inf = 1
    x = np.array([row[0] for row in rows])
    u, v = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    eps = np.minimum(u * np.sqrt(x * (1 - x)) + v, 1 - x)
    rise = np.prod(1 - x) - np.prod(1 - x - eps)
    assert rise <= math.sqrt(float(u @ u)) + v.sum() + 1e-12


@many
@given(inside, inside, inside)
@example(0.5, 0.5, 0.5)
@example(0.5, 0.4, 0.6)
@example(1e-9, 1e-9, 1.0 - 1e-9)
def test_two_divergences_against_one_angle(mean, p, q):
    # kl(a, p) + kl(a, q) >= -2 log cos psi >= psi^2: Jensen's inequality for both divergences together
    psi = abs(g(p) - g(q)) / 2.0
    assert kl(mean, p) + kl(mean, q) >= -2.0 * math.log(math.cos(psi)) * (1 - 1e-9) - 1e-15
    assert -math.log(math.cos(psi)) >= psi**2 / 2.0 * (1 - 1e-9)


@many
@given(inside, inside, level)
def test_kl_index_moves_the_angle_by_at_most_two_roots_of_two(p, mean, x):
    assume(divergence(mean, p) <= x)
    q = upper_confidence(mean, x)
    assert p <= q + 1e-12
    assert g(q) - g(p) <= 2.0 * math.sqrt(2.0 * x) * (1 + 1e-9)


def test_two_roots_of_two_cannot_be_smaller():
    x = 1e-6
    q = upper_confidence(0.5, x)
    assert (g(q) - g(1.0 - q)) / math.sqrt(x) > 2.0 * math.sqrt(2.0) * (1 - 1e-5)


@many
@given(inside, inside, level)
@example(1e-9, 1e-9, 1e-3)
@example(0.5, 0.2, 0.25)
def test_kl_width_in_the_papers_form(p, mean, x):
    # q - p = 2 sqrt(p (1 - p)) sin psi cos psi + (1 - 2p) sin^2 psi <= 2 sqrt(2 x p (1 - p)) + 2 x
    assume(divergence(mean, p) <= x)
    q = upper_confidence(mean, x)
    psi = (g(q) - g(p)) / 2.0
    exact = 2 * math.sqrt(p * (1 - p)) * math.sin(psi) * math.cos(psi) + (1 - 2 * p) * math.sin(psi) ** 2
    assert q - p == pytest.approx(exact, abs=1e-9)
    assert q - p <= 2.0 * math.sqrt(2.0 * x * p * (1.0 - p)) + 2.0 * x + 1e-12


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.2, 0.5, 0.9, 1 - 1e-6])
@pytest.mark.parametrize("x", [1e-5, 1e-2, 0.3, 2.0])
def test_kl_index_at_the_edge_of_the_good_event(p, x):
    # the worst empirical mean is the largest one that the event allows: there the bounds are nearly attained
    mean = brentq(lambda m: divergence(m, p) - x, p, 1.0, xtol=1e-15) if divergence(1.0, p) > x else 1.0
    q = upper_confidence(mean, x)
    assert g(q) - g(p) <= 2.0 * math.sqrt(2.0 * x) * (1 + 1e-9)
    assert q - p <= (2.0 * math.sqrt(2.0 * x * p * (1.0 - p)) + 2.0 * x) * (1 + 1e-9)


@many
@given(inside, st.floats(0.0, 1.0), level)
def test_bernstein_width_on_the_good_event(p, share, x):
    # |mean - p| <= sqrt(6 V x) + 9 x and V <= 2 p (1 - p) + 3.5 x give u = 4 sqrt 3, v = 28; x = log t / N
    variance = share * (2 * p * (1 - p) + 3.5 * x)
    radius = math.sqrt(6 * variance * x) + 9 * x
    assert 2.0 * radius <= 4 * math.sqrt(3 * x * p * (1 - p)) + 28 * x
    assert 2.0 * (math.sqrt(21) + 9) < 28 < 2.0 * (math.sqrt(21) + 12) < 34


@many
@given(inside, level)
@example(1e-9, 1e-7)
@example(1 - 1e-9, 3.0)
def test_closed_forms_dominate_the_kl_index(p, x):
    q = upper_confidence(p, x)
    psi = math.acos(math.exp(-x / 2))
    arcsine = math.sin(min(math.pi / 2, g(p) / 2 + psi)) ** 2
    looser = math.sin(min(math.pi / 2, g(p) / 2 + math.sqrt(x))) ** 2
    b = x * (4 / 3 - 2 * p)
    bernstein = p + (b + math.sqrt(b * b + 2 * x * (1 + 2 * x) * p * (1 - p))) / (1 + 2 * x)
    entropy = -p * math.log(p) - (1 - p) * math.log1p(-p)
    exponential = -math.expm1(-(x + entropy) / (1 - p))
    assert q <= arcsine + 1e-9
    assert arcsine <= looser + 1e-9
    assert q <= bernstein + 1e-12
    assert q <= exponential + 1e-12


@many
@given(inside, st.floats(1e-6, 1.0))
def test_bernstein_lower_bound_of_the_divergence(p, share):
    # kl(q - d, q) >= d^2 / (2 (q (1 - q) + d / 3)), which the closed form solves for d
    q = p + share * (1.0 - p) * 0.999999
    d = q - p
    assert kl(p, q) >= d * d / (2.0 * (q * (1.0 - q) + d / 3.0)) * (1 - 1e-9)


def charge(budget, root_free, s, gap, share):
    return min(gap, max(0.0, (budget / gap + root_free) / s - gap * share))


scale = st.floats(1.02, 30.0)  # lambda


@settings(max_examples=150, deadline=None)
@given(
    st.floats(1e-2, 300.0), st.floats(0.0, 30.0), st.floats(1e-2, 1.0), st.floats(1.0, 30.0), st.integers(1, 64), scale
)
@example(100.0, 0.0, 0.5, 1.0, 1, 2.0)
@example(100.0, 20.0, 0.5, 3.0, 64, 1.2)
def test_the_charges_of_one_arm(c1, c2, d, ratio, k, lam):
    # each count s is charged once, with the worst gap in [d, top]; c1 and c2 stand for c1^2 f and 2 c2 f
    top, share = d * ratio, (lam - 1) / k
    b1, b2 = lam * c1, lam * c2
    reach = min(int((b1 / d**2 + b2 / d) / share) + 2, 3000)
    gaps = np.unique(np.concatenate([np.geomspace(d, top, 40), [d, top]]))
    s = np.arange(1, reach + 1)[:, None]
    charges = np.minimum(gaps, np.maximum(0.0, (b1 / gaps + b2) / s - gaps * share)).max(axis=1)
    base, slope = lam * math.log(1 + k / (lam - 1)), lam * k / (k + lam - 1)
    stated = c1 * (base + slope * (1 - 1 / ratio)) / d + c2 * (base + slope * math.log(ratio))
    assert charges.sum() <= stated * (1 + 1e-9)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=8), st.floats(0.1, 20.0), st.floats(0.0, 20.0),
    st.floats(0.01, 1.0), scale,
)  # fmt: skip
def test_the_charges_pay_for_the_gap(pulls, c1, c2, part, lam):
    # gap <= c1 sqrt(S) + c2 S gives gap <= the sum of the charges, with budgets lam c1^2 and 2 lam c2
    total = sum(1.0 / n for n in pulls)
    gap = part * (c1 * math.sqrt(total) + c2 * total)
    share = (lam - 1) / len(pulls)
    assert gap <= sum(charge(lam * c1**2, 2 * lam * c2, n, gap, share) for n in pulls) * (1 + 1e-9)
