"""Published data sets as instances, read from a local path or downloaded once.

Readers accept the files exactly as they are published and return plain arrays; generators turn them into instances
for experiments.

files: downloads with checksums, and text in plain, gzipped and zipped files · readers: one for each data set · graphs:
edge lists, and matrices of activation probabilities · instances: the generators
"""

from superarm.data.files import SOURCES, fetch
from superarm.data.graphs import constant_chance, read_edges, weighted_by_degree
from superarm.data.instances import (
    arrays,
    carousel,
    influence,
    labels,
    movielens,
    movielens_users,
    open_bandit,
    open_bandit_users,
    random_influence,
    social_graph,
    visits,
    weighted_cascade,
)
from superarm.data.readers import (
    Carousel,
    Clicks,
    Films,
    Labelled,
    Visits,
    read_carousel,
    read_movielens,
    read_multilabel,
    read_open_bandit,
    read_visits,
)

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
