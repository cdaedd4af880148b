"""Data sets with features of users as instances with contexts, for any model of how outcomes depend on the features.

Every context of the table comes with the same chance.
"""

from typing import Any

import numpy as np

from superarm.actions import Subsets
from superarm.context import Context, Features, Model, Segments
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.core.problem import Problem
from superarm.data.deezer import read_carousel
from superarm.data.files import read_rows
from superarm.data.multilabel import read_multilabel
from superarm.data.openbandit import read_open_bandit
from superarm.environments import context_table
from superarm.rewards import Linear
from superarm.simulation.instances import Instance

_SEGMENTS = Segments()


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
    from scipy.cluster.vq import kmeans2

    wanted = min(n, len(np.unique(x, axis=0)))
    _, found = kmeans2(x, wanted, minit="++", rng=np.random.default_rng(seed), missing="raise")
    return np.unique(found, return_inverse=True)[1]
