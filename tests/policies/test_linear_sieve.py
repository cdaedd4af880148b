"""The sieve of linear policies decides as the plain policy does, and eight systems at once have the bits of one."""

import numpy as np
import pytest

import superarm as sa
from superarm.policies.contextual import LinearPolicy, lane_algebra, linear_algebra
from superarm.policies.contextual.ridge import empty_ridge, no_correction, refresh
from superarm.policies.contextual.scoring import score_entries
from superarm.policies.fast.entry_tiles import bound_entries
from superarm.policies.fast.linear_sieve import LinearSieve
from superarm.simulation import context_table
from superarm.simulation.contextual import advance_run, begin_run

N_ARMS, N_ITEMS, D, K = 13, 3, 3, 4


def make(model=None, n_arms=N_ARMS, actions=None, pairs=0, reward=None):
    context = sa.Context(sa.Features(d=D), model=model or sa.models.Linear(), pairs=pairs)
    return sa.Problem(n_arms, N_ITEMS, reward or sa.Coverage(), actions or sa.Subsets(K), context=context)


def play(policy, problem, rounds, seed):
    rng = np.random.default_rng(seed)
    users = rng.uniform(-1, 1, (6, D))
    p = rng.uniform(0, 0.5, (6, N_ARMS, N_ITEMS)) * (rng.random((6, N_ARMS, N_ITEMS)) < 0.5)
    instance = sa.Instance(problem, context_table(problem, list(users), p, cascade=seed == 1))
    run, earned = begin_run(instance, policy, np.random.SeedSequence(seed)), np.zeros(1)
    advance_run(instance, policy, run, np.array([0, rounds]), earned)
    return run, earned[0]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("policy", [sa.vac2_ucb(), sa.vac2_ucb(0.0005), sa.vac2_ucb(1.0), sa.c2_ucb(0.05)])
def test_a_sieve_plays_as_the_plain_policy_does(policy, seed):
    problem = make()
    plain = policy.plain(problem)
    (slow, a), (fast, b) = play(plain, problem, 60, seed), play(LinearSieve(plain), problem, 60, seed)
    assert a == b
    for one, other in zip(slow.tally, fast.tally, strict=True):
        assert np.array_equal(one, other)
    assert not fast.memory.reaches.exact.all()  # some arms were ruled out by their bounds


def test_bounds_are_above_the_optimistic_parameters_and_close():
    problem = make()
    plain = sa.vac2_ucb(0.01).plain(problem)
    run, _ = play(LinearSieve(plain), problem, 40, 0)
    memory, rng = run.memory, np.random.default_rng(4)
    sieve = LinearSieve(plain)
    for _ in range(20):
        x = np.floor(rng.uniform(-1, 1, D) * 1024) / 1024
        agent = sa.Agent(problem, plain, seed=0)
        current = agent.learner.contexts.current_round(
            agent.learner, np.ones(N_ARMS, bool), problem.context.encode(x, sa.context.Frame(), N_ARMS), 40
        )
        estimates = empty_ridge(run.tally)
        refresh(estimates, run.tally, no_correction(run.tally), plain.ridge)
        score_entries(plain.design, problem.support, current, estimates, 1.5)
        sieve.parameters(problem, current._replace(tally=run.tally), memory, agent._choosing)  # writes the tiles
        bounds = np.zeros(len(estimates.q))
        bound_entries(memory.tiles, current.context.x, 1.5, bounds)
        exact = np.clip(estimates.q, 0, 1)
        assert (bounds >= exact).all()
        assert (bounds - exact).max() < 1e-3


def test_an_agent_with_a_sieve_decides_as_with_the_plain_policy():
    problem = make()
    plain = sa.vac2_ucb(0.01).plain(problem)
    agents = [sa.Agent(problem, policy, seed=5) for policy in (plain, LinearSieve(plain))]
    rng = np.random.default_rng(6)
    for _ in range(25):
        x, outcome = rng.uniform(-1, 1, D), (rng.random((K, N_ITEMS)) < 0.3).astype(float)
        decisions = [agent.ask(context=x) for agent in agents]
        assert np.array_equal(decisions[0].action, decisions[1].action)
        if rng.random() < 0.6:  # the others stay pending
            for agent, decision in zip(agents, decisions, strict=True):
                agent.tell(decision, outcome)
    assert str(agents[0].explain(decisions[0])) == str(agents[1].explain(decisions[1]))


def test_fit_takes_the_sieve_where_it_decides_alike():
    large = make(n_arms=700)
    assert isinstance(sa.vac2_ucb().fit(large), LinearSieve)
    for other in (make(), make(sa.models.Linear(shared="arms"), 700), make(n_arms=700, pairs=1)):
        assert isinstance(sa.vac2_ucb().fit(other), LinearPolicy)
    assert isinstance(sa.comb_lin_ts().fit(large), LinearPolicy)
    assert isinstance(sa.vac2_ucb(oracle=sa.Failing(sa.Greedy(), 1.0)).fit(large), LinearPolicy)


def test_eight_systems_at_once_have_the_bits_of_one():
    rng, d, lanes = np.random.default_rng(0), 5, lane_algebra.LANES
    size, total = d * (d + 1) // 2, np.zeros(lanes)
    rows = rng.normal(size=(lanes, 9, d))
    matrices = np.einsum("nkr,nkc->nrc", rows, rows) + 0.1 * np.eye(d)
    triangles = np.array([m[np.tril_indices(d)] for m in matrices])
    sides = rng.normal(size=(lanes, d))
    factor, x = triangles.T.copy().reshape(-1), sides.T.copy().reshape(-1)
    inverse_factor, inverse = np.zeros(size * lanes), np.zeros(size * lanes)
    lane_algebra.factorise_lanes(factor, d, total)
    lane_algebra.solve_lanes(factor, d, x, total)
    lane_algebra.invert_lanes(factor, d, inverse_factor, total)
    lane_algebra.square_lanes(inverse_factor, d, inverse)
    for n in range(lanes):
        one, solution, root, square = triangles[n].copy(), sides[n].copy(), np.zeros(size), np.zeros(size)
        linear_algebra.factorise(one, d, np.zeros(d))
        linear_algebra.solve_factor(one, d, solution)
        linear_algebra.invert_factor(one, d, root)
        linear_algebra.square_factor(root, d, square)
        assert np.array_equal(factor[n::lanes], one)
        assert np.array_equal(x[n::lanes], solution)
        assert np.array_equal(inverse[n::lanes], square)
        assert np.allclose(linear_algebra.unpack(square, d) @ matrices[n], np.eye(d), atol=1e-9)


def test_an_agent_may_play_other_arms_than_the_sieve_chose():
    problem = make()
    plain = sa.vac2_ucb(0.01).plain(problem)
    agents = [sa.Agent(problem, policy, seed=5) for policy in (plain, LinearSieve(plain))]
    rng = np.random.default_rng(6)
    for _ in range(8):
        x, outcome = rng.uniform(-1, 1, D), (rng.random((K, N_ITEMS)) < 0.3).astype(float)
        for agent in agents:
            agent.tell(agent.ask(context=x), outcome)
        weights = []
        for agent in agents:
            learner, contexts = agent.learner, agent.learner.contexts
            encoded = contexts.encode(problem, x, None)
            learner.choose(learner.t + 1, learner.playable(), agent._choosing, context=encoded)
            weights.append(contexts.decide(learner, np.arange(N_ARMS), encoded).weights)
        assert weights[0].tolist() == weights[1].tolist()
    assert len(set(weights[0].tolist())) > 1
