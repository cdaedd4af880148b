"""Each bound against its formula in high precision, written out once more, and its monotonicity."""

import math

import mpmath as mp
import numpy as np
import pytest

import superarm as sa
from superarm.rewards import Coverage, Linear, Logistic
from superarm.theory import bound, printed, upper
from superarm.theory.bound import Setting
from superarm.theory.crossover import crossover
from superarm.theory.sequences import Sequences, best_sequences, geometric

MIN, MAX = (0.1, 0.25, 0.4), (0.5, 0.25, 0.8)


def numbers(**changes):
    base = {
        "n_arms": 5, "n_items": 2, "k": 7, "weight": 3.0, "heaviest": 2.0, "smoothness": Coverage().smoothness(7),
        "minimum": np.array(MIN), "maximum": np.array(MAX), "largest": 0.8,
    }  # fmt: skip
    return Setting(**{**base, **changes})


ALL = (upper.theorem, upper.corollary, upper.sharp, upper.kl, upper.wang_chen)


def by_hand(name, t):
    """The formulas in 50 digits, for the numbers above: L=5, M=2, K=7 (k0=2), Mbar=3, max w=2, coverage."""
    with mp.workdps(50):
        t, pi, k = mp.mpf(t), mp.pi, 7
        inverse = sum(1 / mp.mpf(repr(d)) for d in MIN)
        ratios = sum(mp.log(mp.mpf(repr(b)) / mp.mpf(repr(a))) for a, b in zip(MIN, MAX, strict=True))
        top = mp.mpf("0.8")
        start = 5 * top * (1 + 2 * 2 * pi**2 / 3)
        u1, u2 = 8640 / mp.e * 9 * 5 * 4, mp.mpf(340 * 3 * 5 * 4)
        log = mp.log(t)
        return {
            "theorem": lambda: (8640 / mp.e * 9 * inverse + 340 * 3 * (3 + ratios)) * 4 * log + start,
            "corollary": lambda: 2 * mp.sqrt(u1 * t * log) + start
            + (u2 * log * (2 + max(mp.mpf(0), mp.log(top * t / (u2 * log)))) if log > 0 else 0),
            "sharp": lambda: (384 * 9 * (2 + mp.log(k)) * inverse / 4 + 112 * 3 * (3 * (1 + mp.log(k)) + ratios)) * log
            + 5 * top * (2 + 2 * 2 * pi**2 / 3),
            "kl": lambda: 96 * 9 * (2 + mp.log(k)) * inverse / 4 * log + 5 * top * (2 + 2 * pi**2 / 3),
            "wang_chen": lambda: 48 * 4 * 4 * 7 * inverse * log + 2 * 2 * 10 + 10 * top * pi**2 / 3,
        }[name]()  # fmt: skip


@pytest.mark.parametrize("theorem", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("t", [1, 2, 17, 10**4, 10**9, 10**15])
def test_against_high_precision(theorem, t):
    assert float(theorem(numbers(), t)) == pytest.approx(float(by_hand(theorem.__name__, t)), rel=1e-12)


@pytest.mark.parametrize("theorem", ALL, ids=lambda f: f.__name__)
def test_vectorised_monotone_and_in_terms(theorem):
    t = np.array([[1, 10, 100], [10**3, 10**5, 10**8]])
    found = theorem(numbers(), t)
    assert found.value.shape == t.shape
    assert (np.diff(found.value.reshape(-1)) > 0).all()
    np.testing.assert_allclose(found.value, found.gamma_g + found.gamma_inf + found.constant)
    np.testing.assert_array_equal(np.asarray(found), found.value)


@pytest.mark.parametrize("theorem", ALL, ids=lambda f: f.__name__)
def test_monotone_in_batch_size_and_gaps(theorem):
    sizes = [float(theorem(numbers(k=k), 10**6)) for k in (1, 2, 5, 6, 30, 700)]
    assert sizes == sorted(sizes)
    small = numbers(minimum=np.array(MIN) / 2)
    assert float(theorem(small, 10**6)) >= float(theorem(numbers(), 10**6))


def test_only_the_order_of_k_differs():
    # Wang-Chen grows linearly in K, the sharpened bound and KL logarithmically
    ratio = {f.__name__: float(f(numbers(k=512), 10**9)) / float(f(numbers(k=8), 10**9)) for f in ALL}
    assert ratio["wang_chen"] == pytest.approx(64.0, rel=1e-3)
    assert ratio["kl"] == pytest.approx((2 + math.log(512)) / (2 + math.log(8)), rel=1e-3)


def test_vacuous_until():
    # one item, 100 arms, batches of 5, all gaps 0.1: the numbers in docs/theory/vacuity.md
    s = numbers(n_arms=100, n_items=1, k=5, weight=1.0, heaviest=1.0, minimum=np.full(100, 0.1),
                maximum=np.full(100, 0.1), largest=0.1)  # fmt: skip
    when = {f.__name__: crossover(lambda t, f=f: float(f(s, t)), 0.1) for f in ALL}
    assert when["theorem"] == pytest.approx(6.52e8, rel=1e-2)
    assert when["kl"] == pytest.approx(1.43e7, rel=1e-2)
    assert when["kl"] < when["wang_chen"] < when["sharp"] < when["theorem"] < when["corollary"]


def test_corollary_is_never_negative_where_the_printed_one_is():
    instance = sa.instances.disjoint_batches(8)
    t = np.array([2.0, 10.0, 10**3, 10**6, 10**9])
    mended, raw = upper.upper_bound_gap_free(instance, t).value, printed.printed_corollary(instance, t)
    assert (mended > 0).all()
    assert raw[0] < 0
    assert mended[-1] == pytest.approx(raw[-1], rel=1e-12)


def test_printed_theorem_is_false_for_single_arms():
    bandit = sa.instances.lower_bound(6, 1)
    assert np.ptp(printed.printed_theorem(bandit, [2, 10**9])) == 0.0  # claims bounded regret
    assert np.ptp(upper.upper_bound(bandit, [2, 10**9]).value) > 0.0
    same = sa.instances.lower_bound(6, 3)
    np.testing.assert_allclose(printed.printed_theorem(same, 99), upper.upper_bound(same, 99).value)


def test_printed_wang_chen_lacks_a_factor():
    instance = sa.instances.lower_bound(6, 3)
    missing = upper.upper_bound_wang_chen(instance, 50).value - printed.printed_wang_chen(instance, 50)
    assert missing == pytest.approx(5 * 0.1 * math.pi**2 / 3)


def test_general_sequences_contain_the_theorem():
    instance = sa.instances.disjoint_batches(32)
    by_levels = upper.upper_bound_sequences(instance, 10**6)
    assert by_levels.gamma_g == pytest.approx(upper.upper_bound(instance, 10**6).gamma_g * 39 / 45)  # k0 = 3
    best = upper.upper_bound_sequences(instance, 10**6, best_sequences(32))
    assert best.value < by_levels.value
    with pytest.raises(sa.InvalidArgument, match="sequences"):
        upper.upper_bound_sequences(instance, 10, geometric(2))


def test_paper_gamma_falls_back_to_the_exact_one():
    assert numbers(smoothness=Logistic(0.2).smoothness(7)).gamma_g_paper == Logistic(0.2).smoothness(7).gamma_g
    assert numbers(smoothness=Linear().smoothness(4)).gamma_g_paper == 1.0


def test_kl_gap_free_and_trivial():
    instance = sa.instances.disjoint_batches(4)
    s = bound.setting(instance)
    value = upper.upper_bound_kl_gap_free(instance, 10**4).value
    root = math.sqrt(96 * (2 + math.log(4)) * 132 * 1e4 * math.log(1e4))
    assert value == pytest.approx(root + 132 * s.largest * (2 + math.pi**2 / 3))
    assert upper.trivial(instance, [1, 2]).tolist() == [s.largest, 2 * s.largest]


@pytest.mark.parametrize("horizon", [0, [1, 0.5], math.nan, "soon", []])
def test_horizons_are_checked(horizon):
    with pytest.raises(sa.InvalidArgument, match="horizon"):
        upper.upper_bound(sa.instances.disjoint_batches(64), horizon)


def test_sequences_are_checked():
    with pytest.raises(sa.InvalidArgument, match="sequences"):
        upper.upper_bound_sequences(sa.instances.disjoint_batches(64), 10, Sequences(np.array([1.0]), np.array([-1.0])))
