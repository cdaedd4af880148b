"""Each bound against its formula in high precision, written out once more, and its monotonicity."""

import math

import mpmath as mp
import numpy as np
import pytest

import superarm as sa
from superarm.rewards import Coverage, Linear, Logistic
from superarm.theory import bound
from superarm.theory.bound import Setting
from superarm.theory.sequences import Sequences, geometric
from superarm.theory.upper import bc_ucb, kl_ucb, paper
from superarm.theory.upper.bc_ucb import charge_factors, factors_at
from superarm.theory.upper.kl_ucb import LATE_FAILURES, PEELING_OFFSET

MIN, MAX = (0.1, 0.25, 0.4), (0.5, 0.25, 0.8)


def numbers(**changes):
    base = {
        "n_arms": 5, "k": 7, "weights": np.array([2.0, 1.0]), "reward": Coverage(),
        "minimum": np.array(MIN), "maximum": np.array(MAX), "largest": 0.8,
    }  # fmt: skip
    return Setting(**{**base, **changes})


ALL = (
    paper.upper_bound, paper.upper_bound_gap_free, bc_ucb.upper_bound_sharp, bc_ucb.upper_bound_sharp_gap_free,
    kl_ucb.upper_bound_kl, kl_ucb.upper_bound_kl_gap_free, kl_ucb.upper_bound_kl_default,
    kl_ucb.upper_bound_kl_default_gap_free, paper.upper_bound_wang_chen,
)  # fmt: skip
GRID = 1.0 + np.geomspace(1e-3, 1e5, 400_001)  # of lambda


def least_charges(spread):
    """E and E' for K = 7 with the least E + spread E', by a fine search in plain floats: the minimum is flat."""
    e, ratio = GRID * np.log(1 + 7 / (GRID - 1)), GRID * 7 / (7 + GRID - 1)
    best = int(np.argmin(e + spread * ratio))
    return mp.mpf(float(e[best])), mp.mpf(float(ratio[best]))


def by_hand(name, t):
    """The formulas in 50 digits, for the numbers above: L=5, M=2, K=7 (k0=2), Mbar=3, max w=2, coverage."""
    with mp.workdps(50):
        t, pi, k = mp.mpf(t), mp.pi, 7
        inverse = sum(1 / mp.mpf(repr(d)) for d in MIN)
        rest = inverse - sum(1 / mp.mpf(repr(d)) for d in MAX)
        ratios = sum(mp.log(mp.mpf(repr(b)) / mp.mpf(repr(a))) for a, b in zip(MIN, MAX, strict=True))
        top = mp.mpf("0.8")
        start = 5 * top * (1 + 2 * 2 * pi**2 / 3)
        u1, u2 = 8640 / mp.e * 9 * 5 * 4, mp.mpf(340 * 3 * 5 * 4)
        log = mp.log(t)
        slow = log + 3 * mp.log(max(mp.mpf(1), log))
        base, ratio = least_charges(1.0)
        total, gini = base + ratio, mp.mpf(9) / 4  # gamma_g^2 Mbar^2
        plain = least_charges(float(rest / inverse))
        charge = plain[0] * inverse + plain[1] * rest
        both = least_charges(float((192 * gini * rest + 168 * ratios) / (192 * gini * inverse + 168 * 3)))
        sharp = 192 * gini * total * 5
        apart = mp.log(max(mp.mpf(1), top / mp.sqrt(sharp * log / t))) if log > 0 else 0
        chernoff = 5 * top * (1 + 2 * pi**2 / 3)
        peeled = 5 * top * (1 + 2 * 2 * mp.e * (mp.log(max(mp.mpf(1), log)) + mp.mpf("2.3")))
        return {
            "upper_bound": lambda: (8640 / mp.e * 9 * inverse + 340 * 3 * (3 + ratios)) * 4 * log + start,
            "upper_bound_gap_free": lambda: 2 * mp.sqrt(u1 * t * log) + start
            + (u2 * log * (2 + max(mp.mpf(0), mp.log(top * t / (u2 * log)))) if log > 0 else 0),
            "upper_bound_sharp": lambda: (192 * gini * (both[0] * inverse + both[1] * rest)
            + 56 * 3 * (3 * both[0] + both[1] * ratios)) * log + start,
            "upper_bound_sharp_gap_free": lambda: 2 * mp.sqrt(sharp * t * log)
            + 56 * 3 * 5 * (base + ratio * apart) * log + start,
            "upper_bound_kl": lambda: 24 * gini * charge * log + chernoff,
            "upper_bound_kl_gap_free": lambda: 2 * mp.sqrt(24 * gini * total * 5 * t * log) + chernoff,
            "upper_bound_kl_default": lambda: 8 * gini * charge * slow + peeled,
            "upper_bound_kl_default_gap_free": lambda: 2 * mp.sqrt(8 * gini * total * 5 * t * slow) + peeled,
            "upper_bound_wang_chen": lambda: 48 * 4 * 4 * k * inverse * log + 2 * 2 * 10 + 10 * top * pi**2 / 3,
        }[name]()  # fmt: skip


@pytest.mark.parametrize("theorem", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("t", [1, 2, 17, 10**4, 10**9, 10**15])
def test_against_high_precision(theorem, t):
    # the search for lambda is exact to 1e-9 in the flat minimum, and to 1e-5 in E and E' alone
    close = 1e-5 if "gap_free" in theorem.__name__ else 1e-8
    assert float(theorem(numbers(), t)) == pytest.approx(float(by_hand(theorem.__name__, t)), rel=close)


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
    assert ratio["upper_bound_wang_chen"] == pytest.approx(64.0, rel=1e-3)
    assert ratio["upper_bound_kl"] < (1 + math.log(512)) / (1 + math.log(8))


def test_vacuous_until():
    # one item, 100 arms, batches of 5, all gaps 0.1: the numbers in docs/theory/bc-ucb.md
    s = numbers(n_arms=100, k=5, weights=np.ones(1), minimum=np.full(100, 0.1), maximum=np.full(100, 0.1), largest=0.1)
    when = {f.__name__: f(s, 10).crossover for f in ALL}
    paper_s, corollary, sharp, wang_chen = (
        when[f"upper_bound{rest}"] for rest in ("", "_gap_free", "_sharp", "_wang_chen")
    )
    found = (paper_s, wang_chen, sharp, when["upper_bound_kl_default"])
    assert found == pytest.approx((6.52e8, 4.2e7, 3.3e7, 1.6e6), rel=2e-2)
    assert when["upper_bound_kl"] < sharp < wang_chen < paper_s < corollary
    for name in ("upper_bound_kl", "upper_bound_kl_default"):
        t = when[name]
        assert float(by_hand_of_equal_gaps(name, t)) == pytest.approx(0.1 * t, rel=1e-6)


def by_hand_of_equal_gaps(name, t):
    """24 / 4 or 8 / 4 times E_5 L / gap f(T), and the constant; the least E_5 is 3.5645."""
    log = math.log(t)
    if name == "upper_bound_kl":
        return 6 * 3.5645018 * 100 / 0.1 * log + 100 * 0.1 * (1 + math.pi**2 / 3)
    return 2 * 3.5645018 * 1000 * (log + 3 * math.log(log)) + 10 * (1 + 2 * math.e * (math.log(log) + 2.3))


@pytest.mark.parametrize("theorem", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("gap", [1e-3, 0.05, 0.8])
def test_once_below_the_trivial_bound_it_stays_below(theorem, gap):
    s = numbers(minimum=np.full(3, gap), maximum=np.full(3, 0.8))
    t = np.geomspace(1.0, 1e25, 5001)
    below = theorem(s, t).value < 0.8 * t
    assert below[-1]
    assert (np.diff(below.astype(int)) >= 0).all()


def test_the_factors_of_the_charges():
    for k in (1, 2, 3, 7, 64, 1656):
        found = charge_factors(k)
        grid = [factors_at(k, x).total for x in 1.0 + np.geomspace(1e-3, 1e4, 4001)]
        assert found.total <= min(grid) * (1 + 1e-9)
        assert (
            found.total <= 2 * (math.log(k + 1) + k / (k + 1)) <= 2 * (1 + math.log(k) + 1 / k) <= 2 * (2 + math.log(k))
        )
    assert charge_factors(1).total == 2.0
    with pytest.raises(sa.InvalidArgument, match="k"):
        charge_factors(0)


def test_the_failures_of_the_default_level():
    # sum_t min(1/e, t e^-f / e, ceil(f log t) e^-f): the sum to 1000 and the integral beyond, as kl-ucb.md says
    def antiderivative(y):
        return math.log(y) - 3 * (math.log(y) + 1) / y - 1 / (2 * y * y)

    total = 1 / math.e  # t = 1
    for t in range(2, 1001):
        log_t = math.log(t)
        f = log_t + 3 * math.log(max(1.0, log_t))
        total += min(1 / math.e, t / math.e * math.exp(-f), math.ceil(f * log_t) * math.exp(-f))
        assert total <= math.log(max(1.0, log_t)) + 2.265
    assert 2.26 < total - antiderivative(math.log(1000)) < 2.265 < PEELING_OFFSET
    y = np.linspace(math.log(1000), 60, 10_001)  # the antiderivative is that of (f y + 1) / y^3, and below log y
    step = np.diff([antiderivative(v) for v in y]) / np.diff(y)
    middle = (y[1:] + y[:-1]) / 2
    np.testing.assert_allclose(step, ((middle + 3 * np.log(middle)) * middle + 1) / middle**3, rtol=1e-5)


def test_the_failures_with_late_feedback():
    total = 1.0 + sum(min(1.0, 1.0 / t, math.e * math.ceil(2 * math.log(t) ** 2) * t**-2) for t in range(2, 10_001))
    y = math.log(10_000)  # the integral of e (2 y^2 + 1) e^-y beyond
    assert 6.9 < total + math.e * math.exp(-y) * (2 * y * y + 4 * y + 5) < 6.94 <= LATE_FAILURES / 2


def test_late_feedback_costs_a_constant():
    instance = sa.instances.disjoint_batches(64)
    s = bound.setting(instance)
    for d in (0, 1, 5):
        late, now = (
            kl_ucb.upper_bound_kl_late(instance, [1, 10**5], delay=d),
            kl_ucb.upper_bound_kl(instance, [1, 10**5]),
        )
        expected = s.n_arms * s.largest * (14 - math.pi**2 / 3 + d * max(0, 3 * d - 1))
        np.testing.assert_allclose(late.value - now.value, expected)
    with pytest.raises(sa.InvalidArgument, match="delay"):
        kl_ucb.upper_bound_kl_late(instance, 10, delay=-1)


def test_without_the_split_into_items():
    rng = np.random.default_rng(0)
    problem = sa.Problem(4, 3, sa.Coverage(), sa.actions.Explicit([[0, 1], [2, 3]]), weights=[0.5, 1.0, 2.0])
    instance = sa.Instance(problem, sa.environments.Bernoulli(rng.uniform(0, 1, (4, 3))))
    s = bound.setting(instance)
    split, whole = paper.upper_bound(instance, 10**4), paper.upper_bound_unsplit(instance, 10**4)
    # K M = 6 parameters need two levels, K = 2 one; Mbar^2 = 12.25 and M sum w^2 = 15.75
    assert float(whole.gamma_g / split.gamma_g) == pytest.approx(4 * 15.75 / 12.25)
    assert float(whole.gamma_inf / split.gamma_inf) == pytest.approx(4 * 3 * 2.0 / 3.5)
    assert float(whole.constant) == pytest.approx(4 * s.largest * (1 + 2 * math.pi**2))


def test_the_printed_statements_are_false_where_misprints_md_says_so():
    # Corollary 1 with log in place of log^+ is negative; Theorem 1 has the factor ceil(log 1 / 1.61) = 0 for one arm
    s, t = bound.setting(sa.instances.disjoint_batches(8)), 10.0
    u2 = 340.0 * s.n_arms * 4
    printed = 2 * math.sqrt(8640 / math.e * 4 * s.n_arms * t * math.log(t)) + 10 * s.n_arms * s.largest
    assert printed + u2 * math.log(t) * (2 + math.log(s.largest * t / (u2 * math.log(t)))) < 0
    assert float(paper.upper_bound_gap_free(s, t)) > 0
    assert np.ptp(paper.upper_bound(sa.instances.lower_bound(6, 1), [2, 10**9]).value) > 0.0


def test_general_sequences_contain_the_theorem():
    instance = sa.instances.disjoint_batches(32)
    by_levels = paper.upper_bound_sequences(instance, 10**6, sequences=geometric(32))
    assert by_levels.gamma_g == pytest.approx(paper.upper_bound(instance, 10**6).gamma_g * 39 / 45)  # k0 = 3
    best = paper.upper_bound_sequences(instance, 10**6)
    assert best.value < by_levels.value
    with pytest.raises(sa.InvalidArgument, match="sequences"):
        paper.upper_bound_sequences(instance, 10, sequences=geometric(2))


def test_paper_gamma_falls_back_to_the_exact_one():
    assert paper.paper_gamma_g(numbers()) == pytest.approx(1 / math.sqrt(math.e))
    for c in (0.48497, 1.0, 1e3):
        found = paper.paper_gamma_g(numbers(reward=Logistic(c), k=10**5))
        assert found == pytest.approx(math.sqrt(1 + math.log(c)) / 4)
        assert found >= Logistic(c).smoothness(10**5).gamma_g
    for c in (0.1, 0.47):  # where the paper's is undefined or false
        assert paper.paper_gamma_g(numbers(reward=Logistic(c))) == Logistic(c).smoothness(7).gamma_g
    assert paper.paper_gamma_g(numbers(reward=Linear(), k=4)) == 1.0


def test_kl_gap_free_and_trivial():
    instance = sa.instances.disjoint_batches(4)
    s = bound.setting(instance)
    value = kl_ucb.upper_bound_kl_gap_free(instance, 10**4).value
    root = math.sqrt(24 * charge_factors(4).total * 132 * 1e4 * math.log(1e4))
    assert value == pytest.approx(root + 132 * s.largest * (1 + math.pi**2 / 3))
    assert kl_ucb.upper_bound_kl(instance, [1, 2]).trivial.tolist() == [s.largest, 2 * s.largest]


@pytest.mark.parametrize("horizon", [0, [1, 0.5], math.nan, "soon", []])
def test_horizons_are_checked(horizon):
    with pytest.raises(sa.InvalidArgument, match="horizon"):
        paper.upper_bound(sa.instances.disjoint_batches(64), horizon)


def test_sequences_are_checked():
    wrong = Sequences(np.array([1.0]), np.array([-1.0]))
    with pytest.raises(sa.InvalidArgument, match="sequences"):
        paper.upper_bound_sequences(sa.instances.disjoint_batches(64), 10, sequences=wrong)


def test_bounds_of_coverage_with_one_arm_per_batch_measure_gaps_from_the_best_arm():
    p = [[0.5, 0.4], [0.3, 0.4], [0.6, 0.0]]
    instance = sa.Instance(sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1)), sa.environments.Bernoulli(p))
    assert sa.theory.gaps(instance).smallest == pytest.approx(0.2)
    for compute in (paper.upper_bound, bc_ucb.upper_bound_sharp, kl_ucb.upper_bound_kl):
        assert float(compute(instance, 1000)) > 0.0
