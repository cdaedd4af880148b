"""Influence: cascades and spread as the compiled engine has them, and IMM against brute force."""

import itertools

import numpy as np
import pytest
from scipy.sparse import random_array

import superarm as old
from superarm.environments import respond
from superarm.actions import Subsets
from superarm.core import ops
from superarm.core.problem import Problem
from superarm.diffusion import IMM, IndependentCascade, Spread
from superarm.oracles import solve
from superarm.core.streams import Stream


def graph(n=7, density=0.3, seed=0, high=0.6):
    rng = np.random.default_rng(seed)
    p = random_array(
        (n, n), density=density, rng=rng, format="csr", data_sampler=lambda size: rng.uniform(0.1, high, size)
    )
    p.setdiag(0.0)
    p.eliminate_zeros()
    return p.tocsr()


@pytest.mark.parametrize("seed", range(3))
def test_cascades_and_spread_are_those_of_the_compiled_engine(seed):
    p, weights = graph(seed=seed), np.linspace(0.5, 2.0, 7)
    problem = Problem(7, 7, Spread(20), Subsets(2), weights, p)
    earlier = old.Problem(7, 7, old.Spread(20), old.Subsets(2), weights, p)
    environment = IndependentCascade(p, weights, samples=500)
    reference = old.environments.IndependentCascade(p, weights, samples=500)
    keys = np.array([5, 77], np.uint64)
    for t in (1, 9):
        action = np.array([[0, 3], [6, 1]])
        answer = environment.draw(problem, action, t, keys)
        for r in range(2):
            told = respond(reference, earlier.support, action[r], t, Stream(keys[r : r + 1], keys[r : r + 1].copy()))
            active = answer.observed[r][answer.observed[r] >= 0]
            np.testing.assert_array_equal(active, told.action)
            rows = [answer.outcome[r, n, : problem.support.widths[u]] for n, u in enumerate(active)]
            np.testing.assert_array_equal(np.concatenate(rows), told.outcome)
    instance = old.Instance(earlier, reference)
    batches = np.array(list(itertools.combinations(range(7), 2)))
    np.testing.assert_allclose(environment.expected(problem, batches, 1), [instance.value(b) for b in batches])
    np.testing.assert_allclose(problem.values(problem.entries(p), batches), [earlier.value(p, b) for b in batches])
    np.testing.assert_allclose(environment.best(problem), reference.best(earlier))


@pytest.mark.parametrize("mode", ["numpy", pytest.param("numba", marks=pytest.mark.compiled("loops"))])
def test_imm_finds_seeds_of_large_spread(mode):
    """Five graphs: never below alpha times the best spread by enumeration; fixed seeds."""
    for seed in range(5):
        p = graph(8, 0.15, seed)
        environment = IndependentCascade(p, samples=2000)
        problem = Problem(8, 8, Spread(), Subsets(2), None, p)
        with ops.engine(mode):
            seeds = solve(problem, p, IMM(0.4))
            worth = environment.expected(problem, np.array(list(itertools.combinations(range(8), 2))), 1)
        assert environment.expected(problem, seeds[None], 1)[0] >= IMM(0.4).guarantee(problem).alpha * worth.max()


def test_certain_edges_are_condensed_and_change_no_choice():
    p = graph(8, 0.4, 1)
    p.data[::2] = 1.0
    problem = Problem(8, 8, Spread(), Subsets(1), None, p)
    environment = IndependentCascade(p, samples=4000)
    best = environment.expected(problem, np.arange(8)[:, None], 1)
    assert environment.expected(problem, solve(problem, p, IMM(0.2))[None], 1)[0] >= 0.9 * best.max()
