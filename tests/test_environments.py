"""Environments: draws are as recorded, their means are right, dense and sparse."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from superarm import environments
from superarm.actions import Subsets
from superarm.problem import Problem
from superarm.rewards import Coverage
from tests.recorded import recorded

rng = np.random.default_rng(3)
P, OTHER = rng.uniform(0.05, 0.95, (6, 4)), rng.uniform(size=(6, 4))
MASK = rng.random((6, 4)) < 0.6
MASK[:, 0] = True
KEYS = rng.integers(0, 2**63, 5).astype(np.uint64)
BLOCK = [[1, 1, 0, -1], [0, 0, 0, 0], [2, -2, 1, 1], [1, 1, 1, 1], [0, 3, 3, 0], [-1, 1, 0, 0]]

ANY_SUPPORT = {
    "Bernoulli": (P,),
    "Comonotone": (P,),
    "CommonShock": (P, 0.4),
    "Copula": (P, 0.3, 0.2, 0.1),
    "Swinging": (P, OTHER, 50.0, 3),
    "Cascade": (P,),
    "ConjunctiveCascade": (P,),
    "DependentClick": (P, [0.9, 0.5]),
    "PositionBased": (P, [0.9, 0.5, 0.2]),
}
DENSE = {
    "Blocks": (P, BLOCK, [0.0, 0.3, 0.5, 0.0, 0.2, 0.9], OTHER),
    "Cohorts": (rng.random((11, 6)), [0, 3, 4, 8, 11]),
    "Replay": (rng.random((7, 6, 4)),),
    "Switching": ([P, OTHER], [1, 5]),
}
CASES = [(name, False) for name in (*ANY_SUPPORT, *DENSE)] + [(name, True) for name in ANY_SUPPORT]


def sparse(values):
    return csr_array((values[MASK], np.nonzero(MASK)), shape=values.shape)


def make(name, is_sparse):
    """The problem, and the environment on it."""
    arguments, support = (ANY_SUPPORT | DENSE)[name], None
    if is_sparse:
        arguments = [sparse(a) if isinstance(a, np.ndarray) and a.shape == P.shape else a for a in arguments]
        support = sparse(np.ones((6, 4)))
    problem = Problem(6, 4, Coverage(), Subsets(3), [1.0, 0.5, 2.0, 0.3], support)
    return problem, getattr(environments, name)(*arguments)


@pytest.mark.parametrize(("name", "is_sparse"), CASES)
def test_draws_are_as_recorded(name, is_sparse, request):
    """For a seed the outcomes are always the same: their sum and how many are seen, batch by batch."""
    problem, environment = make(name, is_sparse)
    actions, found = np.array([[0, 3, 5], [2, 1, -1], [4, 0, 1], [5, -1, -1], [1, 2, 3]]), []
    for t in (1, 7, 40):
        answer = environment.draw(problem, actions, t, KEYS)
        for r, action in enumerate(actions):
            widths = [int(MASK[j].sum()) if is_sparse else 4 for j in action if j >= 0]
            rows = [answer.outcome[r, k, :width] for k, width in enumerate(widths)]
            marks = [answer.seen[r, k, :width] for k, width in enumerate(widths)] if answer.seen is not None else rows
            seen = np.concatenate(marks).sum() if answer.seen is not None else sum(widths)
            found += [float(np.concatenate(rows).sum()), float(seen)]
    assert found == pytest.approx(np.ravel(recorded(request)).tolist(), abs=1e-8)


def test_a_replay_repeats_its_table():
    table = np.arange(24.0).reshape(2, 3, 4) / 24.0
    problem, environment = Problem(3, 4, Coverage(), Subsets(2)), environments.Replay(table)
    for t in (1, 2, 3, 8):
        outcome = environment.draw(problem, np.array([[2, 0]]), t, KEYS[:1]).outcome
        np.testing.assert_array_equal(outcome[0], table[(t - 1) % 2, [2, 0]])
    np.testing.assert_allclose(problem.support.to_user(environment.means(problem, 5)[0]), table.mean(0))


@pytest.mark.parametrize(("name", "is_sparse"), [case for case in CASES if case[0] != "Replay"])
def test_outcomes_average_to_the_means_and_rewards_to_the_expected_ones(name, is_sparse):
    """4,000 replications: within five standard errors, for each of at most 24 entries (false alarms: 1e-5 a case)."""
    problem, environment = make(name, is_sparse)
    n, t = 4000, 6
    keys = np.random.default_rng(8).integers(0, 2**63, n).astype(np.uint64)
    means, widths = environment.means(problem, t), MASK.sum(1) if is_sparse else np.full(6, 4)
    for batch in ([0, 3, 5], [2, 1, 4]):
        action = np.tile(batch, (n, 1))
        answer = environment.draw(problem, action, t, keys)
        expected = problem.support.rows(means, action[:1])[0]
        for k, j in enumerate(batch):
            average = answer.outcome[:, k, : widths[j]].mean(0)
            assert np.abs(average - expected[k, : widths[j]]).max() < 5.0 * 0.5 / np.sqrt(n)
        if not environment.own_reward:
            reward = environment.expected(problem, action[:1], t)[0]
            assert reward == pytest.approx(problem.values(means, action[:1])[0])


def test_free_samples_show_every_arm_alone():
    environment = environments.FreeSamples(environments.Cascade(P), 2)
    assert (environment.free_samples, environment.partial, environment.own_reward) == (2, True, False)
