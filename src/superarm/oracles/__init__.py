"""A good batch for given parameters: oracles."""

from superarm.oracles.base import Guarantee, Oracle, maximize, solve
from superarm.oracles.default import Default
from superarm.oracles.exhaustive import Exhaustive
from superarm.oracles.failing import Failing
from superarm.oracles.greedy import Greedy
from superarm.oracles.lazy import LazyGreedy
from superarm.oracles.modular import Modular

__all__ = [
    "Default",
    "Exhaustive",
    "Failing",
    "Greedy",
    "Guarantee",
    "LazyGreedy",
    "Modular",
    "Oracle",
    "maximize",
    "solve",
]
