"""Data sets as instances: of coverage, of influence along edges, and with contexts.

Weights are in percent, so that the value of a batch is a percentage of the people. With contexts, every context of the
table comes with the same chance.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from superarm.actions import Actions, Subsets
from superarm.context import Context, Features, Model, Segments
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.data.files import read_rows
from superarm.data.graphs import constant_chance, load_edges, weighted_by_degree
from superarm.data.readers import read_carousel, read_movielens, read_multilabel, read_open_bandit, read_visits
from superarm.diffusion import IndependentCascade, Spread
from superarm.environments import Bernoulli, Cohorts, context_table
from superarm.problem import Problem
from superarm.rewards import Coverage, Linear, Reward
from superarm.simulation.instances import Instance

_COVERAGE, _SEGMENTS = Coverage(), Segments()


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
    table = read_visits(path).table
    popular = np.argsort(-table.sum(axis=0), kind="stable")[:n_areas]
    kept = table[:, popular].astype(float)
    group = _clusters(kept, n_groups, seed)
    p = np.array([kept[group == i].mean(axis=0) for i in range(group.max() + 1)]).T
    return _coverage_instance(p, np.bincount(group) / len(group), k)


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


def influence(
    path: str = "", name: str = "", k: int = 5, chance: float = 0.1, samples: int = 50_000, seed: int = 0
) -> Instance:
    """Seeds on an edge list (``path``) or on a graph of networkx (``name``), with equal probabilities.

    Nodes are arms and items; the edges that leave a node are its entries, along which influence spreads. Edges count in
    both directions and activate with probability ``chance``. Regret is estimated from ``samples`` reverse-reachable
    sets at the true parameters, drawn from ``seed``.
    """
    return _spread_instance(constant_chance(load_edges(path, name), chance), k, samples, seed)


def weighted_cascade(path: str = "", name: str = "", k: int = 5, samples: int = 50_000, seed: int = 0) -> Instance:
    """As ``influence``, but an edge activates with probability 1 over the number of edges that enter its target."""
    return _spread_instance(weighted_by_degree(load_edges(path, name)), k, samples, seed)


def random_influence(n_nodes: int = 60, degree: int = 3, k: int = 3, samples: int = 50_000, seed: int = 0) -> Instance:
    """A random social graph with the weighted cascade: each new node connects to ``degree`` older ones, by popularity.

    >>> random_influence(n_nodes=20, samples=100).problem.n_arms
    20
    """
    if not 1 <= degree < n_nodes:
        raise InvalidArgument("degree", f"{degree} of {n_nodes} nodes", "give 1 <= degree < n_nodes")
    rng, ends, pairs = np.random.default_rng(seed), list(range(degree)), []
    for node in range(degree, n_nodes):
        friends = set[int]()
        while len(friends) < degree:
            friends.add(ends[int(rng.integers(len(ends)))])
        pairs += [(node, friend) for friend in sorted(friends)]
        ends += [*sorted(friends), *[node] * degree]
    return _spread_instance(weighted_by_degree(pairs), k, samples, seed)


def _spread_instance(p: Any, k: int, samples: int, seed: int) -> Instance:
    n = p.shape[0]
    weights = np.full(n, 100.0 / n)
    problem = Problem(n, n, Spread(), Subsets(k), weights, support=p)
    return Instance(problem, IndependentCascade(p, weights, samples, seed))


def labels(
    path: str,
    model: Model = _SEGMENTS,
    k: int = 3,
    n_examples: int = 500,
    n_components: int = 6,
    n_segments: int = 8,
    seed: int = 0,
) -> Instance:
    """Multi-label data such as Yeast (103 features, 14 labels): labels are arms, a batch is worth its right labels.

    A context is an example, drawn with ``seed`` from the file; its outcomes are certain. Segments come from k-means on
    the ``n_components`` principal components, which are the features of the other models. The features of an arm, for a
    shared model, say which label it is: the model then has a part that all labels share, and one of each label.
    """
    data = read_multilabel(path)
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.choice(len(data.x), min(n_examples, len(data.x)), replace=False))
    components = _principal_components(data.x[kept], n_components)
    segments, arms = _clusters(components, n_segments, seed), np.eye(len(data.names))
    return _instance(model, components, segments, data.labels[kept], k, arms)


def carousel(
    users: str,
    playlists: str,
    model: Model = _SEGMENTS,
    k: int = 12,
    n_users: int = 1000,
    n_playlists: int = 50,
    n_components: int = 6,
) -> Instance:
    """Deezer carousels: playlists are arms, ``k`` of them are shown, a batch is worth the streams that are expected.

    A context is a user. The ``n_playlists`` playlists with the largest mean probability are kept. Segments are those of
    the file; the features of a user are principal components of the embeddings, and those of a playlist, for a shared
    model, principal components of its published weights, which stand in for features that a service would know.
    """
    data = read_carousel(users, playlists, n_users)
    kept = np.argsort(-data.p.mean(axis=0), kind="stable")[:n_playlists]
    arms = _principal_components(data.playlists[kept], n_components)
    segments = np.unique(data.segments, return_inverse=True)[1]
    return _instance(model, _principal_components(data.users, n_components), segments, data.p[:, kept], k, arms)


def open_bandit_users(
    path: str, items: str, model: Model = _SEGMENTS, k: int = 3, feature: str = "user_feature_0"
) -> Instance:
    """Open Bandit with contexts: a context is a level of ``feature``, items are arms, a batch is worth its clicks.

    ``p`` is as in ``open_bandit``; ``items`` is the file ``item_context.csv`` with the features of the items.
    """
    clicks = read_open_bandit(path, feature)
    columns = ("item_id", "item_feature_0", "item_feature_1", "item_feature_2", "item_feature_3")
    rows = {row[0]: row for row in read_rows(items, "item_context.csv", columns)}
    missing = [item for item in clicks.items if item not in rows]
    if missing:
        raise InvalidArgument("items", f"there is no item {missing[0]}", "give item_context.csv of the same campaign")
    names = columns[2:]
    declared = Features(numeric={"item_feature_0": (-4.0, 4.0)}, hashed=dict.fromkeys(names, 4))
    known = [rows[item] for item in clicks.items]
    arms = [{"item_feature_0": float(row[1])} | dict(zip(names, row[2:], strict=True)) for row in known]
    context = Context(Features(categorical={"user": list(clicks.groups)}), arms, model, arm_features=declared)
    problem = Problem(len(clicks.items), 1, Linear(), Subsets(k), context=context)
    given = [{"user": group} for group in clicks.groups]
    return Instance(problem, context_table(problem, given, clicks.p.T[:, :, None]))


def _instance(model: Model, components: Floats, segments: Any, p: Floats, k: int, arms: Floats) -> Instance:
    """Users with ``components`` and ``segments``, and the parameters ``p`` (n_users, n_arms) of one item."""
    names = [f"component {n}" for n in range(components.shape[1])]
    levels = [str(n) for n in range(int(segments.max()) + 1)]
    by_segment = isinstance(model, Segments)
    numeric = dict.fromkeys(names, (-1.0, 1.0))
    features = Features(categorical={"segment": levels}) if by_segment else Features(numeric=numeric)
    given = [
        {"segment": str(segment)} if by_segment else dict(zip(names, row.tolist(), strict=True))
        for segment, row in zip(segments, components, strict=True)
    ]
    context = Context(features, arms, model)
    problem = Problem(p.shape[1], 1, Linear(), Subsets(k), context=context)
    return Instance(problem, context_table(problem, given, p[:, :, None]))


def _principal_components(x: Floats, n: int) -> Floats:
    """The first ``n`` principal components of the rows of ``x``, each scaled to a largest absolute value of 1."""
    centred = x - x.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    directions = directions[:n] * np.sign(directions[:n].sum(axis=1, keepdims=True))
    found = centred @ directions.T
    return np.asarray(found / np.maximum(np.abs(found).max(axis=0), 1e-12))


def _clusters(x: Floats, n: int, seed: int) -> Any:
    """The cluster of each row of ``x``, by k-means, numbered from 0."""
    from scipy.cluster.vq import kmeans2

    wanted = min(n, len(np.unique(x, axis=0)))
    _, found = kmeans2(x, wanted, minit="++", rng=np.random.default_rng(seed), missing="raise")
    return np.unique(found, return_inverse=True)[1]
