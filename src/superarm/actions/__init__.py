"""Which batches may be played: action sets."""

from superarm.actions.base import Actions, Ranks, admits, capacity, cover, fill, playable, sample
from superarm.actions.explicit import Explicit
from superarm.actions.subsets import Subsets

__all__ = [
    "Actions",
    "Explicit",
    "Ranks",
    "Subsets",
    "admits",
    "capacity",
    "cover",
    "fill",
    "playable",
    "sample",
]
