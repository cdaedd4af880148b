"""Simulation: the one compiled loop, and what is built on it."""

from superarm.simulation.engine import advance, begin
from superarm.simulation.instances import Instance
from superarm.simulation.regret import Bracket, Target, optimum
from superarm.simulation.replicate import checkpoints, seeds, simulate
from superarm.simulation.results import Results

__all__ = [
    "Bracket",
    "Instance",
    "Results",
    "Target",
    "advance",
    "begin",
    "checkpoints",
    "optimum",
    "seeds",
    "simulate",
]
