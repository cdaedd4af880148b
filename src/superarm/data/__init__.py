"""Published data sets as instances, read from a local path or downloaded once.

Readers accept the files exactly as they are published and return plain arrays; generators turn them into instances
for experiments.

- ``movielens.py``, ``msweb.py``, ``openbandit.py``, ``multilabel.py``, ``deezer.py``, ``edges.py``: one reader each.
- ``graphs.py``: graphs as matrices of activation probabilities.
- ``instances.py``, ``contextual.py``, ``influence.py``: the generators.
- ``fetch.py``: downloads with checksums; ``files.py``: text in plain, gzipped and zipped files.
"""

from superarm.data.contextual import carousel, labels, open_bandit_users
from superarm.data.deezer import Carousel, read_carousel
from superarm.data.edges import read_edges
from superarm.data.fetch import SOURCES, fetch
from superarm.data.graphs import constant_chance, weighted_by_degree
from superarm.data.influence import influence, random_influence, weighted_cascade
from superarm.data.instances import arrays, movielens, movielens_users, open_bandit, social_graph, visits
from superarm.data.movielens import Films, read_movielens
from superarm.data.msweb import Visits, read_visits
from superarm.data.multilabel import Labelled, read_multilabel
from superarm.data.openbandit import Clicks, read_open_bandit

__all__ = [
    "SOURCES",
    "Carousel",
    "Clicks",
    "Films",
    "Labelled",
    "Visits",
    "arrays",
    "carousel",
    "constant_chance",
    "fetch",
    "influence",
    "labels",
    "movielens",
    "movielens_users",
    "open_bandit",
    "open_bandit_users",
    "random_influence",
    "read_carousel",
    "read_edges",
    "read_movielens",
    "read_multilabel",
    "read_open_bandit",
    "read_visits",
    "social_graph",
    "visits",
    "weighted_by_degree",
    "weighted_cascade",
]
