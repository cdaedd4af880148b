"""A tally that forgets, against one that is counted anew from what is remembered: the kernels as plain Python."""

import numpy as np
import pytest

import superarm as sa
from superarm.intake import Coin, Exact
from superarm.policies import Forgetting, learn, prepare
from superarm.simulation import seeds
from superarm.core.streams import run_streams
from superarm.core.tally import Feedback, allow_missing, empty

PROBLEM = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
WORLD = sa.environments.Switching(np.array([[[0.1, 0.2], [0.9, 0.8], [0.3, 0.1], [0.2, 0.2]]] * 2), [1, 30])


def told(rng, t):
    return Feedback(t, rng.permutation(4)[:2], rng.integers(0, 3, 4) / 2.0, rng.random(4) < 0.8)


@pytest.mark.parametrize(
    "policy", [sa.sliding_window(sa.cts(), 12, 4), sa.discounted(sa.cts(), 3)], ids=["window", "discount"]
)
def test_what_is_remembered_is_counted_exactly(policy):
    rng, ready = np.random.default_rng(0), policy.fit(PROBLEM)
    tally, (_, _, rounding_stream) = allow_missing(empty(PROBLEM.support)), run_streams(np.random.SeedSequence(0))
    memory = prepare(ready, PROBLEM, tally)
    history = [told(rng, t) for t in range(1, 50)]
    late = history[40::3]
    for feedback in [one for one in history if one not in late] + late[::-1]:  # some come late, in another order
        learn(ready, PROBLEM, tally, memory, feedback, rounding_stream, 1.0)
    learn(ready, PROBLEM, tally, memory, history[45], rounding_stream, -1.0)
    by_block = [allow_missing(empty(PROBLEM.support)) for _ in range(50)]
    for feedback in [*history[:45], *history[46:]]:
        one = sa.cts().plain(PROBLEM)
        block = by_block[(feedback.t - 1) // policy.block]
        learn(one, PROBLEM, block, prepare(one, PROBLEM, block), feedback, rounding_stream, 1.0)
    newest = 48 // policy.block
    for n, field in enumerate(memory.now):
        wanted = sum(w * by_block[newest - age][n] for age, w in enumerate(policy.weights) if newest >= age)
        assert field.tolist() == wanted.tolist()


def test_a_window_as_long_as_the_run_decides_as_the_policy_itself():
    instance = sa.Instance(PROBLEM, WORLD)
    policies = {"plain": sa.kl_moss(), "windowed": sa.sliding_window(sa.kl_moss(), 160)}
    results = sa.simulate(instance, policies, 80, replications=1, progress=False)
    assert results.regret["plain"].tolist() == results.regret["windowed"].tolist()


def test_an_agent_saved_and_grown_continues_as_the_simulation_plays():
    policy, root = sa.sliding_window(sa.kl_moss(), 16, blocks=4), seeds(0, 1)[0]
    results = sa.simulate(sa.Instance(PROBLEM, WORLD), {"w": policy}, 60, replications=1, progress=False)
    agent, pulls, environment = sa.Agent(PROBLEM, policy, seed=root), np.zeros(4), run_streams(root).environment
    for t in range(1, 61):
        decision, outcome = agent.ask(), np.empty(4)
        WORLD.draw(PROBLEM.support, decision.action.copy(), t, environment, outcome, np.ones(4, bool))
        agent.tell(decision, outcome.reshape(2, 2))
        pulls[decision.action] += 1.0
        if t == 25:
            agent = sa.Agent.from_state(agent.to_state())
    assert pulls.tolist() == results.pulls["w"][0].tolist()
    before = agent.learner.memory.now.pulls.tolist()
    agent.add_arms(1)
    assert agent.learner.memory.now.pulls.tolist() == [*before, 0.0]
    agent.warm_start(agent.problem.prior(np.full((5, 2), 0.5), 3))
    assert agent.learner.memory.now.pulls.tolist() == [n + 3.0 for n in [*before, 0.0]]
    assert 4 in agent.ask(pinned=[4]).action


def test_bad_windows_are_refused():
    with pytest.raises(sa.InvalidArgument, match="window"):
        sa.sliding_window(sa.kl_ucb(), 0)
    with pytest.raises(sa.InvalidArgument, match="half_life"):
        sa.discounted(sa.kl_ucb(), 2.5)
    with pytest.raises(sa.InvalidArgument, match="powers of 1/2"):
        Forgetting(sa.kl_ucb(), 3, np.array([1.0, 0.3]))


@pytest.mark.parametrize("forgetting", [lambda p: sa.sliding_window(p, 100), lambda p: sa.discounted(p, 50)])
def test_a_wrapped_policy_keeps_its_intake(forgetting):
    assert type(forgetting(sa.cts()).intake) is Coin
    assert type(forgetting(sa.EpsilonGreedy(sa.cts(), 0.1)).intake) is Coin
    assert type(forgetting(sa.EpsilonGreedy(sa.EpsilonGreedy(sa.cts()), 0.1)).intake) is Coin
    assert type(forgetting(sa.EpsilonGreedy(sa.kl_ucb())).intake) is Exact
    assert type(forgetting(sa.uniform()).intake) is Exact
