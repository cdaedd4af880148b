"""The directional sieve makes the decisions of the directional policy: same arms, same order, same ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.candidates import Candidates
from superarm.indices import KL, KLMoss
from superarm.indices.two_moments import steepness, two_moment_bound, two_moment_roof
from superarm.policies import Covariance, DirectionalPolicy, Round, Triangle
from superarm.policies.directional_bounds import bound_arm, point
from superarm.policies.fast.directional_sieve import DirectionalSieve, _level_arms
from superarm.policies.fast.roofs import raise_roofs
from superarm.policies.traits import plain
from superarm.simulation.engine import advance, begin
from superarm.core.streams import new_stream

STREAM = new_stream(np.random.SeedSequence(0))
UNIT = st.floats(0.0, 1.0)


@settings(max_examples=400, deadline=None)
@given(UNIT, UNIT, UNIT, st.floats(-12.0, 1.0), st.floats(0.0, 1e-4))
def test_no_bound_exceeds_its_closed_form(mean, deviation, height, exponent, rounding):
    largest, x = mean + height * (1.0 - mean), 10.0**exponent
    bound = two_moment_bound(mean, deviation * deviation, largest, x)
    roof = two_moment_roof(mean, (1.0 - rounding) * mean, deviation, largest, x, steepness(x))
    assert bound <= roof * (1.0 + 1e-12)


def test_the_closed_form_is_near_the_bound_and_is_the_mean_at_level_0():
    for mean, deviation, largest, x in [(0.1, 0.05, 0.2, 0.01), (0.12, 0.03, 0.25, 0.005), (0.3, 0.1, 0.6, 0.02)]:
        width = two_moment_bound(mean, deviation * deviation, largest, x) - mean
        roof = two_moment_roof(mean, mean, deviation, largest, x, steepness(x))
        assert width <= roof - mean <= 1.02 * width
    for deviation in (0.0, 0.3):
        assert two_moment_roof(0.2, 0.2, deviation, 0.9, 0.0, steepness(0.0)) == pytest.approx(0.2, abs=1e-15)


def environment_of(kind, rng, n_arms, n_items):
    p = rng.uniform(0.0, 0.5, (n_arms, n_items))
    if kind == "independent":
        return sa.environments.Bernoulli(p)
    if kind == "certain":  # only zeros and ones: ties everywhere
        return sa.environments.Bernoulli((p < 0.15).astype(float))
    return sa.environments.Comonotone(p)


@pytest.mark.parametrize("spread", [Triangle(), Covariance()], ids=["triangle", "covariance"])
@pytest.mark.parametrize("kind", ["independent", "certain", "comonotone"])
def test_the_sieve_plays_as_the_plain_policy_does(kind, spread):
    rng = np.random.default_rng(3)
    problem = sa.Problem(9, 4, sa.Coverage(), sa.Subsets(3), weights=rng.uniform(0.2, 2.0, 4))
    environment, index, marks = environment_of(kind, rng, 9, 4), KLMoss() if kind != "certain" else KL(), [0, 60]
    played = []
    for policy in (DirectionalPolicy(index, spread, sa.Greedy()), DirectionalSieve(index, spread, sa.Greedy())):
        run = begin(problem, environment, policy, np.random.SeedSequence(5))
        advance(problem, environment, policy, run, np.array(marks), np.zeros(1))
        played.append(run)
    for a, b in zip(played[0].tally, played[1].tally, strict=True):
        assert np.array_equal(a, b)
    assert played[0].last.tolist() == played[1].last.tolist()


def test_agents_agree_with_late_partial_and_restricted_play():
    rng = np.random.default_rng(6)
    problem = sa.Problem(9, 4, sa.Coverage(), sa.Subsets(3))
    policies = DirectionalPolicy(KL(), Triangle(), sa.Greedy()), DirectionalSieve(KL(), Triangle(), sa.Greedy())
    agents = [sa.Agent(problem, policy, seed=1) for policy in policies]
    p, waiting = rng.uniform(0.0, 0.6, (9, 4)), []
    for t in range(60):
        eligible = None if t % 5 else rng.permutation(9)[:5].tolist()
        first, second = (agent.ask(eligible) for agent in agents)
        assert first.action.tolist() == second.action.tolist()
        waiting.append((first.id, (rng.random((3, 4)) < p[first.action]).astype(float).reshape(-1)))
        while len(waiting) > t % 4:
            name, outcome = waiting.pop(int(rng.integers(len(waiting))))
            seen = rng.random(12) < 0.9 if t > 30 else np.ones(12, bool)
            for agent in agents:
                agent.tell(name, outcome, seen)
                if t % 7 == 1:
                    agent.untell(name, outcome, seen)
                    agent.tell(name, 1.0 - outcome)


def test_no_bound_exceeds_the_number_by_which_the_sieve_skips_arms():
    rng = np.random.default_rng(8)
    problem = sa.Problem(7, 5, sa.Coverage(), sa.Subsets(2), weights=rng.uniform(0.2, 2.0, 5))
    agent = sa.Agent(problem, DirectionalSieve(KLMoss(), Triangle(), sa.Greedy()), seed=0)
    fitted, memory, below = agent.learner.fitted, agent.learner.memory, 0
    for t in range(1, 50):
        decision = agent.ask()
        outcome = (rng.random((len(decision.action), 5)) < 0.4) * rng.choice([1.0, 0.7])
        agent.tell(decision, outcome)
        current = Round(t, agent.tally, Candidates(agent.tally.pulls, np.ones(7, bool)))
        point(problem, problem.weights * rng.uniform(0.0, 1.0, 5), agent.tally, memory.direction)
        _level_arms(fitted, problem, current, memory)
        raise_roofs(
            memory.roofs, memory.tiles, memory.direction, agent.tally.reference, float(np.mean(memory.sample.peak))
        )
        roof = memory.roofs.reach[:7]
        bounds = np.array([bound_arm(fitted, problem, current, memory, memory.direction, STREAM, j) for j in range(7)])
        assert np.all(bounds <= roof)
        below += int(np.sum(roof < bounds.max()))
    assert below > 50  # it does rule out arms


def test_fit_takes_the_sieve_for_large_dense_problems_with_subsets():
    policy = sa.directional_kl_moss()
    large, small = (sa.Problem(n, 30, sa.Coverage(), sa.Subsets(2)) for n in (100, 20))
    assert isinstance(policy.fit(large), DirectionalSieve)
    assert isinstance(plain(policy, large), DirectionalPolicy)
    assert plain(policy, large).oracle == policy.fit(large).oracle
    matroid = sa.PartitionMatroid(np.arange(100) % 2, [1, 1])
    for problem in (small, sa.Problem(100, 30, sa.Coverage(), matroid)):
        assert isinstance(policy.fit(problem), DirectionalPolicy)
