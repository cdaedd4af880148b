"""The bounds where only totals are seen: as written, about the right instances, and above what is measured."""

import math

import numpy as np
import pytest

import superarm as sa
from superarm.policies import greedy_then_commit, total_thompson
from superarm.theory import bounds

SUM, COVER = sa.Linear(), sa.Coverage()


def instance(reward, n=6, k=2, p=None):
    p = np.linspace(0.05, 0.5, n)[:, None] if p is None else p
    environment = sa.environments.Totals(sa.environments.Bernoulli(p), reward)
    return sa.Instance(sa.Problem(n, reward=sa.Total(), actions=sa.Subsets(k)), environment)


@pytest.mark.parametrize(("n", "k", "horizon"), [(6, 2, 1e4), (20, 3, 1e6), (100, 10, 1e8)])
def test_the_bounds_are_the_formulas(n, k, horizon):
    bayes = bounds(instance(SUM, n, k), total_thompson(1.0, 1.0), horizon)["bayes_bound_total"]
    entropy = math.log(math.comb(n, k))
    assert float(bayes) == pytest.approx(math.sqrt(n * entropy * horizon / 2))
    p = np.linspace(0.05, 0.5, n)
    largest = (p[-k:].sum() - p[:k].sum()) / k
    assert bayes.crossover == pytest.approx(n * entropy / 2 / largest**2, rel=1e-6)
    assert "no bound on this instance" in str(bayes)
    assert "mean regret over instances" in str(bayes)
    big = n * k
    m = math.ceil((2 * k * horizon) ** (2 / 3) * math.log(horizon) ** (1 / 3) / (2 * big ** (2 / 3)))
    commit = bounds(instance(COVER, n, k), greedy_then_commit(int(1e12)), horizon)["upper_bound_greedy_commit"]
    assert float(commit) == pytest.approx(big * m + 2 * k * horizon * math.sqrt(math.log(horizon) / (2 * m)) + 2 * big)
    assert math.isfinite(commit.crossover)


def test_where_every_set_earns_the_guaranteed_share_the_bound_says_nothing():
    p = np.linspace(0.4, 0.5, 6)[:, None]
    bound = bounds(instance(COVER, p=p), greedy_then_commit(10**6), 10**6)["upper_bound_greedy_commit"]
    assert bound.largest == 0.0
    assert "says nothing: every batch earns at least alpha" in str(bound)
    spread = instance(COVER, p=np.array([0.0, 0.0, 0.0, 0.0, 0.5, 0.9])[:, None])
    bound = bounds(spread, greedy_then_commit(10**6), 10**6)["upper_bound_greedy_commit"]
    assert bound.largest == pytest.approx((1 - 1 / math.e) * 0.95)


def test_there_is_no_row_for_a_horizon_that_the_policy_refuses():
    case = instance(COVER, 20, 3)
    table = bounds(case, greedy_then_commit(100), [100])
    assert "exploring alone takes" in table["upper_bound_greedy_commit"].reason
    table = bounds(case, greedy_then_commit(10**6), [100])
    assert "exploring alone takes" in table["upper_bound_greedy_commit"].reason
    values = bounds(case, greedy_then_commit(10**6), [100, 10**6])["upper_bound_greedy_commit"].value
    assert np.isfinite(values).tolist() == [False, True]


def test_the_plays_of_each_set_are_the_best_whole_number():
    """The minimiser of the bound over whole m, within the rounding of the derivation."""
    n, k, horizon = 20, 3, 1e7
    m = greedy_then_commit(int(horizon)).plays(instance(COVER, n, k).problem)
    found = [n * k * x + 2 * k * horizon * math.sqrt(math.log(horizon) / (2 * x)) for x in range(m // 2, 2 * m)]
    assert abs(m - (m // 2 + int(np.argmin(found)))) <= 1


def test_regret_is_below_the_bounds():
    """The mean over 40 instances of a Gaussian prior; and a commitment of which every draw must be below."""
    rng, shares = np.random.default_rng(0), []
    for seed in range(40):
        p = np.clip(rng.normal(0.5, 0.1, 6), 0.0, 1.0)[:, None]
        result = sa.simulate(instance(SUM, p=p), {"ts": total_thompson(1.0, 1.0)}, 300, 1, seed, progress=False)
        shares.append(result.regret["ts"][0, -1])
    assert np.mean(shares) < float(bounds(instance(SUM), total_thompson(1.0, 1.0), 300)["bayes_bound_total"])
    case, horizon = instance(COVER), 20_000
    policy = greedy_then_commit(horizon)
    result = sa.simulate(case, {"commit": policy}, horizon, 5, target="approximation", progress=False)
    assert result.regret["commit"][:, -1].max() < float(bounds(case, policy, horizon)["upper_bound_greedy_commit"])


def test_greedy_finds_its_set_and_keeps_to_it():
    case, horizon = instance(SUM, 5, 2, np.array([[0.1], [0.9], [0.2], [0.3], [0.8]])), 5_000
    policy = greedy_then_commit(horizon)
    each = policy.plays(case.problem)
    agent, sizes, worth = sa.Agent(case.problem, policy, seed=0), [], np.array([0.1, 0.9, 0.2, 0.3, 0.8]) / 2
    for _ in range(horizon):
        decision = agent.ask()
        sizes.append(len(decision.action))
        agent.tell(decision, total=float(worth[decision.action].sum()))
    assert sizes[:each] == [1] * each
    assert set(sizes[10 * each :]) == {2}
    assert sorted(decision.action.tolist()) == [1, 4]


def test_each_bound_says_what_it_is_not_about():
    for policy, of in ((total_thompson(), SUM), (sa.uniform(), SUM)):
        table = bounds(instance(of), policy, 1000)
        assert not table.applying
    table = bounds(instance(COVER), total_thompson(1.0, 1.0), 1000)
    assert table["bayes_bound_total"].reason == "arms do not add up here"
    table = bounds(instance(sa.rewards.Conjunctive()), greedy_then_commit(10**6), 1000)
    assert table["upper_bound_greedy_commit"].reason == "totals are not submodular here"
    late = bounds(instance(COVER), greedy_then_commit(10**6), 1000, delay=3)["upper_bound_greedy_commit"]
    assert late.reason == "feedback must arrive before the next round"
    moving = sa.environments.Switching([[[0.5]] * 6, [[0.2]] * 6], [1, 10])
    case = sa.Instance(instance(COVER).problem, sa.environments.Totals(moving, COVER, n_items=1))
    assert "change over time" in bounds(case, greedy_then_commit(10**6), 1000)["upper_bound_greedy_commit"].reason


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: greedy_then_commit(100), "exploring alone takes"),
        (lambda: greedy_then_commit(1), "whole number"),
    ],
)
def test_a_horizon_that_is_too_short_is_refused(make, says):
    with pytest.raises(sa.InvalidArgument, match=says):
        sa.Agent(instance(COVER, 20, 3).problem, make())
