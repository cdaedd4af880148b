import numpy as np

import superarm as sa
from superarm.experiments.analysis import bounds
from superarm.theory.upper.kl_ucb import upper_bound_kl_default

ROUNDS = np.array([10, 100, 1000])


def test_no_bound_is_shown_for_a_target_that_it_does_not_hold_for():
    approximate = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
    policies = {"KL-UCB": sa.kl_ucb(), "exact": sa.kl_ucb(oracle=sa.oracles.Exhaustive())}
    found = bounds.bound_curves(approximate, ROUNDS, "oracle", policies)
    assert found
    assert all(label.startswith("exact: ") for label in found)  # against alpha r_max the bound of greedy would hold


def test_why_there_is_no_bound():
    instance = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
    assert 'target = "oracle" does not' in bounds.explain_no_bounds(instance, "oracle", {"KL-UCB": sa.kl_ucb()})
    assert "No theorem" in bounds.explain_no_bounds(instance, "approximation", {"uniform": sa.uniform()})
    assert "gaps" in bounds.explain_no_bounds(instance, "optimal", {"exact": sa.kl_ucb(oracle=sa.oracles.Exhaustive())})


def test_bounds_are_those_of_the_policys_own_oracle():
    instance = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
    name = "upper_bound_kl_default"
    own = [
        bounds.bound_curve(name, instance, ROUNDS, sa.kl_ucb(oracle=oracle))
        for oracle in (sa.oracles.Greedy(), sa.oracles.Exhaustive())
    ]
    for curve, alpha in zip(own, (sa.oracles.Greedy().guarantee(instance.problem).alpha, 1.0), strict=True):
        known = sa.theory.gaps(instance, alpha=alpha)
        np.testing.assert_allclose(curve, upper_bound_kl_default(instance, ROUNDS, known).value)
    assert not np.allclose(*own)
    assert bounds.bound_curve(name, instance, ROUNDS, None) is None  # a policy that cannot be rebuilt


def test_bounds_of_theory_are_curves_above_zero():
    policies = {"it": sa.bc_ucb(), "CTS": sa.cts()}
    found = bounds.bound_curves(sa.instances.lower_bound(6, 2), ROUNDS, "optimal", policies)
    assert "it: Theorem 1 (BC-UCB)" in found
    assert not any(label.startswith("CTS") for label in found)
    assert not any("rate" in label for label in found)
    assert all(np.shape(values) == (3,) and (np.diff(values) > 0).all() for values in found.values())


def test_cascades_have_their_own_bounds():
    policies = {"CascadeKL-UCB": sa.policies.cascade_kl_ucb(), "CascadeUCB1": sa.policies.cascade_ucb1()}
    found = bounds.bound_curves(sa.instances.cascade(n_arms=12, k=3), ROUNDS, "optimal", policies)
    assert list(found) == ["CascadeKL-UCB: cascade theorem (KL-UCB, log t + 3 log log t)"]


def test_totals_have_their_bayesian_bound():
    problem = sa.Problem(6, 1, sa.Linear(), sa.Subsets(2))
    instance = sa.Instance(problem, sa.environments.Bernoulli(np.linspace(0.1, 0.6, 6)[:, None])).as_totals()
    policies = {"TS": sa.policies.total_thompson(1.0, 1.0)}
    (label,) = bounds.bound_curves(instance, ROUNDS, "optimal", policies)
    assert label == "TS: Bayesian bound (total_thompson, sharpness 1), no bound on this instance"
