"""Every reward against its definition, by hand, and its smoothness against the numerical supremum and the paper."""

import itertools
import math
from functools import partial

import mpmath
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

import superarm as sa
from superarm.oracles import certify
from superarm.simulation import optimum

CASES = [
    pytest.param(sa.Coverage(), naive.coverage, id="coverage"),
    pytest.param(sa.Logistic(0.6), partial(naive.logistic, c=0.6), id="logistic"),
    pytest.param(sa.Linear(), naive.linear, id="linear"),
    pytest.param(sa.rewards.ClippedLinear(1.7, 0.2), partial(naive.clipped, slope=1.7, shift=0.2), id="clipped"),
]
N_ARMS, N_ITEMS = 5, 11


def random_problem(reward, seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.0, 3.0, N_ITEMS)
    weights[0] = 0.0
    p = rng.random((N_ARMS, N_ITEMS))
    p[:, 1] = rng.integers(0, 2, N_ARMS)  # the ends of [0, 1], too
    return sa.Problem(N_ARMS, N_ITEMS, reward, sa.Subsets(N_ARMS), weights=weights), p


def batches():
    return [a for n in range(1, N_ARMS + 1) for a in itertools.permutations(range(N_ARMS), n)][::7]


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_value_is_the_weighted_sum_of_the_definition(reward, item):
    problem, p = random_problem(reward, 0)
    for action in batches():
        assert problem.value(p, action) == pytest.approx(naive.reward(item, problem.weights, p, action), rel=1e-12)


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_gain_is_a_difference_of_values(reward, item):
    problem, p = random_problem(reward, 1)
    for action in batches():
        for arm in set(range(N_ARMS)) - set(action):
            after, before = (naive.reward(item, problem.weights, p, a) for a in ((*action, arm), action))
            assert problem.gain(p, action, arm) == pytest.approx(after - before, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_gradient_is_that_of_finite_differences(reward, item):
    problem, p = random_problem(reward, 2)
    p = np.clip(p, 0.01, 0.99)  # the definition by outcomes wants p +- h in [0, 1]
    for action in ([0], [3, 1], [4, 0, 2]):
        wanted = naive.gradient(item, problem.weights, p, action)
        assert problem.gradient(p, action) == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize(("reward", "item"), CASES[:2])
def test_sparse_equals_dense_with_zeros(reward, item):
    rng = np.random.default_rng(3)
    mask = rng.random((N_ARMS, N_ITEMS)) < 0.6
    mask[2] = False  # an arm that touches nothing
    mask[:, 4] = False  # an item that nothing touches
    dense, p = random_problem(reward, 3)
    p = np.where(mask, p, 0.0)
    thin = sa.Problem(
        N_ARMS, N_ITEMS, reward, sa.Subsets(N_ARMS), weights=dense.weights, support=sparse.csr_array(mask)
    )
    assert thin.n_entries == mask.sum()
    for action in batches():
        assert thin.value(p[mask], action) == pytest.approx(dense.value(p, action), rel=1e-13)
        assert thin.value(p[mask], action) == pytest.approx(naive.reward(item, dense.weights, p, action), rel=1e-12)
    for action, arm in (([0, 1], 3), ([2], 0), ([4], 2)):
        assert thin.gain(p[mask], action, arm) == pytest.approx(dense.gain(p, action, arm), rel=1e-12, abs=1e-15)
        assert thin.gradient(p[mask], action) == pytest.approx(dense.gradient(p, action)[mask], rel=1e-13)


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_the_flags_are_true(reward, item):
    rng = np.random.default_rng(4)
    for _ in range(20):
        qs = rng.random(4)
        assert naive.is_submodular(item, qs) or not reward.submodular
        singles = sum(item([q]) - item([]) for q in qs)
        assert np.isclose(item(list(qs)) - item([]), singles) == reward.modular


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_monotone_in_arms_and_parameters(reward, item):
    problem, p = random_problem(reward, 5)
    higher = p + 0.3 * (1.0 - p)
    for action in batches():
        assert problem.value(higher, action) >= problem.value(p, action)
        if len(action) > 1:
            assert problem.value(p, action) >= problem.value(p, action[:-1])


def coverage_gini(x):
    """The square of sqrt(sum x(1-x)(dr/dx)^2), where dr/dx_j = prod of the others' (1 - x)."""
    slopes = [np.prod(1.0 - np.delete(x, j)) for j in range(len(x))]
    return float(np.sum(x * (1.0 - x) * np.square(slopes)))


def test_coverage_by_hand():
    # Uncovered: 0.5 * 0.8 = 0.4 of weight 2, so worth 1.2.
    reward = sa.Coverage()
    state = reward.join(reward.join(reward.start(2.0), 0.5), 0.2)
    assert state == 0.8
    assert reward.worth(2.0, state) == pytest.approx(1.2, rel=1e-15)
    assert reward.gain(2.0, state, 0.25) == 0.2
    assert reward.derivative(2.0, state, 0.25) == 0.8
    assert (reward.submodular, reward.modular) == (True, False)


def test_a_sure_arm_leaves_nothing():
    reward = sa.Coverage()
    assert reward.join(reward.start(3.0), 1.0) == 0.0
    assert reward.gain(3.0, 0.0, 0.7) == 0.0


@pytest.mark.parametrize("k", [1, 2, 4])
def test_gamma_g_of_coverage_is_the_numerical_supremum(k):
    rng = np.random.default_rng(k)
    best = max(
        -minimize(lambda x: -coverage_gini(x), rng.random(k), bounds=[(0.0, 1.0)] * k, method="L-BFGS-B").fun
        for _ in range(12)
    )
    assert math.sqrt(best) == pytest.approx(0.5, abs=1e-6)  # at (1/2, 0, ..., 0)
    assert sa.Coverage().smoothness(k).gamma_g == 0.5
    assert coverage_gini(np.eye(k)[0] / 2) == 0.25


def test_the_constants_of_the_paper():
    smoothness = sa.Coverage().smoothness(8)
    assert smoothness.gamma_inf == 1.0
    assert smoothness.gamma_g <= 1.0 / math.sqrt(math.e)


def test_the_symmetric_point_is_not_the_supremum():
    # sqrt(0.5 (1 - 1/2k)^(2k - 1)) for k = 1, 2, 4, 16.
    found = [math.sqrt(coverage_gini(np.full(k, 0.5 / k))) for k in (1, 2, 4, 16)]
    assert found == pytest.approx([0.5, 0.4593, 0.4431, 0.4323], abs=5e-5)


def test_linear_by_hand():
    reward = sa.Linear()
    state = reward.join(reward.join(reward.start(2.0), 0.5), 0.25)
    assert reward.worth(2.0, state) == 1.5
    assert reward.gain(2.0, state, 0.125) == 0.25
    assert reward.derivative(2.0, state, 0.125) == 2.0
    assert (reward.submodular, reward.modular) == (True, True)


def test_the_two_examples_of_the_introduction():
    # c = 4: the sum of min{4 mu, 1} over (0.125, 0.2, 0.7) is 0.5 + 0.8 + 1;
    # that of max{min{4 (mu - 1/2), 1}, 0} over (0.4, 0.625, 0.9) is 0 + 0.5 + 1.
    problem = sa.Problem(3, 1, sa.rewards.ClippedLinear(4), sa.Subsets(3))
    assert problem.value([[0.125], [0.2], [0.7]], [0, 1, 2]) == pytest.approx(2.3, rel=1e-15)
    shifted = sa.Problem(3, 1, sa.rewards.ClippedLinear(4, 0.5), sa.Subsets(3))
    assert shifted.value([[0.4], [0.625], [0.9]], [0, 1, 2]) == pytest.approx(1.5, rel=1e-15)


@pytest.mark.parametrize(("q", "slope"), [(0.1, 0.0), (0.3, 4.0), (0.4, 4.0), (0.6, 0.0)])
def test_clipped_slopes(q, slope):
    assert sa.rewards.ClippedLinear(4.0, 0.2).derivative(1.5, 0.0, q) == 1.5 * slope  # the line rises from 0.2 to 0.45


@pytest.mark.parametrize("k", [1, 4, 9])
def test_linear_smoothness(k):
    smoothness = sa.Linear().smoothness(k)
    assert smoothness == (1.0, math.sqrt(k) / 2.0)  # all at 1/2


@pytest.mark.parametrize(
    ("slope", "shift"),
    [(1.0, 0.0), (0.5, 0.0), (4.0, 0.0), (4.0, 0.5), (4.0, 0.3), (2.0, 0.9), (10.0, 0.2), (1.0, 0.5)],
)
def test_clipped_smoothness_is_the_supremum_where_the_line_rises(slope, shift):
    x = np.linspace(0.0, 1.0, 1_000_001)[1:-1]
    rising = x[(slope * (x - shift) > 0.0) & (slope * (x - shift) < 1.0)]
    for k in (1, 5):
        smoothness = sa.rewards.ClippedLinear(slope, shift).smoothness(k)
        assert smoothness.gamma_inf == slope
        # Arms are separate: k times the best x(1-x); the grid is 1e-6 fine.
        wanted = slope * math.sqrt(k * (rising * (1.0 - rising)).max())
        assert smoothness.gamma_g == pytest.approx(wanted, abs=2e-5)
        assert smoothness.gamma_g >= wanted
        assert smoothness.gamma_g <= slope * math.sqrt(k) / 2.0


# gamma_g for k = 1, 2, 4, 16, 64, by c; computed for the table by multistart L-BFGS.
TABLE = {
    0.5: (0.092168, 0.109729, 0.121156, 0.130688, 0.133157),
    1.0: (0.118288, 0.149555, 0.171687, 0.190371, 0.195169),
    math.e: (0.118288, 0.176777, 0.229343, 0.274579, 0.285790),
    10.0: (0.064353, 0.133128, 0.248094, 0.360887, 0.386696),
    100.0: (0.008867, 0.025440, 0.127523, 0.454551, 0.521816),
    1000.0: (0.000919, 0.002775, 0.020551, 0.495463, 0.623060),
    1e6: (1e-6, 3e-6, 2.2e-5, 0.354217, 0.823409),
}
PAPER = {0.5: 0.138486, 1.0: 0.25, math.e: 0.353553, 10.0: 0.454325, 100.0: 0.591881, 1000.0: 0.703018, 1e6: 0.962273}


def logistic_gini(x, c):
    f = naive.logistic(x, c)
    return f * (1.0 - f) * math.sqrt(float(np.sum(x * (1.0 - x))))


def test_logistic_by_hand():
    # c = e^2, s = 2: 1 / (1 + 1) = 1/2, slope 1/4.
    reward = sa.Logistic(math.e**2)
    state = reward.join(reward.join(reward.start(4.0), 0.75), 0.25)
    assert reward.worth(4.0, reward.join(state, 1.0)) == pytest.approx(2.0, rel=1e-15)
    assert reward.derivative(4.0, state, 1.0) == pytest.approx(1.0, rel=1e-15)
    assert reward.worth(4.0, reward.start(4.0)) == pytest.approx(4.0 / (1.0 + math.e**2), rel=1e-15)


@given(st.floats(0.01, 100.0), st.floats(0.0, 5.0), st.floats(1e-14, 1.0))
def test_lift_does_not_cancel(c, s, q):
    reward, state = sa.Logistic(c), c * math.exp(-s)
    exact = 1 / (1 + mpmath.mpf(state) * mpmath.exp(-mpmath.mpf(q))) - 1 / (1 + mpmath.mpf(state))
    assert reward.gain(1.0, state, q) == pytest.approx(float(exact), rel=3e-15)


def test_not_submodular_above_1_by_hand():
    # c = e^2: f(0) = 0.1192, f(1) = 0.2689, f(2) = 0.5; the second arm adds 0.2311, more than the first's 0.1497.
    reward = sa.Logistic(math.e**2)
    first = reward.gain(1.0, reward.start(1.0), 1.0)
    second = reward.gain(1.0, reward.join(reward.start(1.0), 1.0), 1.0)
    assert (round(first, 4), round(second, 4)) == (0.1497, 0.2311)
    assert not reward.submodular


@pytest.mark.parametrize(("c", "submodular"), [(0.1, True), (0.9, True), (1.0, True), (1.01, False), (5.0, False)])
def test_submodular_exactly_up_to_1(c, submodular):
    assert sa.Logistic(c).submodular is submodular
    small = naive.is_submodular(lambda ps: naive.logistic(ps, c), [1e-3, 2e-3, 3e-3])
    large = naive.is_submodular(lambda ps: naive.logistic(ps, c), [0.9, 0.3, 0.7, 1.0])
    assert (small and large) is submodular  # just above 1, only small parameters show it


@pytest.mark.parametrize("c", TABLE)
def test_gamma_g_of_logistic_rewards_is_the_table(c):
    for k, wanted in zip((1, 2, 4, 16, 64), TABLE[c], strict=True):
        smoothness = sa.Logistic(c).smoothness(k)
        assert smoothness.gamma_g == pytest.approx(wanted, abs=6e-7)
        assert smoothness.gamma_g == pytest.approx(naive.logistic_gamma_g(c, k), rel=1e-9)
        assert smoothness.gamma_g <= PAPER[c]


@pytest.mark.parametrize(("c", "k"), [(1e-3, 3), (0.2, 1000), (1.0, 10**5), (50.0, 10**4), (1e12, 40), (1e12, 10**5)])
def test_gamma_g_far_from_the_table(c, k):
    assert sa.Logistic(c).smoothness(k).gamma_g == pytest.approx(naive.logistic_gamma_g(c, k), rel=1e-9)


@pytest.mark.parametrize(("c", "k"), [(0.5, 1), (1.0, 3), (math.e, 2), (10.0, 4)])
def test_gamma_g_is_the_supremum_over_all_parameters(c, k):
    rng = np.random.default_rng(k)
    best = max(
        -minimize(lambda x: -logistic_gini(x, c), rng.uniform(0.1, 0.9, k), bounds=[(0.0, 1.0)] * k, tol=1e-14).fun
        for _ in range(5)
    )
    assert sa.Logistic(c).smoothness(k).gamma_g == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(("c", "k"), [(0.2, 3), (1.0, 3), (5.0, 3), (math.e**3, 3), (100.0, 3), (1e6, 20)])
def test_gamma_inf_is_the_supremum_over_sums(c, k):
    s = np.linspace(0.0, k, 200_001)
    f = 1.0 / (1.0 + c * np.exp(-s))
    assert sa.Logistic(c).smoothness(k).gamma_inf == pytest.approx((f * (1.0 - f)).max(), rel=1e-8)


def test_the_paper_s_bound_holds_from_0_48497_on_and_not_below():
    for c in (0.48497, 0.6, 1.0, 3.0, 1e3):
        assert sa.Logistic(c).smoothness(10**5).gamma_g <= math.sqrt(1.0 + math.log(c)) / 4.0
    assert naive.logistic_gamma_g(0.47, 10**5) > math.sqrt(1.0 + math.log(0.47)) / 4.0


P = np.random.default_rng(3).uniform(0.05, 0.95, (7, 1))


def test_the_arms_with_the_largest_parameters_are_the_best_batch():
    problem = sa.Problem(7, 1, sa.rewards.Conjunctive(), sa.Subsets(3), weights=[2.0])
    values = {batch: 2.0 * P[list(batch), 0].prod() for batch in itertools.combinations(range(7), 3)}
    assert {b: problem.value(P, b) for b in values} == pytest.approx(values)
    best = max(values, key=values.get)
    for oracle in (sa.oracles.TopArms(), sa.oracles.Greedy()):
        assert sorted(sa.oracles.solve(problem, P, oracle)) == list(best)
        assert oracle.guarantee(problem).alpha == 1.0
    assert optimum(problem, P).high == pytest.approx(values[best])


def test_smoothness_is_attained_where_all_other_arms_are_certain():
    smooth = sa.rewards.Conjunctive().smoothness(4)
    q = np.array([0.5, 1.0, 1.0, 1.0])
    problem = sa.Problem(4, 1, sa.rewards.Conjunctive(), sa.Subsets(4))
    slopes = problem.gradient(q[:, None], range(4)).ravel()
    assert slopes.max() == smooth.gamma_inf == 1.0
    assert np.sqrt((q * (1 - q) * slopes**2).sum()) == smooth.gamma_g == 0.5


def test_a_certificate_of_what_shrinks_is_still_a_bound():
    problem = sa.Problem(7, 2, sa.rewards.Conjunctive(), sa.Subsets(3))
    p = np.random.default_rng(4).random((7, 2))
    most = max(problem.value(p, batch) for batch in problem.actions.batches(7))
    found = certify(problem, p, sa.oracles.solve(problem, p, sa.oracles.Greedy()))
    assert found.value <= most <= found.bound
