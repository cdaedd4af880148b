"""Simulation of policies on instances, with regret measured against a named target.

``engine`` holds the compiled loop, ``runs`` plays one run, ``replicate`` holds ``simulate``, ``regret`` finds what
regret is measured against, ``results`` and ``plots`` present it, ``instances`` holds named instances. ``contextual``
plays rounds with contexts, ``contextual_instances`` holds named instances of such.
"""

from typing import TYPE_CHECKING

from superarm._renamed import suggest_names
from superarm.simulation.contextual import context_table
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
    "context_table",
    "optimum",
    "rounds",
    "seeds",
    "simulate",
]

if not TYPE_CHECKING:
    __getattr__ = suggest_names(__name__)
