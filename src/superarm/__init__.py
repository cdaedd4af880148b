"""superarm: combinatorial semi-bandits with nonlinear rewards.

Every round choose a batch of arms, see what each arm of the batch did, and learn which batch is worth most,
when the worth of a batch is a nonlinear function of its arms.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm import environments as environments
    from superarm._jit import component, interpreted, kernel, verb
    from superarm.actions import Explicit, Subsets
    from superarm.catalog import (
        angle_ts,
        bc_ucb,
        cts,
        cucb,
        epsilon_greedy,
        follow_the_leader,
        kl_moss,
        kl_ucb,
        ucb_v,
        uniform,
    )
    from superarm.oracles import Exhaustive, Failing, Greedy, Guarantee, LazyGreedy, Modular, solve
    from superarm.policies import EpsilonGreedy, IndexPolicy
    from superarm.problem import Problem
    from superarm.rewards import ClippedLinear, Coverage, Linear, Logistic
    from superarm.service.client import connect
    from superarm.simulation import Instance, Results, instances, simulate
    from superarm.tally import Tally

_HOMES = {
    "superarm._jit": "component interpreted kernel verb",
    "superarm.actions": "Explicit Subsets",
    "superarm.agent": "Agent Decision",
    "superarm.catalog": "angle_ts bc_ucb cts cucb epsilon_greedy follow_the_leader kl_moss kl_ucb ucb_v uniform",
    "superarm.errors": "ConflictingFeedback InvalidArgument MissingExtra SuperarmError UnknownDecision",
    "superarm.oracles": "Exhaustive Failing Greedy Guarantee LazyGreedy Modular solve",
    "superarm.policies": "EpsilonGreedy IndexPolicy",
    "superarm.problem": "Problem",
    "superarm.service.client": "connect",
    "superarm.rewards": "ClippedLinear Coverage Linear Logistic",
    "superarm.simulation": "Instance Results simulate",
    "superarm.tally": "Tally",
}
_MODULES = {
    "instances": "superarm.simulation.instances",
    "environments": "superarm.environments",
    "indices": "superarm.indices",
    "testing": "superarm.testing",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = sorted([*_NAMES, *_MODULES])


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that the command line starts without numba."""
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'superarm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
