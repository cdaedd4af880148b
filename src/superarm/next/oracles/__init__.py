"""Oracles: algorithms that find a good batch for given parameters, for all replications at once."""

from superarm.next.oracles.base import Guarantee, Oracle, solve
from superarm.next.oracles.default import Default
from superarm.next.oracles.greedy import Greedy, Modular

__all__ = ["Default", "Greedy", "Guarantee", "Modular", "Oracle", "solve"]
