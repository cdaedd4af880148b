"""Data sets as instances; weights are in percent, so that the value of a batch is a percentage of the people."""

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from superarm.actions import Actions, Subsets
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.core.problem import Problem
from superarm.data.graphs import load_edges
from superarm.data.movielens import read_movielens
from superarm.data.msweb import read_visits
from superarm.data.openbandit import read_open_bandit
from superarm.environments import Bernoulli, Cohorts
from superarm.rewards import Coverage, Reward
from superarm.simulation.instances import Instance

_COVERAGE = Coverage()


def arrays(file: str, k: int | None = None, reward: Reward = _COVERAGE, actions: Actions | None = None) -> Instance:
    """Parameters from a file: ``.npy`` or ``.csv`` with p (n_arms, n_items), or ``.npz`` with ``p`` and ``weights``.

    ``k`` is short for ``actions=Subsets(k)``. Outcomes are independent and binary unless the spec says otherwise.
    """
    path = Path(file)
    if not path.is_file():
        raise InvalidArgument("file", f"there is no {path}", "give the path of a .npy, .npz or .csv file")
    weights = None
    if path.suffix == ".csv":
        p = np.loadtxt(path, delimiter=",", ndmin=2)
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file_arrays:
            p, weights = file_arrays["p"], file_arrays.get("weights")
    else:
        p = np.load(path, allow_pickle=False)
    if p.ndim != 2:
        raise InvalidArgument("file", f"p has shape {p.shape}", "give (n_arms, n_items), one row per arm")
    if (k is None) == (actions is None):
        raise InvalidArgument("k", "neither or both of k and actions are given", "give k = … for all batches of k arms")
    batches = actions if actions is not None else Subsets(int(k or 1))
    return Instance(Problem(p.shape[0], p.shape[1], reward, batches, weights), Bernoulli(p))


def movielens(path: str, n_films: int = 100, k: int = 10, liked: float = 4.0) -> Instance:
    """Diverse recommendation on MovieLens: films are arms, groups of users by favourite genre are items.

    ``p[j, i]`` is the share of group ``i`` who liked film ``j``; weights are the groups' shares of users, in percent.
    """
    films = read_movielens(path, n_films, liked)
    return _coverage_instance(films.p, films.shares, k)


def movielens_users(path: str, n_films: int = 100, k: int = 10, liked: float = 4.0) -> Instance:
    """The instance of ``movielens`` with the real joint law: one user of each group per round, who rates all films.

    Whether a user likes one film depends on whether they like another; ``movielens`` draws films independently.
    """
    films = read_movielens(path, n_films, liked)
    return Instance(_coverage_instance(films.p, films.shares, k).problem, Cohorts(films.liked, films.first))


def visits(path: str, n_areas: int = 60, n_groups: int = 12, k: int = 5, seed: int = 0) -> Instance:
    """Ad placement on a table of visits: areas of a site are arms, groups of visitors are items.

    Visitors are grouped by what they visit (k-means on the rows of the table, with ``seed``). ``p[j, i]`` is the
    share of group ``i`` who visit area ``j``; weights are the groups' shares of visitors, in percent. The ``n_areas``
    areas with most visitors are kept.
    """
    from scipy.cluster.vq import kmeans2

    table = read_visits(path).table
    popular = np.argsort(-table.sum(axis=0), kind="stable")[:n_areas]
    kept = table[:, popular].astype(float)
    wanted = min(n_groups, len(np.unique(kept, axis=0)))
    _, group = kmeans2(kept, wanted, minit="++", rng=np.random.default_rng(seed), missing="raise")
    found = np.unique(group)
    p = np.array([kept[group == i].mean(axis=0) for i in found]).T
    return _coverage_instance(p, np.array([(group == i).mean() for i in found]), k)


def social_graph(path: str = "", name: str = "", n_seeds: int = 50, k: int = 5, chance: float = 0.1) -> Instance:
    """Influence seeding on an edge list (``path``) or on a graph of networkx (``name``).

    The ``n_seeds`` nodes with most neighbours are arms, the nodes they reach are items, each of the same weight.
    A seed convinces a neighbour with probability ``1 - (1 - chance)**m``, where ``m`` is how often the edge is listed,
    and itself with probability 1. Influence is direct and does not spread further, so that coverage is its exact value.
    """
    pairs = load_edges(path, name)
    neighbours: dict[int, dict[int, int]] = {}
    for (a, b), times in pairs.items():
        for u, v in ((a, b), (b, a)):
            if u != v:
                neighbours.setdefault(u, {})[v] = neighbours.get(u, {}).get(v, 0) + times
    seeds = sorted(neighbours, key=lambda node: (-len(neighbours[node]), node))[:n_seeds]
    reached = sorted({node for s in seeds for node in neighbours[s]} | set(seeds))
    number = {node: i for i, node in enumerate(reached)}
    entries = [(j, number[v], 1.0 - (1.0 - chance) ** m) for j, s in enumerate(seeds) for v, m in neighbours[s].items()]
    entries += [(j, number[s], 1.0) for j, s in enumerate(seeds)]
    row, column, p = zip(*entries, strict=True)
    known = csr_array((p, (row, column)), shape=(len(seeds), len(reached)))
    weights = np.full(len(reached), 100.0 / len(reached))
    return Instance(Problem(len(seeds), len(reached), Coverage(), Subsets(k), weights, support=known), Bernoulli(known))


def open_bandit(path: str, k: int = 3, feature: str = "user_feature_0") -> Instance:
    """Recommendation on Open Bandit logs: fashion items are arms, groups of users by a feature are items.

    ``p[j, i]`` is the rate at which group ``i`` clicks item ``j``, by inverse propensity; weights are the groups'
    shares of the impressions, in percent. A page shows ``k`` items.
    """
    clicks = read_open_bandit(path, feature)
    return _coverage_instance(clicks.p, clicks.shares, k)


def _coverage_instance(p: Floats, shares: Floats, k: int) -> Instance:
    n_arms, n_items = p.shape
    return Instance(Problem(n_arms, n_items, Coverage(), Subsets(k), weights=100.0 * shares), Bernoulli(p))
