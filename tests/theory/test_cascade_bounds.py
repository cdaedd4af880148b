"""The cascade theorem: its inequalities on random lists, its formula by hand, and simulated regret below it."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import superarm as sa
from superarm.theory import bounds, gaps
from superarm.theory.upper.cascade import KL_WIDTHS, upper_bound_cascade, upper_bound_cascade_kl

unit = st.floats(0.0, 1.0)
lists = st.lists(st.tuples(unit, unit), min_size=1, max_size=7)


def pair(rows):
    p = np.array([row[0] for row in rows])
    return p, p + np.array([row[1] for row in rows]) * (1 - p)


def angle(x):
    return 2.0 * np.arcsin(np.sqrt(x))


def reach(p):
    """The probability that each position is reached: the product over the positions before it."""
    return np.concatenate([[1.0], np.cumprod(p)[:-1]])


@given(lists)
@example([(0.5, 1.0), (0.5, 1.0)])
def test_disjunctive_lists_in_angles(rows):
    # r(q) - r(p) <= (sum tau (g(q) - g(p))^2)^(1/2) / 2, from sum tau rho^2 p (1 - p) = P (1 - P) at every point
    p, q = pair(rows)
    tau, none = reach(1 - p), np.prod(1 - p)
    after = np.array([np.prod(1 - p[n + 1 :]) for n in range(len(p))])
    assert (tau * after**2 * p * (1 - p)).sum() == pytest.approx(none * (1 - none), abs=1e-12)
    moved = angle(q) - angle(p)
    assert none - np.prod(1 - q) <= 0.5 * math.sqrt((tau * moved**2).sum()) + 1e-12


@given(lists)
def test_both_lists_rise_by_at_most_what_is_reached(rows):
    # r(q) - r(p) <= sum tau (q - p): the part of entries that were hardly ever observed
    p, q = pair(rows)
    assert np.prod(1 - p) - np.prod(1 - q) <= (reach(1 - p) * (q - p)).sum() + 1e-12
    assert np.prod(q) - np.prod(p) <= (reach(p) * (q - p)).sum() + 1e-12


@given(lists)
@example([(0.72, 1.0), (0.683, 1.0), (0.636, 1.0), (0.576, 1.0)])
@example([(0.98, 1.0)] * 6)
def test_conjunctive_lists_by_variance_and_in_angles(rows):
    # sum tau p (1 - p) <= 1 - P, so that q - p = u sqrt(p (1 - p)) adds at most (sum tau u^2)^(1/2); angles likewise
    p, q = pair(rows)
    tau, rise = reach(p), np.prod(q) - np.prod(p)
    assert (tau * p * (1 - p)).sum() <= 1 - np.prod(p) + 1e-12
    inner = np.clip(p, 1e-6, 1 - 1e-6)
    outer = np.maximum(inner, q)
    u = (outer - inner) / np.sqrt(inner * (1 - inner))
    assert np.prod(outer) - np.prod(inner) <= math.sqrt((reach(inner) * u**2).sum()) + 1e-12
    after = np.array([np.prod(q[n + 1 :]) for n in range(len(q))])
    sine = np.sin((angle(q) + angle(p)) / 2) ** 2
    assert (sine <= 2 * (1 - p) + 2 * (1 - q) + 1e-12).all()
    assert (tau * after**2 * sine).sum() <= 4.0 + 1e-12
    assert rise <= math.sqrt((tau * (angle(q) - angle(p)) ** 2).sum()) + 1e-12


def test_conjunctive_lists_need_more_than_one_half():
    # in angles the constant of disjunctive lists, 1/2, is too small here; in u the constant 1 is nearly attained
    p, q = np.array([0.614, 0.634, 0.632, 0.61]), np.array([0.872, 0.924, 0.956, 0.975])
    assert np.prod(q) - np.prod(p) > 0.53 * math.sqrt((reach(p) * (angle(q) - angle(p)) ** 2).sum())
    p = np.full(200, 0.99)
    assert 1 - np.prod(p) > 0.7 * math.sqrt((reach(p) * (1 - p) / p).sum())


@given(st.floats(0.01, 1000.0), st.floats(1e-3, 1.0), st.integers(1, 30))
def test_the_charges_of_one_entry(budget, d, k):
    # 4 + the sum over observations of min(4, (b / n - d / k)^+) is at most 4 + b log(1 + 4 k / d)
    n = np.arange(1, min(20_000, int(budget * k / d) + 2))
    assert np.minimum(4.0, np.maximum(0.0, budget / n - d / k)).sum() <= budget * math.log1p(4 * k / d) * (1 + 1e-12)


@given(
    st.lists(st.tuples(unit, st.integers(0, 300)), min_size=1, max_size=7), st.floats(0.1, 20.0), st.floats(0.0, 5.0)
)
@example([(1.0, 7)], 2.0, 0.0)
def test_the_charges_pay_for_the_gap(rows, y, z):
    # gap <= s + sqrt(Y) + Z over any set S of entries gives gap <= sum tau min(4, (2 y / gap + 4 z) / n - gap / k)
    tau, counts = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], float)
    k = len(rows)

    for gap in np.geomspace(1e-3, 50.0, 60):  # the inequality is nearly attained at the largest gap that is allowed
        with np.errstate(divide="ignore"):
            charges = (2 * y / gap + 4 * z) / counts - gap / k
        rare = charges > 4.0
        share = (tau[~rare] / counts[~rare]).sum()
        if gap <= tau[rare].sum() + math.sqrt(y * share) + z * share:
            assert gap <= (tau * np.minimum(4.0, np.maximum(0.0, charges))).sum() * (1 + 1e-9)


def conjunctive(seed=0):
    p = np.random.default_rng(seed).uniform(0.3, 0.95, (5, 1))
    problem = sa.Problem(5, 1, sa.rewards.Conjunctive(), sa.Subsets(2))
    return sa.Instance(problem, sa.environments.ConjunctiveCascade(p))


@pytest.mark.parametrize("instance", [sa.instances.cascade(5, 2), conjunctive()], ids=["disjunctive", "conjunctive"])
def test_formulas_by_hand(instance):
    known, t = gaps(instance, alpha=1.0), 1000.0
    least = known.minimum[known.suboptimal]
    spread = np.log(1 + 8 / least)
    start = 4 * len(least)
    bernstein = ((96 / least + 112) * spread).sum() * math.log(t) + 5 * known.largest * (1 + 2 * math.pi**2 / 3)
    assert float(upper_bound_cascade(instance, t, known)) == pytest.approx(start + bernstein)
    y = 2 if isinstance(instance.problem.reward, sa.Coverage) else 8
    level = math.log(t) + 3 * math.log(math.log(t))
    kl = (2 * y / least * spread).sum() * level
    kl += 5 * known.largest * (1 + 2 * math.e * (math.log(math.log(t)) + 2.3))
    assert float(upper_bound_cascade_kl(instance, t, known)) == pytest.approx(start + kl)


def test_only_cascades():
    for instance in (sa.instances.lower_bound(5, 2), sa.instances.cascade(5, 2, free_samples=2)):
        with pytest.raises(sa.InvalidArgument, match="cascade"):
            upper_bound_cascade(instance, 10)
    assert len(KL_WIDTHS) == 2


@pytest.mark.parametrize("instance", [sa.instances.cascade(5, 2), conjunctive(3)], ids=["disjunctive", "conjunctive"])
def test_regret_stays_below(instance):
    policies = {"BCUCB-T": sa.policies.bcucb_t(), "KL-UCB": sa.policies.cascade_kl_ucb()}
    found = sa.simulate(instance, policies, 400, 2, target="approximation", progress=False)
    for name, bound in (("BCUCB-T", "upper_bound_cascade"), ("KL-UCB", "upper_bound_cascade_kl")):
        table = bounds(instance, policies[name], found.rounds)
        assert [one.name for one in table.applying] == [bound]
        assert (found.regret[name].mean(axis=0) <= table[bound].value).all()
        assert found.regret[name][:, -1].min() > 0.0
