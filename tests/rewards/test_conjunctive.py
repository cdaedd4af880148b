import itertools

import numpy as np
import pytest

import superarm as sa
from superarm.oracles import certify
from superarm.simulation import optimum

P = np.random.default_rng(3).uniform(0.05, 0.95, (7, 1))


def test_the_arms_with_the_largest_parameters_are_the_best_batch():
    problem = sa.Problem(7, 1, sa.Conjunctive(), sa.Subsets(3), weights=[2.0])
    values = {batch: 2.0 * P[list(batch), 0].prod() for batch in itertools.combinations(range(7), 3)}
    assert {b: problem.value(P, b) for b in values} == pytest.approx(values)
    best = max(values, key=values.get)
    for oracle in (sa.TopArms(), sa.Greedy()):
        assert sorted(sa.solve(problem, P, oracle)) == list(best)
        assert oracle.guarantee(problem).alpha == 1.0
    assert optimum(problem, P).high == pytest.approx(values[best])


def test_smoothness_is_attained_where_all_other_arms_are_certain():
    smooth = sa.Conjunctive().smoothness(4)
    q = np.array([0.5, 1.0, 1.0, 1.0])
    problem = sa.Problem(4, 1, sa.Conjunctive(), sa.Subsets(4))
    slopes = problem.gradient(q[:, None], range(4)).ravel()
    assert slopes.max() == smooth.gamma_inf == 1.0
    assert np.sqrt((q * (1 - q) * slopes**2).sum()) == smooth.gamma_g == 0.5


def test_a_certificate_of_what_shrinks_is_still_a_bound():
    problem = sa.Problem(7, 2, sa.Conjunctive(), sa.Subsets(3))
    p = np.random.default_rng(4).random((7, 2))
    most = max(problem.value(p, batch) for batch in problem.actions.batches(7))
    found = certify(problem, p, sa.solve(problem, p, sa.Greedy()))
    assert found.value <= most <= found.bound
