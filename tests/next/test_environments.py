"""Environments draw for a key what the compiled engine drew, dense and sparse; their means and rewards are right."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as old
from superarm.environments import respond
from superarm import environments as new
from superarm.actions import Subsets
from superarm.core.problem import Problem
from superarm.rewards import Coverage
from superarm.core.streams import Stream

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


def both(name, is_sparse):
    arguments = (ANY_SUPPORT | DENSE)[name]
    if is_sparse:
        tables = [sparse(a) if isinstance(a, np.ndarray) and a.shape == P.shape else a for a in arguments]
        support = sparse(np.ones((6, 4)))
    else:
        tables, support = arguments, None
    problem = Problem(6, 4, Coverage(), Subsets(3), [1.0, 0.5, 2.0, 0.3], support)
    earlier = old.Problem(6, 4, old.Coverage(), old.Subsets(3), [1.0, 0.5, 2.0, 0.3], support)
    return problem, getattr(new, name)(*tables), earlier, getattr(old.environments, name)(*tables)


@pytest.mark.parametrize(("name", "is_sparse"), CASES)
def test_draws_are_those_of_the_compiled_engine(name, is_sparse):
    problem, environment, earlier, reference = both(name, is_sparse)
    actions = np.array([[0, 3, 5], [2, 1, -1], [4, 0, 1], [5, -1, -1], [1, 2, 3]])
    for t in (1, 7, 40):
        answer = environment.draw(problem, actions, t, KEYS)
        for r, action in enumerate(actions):
            played = action[action >= 0]
            feedback = respond(reference, earlier.support, played, t, Stream(KEYS[r : r + 1], KEYS[r : r + 1].copy()))
            rows, marks = [], []
            for k, j in enumerate(played):
                width = int(MASK[j].sum()) if is_sparse else 4
                rows.append(answer.outcome[r, k, :width])
                marks.append(np.ones(width, bool) if answer.seen is None else answer.seen[r, k, :width])
            np.testing.assert_allclose(np.concatenate(rows), feedback.outcome, rtol=0, atol=1e-15)
            np.testing.assert_array_equal(np.concatenate(marks), feedback.seen)


@pytest.mark.parametrize(("name", "is_sparse"), CASES)
def test_means_and_expected_rewards_are_those_of_the_compiled_engine(name, is_sparse):
    problem, environment, earlier, reference = both(name, is_sparse)
    instance = old.Instance(earlier, reference)
    batches = np.array(list(itertools.combinations(range(6), 3))[::4])
    ours = environment.expected(problem, batches, 1)
    np.testing.assert_allclose(ours, [instance.value(batch) for batch in batches], rtol=1e-12)
    for t in (1, 6):
        flat = problem.support.to_user(environment.means(problem, t)[0]).reshape(-1)
        np.testing.assert_allclose(flat, earlier.entries(reference.means(t)), rtol=1e-14)
    if environment.own_reward:
        np.testing.assert_allclose(environment.best(problem), reference.best(earlier), rtol=1e-12)


def test_beta_outcomes_have_their_mean_and_variance():
    """20,000 draws of each of four entries: means within 4 standard errors (false alarms: 3 in 10,000)."""
    p = np.array([[0.02, 0.5], [0.9, 1.0]])
    problem = Problem(2, 2, Coverage(), Subsets(2))
    environment, keys = new.Beta(p, 4.0), np.arange(20_000).astype(np.uint64)
    x = environment.draw(problem, np.tile([0, 1], (20_000, 1)), 1, keys).outcome
    error = np.sqrt(p * (1.0 - p) / 5.0 / 20_000)
    assert (np.abs(x.mean(0) - p) <= 4.0 * error).all()
    np.testing.assert_allclose(x.var(0), p * (1.0 - p) / 5.0, rtol=0.1)


def test_free_samples_show_every_arm_alone():
    environment = new.FreeSamples(new.Cascade(P), 2)
    assert (environment.free_samples, environment.partial, environment.own_reward) == (2, True, False)
