"""The design effect against its formula, and the policy that rests on it."""

import numpy as np
import pytest

import superarm as sa
from superarm.indices import AnglePosterior, KLMoss
from superarm.indices.kl_bound import upper_confidence
from superarm.policies import JointPolicy
from superarm.policies.dependence import dependence, effects
from superarm.simulation import seeds

PROBLEM = sa.Problem(4, 3, sa.Coverage(), sa.Subsets(2), weights=[1.0, 2.0, 0.5])


def history(rng, dependent):
    """A few hundred pulls: arms, outcomes (n, 3), and what was seen of them."""
    arms = rng.integers(0, 4, 300)
    uniform = rng.random((300, 1)) if dependent else rng.random((300, 3))
    return arms, (uniform < [[0.2, 0.3, 0.4]]) * rng.choice([1.0, 0.5], (300, 1)), rng.random((300, 3)) < 0.9


def ratio(part, whole, pulls, pooled, own):
    common = np.clip((pooled + pulls.sum() * part.sum() / whole.sum()) / (pooled + pulls.sum()), 0.0, 1.0)
    prior = own * (whole + whole.sum() / pulls.sum()) / (pulls + 1.0)
    return np.clip((prior * common + part) / (prior + whole), 0.0, 1.0)


@pytest.mark.parametrize("dependent", [False, True])
def test_the_effect_is_its_formula(dependent):
    arms, outcomes, seen = history(np.random.default_rng(3), dependent)
    weights = np.array([1.0, 2.0, 0.0])
    eta = effects(PROBLEM, dependence(PROBLEM, PROBLEM.past(arms, outcomes, seen)), weights, 20.0, 5.0)
    pulls, excess, room, actual, nominal, least = (np.zeros(4) for _ in range(6))
    for j in range(4):
        x, mask = outcomes[arms == j], seen[arms == j]
        parts = [x[mask[:, i], i] for i in range(3)]
        v, m = np.array([p.var() for p in parts]), np.array([p.mean() for p in parts])
        whole = x[mask.all(axis=1)].mean(axis=1)
        pulls[j] = len(whole)
        excess[j] = len(whole) * (9.0 * whole.var() - v.sum())
        room[j] = len(whole) * (np.sqrt(v).sum() ** 2 - v.sum())
        actual[j], nominal[j] = len(whole) * v.sum(), len(whole) * (m * (1.0 - m)).sum()
        smooth = np.array([(p.sum() + 0.5) / (len(p) + 1.0) for p in parts])
        s = weights * np.sqrt(smooth * (1.0 - smooth))
        least[j] = (s**2).sum() / s.sum() ** 2
    rho = ratio(excess, room, pulls, 20.0, 5.0)
    phi = ratio(actual, nominal, pulls, 20.0, 5.0)
    assert eta == pytest.approx(phi * (rho + (1.0 - rho) * least), rel=1e-5)
    assert (eta > 0.5).all() if dependent else (eta < 0.7).all()


def test_nothing_seen_whole_leaves_the_index_as_it_is():
    seen = dependence(PROBLEM, PROBLEM.prior(np.full((4, 3), 0.5), 10))
    assert effects(PROBLEM, seen, PROBLEM.weights, 100.0, 50.0).tolist() == [1.0] * 4


def test_the_score_lies_between_the_mean_and_the_plain_index():
    arms, outcomes, _ = history(np.random.default_rng(4), False)
    tally = PROBLEM.past(arms, outcomes)
    agent = sa.Agent(PROBLEM, sa.joint_kl_moss(), tally=tally)
    agent.learner.asked = 10**4  # so that all are owed exploration
    agent.ask()
    mean, _, q = (values.reshape(4, 3) for values in agent.learner.memory.estimates)
    for j in range(4):
        x = KLMoss().level(tally.pulls[j], 10**4 + 1, 0.5)
        assert all(m < low < upper_confidence(m, x) for m, low in zip(mean[j], q[j], strict=True))


def test_a_simulated_run_and_an_agent_agree_to_the_bit_over_a_saved_state():
    instance = sa.instances.random_coverage(n_arms=5, n_items=3, k=2)
    results = sa.simulate(instance, {"joint": sa.joint_kl_moss()}, 60, replications=1, rounds=[60], progress=False)
    agent, pulls = sa.Agent(instance.problem, sa.joint_kl_moss(), seed=seeds(0, 1)[0]), np.zeros(5)
    environment = sa.simulation.begin(
        instance.problem, instance.environment, agent.policy, seeds(0, 1)[0]
    ).streams.environment
    for t in range(1, 61):
        decision = agent.ask()
        outcome = np.empty(6)
        instance.environment.draw(
            instance.problem.support, decision.action.copy(), t, environment, outcome, np.ones(6, bool)
        )
        agent.tell(decision, outcome.reshape(2, 3))
        pulls[decision.action] += 1.0
        agent = sa.Agent.from_state(agent.to_state()) if t == 30 else agent
    assert pulls.tolist() == results.pulls["joint"][0].tolist()


def test_a_sampled_index_has_no_radius_to_scale():
    with pytest.raises(sa.InvalidArgument, match="sampled index"):
        JointPolicy(AnglePosterior()).fit(PROBLEM)
