import networkx
import numpy as np
import pytest

import superarm as sa
from superarm import data
from superarm.data.graphs import count_edges


def test_edges_of_graphs_and_lists():
    arrows = networkx.DiGraph([("a", "b"), ("b", "c"), ("c", "c")])
    assert count_edges(arrows) == ({(0, 1): 1, (1, 2): 1}, 3)
    assert count_edges({(7, 9): 2, (9, 7): 1, (4, 4): 5}) == ({(1, 2): 3, (2, 1): 3}, 3)
    twice = networkx.MultiDiGraph([(0, 1), (0, 1)])
    assert data.constant_chance(twice, 0.5)[0, 1] == 0.75
    with pytest.raises(sa.InvalidArgument, match="no edges"):
        count_edges([(1, 1)])
    with pytest.raises(sa.InvalidArgument, match="chance"):
        data.constant_chance([(0, 1)], 1.5)


def test_the_weighted_cascade_gives_every_node_one_activation_on_average():
    p = data.weighted_by_degree(networkx.karate_club_graph())
    assert np.asarray(p.sum(axis=0)).ravel() == pytest.approx(np.ones(34))


def test_instances_of_influence(tmp_path):
    (tmp_path / "edges.txt").write_text("# a path\n0 1\n1 2\n2 3\n")
    small = data.influence(str(tmp_path / "edges.txt"), k=1, chance=0.5)
    assert small.value([1]) == pytest.approx(25.0 * (1 + 0.5 + 0.5 + 0.25))  # three edges each way: exact
    club = data.weighted_cascade(name="karate_club", k=2, samples=300)
    assert club.problem.n_arms == 34
    assert len(club.environment.sets[2]) == 300
    same, other = (data.random_influence(30, seed=s, samples=50) for s in (1, 2))
    assert np.array_equal(data.random_influence(30, seed=1, samples=50).p, same.p)
    assert not np.array_equal(same.p, other.p)
    with pytest.raises(sa.InvalidArgument, match="degree"):
        data.random_influence(5, degree=5)
