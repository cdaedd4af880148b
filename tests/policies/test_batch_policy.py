"""One bonus for a batch against its formula, for every smooth reward: the kernels as plain Python."""

import itertools
import math

import numpy as np
import pytest

import superarm as sa
from superarm.candidates import Candidates
from superarm.policies import Delta, LeastPlayed, choose, prepare
from superarm.policies.base import Round
from superarm.rewards import initial_states, join_arm
from superarm.core.streams import new_stream

T, PULLS = 70, np.array([3.0, 9.0, 5.0, 20.0, 6.0])


def current(problem, rng):
    p = rng.random((5, 4))
    hits = np.floor(p * PULLS[:, None]) / PULLS[:, None]
    tally = problem.past(np.zeros(0, int), [])._replace(
        pulls=PULLS.copy(), total=(hits * PULLS[:, None]).reshape(-1), square=(hits * PULLS[:, None]).reshape(-1)
    )
    return hits, Round(T, tally, Candidates(PULLS.copy(), np.ones(5, bool)))


def grown(optimistic, problem, now, mean, action):
    """The bonus of a batch, arm by arm as the policy computes it."""
    states, room = initial_states(problem.reward, problem.terms), optimistic.spare(problem)
    for j in action[:-1]:
        optimistic.extend(problem, now, mean, states, room, j)
        join_arm(problem.reward, problem.terms, states, mean, j)
    return optimistic.bonus(problem, now, mean, states, room, action[-1])


@pytest.mark.parametrize("reward", [sa.Coverage(), sa.Logistic(0.8)], ids=["coverage", "logistic"])
def test_the_bonus_of_escb_delta_is_its_formula(reward):
    problem = sa.Problem(5, 4, reward, sa.Subsets(3), weights=[1.0, 0.5, 2.0, 1.5])
    mean, now = current(problem, np.random.default_rng(0))
    smooth = (mean * PULLS[:, None] + 1.0) / (PULLS[:, None] + 2.0)
    for action in itertools.permutations(range(5), 3):
        slopes = problem.gradient(mean, list(action))
        variance = (slopes**2 * smooth * (1.0 - smooth) / PULLS[:, None]).sum()
        found = grown(Delta(0.7), problem, now, mean.reshape(-1), action)
        assert found == pytest.approx(math.sqrt(2.0 * 0.7 * math.log(T) * variance), rel=1e-9)


def test_the_bonus_of_the_least_played_arm_is_its_formula_and_the_batch_is_grown_by_it():
    problem = sa.Problem(5, 4, sa.Coverage(), sa.Subsets(3), weights=[1.0, 0.5, 2.0, 1.5])
    mean, now = current(problem, np.random.default_rng(1))
    policy = sa.least_played(c=0.1).fit(problem)
    assert policy.hope.scale == pytest.approx(math.sqrt(1.0 + 0.25 + 4.0 + 2.25))  # 2 gamma_g is 1
    f = math.log(T) + 0.1 * 3 * 4 * math.log(math.log(T))

    def optimistic(action):
        return problem.value(mean, list(action)) + policy.hope.scale * math.sqrt(f / PULLS[list(action)].min())

    for action in itertools.permutations(range(5), 3):
        value = problem.value(mean, list(action)) + grown(policy.hope, problem, now, mean.reshape(-1), action)
        assert value == pytest.approx(optimistic(action), rel=1e-12)
    chosen = []
    for _ in range(3):
        chosen.append(max(set(range(5)) - set(chosen), key=lambda j: optimistic([*chosen, j])))
    memory = prepare(policy, problem, now.tally)
    assert choose(policy, problem, now, memory, new_stream(np.random.SeedSequence(0))).tolist() == chosen


def test_caveats_are_told():
    assert "independent" in sa.escb_delta().caveat
    assert "independent" in LeastPlayed().caveat
