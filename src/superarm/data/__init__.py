"""Real data in its published layouts, as instances: from a local path always, fetched where there is a network."""

from superarm.data.edges import read_edges
from superarm.data.fetch import SOURCES, fetch
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
    "fetch",
    "movielens",
    "open_bandit",
    "read_edges",
    "read_movielens",
    "read_open_bandit",
    "read_visits",
    "social_graph",
    "visits",
]
