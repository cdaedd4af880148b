import numpy as np
import pytest

import superarm as sa
from superarm.oracles import Certificate, Default
from superarm.simulation.regret import target


def test_the_measured_alpha_is_not_the_guarantee():
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
    found = sa.certified(problem, [[0.9, 0.0], [0.0, 0.8], [0.1, 0.1], [0.0, 0.0]], sa.Greedy())
    assert found.guarantee.alpha == pytest.approx(0.75)
    assert found.certificate.measured_alpha > 0.9
    instance = sa.Instance(problem, sa.environments.Bernoulli(np.full((4, 2), 0.25)))
    goal = target(instance, sa.cucb(), "approximation")
    assert goal.value == pytest.approx(0.75 * 2.0 * (1.0 - 0.75**2))


def test_certificates_of_nothing_and_of_everything():
    assert Certificate(0.0, 0.0).measured_alpha == 1.0
    assert Certificate(1.0, 4.0) == (1.0, 4.0)
    assert Certificate(1.0, 4.0).measured_alpha == 0.25
    assert Certificate(1.0, 4.0).gap == 3.0


def test_a_reward_that_is_not_submodular_is_bounded_by_all_arms_together():
    problem = sa.Problem(3, 1, sa.Logistic(5.0), sa.Subsets(1))
    proof = sa.certify(problem, [[0.5], [0.5], [1.0]], [2])
    assert proof.bound == pytest.approx(1.0 / (1.0 + 5.0 * np.exp(-2.0)))


def test_excluded_arms_do_not_count_in_the_bound():
    problem = sa.Problem(3, 1, sa.Linear(), sa.Subsets(1))
    assert sa.certify(problem, [[0.5], [0.75], [1.0]], [1], eligible=[0, 1]) == Certificate(0.75, 0.75)


def test_a_certificate_of_a_thousand_arms():
    problem = sa.Problem(1000, 20, sa.Coverage(), sa.Subsets(10))
    p = np.random.default_rng(0).uniform(0.0, 0.3, (1000, 20))
    action = sa.solve(problem, p, Default())
    proof = sa.certify(problem, p, action)
    assert 0.6 < proof.measured_alpha <= 1.0


def test_search_stops_in_time_and_reports_the_gap():
    rng = np.random.default_rng(0)
    problem = sa.Problem(90, 40, sa.Coverage(), sa.Subsets(15))
    p = rng.uniform(0.0, 0.3, (90, 40))  # all alike: nothing is ruled out early
    found = sa.exact(problem, p, seconds=0.05)
    assert found.guarantee.alpha == 0.0
    assert found.certificate.gap > 0.0
    loose = sa.exact(problem, p, seconds=30.0, gap=0.5)
    assert loose.certificate.value >= 0.5 * loose.certificate.bound


def test_search_refuses_what_it_cannot_do():
    with pytest.raises(sa.InvalidArgument, match="not submodular"):
        sa.exact(sa.Problem(3, 1, sa.Logistic(5.0), sa.Subsets(1)), np.zeros((3, 1)))
    with pytest.raises(sa.InvalidArgument, match="seconds"):
        sa.exact(sa.Problem(3, 1, sa.Coverage(), sa.Subsets(1)), np.zeros((3, 1)), seconds=0.0)
