"""Cells: one policy on one instance, all replications; each known by a digest of all that decides its numbers."""

import functools
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import superarm
from superarm.arrays import Ints
from superarm.describe import describe
from superarm.experiments.sweeps import Case
from superarm.experiments.things import cases
from superarm.policies import Policy
from superarm.simulation import Instance, checkpoints

if TYPE_CHECKING:
    from superarm.experiments.spec import Experiment

LOOKS = 16
"""At how many rounds, evenly spaced on a log scale, the batch itself is kept."""


def digest(thing: Any) -> str:
    """A digest of plain values, or of what ``describe`` makes of a component."""
    text = json.dumps(thing, sort_keys=True, separators=(",", ":"), default=describe)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class World:
    """An instance with its case and its digest."""

    case: Case
    instance: Instance

    @functools.cached_property
    def digest(self) -> str:
        return digest({"problem": describe(self.instance.problem), "environment": describe(self.instance.environment)})


@dataclass(frozen=True)
class Cell:
    """One policy on one instance: the unit that is run, stored and found again."""

    world: World
    case: Case
    policy: Policy
    horizon: int
    replications: int
    seed: int
    target: Any
    checkpoints: int

    @property
    def label(self) -> str:
        return f"{self.case.label} on {self.world.case.label}"

    @functools.cached_property
    def digest(self) -> str:
        """Names do not enter: a policy that is only renamed does not run again."""
        return digest(
            {
                "instance": self.world.digest,
                "policy": describe(self.policy),
                "horizon": self.horizon,
                "replications": self.replications,
                "seed": self.seed,
                "target": self.target,
                "checkpoints": self.checkpoints,
                "looks": LOOKS,
                "version": superarm.__version__,
            }
        )

    @property
    def marks(self) -> Ints:
        """Where regret is recorded, after a 0."""
        return np.concatenate([[0], checkpoints(self.horizon, self.checkpoints)]).astype(np.int64)

    @property
    def looks(self) -> Ints:
        """The rounds whose batch is kept."""
        return checkpoints(self.horizon, LOOKS)


def cells(experiment: "Experiment") -> list[Cell]:
    """Every cell of the grid, instance after instance."""
    worlds = [World(case, instance) for case, instance in cases("instances", experiment.instances)]
    policies = cases("policies", experiment.policies)
    return [
        Cell(
            world,
            case,
            policy,
            experiment.horizon,
            experiment.replications,
            experiment.seed,
            experiment.target,
            experiment.checkpoints,
        )
        for world in worlds
        for case, policy in policies
    ]
