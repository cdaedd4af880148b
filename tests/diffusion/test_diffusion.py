"""Forward worlds, reverse-reachable sets and enumeration tell the same spread: that of the live-edge graphs.

Fixed seeds. A mean over n worlds may be off by five standard errors: a true one fails with probability below 6e-7.
"""

import itertools

import numpy as np
import pytest
from scipy import sparse

import superarm as sa
from superarm.candidates import Candidates
from superarm.diffusion import (
    Network,
    by_node,
    condense,
    covered,
    exact_sets,
    expected_spread,
    reverse,
    sample_sets,
    select,
)
from superarm.environments import IndependentCascade, respond
from superarm.core.streams import new_stream
from superarm.core.support import Sparse

EDGES = [(0, 1, 0.5), (0, 2, 0.3), (1, 3, 0.9), (2, 3, 0.4), (3, 4, 0.6), (4, 0, 0.7), (5, 4, 1.0), (2, 5, 0.2)]
N = 6
P = sparse.csr_array(([p for _, _, p in EDGES], ([u for u, _, _ in EDGES], [v for _, v, _ in EDGES])), shape=(N, N))
GRAPH, CHANCE = Sparse(P), sparse.csr_array(P).data
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 0.0])
SEEDS = [np.array(s) for s in ([0], [5], [2, 1], [0, 3, 5])]


def true_spread(seeds):
    """By brute force over the live-edge graphs."""
    total = 0.0
    for live in itertools.product((0, 1), repeat=len(EDGES)):
        chance = np.prod([p if on else 1.0 - p for on, (_, _, p) in zip(live, EDGES, strict=True)])
        reached, grew = {int(s) for s in seeds}, True
        while grew:
            more = {v for on, (u, v, _) in zip(live, EDGES, strict=True) if on and u in reached} - reached
            reached, grew = reached | more, bool(more)
        total += chance * WEIGHTS[list(reached)].sum()
    return total


def test_enumerated_sets_give_the_spread_exactly():
    sets, worth = exact_sets(GRAPH, CHANCE, WEIGHTS)
    held = by_node(sets, N)
    for seeds in SEEDS:
        assert covered(held, worth, seeds) == pytest.approx(true_spread(seeds), rel=1e-12)
    assert worth.sum() == pytest.approx(WEIGHTS.sum())


def test_sampled_sets_and_forward_worlds_agree_with_it():
    n = 5_000
    sets = sample_sets(Network(reverse(GRAPH), CHANCE, WEIGHTS), n, new_stream(np.random.SeedSequence(1)))
    worth = np.full(n, WEIGHTS.sum() / n)
    for seeds in SEEDS:
        share = true_spread(seeds) / WEIGHTS.sum()
        error = WEIGHTS.sum() * np.sqrt(share * (1.0 - share) / n)
        assert abs(covered(by_node(sets, N), worth, seeds) - true_spread(seeds)) <= 5.0 * error
        forward = expected_spread(GRAPH, CHANCE, WEIGHTS, seeds, 4000)
        assert abs(forward - true_spread(seeds)) <= 5.0 * WEIGHTS.sum() / 2.0 / np.sqrt(4000)


def test_nodes_that_certainly_reach_one_another_are_one():
    rng = np.random.default_rng(7)
    for _ in range(8):
        table = np.where(rng.random((N, N)) < 0.4, rng.choice([0.3, 0.6, 1.0], (N, N)), 0.0) * (1.0 - np.eye(N))
        graph, chance = Sparse(sparse.csr_array(table)), sparse.csr_array(table).data
        small = condense(Network(reverse(graph), chance, WEIGHTS))
        _, group = sparse.csgraph.connected_components(sparse.csr_array(table == 1.0), connection="strong")
        assert len(set(zip(group, small.home.tolist(), strict=True))) == len(set(group)) == small.home.max() + 1
        assert np.bincount(small.home, WEIGHTS).tolist() == pytest.approx(small.network.weights.tolist())
        kept = [(u, v) for u, v in np.argwhere(table > 0.0) if group[u] != group[v]]
        assert chance[small.network.arcs.entry].sum() == pytest.approx(sum(table[u, v] for u, v in kept))
        sets = sample_sets(small.network, 1000, new_stream(np.random.SeedSequence(3)))
        held, worth = by_node(sets, small.home.max() + 1), np.full(1000, WEIGHTS.sum() / 1000)
        forward = expected_spread(graph, chance, WEIGHTS, np.array([0, 2]), 1000)
        room = 5.0 * WEIGHTS.sum() / 2.0 * np.sqrt(2.0 / 1000)
        assert abs(covered(held, worth, small.home[[0, 2]]) - forward) <= room


def test_greedy_selection_hits_most_sets_and_ties_go_to_fewest_pulls():
    sets, _ = exact_sets(GRAPH, CHANCE, WEIGHTS)
    members = [set(sets.nodes[a:b].tolist()) for a, b in itertools.pairwise(sets.start)]
    chosen = np.full(2, -1)
    share = select(sets, np.arange(N), Candidates(np.zeros(N), np.ones(N, bool)), chosen, 0)
    first = max(range(N), key=lambda u: (sum(u in s for s in members), -u))
    left = [s for s in members if first not in s]
    second = max((u for u in range(N) if u != first), key=lambda u: (sum(u in s for s in left), -u))
    assert chosen.tolist() == [first, second]
    assert share == sum(bool(s & {first, second}) for s in members) / len(members)
    alike = type(sets)(np.array([0, 2]), np.array([1, 4], np.int32))
    select(alike, np.arange(N), Candidates(np.array([0.0, 3, 0, 0, 2, 0]), np.ones(N, bool)), chosen[:1], 0)
    assert chosen[0] == 4
    pinned = np.array([5, -1])
    select(alike, np.arange(N), Candidates(np.zeros(N), np.ones(N, bool)), pinned, 1)
    assert pinned.tolist() == [5, 1]  # who stands there already stays


def test_the_world_shows_every_active_node_with_all_its_edges():
    environment, users = IndependentCascade(P, WEIGHTS), new_stream(np.random.SeedSequence(2))
    for t in range(1, 60):
        seeds = np.random.default_rng(t).permutation(N)[:2]
        told = respond(environment, GRAPH, seeds, t, users)
        active, at, reached = told.action.tolist(), 0, set(seeds.tolist())
        assert active[:2] == seeds.tolist()
        assert len(set(active)) == len(active)
        for u in active:
            assert u in reached
            row = told.outcome[at : at + GRAPH.span(u)[1] - GRAPH.span(u)[0]]
            reached |= {v for v, x in zip(GRAPH.items[slice(*GRAPH.span(u))].tolist(), row, strict=True) if x == 1.0}
            at += len(row)
        assert reached == set(active)
        assert told.seen.all()
        assert at == len(told.outcome)


def test_bipartite_influence_is_coverage():
    chance = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3))
    table = np.zeros((5, 5))
    table[:2, 2:] = chance
    weights = np.array([0.0, 0.0, 1.0, 2.0, 3.0])
    p = sparse.csr_array(table)
    problem = sa.Problem(5, 5, sa.Spread(4000), sa.Subsets(2), weights, p)
    influence = sa.Instance(problem, IndependentCascade(p, weights))
    coverage = sa.Problem(2, 3, sa.Coverage(), sa.Subsets(2), weights[2:])
    for seeds in ([0], [1], [0, 1]):
        assert influence.value(seeds) == pytest.approx(coverage.value(chance, seeds), rel=1e-12)
        assert problem.value(p, seeds) == pytest.approx(coverage.value(chance, seeds), abs=5.0 * 3.0 / np.sqrt(4000))


def test_the_best_seeds_are_bracketed():
    for weights in (WEIGHTS, np.ones(N)):
        environment = IndependentCascade(P, weights)
        problem = sa.Problem(N, N, sa.Spread(), sa.Subsets(2), weights, P)
        instance = sa.Instance(problem, environment)
        most = max(instance.value(list(batch)) for batch in problem.actions.batches(N))
        low, high = environment.best(problem)
        assert (1 - 1 / np.e) * most <= low <= most * (1 + 1e-12)
        assert most <= high * (1 + 1e-12)


def test_large_graphs_are_sampled_from_the_seed():
    rng = np.random.default_rng(1)
    big = sparse.random_array((40, 40), density=0.1, rng=rng)
    one, same, other = (IndependentCascade(big, samples=500, seed=s) for s in (1, 1, 2))
    assert len(one.worth) == 500
    assert np.array_equal(one.held, same.held)
    assert not np.array_equal(one.held[:300], other.held[:300])


def test_what_does_not_fit_is_refused():
    with pytest.raises(sa.InvalidArgument, match="n_nodes"):
        IndependentCascade(sparse.csr_array(np.ones((2, 3))))
    with pytest.raises(sa.InvalidArgument, match="samples"):
        IndependentCascade(P, samples=0)
    with pytest.raises(sa.InvalidArgument, match="weights"):
        IndependentCascade(P, np.zeros(N))
    with pytest.raises(sa.InvalidArgument, match="simulations"):
        sa.Spread(0)
    problem = sa.Problem(N, N, sa.Spread(), sa.Subsets(2), support=P)
    with pytest.raises(sa.InvalidArgument, match="IndependentCascade"):
        sa.Instance(problem, sa.environments.Bernoulli(P))
    with pytest.raises(sa.InvalidArgument, match="sum over items"):
        sa.certify(problem, P, [0, 1])
    with pytest.raises(sa.InvalidArgument, match="sum over items"):
        sa.theory.gaps(sa.Instance(problem, IndependentCascade(P)))
