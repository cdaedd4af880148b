"""Real data in its published layouts, as instances: from a local path always, fetched where there is a network."""

from superarm.data.edges import read_edges
from superarm.data.fetch import SOURCES, fetch
from superarm.data.graphs import constant_chance, weighted_by_degree
from superarm.data.influence import influence, random_influence, weighted_cascade
from superarm.data.instances import arrays, movielens, open_bandit, social_graph, visits
from superarm.data.movielens import Films, read_movielens
from superarm.data.msweb import Visits, read_visits
from superarm.data.openbandit import Clicks, read_open_bandit

__all__ = [
    "SOURCES",
    "Clicks",
    "Films",
    "Visits",
    "arrays",
    "constant_chance",
    "fetch",
    "influence",
    "movielens",
    "open_bandit",
    "random_influence",
    "read_edges",
    "read_movielens",
    "read_open_bandit",
    "read_visits",
    "social_graph",
    "visits",
    "weighted_by_degree",
    "weighted_cascade",
]
