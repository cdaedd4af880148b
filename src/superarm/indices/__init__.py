"""Indices: rules that turn the statistics of one entry into an optimistic value.

``base`` holds the family, ``traits`` its optional properties; ``kl_bound`` inverts the divergence for ``kl``, and
``beta_draws`` draws for ``posterior``; every other file holds one index or two.
"""

from typing import TYPE_CHECKING

from superarm._renamed import suggest_names
from superarm.indices.base import (
    Index,
    IndexHooks,
    bound_by_tangents,
    bound_entries,
    level,
    score,
    score_entries,
    unknown,
)
from superarm.indices.bernstein import Bernstein
from superarm.indices.hoeffding import Hoeffding
from superarm.indices.kl import KL, KLMoss
from superarm.indices.mean import Mean
from superarm.indices.posterior import AnglePosterior, BetaPosterior, GaussianSample
from superarm.indices.traits import inverts, monotone, unclipped
from superarm.indices.ucb1 import UCB1
from superarm.indices.ucb_v import UCBV

__all__ = [
    "KL",
    "UCB1",
    "UCBV",
    "AnglePosterior",
    "Bernstein",
    "BetaPosterior",
    "GaussianSample",
    "Hoeffding",
    "Index",
    "IndexHooks",
    "KLMoss",
    "Mean",
    "bound_by_tangents",
    "bound_entries",
    "inverts",
    "level",
    "monotone",
    "score",
    "score_entries",
    "unclipped",
    "unknown",
]

if not TYPE_CHECKING:
    __getattr__ = suggest_names(__name__)
