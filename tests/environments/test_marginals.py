"""What every environment owes: exact marginals, and outcomes that hang on seed, round and arm alone.

Fixed seeds. Frequencies may be off by 5.2 standard errors or have an exact p-value of 2e-7: a true environment
fails one comparison with probability below 2e-7, and there are fewer than 200.
"""

import numpy as np
import pytest
from scipy import sparse, stats

from superarm.environments import Bernoulli, Beta, CommonShock, Comonotone, Copula, Replay, draw
from superarm.core.streams import new_stream
from superarm.core.support import Dense, Sparse, length

pytestmark = pytest.mark.compiled("too many rounds for plain Python")

P = np.array([[0.0, 0.02, 0.3], [0.5, 0.5, 0.7], [0.3, 0.98, 1.0], [0.3, 0.5, 0.9]])
N = 20_000

BINARY = {
    "bernoulli": Bernoulli(P),
    "copula of items": Copula(P, items=0.6),
    "copula of all kinds": Copula(P, arms=0.3, items=0.4, all=0.3),
    "common shock": CommonShock(P, 0.4),
    "full shock": CommonShock(P),
    "comonotone": Comonotone(P),
}
WORLDS = {**BINARY, "beta": Beta(P, 2.0)}


def played(environment, rounds, action=(0, 1, 2, 3), seed=0, support=None):
    """Outcomes (len(rounds), n) of ``action``, laid flat."""
    support = support or Dense(*P.shape)
    action, source = np.array(action), new_stream(np.random.SeedSequence(seed))
    outcome, seen = np.full((len(rounds), length(support, action)), np.nan), np.ones(12, bool)
    for row, t in zip(outcome, rounds, strict=True):
        draw(environment, support, action, t, source, row, seen)
    assert seen.all()
    return outcome


@pytest.mark.parametrize("environment", BINARY.values(), ids=BINARY)
def test_binary_marginals_are_exact(environment):
    outcome = played(environment, range(1, N + 1))
    assert set(np.unique(outcome)) <= {0.0, 1.0}
    assert np.array_equal(environment.means(1), P)
    for hits, p in zip(outcome.sum(axis=0), P.ravel(), strict=True):
        assert stats.binomtest(int(hits), N, p).pvalue > 2e-7


@pytest.mark.parametrize("environment", WORLDS.values(), ids=WORLDS)
def test_rounds_are_independent(environment):
    outcome = played(environment, range(1, 5001))
    for column in outcome.T[outcome.std(axis=0) > 0.0]:
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 5.2 / np.sqrt(4999)


@pytest.mark.parametrize("environment", WORLDS.values(), ids=WORLDS)
def test_common_random_numbers(environment):
    everyone = played(environment, range(1, 60)).reshape(-1, 4, 3)
    assert everyone.std(axis=0).max() > 0.0
    for action in ([2], [3, 0], [1, 3, 2]):
        part = played(environment, range(1, 60), action).reshape(-1, len(action), 3)
        assert np.array_equal(part, everyone[:, action])
    later = played(environment, range(59, 0, -1)).reshape(-1, 4, 3)  # in another order of rounds
    assert np.array_equal(later[::-1], everyone)
    assert not np.array_equal(played(environment, range(1, 60), seed=1).reshape(-1, 4, 3), everyone)


@pytest.mark.parametrize("environment", WORLDS.values(), ids=WORLDS)
def test_sparse_worlds_have_the_same_marginals(environment):
    thin = Sparse(sparse.csr_array(P > 0.0))  # eleven entries
    mine = environment._replace(p=P[P > 0.0])
    outcome = played(mine, range(1, 4001), support=thin)
    assert outcome.shape == (4000, 11)
    spread = np.sqrt(P * (1.0 - P))[P > 0.0]
    assert (np.abs(outcome.mean(axis=0) - P[P > 0.0]) <= 5.2 * spread / np.sqrt(4000)).all()


def test_parameters_may_be_sparse():
    assert Bernoulli(sparse.csr_array(np.array([[0.0, 0.5], [0.25, 0.0]]))).p.tolist() == [0.5, 0.25]


def test_replay_plays_the_table_over_and_over():
    table = np.random.default_rng(0).random((3, 4, 3))
    environment = Replay(table)
    outcome = played(environment, range(1, 8), [2, 0]).reshape(7, 2, 3)
    for t in range(1, 8):
        assert np.array_equal(outcome[t - 1], table[(t - 1) % 3][[2, 0]])
    assert environment.means(5) == pytest.approx(table.mean(axis=0), rel=1e-15)


def test_replay_of_a_sparse_problem_holds_entries():
    thin = Sparse(sparse.csr_array(np.array([[1, 0, 1], [0, 1, 0]])))
    environment = Replay([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    assert played(environment, [2, 3], [1, 0], support=thin).tolist() == [[0.6, 0.4, 0.5], [0.3, 0.1, 0.2]]
    assert environment.means(1) == pytest.approx([0.25, 0.35, 0.45])


def test_replay_keeps_its_own_copy():
    table = np.zeros((1, 2, 1))
    environment = Replay(table)
    table[:] = 1.0
    assert not environment.table.any()
