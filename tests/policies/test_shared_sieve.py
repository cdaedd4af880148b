"""The sieve of linear policies with a shared model decides as the plain policy does."""

import numpy as np
import pytest

import superarm as sa
from superarm.policies.contextual import LinearPolicy
from superarm.policies.fast import shared_sieve
from superarm.policies.fast.shared_sieve import SharedSieve
from superarm.rewards import gain, initial_states, join_arm
from superarm.simulation import context_table
from superarm.simulation.contextual import advance_run, begin_run

N_ARMS, D, K = 130, 2, 4


def make(n_items=3, model=None, n_arms=N_ARMS, interactions=True, weights=None, reward=None, actions=None, pairs=0):
    rng = np.random.default_rng(n_arms)
    arms = rng.uniform(-1, 1, (n_arms, 3)) if model is None else None
    model = model or sa.models.Linear(shared=True)
    context = sa.Context(sa.Features(d=D), arms, model, interactions, pairs)
    reward, actions = sa.Coverage() if reward is None else reward, actions or sa.Subsets(K)
    return sa.Problem(n_arms, n_items, reward, actions, weights=weights, context=context)


def play(policy, problem, rounds, seed):
    rng = np.random.default_rng(seed)
    users = rng.uniform(-1, 1, (4, D))
    shape = (4, problem.n_arms, problem.n_items)
    p = rng.uniform(0, 0.5, shape) * (rng.random(shape) < 0.4)
    instance = sa.Instance(problem, context_table(problem, list(users), p, cascade=seed == 1))
    run, earned = begin_run(instance, policy, np.random.SeedSequence(seed)), np.zeros(1)
    advance_run(instance, policy, run, np.array([0, rounds]), earned)
    return run, earned[0]


@pytest.mark.parametrize(
    ("policy", "change"),
    [
        (sa.vac2_ucb(), {}),
        (sa.vac2_ucb(0.0005), {"weights": [2.0, 0.5, 1.0]}),
        (sa.vac2_ucb(0.0), {"interactions": False}),
        (sa.vac2_ucb(1.0), {"n_arms": 70}),
        (sa.c2_ucb(0.05), {"n_items": 1}),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_sieve_plays_as_the_plain_policy_does(policy, change, seed):
    problem = make(**change)
    plain = policy.plain(problem)
    (slow, a), (fast, b) = play(plain, problem, 16, seed), play(SharedSieve(plain), problem, 16, seed)
    assert a == b
    for one, other in zip(slow.tally, fast.tally, strict=True):
        assert np.array_equal(one, other)
    assert not fast.memory.reaches.exact.all()  # some arms were ruled out by their bounds


def test_few_arms_are_evaluated_once_something_is_known():
    problem = make()
    run, _ = play(SharedSieve(sa.vac2_ucb(0.005).plain(problem)), problem, 40, 0)
    assert K <= run.memory.reaches.exact.sum() < N_ARMS / 5


@pytest.mark.parametrize("change", [{}, {"weights": [2.0, 0.5, 1.0]}, {"n_items": 1}])
def test_bounds_are_above_all_gains_and_close(change, monkeypatch):
    problem = make(**change)
    plain = sa.vac2_ucb(0.01).plain(problem)
    run, _ = play(SharedSieve(plain), problem, 30, 0)
    agent = sa.Agent(problem, plain, seed=0)
    bound, seen = shared_sieve._bound_gains, []

    def bound_and_keep(memory, sums):
        bound(memory, sums)
        seen.append(memory.reaches.arm.copy())

    monkeypatch.setattr(shared_sieve, "_bound_gains", bound_and_keep)
    encoded = problem.context.encode([0.25, -0.5], sa.context.Frame(), N_ARMS)
    contexts = agent.learner.contexts
    current = contexts.current_round(agent.learner, np.ones(N_ARMS, bool), encoded, 31)
    current = current._replace(tally=run.tally, t=31)
    sieve, stream = SharedSieve(plain), agent._choosing
    action = sieve.choose(problem, current, run.memory, stream)
    _, optimistic = plain.parameters(problem, current, plain.prepare(problem, run.tally), stream)
    states, joined = initial_states(problem.reward, problem.terms), []
    for reach, j in zip(seen, action, strict=True):
        gains = np.array([gain(problem.reward, problem.terms, states, optimistic, arm) for arm in range(N_ARMS)])
        free = np.setdiff1d(np.arange(N_ARMS), joined)
        assert (reach[free] >= gains[free]).all()
        assert (
            np.median(reach[free] - gains[free]) < 1e-3 * gains.max()
        )  # that of an arm with estimates below 0 is wide
        join_arm(problem.reward, problem.terms, states, optimistic, j)
        joined.append(j)


def test_an_agent_with_a_sieve_decides_as_with_the_plain_policy():
    problem = make()
    plain = sa.vac2_ucb(0.01).plain(problem)
    agents = [sa.Agent(problem, policy, seed=5) for policy in (plain, SharedSieve(plain))]
    rng = np.random.default_rng(6)
    for _ in range(15):
        x, outcome = rng.uniform(-1, 1, D), (rng.random((K, 3)) < 0.3).astype(float)
        some = np.flatnonzero(rng.random(N_ARMS) < 0.5).tolist()
        decisions = [agent.ask(context=x, eligible=some) for agent in agents]
        assert np.array_equal(decisions[0].action, decisions[1].action)
        if rng.random() < 0.6:  # the others stay pending
            for agent, decision in zip(agents, decisions, strict=True):
                agent.tell(decision, outcome)
        weights = [
            agent.learner.contexts.decide(
                agent.learner, np.array(some[:9]), agent._decisions.known(d.id).context.encoded
            )
            for agent, d in zip(agents, decisions, strict=True)
        ]
        assert weights[0].weights.tolist() == weights[1].weights.tolist()
    assert str(agents[0].explain(decisions[0])) == str(agents[1].explain(decisions[1]))


def test_fit_takes_the_sieve_where_it_decides_alike():
    assert isinstance(sa.vac2_ucb().fit(make(n_arms=700)), SharedSieve)
    others = [
        make(),
        make(n_arms=700, model=sa.models.Linear(shared="arms")),
        make(n_arms=700, pairs=1),
        make(n_arms=700, reward=sa.Linear()),
        make(n_arms=700, actions=sa.PartitionMatroid([0] * 350 + [1] * 350, [2, 2])),
    ]
    for other in others:
        assert isinstance(sa.vac2_ucb().fit(other), LinearPolicy)
    assert isinstance(sa.comb_lin_ts().fit(make(n_arms=700)), LinearPolicy)
    assert isinstance(sa.vac2_ucb()._replace(discount=0.9).fit(make(n_arms=700)), LinearPolicy)
