"""C³-UCB with position discounts, against the sums written down by hand."""

import numpy as np
import pytest

import superarm as sa
from superarm.simulation import context_table
from superarm.simulation.contextual import advance_run, begin_run

N_ARMS, K, DISCOUNT = 6, 3, 0.75
Z = np.round(np.random.default_rng(5).uniform(-1, 1, (N_ARMS, 2)) * 64) / 64
SHARES = np.array([1.0, 0.5625, 0.3125])  # 1, 9/16, and 81/256 as the nearest multiple of 1/16


def make_problem():
    context = sa.Context(sa.Features(), arms=Z, model=sa.models.Linear(shared=True))
    return sa.Problem(N_ARMS, 1, sa.Coverage(), sa.Subsets(K), context=context)


def test_observations_further_down_weigh_less_in_both_sums():
    agent, rng = sa.Agent(make_problem(), sa.c3_ucb(0.3, discount=DISCOUNT)), np.random.default_rng(0)
    g, b = np.zeros((3, 3)), np.zeros(3)
    fitted = agent.learner.fitted
    for t in range(1, 20):
        decision = agent.ask()
        phi = np.column_stack([np.ones(N_ARMS), Z])
        inverse = np.linalg.inv(g + fitted.ridge * np.eye(3))
        width = np.sqrt(np.einsum("nr,rc,nc->n", phi, inverse, phi))
        k = int(np.ceil(sum(DISCOUNT ** (2 * n) for n in range(K))))
        bonus = 2 * 0.3 * (np.sqrt(3 * np.log(1 + k * t / 3) + 2 * np.log(t)) + 1.0)
        expected = np.clip(phi @ inverse @ b + bonus * width, 0.0, 1.0)
        np.testing.assert_allclose(agent.learner.memory.q, expected, atol=1e-9)
        assert (np.diff(expected[decision.action]) <= 1e-12).all()
        outcome, seen = rng.integers(0, 2, (K, 1)).astype(float), np.arange(K)[:, None] <= rng.integers(0, K)
        agent.tell(decision, outcome, seen)
        for place, arm in enumerate(decision.action):
            if seen[place, 0]:
                g += 4.0 * SHARES[place] * np.outer(phi[arm], phi[arm])
                b += 4.0 * SHARES[place] * phi[arm] * outcome[place, 0]
        np.testing.assert_array_equal(agent.tally.precision[0], g[np.tril_indices(3)])
        np.testing.assert_array_equal(agent.tally.response[0], b)


@pytest.mark.parametrize("wrap", [lambda policy: policy, lambda policy: sa.sliding_window(policy, 100, 4)])
def test_a_simulated_run_is_that_of_an_agent(wrap):
    problem, policy = make_problem(), wrap(sa.c3_ucb(0.3, discount=DISCOUNT))
    p = np.random.default_rng(1).uniform(0.1, 0.6, (1, N_ARMS, 1))
    instance = sa.Instance(problem, context_table(problem, [{}], p, cascade=True))
    agent = sa.Agent(problem, policy)
    fitted = agent.learner.fitted
    run = begin_run(instance, fitted, np.random.SeedSequence(4))
    for t in range(1, 16):
        before = run.tally.pulls.copy(), run.tally.total.copy()
        advance_run(instance, fitted, run, np.array([t - 1, t]), np.zeros(1))
        decision = agent.ask()
        assert decision.action.tolist() == run.last.tolist()
        seen, outcome = ((now - then)[decision.action, None] for now, then in zip(run.tally[:2], before, strict=True))
        agent.tell(decision, outcome, seen > 0.0)
    np.testing.assert_array_equal(run.tally.precision, agent.tally.precision)
    assert (run.tally.precision % 4.0).any()


def test_a_wrong_discount_is_refused():
    with pytest.raises(sa.InvalidArgument, match=r"LinearPolicy\.discount: 0"):
        sa.c3_ucb(discount=0.0)
