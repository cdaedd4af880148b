"""IMM keeps its promise: at least (1 - 1/e - epsilon) of the best, but for one call in n**ell.

Calls on 24 random graphs of eight nodes, each against the best pair by enumeration of all live-edge graphs. A sound
oracle fails one call with probability at most 1/8 by its promise; more than 12 failures of 24 have probability below
1e-5. (It fails none here: greedy coverage of many sets is far better than promised.)
"""

import numpy as np
import pytest
from scipy import sparse

import superarm as sa
from superarm.environments import IndependentCascade
from superarm.oracles import Default
from superarm.core.streams import new_stream

N, K = 8, 2


def random_graph(seed):
    rng = np.random.default_rng(seed)
    edges = rng.choice(N * N, 8, replace=False)
    table = np.zeros(N * N)
    table[edges] = rng.uniform(0.05, 0.95, 8)
    return sparse.csr_array(table.reshape(N, N) * (1.0 - np.eye(N)))


def test_the_promise_against_brute_force():
    failed = 0
    for seed in range(24):
        p, weights = random_graph(seed), np.random.default_rng(seed).uniform(0.1, 2.0, N)
        problem = sa.Problem(N, N, sa.Spread(), sa.Subsets(K), weights, p)
        instance = sa.Instance(problem, IndependentCascade(p, weights))
        most = max(instance.value(list(batch)) for batch in problem.actions.batches(N))
        oracle = sa.IMM(0.3).fit(problem)
        found = oracle.maximize(
            problem, problem.entries(p), problem.candidates(), new_stream(np.random.SeedSequence(seed))
        )
        failed += instance.value(found) < oracle.guarantee(problem).alpha * most
    assert failed <= 12


def test_the_guarantee_is_the_theorem_s():
    p = random_graph(0)
    problem = sa.Problem(N, N, sa.Spread(), sa.Subsets(K), support=p)
    assert sa.IMM(0.2, 2.0).guarantee(problem) == (pytest.approx(1 - 1 / np.e - 0.2), pytest.approx(1 - 1 / 64))
    assert type(Default().fit(problem)) is sa.IMM


def test_only_eligible_nodes():
    p = random_graph(1)
    problem = sa.Problem(N, N, sa.Spread(), sa.Subsets(3), support=p)
    candidates = problem.candidates()
    candidates.eligible[:6] = False
    q = problem.entries(p)
    found = sa.IMM().fit(problem).maximize(problem, q, candidates, new_stream(np.random.SeedSequence(0)))
    assert sorted(found) == [6, 7]  # no more than are eligible


def test_what_does_not_fit_is_refused():
    with pytest.raises(sa.InvalidArgument, match="epsilon"):
        sa.IMM(0.7)
    with pytest.raises(sa.InvalidArgument, match="Spread"):
        sa.IMM().fit(sa.Problem(3, 3, sa.Coverage(), sa.Subsets(1)))
