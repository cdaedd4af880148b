"""Simulation of policies on instances, with regret measured against a named target.

instances, contextual_instances: named instances · engine: rounds of many replications at once · runs: replications
played to the end · replicate: ``simulate``, policies on an instance · regret: what regret is measured against ·
results, plots: tables, data frames, figures · progress
"""

from superarm.simulation.instances import Instance
from superarm.simulation.regret import Bracket, Target, optimum
from superarm.simulation.replicate import checkpoints, seeds, simulate
from superarm.simulation.results import Results

__all__ = ["Bracket", "Instance", "Results", "Target", "checkpoints", "optimum", "seeds", "simulate"]
