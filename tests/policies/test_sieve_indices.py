"""Sieves with every other index, as plain Python: compiling each pair takes longer than playing it."""

import numpy as np
import pytest

import superarm as sa
from superarm.indices.kl_bound import _LOOSE_LEVEL
from superarm.policies.fast.sieve import Sieve
from superarm.simulation import begin
from superarm.simulation.engine import advance

L, M, K, ROUNDS = 70, 30, 7, 60
PLAY = {"cucb": sa.cucb(0.02), "ucb_v": sa.ucb_v(0.05), "kl_moss": sa.kl_moss(), "kl_ucb": sa.kl_ucb(0.2, 0.3)}


@pytest.mark.parametrize("name", PLAY)
def test_a_sieve_plays_as_the_plain_policy_does(name):
    rng = np.random.default_rng(6)
    problem = sa.Problem(L, M, sa.Coverage(), sa.Subsets(K), weights=rng.uniform(0.1, 2.0, M))
    environment, states = sa.environments.Bernoulli(rng.uniform(0.0, 0.4, (L, M))), []
    assert isinstance(PLAY[name].fit(problem), Sieve)
    for fitted in (PLAY[name].plain(problem), PLAY[name].fit(problem)):
        run = begin(problem, environment, fitted, np.random.SeedSequence(5))
        advance(problem, environment, fitted, run, np.array([0, ROUNDS]), np.zeros(1))
        states.append(run)
    assert np.array_equal(states[0].tally.pulls, states[1].tally.pulls)
    assert np.array_equal(states[0].tally.total, states[1].tally.total)
    assert len(set(states[0].tally.pulls)) > 2  # it has left the first rounds, in which all arms take turns


def test_levels_of_kl_ucb_cross_the_one_above_which_its_bounds_are_scores():
    problem = sa.Problem(L, M, sa.Coverage(), sa.Subsets(K))
    environment, fitted = sa.environments.Bernoulli(np.full((L, M), 0.2)), PLAY["kl_ucb"].fit(problem)
    run, levels = begin(problem, environment, fitted, np.random.SeedSequence(5)), []
    for first, last in ((0, 12), (12, ROUNDS)):
        advance(problem, environment, fitted, run, np.array([first, last]), np.zeros(1))
        levels.append(run.memory.levels.copy())
    assert levels[0].min() > _LOOSE_LEVEL > levels[1].min()
