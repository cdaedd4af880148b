import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.rewards import Smoothness
from superarm.theory import Refuted, multilinear, smoothness
from superarm.theory.certificate import bound_slopes, maximise_slopes, slopes
from superarm.theory.intervals import Interval, interval
from superarm.theory.smoothness import check_own_claim

REWARDS = [sa.Coverage(), sa.Linear(), sa.Logistic(10.0), sa.Logistic(0.5), sa.rewards.ClippedLinear(3.0, 0.5)]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("reward", REWARDS, ids=str)
def test_closed_forms_are_the_numerical_suprema(reward, k):
    found = smoothness(reward, k)
    top, _, gini, _ = maximise_slopes(slopes(reward, k), k)
    assert found.status == "exact"
    assert top == pytest.approx(found.gamma_inf, abs=1e-6)
    assert gini == pytest.approx(found.gamma_g, abs=1e-6)


@pytest.mark.parametrize(
    ("c", "k", "gamma_g"),
    [(0.5, 1, 0.092168), (1, 4, 0.171687), (math.e, 2, 0.176777), (100, 16, 0.454551), (1e6, 64, 0.823409)],
)
def test_logistic_table(c, k, gamma_g):
    assert smoothness(sa.Logistic(c), k).gamma_g == pytest.approx(gamma_g, abs=5e-7)


def test_coverage_at_the_symmetric_point():
    # the paper bounds gamma_g by 1/sqrt e; the symmetric point gives less than the exact 1/2
    gradient = slopes(sa.Coverage(), 16)
    x = np.full(16, 1 / 32)
    assert math.sqrt(np.sum(x * (1 - x) * gradient(x) ** 2)) == pytest.approx(0.4323, abs=1e-4)


def majority(bits):
    return float(sum(bits) > len(bits) / 2)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_monotone_boolean_rewards_have_one_half(k):
    found = multilinear(majority, k)
    assert (found.gamma_inf, found.gamma_g, found.status) == (1.0, 0.5, "exact")
    assert found.found_g == 0.5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=8, max_size=8), st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_variance_argument(raw, x):
    # sum x(1-x) d_i^2 <= Var f(X) <= range^2 / 4, for any monotone f of three bits
    value = np.array(raw).reshape(2, 2, 2)
    for axis in range(3):
        value = np.maximum.accumulate(value, axis=axis)
    p = np.array(x)
    weight = np.array([[np.prod(np.where(bits, p, 1 - p))] for bits in itertools.product((0, 1), repeat=3)]).ravel()
    flat = value.reshape(-1)
    variance = weight @ flat**2 - (weight @ flat) ** 2
    ends = [weight_of(value, p, i) for i in range(3)]
    gini = float(np.sum(p * (1 - p) * np.array(ends) ** 2))
    spread = flat.max() - flat.min()
    assert gini <= variance + 1e-12
    assert variance <= spread**2 / 4 + 1e-12
    found = multilinear(lambda bits: float(value[bits]), 3)
    assert math.sqrt(gini) <= found.gamma_g + 1e-9
    assert max(ends) <= found.gamma_inf + 1e-12


def weight_of(value, p, i):
    """E[f | X_i = 1] - E[f | X_i = 0]."""
    total = 0.0
    for bits in itertools.product((0, 1), repeat=3):
        w = np.prod([p[n] if b else 1 - p[n] for n, b in enumerate(bits) if n != i])
        total += w * value[bits] * (1 if bits[i] else -1)
    return total


@pytest.mark.parametrize("bad", [lambda bits: -float(sum(bits)), lambda bits: float(sum(bits) == 1)])
def test_multilinear_needs_monotone(bad):
    with pytest.raises(sa.InvalidArgument, match="monotone"):
        multilinear(bad, 2)


def test_multilinear_is_not_for_many_bits():
    with pytest.raises(sa.InvalidArgument, match="k"):
        multilinear(majority, 40)


class Pair(sa.Reward):
    """1 - (1 - q)^2 an arm, summed: a reward of a user's own, with a claim that may be wrong."""

    claim: float = 2.0
    slope: float = 2.0

    def start(self, weight):
        return 0.0 * weight

    def join(self, state, q):
        return state + q * (2.0 - q)

    def worth(self, weight, state):
        return weight * state

    def derivative(self, weight, state, q):
        return weight * self.slope * (1.0 - q)


class Claiming(Pair):
    def smoothness(self, k):
        return Smoothness(self.claim, self.claim)


# x (1 - x) (2 (1 - x))^2 is largest at x = 1/4: 27/64
PAIR = math.sqrt(2 * 27 / 64)


def test_own_reward_is_bounded_from_both_sides():
    found = smoothness(Pair(), 2)
    assert found.status == "bounded"
    assert found.found_g == pytest.approx(PAIR, abs=1e-6)
    assert found.found_g <= found.gamma_g <= PAIR * 1.05
    assert found.gamma_inf == pytest.approx(2.0, abs=1e-3)
    np.testing.assert_allclose(found.argmax_g, 0.25, atol=1e-3)


class Renamed(sa.Coverage):
    """Coverage by another name, with a parameter of its own."""

    note: str = ""


class Halved(sa.Coverage):
    def worth(self, weight, state):
        return 0.5 * (weight - state)


def test_what_a_users_reward_says_of_itself_is_a_claim_unless_it_is_one_of_superarms():
    assert smoothness(Renamed(), 2).status == "exact"
    assert smoothness(Halved(), 2).status != "exact"
    for reward, claim in ((Renamed(), ""), (Halved(), "; smoothness as Halved claims it")):
        problem = sa.Problem(3, 1, reward, sa.Subsets(1))
        instance = sa.Instance(problem, sa.environments.Bernoulli([[0.5], [0.4], [0.3]]))
        table = sa.theory.bounds(instance, sa.kl_ucb(), 100)
        upper = [bound for bound in table.applying if bound.kind == "upper"]
        assert upper
        assert all(bound.assumptions.endswith(f"within a round{claim}") for bound in upper)
        assert claim in repr(table)
        assert repr(upper[0]).endswith(f"{claim}.")


def test_wrong_claims_are_answered_with_the_point():
    with pytest.raises(Refuted, match="gamma_inf") as caught:
        smoothness(Claiming(1.5), 2)
    x = caught.value.point
    assert max(2 * (1 - x)) == pytest.approx(caught.value.value)
    assert caught.value.value > 1.5
    with pytest.raises(Refuted, match="gamma_g"):
        smoothness(Pair(), 2, claim=(2.0, 0.9))
    assert smoothness(Pair(), 2, claim=(2.0, 0.92)).status == "bounded"


class Bump(sa.rewards.Reward):
    """The sum of the parameters / 2, and a step of height 0.05 and width 0.001 where one of them is 0.7131."""

    def start(self, weight):
        return 0.0 * weight

    def join(self, state, q):
        u = (q - 0.7131) * 2000.0
        return state + 0.5 * q + 0.025 * (1.0 + u / np.sqrt(1.0 + u**2))

    def worth(self, weight, state):
        return weight * state

    def derivative(self, weight, state, q):
        u = (q - 0.7131) * 2000.0
        return weight * (0.5 + 50.0 / ((1.0 + u**2) * np.sqrt(1.0 + u**2)))

    def smoothness(self, k):
        return sa.rewards.Smoothness(1.0, 0.5 * math.sqrt(k))


def test_a_claim_is_refuted_where_it_fails_too_narrowly_for_a_search():
    with pytest.raises(Refuted, match="claimed 1, but is") as caught:
        smoothness(Bump(), 1)
    assert abs(caught.value.point[0] - 0.7131) < 1e-3
    with pytest.raises(Refuted, match="claimed 1, but is"):
        check_own_claim(Bump(), 1)  # of testing.check


def test_a_wrong_derivative_is_not_a_proof():
    found = smoothness(Pair(slope=1.0), 2)
    assert found.status == "not certified"
    assert found.gamma_g == math.inf
    assert "not certified" in str(found)


def test_plain_functions_are_estimated_not_certified():
    found = smoothness(lambda x: float(np.sqrt(1.0 + x.sum())), 2)
    assert found.status == "not certified"
    assert found.gamma_inf == math.inf
    assert found.found_inf == pytest.approx(0.5, abs=1e-4)
    claimed = smoothness(lambda x: float(x[0] * x[1]), 2, claim=(1.0, 0.5))
    assert claimed.status == "claimed"
    assert "claimed" in str(claimed)


def test_batch_size_is_checked():
    with pytest.raises(sa.InvalidArgument, match="k"):
        smoothness(sa.Coverage(), 0)


@pytest.mark.parametrize("reward", [sa.Coverage(), sa.Linear(), sa.rewards.Conjunctive()], ids=str)
def test_proven_bounds_enclose_the_exact_values(reward):
    exact = reward.smoothness(2)
    gamma_inf, gamma_g = bound_slopes(reward, 2, 400)
    assert exact.gamma_inf <= gamma_inf <= exact.gamma_inf * 1.2
    assert exact.gamma_g <= gamma_g * (1 + 1e-9)
    assert gamma_g <= exact.gamma_g * 1.2


def test_branching_code_is_not_proven():
    assert bound_slopes(sa.rewards.ClippedLinear(2.0), 2) is None


@settings(max_examples=200, deadline=None)
@given(st.floats(-2, 2), st.floats(0, 1), st.floats(-2, 2), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_intervals_enclose(a, wide, b, broad, s, t):
    x, y = Interval(a, a + wide), Interval(b, b + broad)
    u, v = a + s * wide, b + t * broad
    cases = [(x + y, u + v), (x - y, u - v), (x * y, u * v), (2.0 - x, 2.0 - u), (x**2, u * u), (-x, -u)]
    if not y.low <= 0.0 <= y.high:
        cases += [(x / y, u / v), (1.0 / y, 1.0 / v)]
    for box, value in cases:
        assert box.low - 1e-15 <= value <= box.high + 1e-15


def test_quotients_beyond_the_floats_are_enclosed():
    tiny = Interval(5e-324, 1e-310)
    for box in (1.0 / tiny, Interval(0.0, 1.0) / tiny, -1.0 / tiny):
        assert not math.isnan(box.low)
        assert not math.isnan(box.high)
    assert (1.0 / tiny).low <= sys.float_info.max < (1.0 / tiny).high
    assert (-1.0 / tiny).low < -sys.float_info.max <= (-1.0 / tiny).high
    assert (Interval(0.0, 1.0) / tiny).low <= 0.0


def test_intervals_refuse_what_they_cannot_do():
    box = Interval(-1.0, 1.0)
    with pytest.raises(ArithmeticError):
        interval(1.0) / box
    with pytest.raises(TypeError):
        box**0.5
    with pytest.raises(TypeError):
        float(box)
    with pytest.raises(ArithmeticError):
        Interval(-math.inf, 0.0) + Interval(math.inf, math.inf)


def test_functions_on_intervals():
    def f(x):
        return np.maximum(0.0, np.minimum(x, 1.0)) + np.exp(x) * np.sqrt(x)

    box = f(Interval(0.0, 2.0))
    assert box.low <= 0.0
    assert box.high >= 1.0 + math.exp(2.0) * math.sqrt(2.0)
