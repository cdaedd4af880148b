"""superarm: choose several things at once, and learn which set is worth most.

Every round choose a batch of arms, see what each arm of the batch did, and learn which batch is worth most, when the
worth of a batch is a nonlinear function of its arms.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0rc2"

if TYPE_CHECKING:
    from superarm import actions as actions
    from superarm import agent as agent
    from superarm import context as context
    from superarm import contextual as contextual
    from superarm import data as data
    from superarm import diffusion as diffusion
    from superarm import environments as environments
    from superarm import experiments as experiments
    from superarm import gym as gym
    from superarm import indices as indices
    from superarm import items as items
    from superarm import offline as offline
    from superarm import oracles as oracles
    from superarm import policies as policies
    from superarm import random as random
    from superarm import rewards as rewards
    from superarm import service as service
    from superarm import simulation as simulation
    from superarm import testing as testing
    from superarm import theory as theory
    from superarm import warehouse as warehouse
    from superarm.actions import Actions, Copies, Knapsack, Slots, Subsets
    from superarm.agent import Agent, Decision, recommend
    from superarm.context import Context, Features
    from superarm.context import models as models
    from superarm.core.errors import InvalidArgument, SuperarmError
    from superarm.core.tally import Tally
    from superarm.environments import Environment
    from superarm.experiments import Experiment
    from superarm.indices import Index
    from superarm.judge import Judge
    from superarm.oracles import Oracle
    from superarm.policies import (
        IndexPolicy,
        Policy,
        bc_ucb,
        cts,
        cucb,
        directional_kl_moss,
        kl_moss,
        kl_ucb,
        policy,
        pooled_thompson,
        uniform,
    )
    from superarm.problem import Problem
    from superarm.rewards import Coverage, Linear, Logistic, Reward, Total
    from superarm.service.client import connect
    from superarm.simulation import Instance, Results
    from superarm.simulation import instances as instances
    from superarm.simulation.replicate import simulate
    from superarm.tables import Table
    from superarm.thresholds import Thresholds

_HOMES = {
    "superarm.actions": "Actions Copies Knapsack Slots Subsets",
    "superarm.agent": "Agent Decision recommend",
    "superarm.context": "Context Features",
    "superarm.core.errors": "InvalidArgument SuperarmError",
    "superarm.problem": "Problem",
    "superarm.core.tally": "Tally",
    "superarm.environments": "Environment",
    "superarm.experiments": "Experiment",
    "superarm.indices": "Index",
    "superarm.oracles": "Oracle",
    "superarm.policies": "IndexPolicy Policy bc_ucb cts cucb directional_kl_moss kl_moss kl_ucb policy "
    "pooled_thompson uniform",
    "superarm.rewards": "Coverage Linear Logistic Reward Total",
    "superarm.service.client": "connect",
    "superarm.judge": "Judge",
    "superarm.thresholds": "Thresholds",
    "superarm.simulation": "Instance Results simulate",
    "superarm.tables": "Table",
}
_PACKAGES = (
    *(
        "actions",
        "agent",
        "context",
        "contextual",
        "data",
        "diffusion",
        "environments",
        "experiments",
        "gym",
        "indices",
    ),
    *("items", "offline", "oracles", "policies", "random", "rewards", "service", "simulation", "testing", "theory"),
    "warehouse",
)
_SEARCHED = (
    *("policies", "environments", "actions", "rewards", "oracles", "indices", "contextual", "diffusion"),
    *("simulation", "core.errors"),
)
"""Where a name that is not here may be."""
_ALIASES = {"instances": "superarm.simulation.instances", "models": "superarm.context.models"}
_MODULES = {**_ALIASES, **{name: f"superarm.{name}" for name in _PACKAGES}}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted([*_NAMES, *_MODULES])


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that the command line starts at once."""
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'superarm' has no attribute {name!r}{_find_near(name)}")


def _find_near(name: str) -> str:
    """Where a name is that is not here, or which one was meant, as the end of a sentence."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    homes = dict.fromkeys(__all__, "superarm")
    for package in _SEARCHED:
        public = (one for one in vars(import_module(f"superarm.{package}")) if not one.startswith("_"))
        homes = dict.fromkeys(public, f"superarm.{package}") | homes
    if name in homes:
        return f"; it is {homes[name]}.{name}"
    near = get_close_matches(name, homes, 1, 0.7)
    return f"; did you mean {homes[near[0]]}.{near[0]}?" if near else ""


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
