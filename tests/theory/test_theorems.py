"""Which theorem is for which policy, and that bounds use the guarantee of the policy's own oracle."""

import numpy as np
import pytest

import superarm as sa
from superarm.theory import theorems
from superarm.theory.bound import LABELS

INSTANCE = sa.instances.lower_bound(6, 3)


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (sa.bc_ucb(), {"upper_bound", "upper_bound_gap_free", "upper_bound_sharp", "upper_bound_sharp_gap_free"}),
        (sa.kl_ucb(rho=3, c=0), {"upper_bound_kl", "upper_bound_kl_gap_free", "upper_bound_local"}),
        (sa.kl_ucb(), {"upper_bound_kl_default", "upper_bound_kl_default_gap_free", "upper_bound_local_default"}),
        (sa.cucb(), {"upper_bound_wang_chen"}),
        (sa.IndexPolicy(sa.indices.Bernstein(1.0)), set()),
        (sa.kl_ucb(rho=2.0), set()),
        (sa.kl_moss(), set()),
        (sa.cts(), set()),
        (sa.policies.bcucb_t(), set()),  # without the start that the theorem assumes
        (sa.policies.sliding_window(sa.kl_ucb(), 100), set()),
    ],
    ids=lambda part: f"{len(part)} theorems" if isinstance(part, set) else repr(part),  # sets have no order
)
def test_of_a_policy(policy, names):
    assert set(theorems.theorems_for(policy, INSTANCE)) == names


def test_every_reported_bound_has_its_policy():
    assert set(theorems.COVERED) <= set(LABELS)
    assert all(hasattr(sa.theory, name) for name in LABELS)


def test_none_where_the_assumptions_fail():
    assert theorems.theorems_for(sa.kl_ucb(), sa.instances.changing_coverage(4, 2, 2)) == ()
    assert theorems.theorems_for(sa.kl_ucb(), sa.instances.cascade()) == ("upper_bound_cascade_kl",)
    listed = sa.Problem(4, 1, sa.Coverage(), sa.actions.Explicit([[0, 1], [2, 3]]))
    cascade = sa.Instance(listed, sa.environments.Cascade(np.full((4, 1), 0.1)))  # arm 1 is never listed first
    assert theorems.theorems_for(sa.kl_ucb(), cascade) == ()
    assert theorems.theorems_for(sa.policies.bcucb_t(), cascade) == ("upper_bound_cascade",)
    unguaranteed = sa.Problem(40, 4, sa.Logistic(50.0), sa.Subsets(4))  # no oracle has a guarantee
    instance = sa.Instance(unguaranteed, sa.environments.Bernoulli(np.full((40, 4), 0.1)))
    assert theorems.theorems_for(sa.kl_ucb(), instance) == ()
    assert "guarantees nothing" in theorems.describe_theorems("KL-UCB", sa.kl_ucb(), instance)


def test_gaps_are_those_of_the_policys_own_oracle():
    p = np.random.default_rng(0).uniform(0.0, 0.4, (6, 3))
    instance = sa.Instance(sa.Problem(6, 3, sa.Coverage(), sa.Subsets(2)), sa.environments.Bernoulli(p))
    greedy, exact = sa.kl_ucb(), sa.kl_ucb(oracle=sa.oracles.Exhaustive())
    assert theorems.gaps_of(greedy, instance).alpha == pytest.approx(0.75)
    assert theorems.gaps_of(exact, instance).alpha == 1.0


def test_conjunctive_rewards_have_gaps_and_theorems():
    p = np.random.default_rng(1).uniform(0.2, 0.9, (5, 1))
    instance = sa.Instance(sa.Problem(5, 1, sa.rewards.Conjunctive(), sa.Subsets(2)), sa.environments.Bernoulli(p))
    known = theorems.gaps_of(sa.kl_ucb(), instance)
    top = np.sort(p[:, 0])[::-1]
    assert known.r_max.high == pytest.approx(top[0] * top[1])
    assert known.smallest == pytest.approx(top[0] * (top[1] - top[2]))
    assert known.largest == pytest.approx(top[0] * top[1] - top[3] * top[4])
    names = theorems.theorems_for(sa.kl_ucb(), instance)
    found = {name: theorems.evaluate(name, instance, 100, known) for name in names}
    assert found.pop("upper_bound_local_default") is None  # the product is not concave
    assert all(float(bound) > 0 for bound in found.values())
    problem = sa.Problem(60, 1, sa.rewards.Conjunctive(), sa.Subsets(8))
    large = sa.Instance(problem, sa.environments.Bernoulli(np.full((60, 1), 0.5)))
    with pytest.raises(sa.InvalidArgument, match="more arms can lower"):
        sa.theory.gaps(large, alpha=1.0)


@pytest.mark.parametrize(
    "policy",
    [
        sa.bc_ucb(oracle=sa.oracles.StochasticGreedy(0.02)),
        sa.kl_ucb(),
    ],
    ids=["alpha and beta", "alpha"],
)
def test_regret_against_an_approximate_oracle(policy):
    # regret is against alpha beta r_max, gaps against alpha r_max: a round in which the oracle fails costs at most that
    rng = np.random.default_rng(3)
    problem = sa.Problem(5, 2, sa.Coverage(), sa.Subsets(2), weights=[1.0, 2.0])
    environment = sa.Instance(problem, sa.environments.Bernoulli(rng.uniform(0.0, 0.3, (5, 2)) ** 2))
    known = theorems.gaps_of(policy, environment)
    found = sa.simulate(environment, {"it": policy}, 200, 2, target="approximation", progress=False)
    names = theorems.theorems_for(policy, environment)
    assert names
    assert known.suboptimal.any()
    for name in names:
        assert (
            found.regret["it"].mean(axis=0) <= theorems.evaluate(name, environment, found.rounds, known).value
        ).all()
