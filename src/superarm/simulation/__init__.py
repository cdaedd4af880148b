"""Simulation: the one compiled loop, and what is built on it."""

from superarm.simulation.engine import PlayedRound, advance, begin, rounds
from superarm.simulation.instances import Instance
from superarm.simulation.regret import Bracket, Target, optimum
from superarm.simulation.replicate import checkpoints, seeds, simulate
from superarm.simulation.results import Results

__all__ = [
    "Bracket",
    "Instance",
    "PlayedRound",
    "Results",
    "Target",
    "advance",
    "begin",
    "checkpoints",
    "optimum",
    "rounds",
    "seeds",
    "simulate",
]
