"""superarm: combinatorial semi-bandits with nonlinear rewards.

Every round choose a batch of arms, see what each arm of the batch did, and learn which batch is worth most,
when the worth of a batch is a nonlinear function of its arms.
"""

from typing import TYPE_CHECKING, Any

from superarm._garbage import import_module
from superarm._renamed import find_old_modules, unknown_name

if TYPE_CHECKING:
    __version__: str
    from superarm import actions as actions
    from superarm import agent as agent
    from superarm import context as context
    from superarm import data as data
    from superarm import diffusion as diffusion
    from superarm import environments as environments
    from superarm import experiments as experiments
    from superarm import indices as indices
    from superarm import learner as learner
    from superarm import offline as offline
    from superarm import oracles as oracles
    from superarm import pages as pages
    from superarm import policies as policies
    from superarm import rewards as rewards
    from superarm import service as service
    from superarm import simulation as simulation
    from superarm import testing as testing
    from superarm import theory as theory
    from superarm._jit import component, interpreted, kernel, verb
    from superarm.actions import (
        Explicit,
        GraphicMatroid,
        Knapsack,
        Laminar,
        Matching,
        PartitionMatroid,
        Paths,
        Pinned,
        Slots,
        SpanningTrees,
        Subsets,
    )
    from superarm.agent import Agent, Decision, DecisionAgent
    from superarm.arrays import Probabilities
    from superarm.catalog import (
        angle_ts,
        bc_ucb,
        bcucb_t,
        cascade_kl_ucb,
        cascade_ucb1,
        cascade_ucb_v,
        cts,
        cucb,
        cucb_t,
        directional_kl_moss,
        directional_kl_ucb,
        discounted,
        epsilon_greedy,
        escb,
        escb_c,
        escb_delta,
        follow_the_leader,
        gaussian_cts,
        joint_kl_moss,
        kl_moss,
        kl_ucb,
        least_played,
        ols_ucb_c,
        shared_cts,
        sliding_window,
        ts_cascade,
        ucb_v,
        uniform,
    )
    from superarm.context import Context, Features
    from superarm.context import models as models
    from superarm.errors import (
        CompileError,
        ConflictingFeedback,
        InvalidArgument,
        InvalidSpec,
        MissingExtra,
        SuperarmError,
        UnknownDecision,
    )
    from superarm.experiments import Experiment
    from superarm.oracles import (
        IMM,
        Certificate,
        ContinuousGreedy,
        CostBenefit,
        Exhaustive,
        Failing,
        Greedy,
        GreedyMax,
        Guarantee,
        KnapsackScheme,
        KnapsackTable,
        LazyGreedy,
        Linearised,
        LocalSearch,
        Modular,
        PartialEnumeration,
        Reversed,
        Solution,
        StochasticGreedy,
        TopArms,
        certified,
        certify,
        exact,
        solve,
    )
    from superarm.policies import EpsilonGreedy, IndexPolicy, SetBonus
    from superarm.policies.contextual import c2_ucb, c3_ucb, comb_lin_ts, logistic_kl_ucb, logistic_ts, vac2_ucb
    from superarm.problem import Problem
    from superarm.rewards import ClippedLinear, Conjunctive, Coverage, Linear, Logistic, Smoothness, Spread
    from superarm.service.client import connect
    from superarm.simulation import Instance, Results, simulate
    from superarm.simulation import instances as instances
    from superarm.tally import Tally

_HOMES = {
    "superarm._jit": "component interpreted kernel verb",
    "superarm.actions": (
        "Explicit GraphicMatroid Knapsack Laminar Matching PartitionMatroid Paths Pinned Slots SpanningTrees Subsets"
    ),
    "superarm.agent": "Agent Decision DecisionAgent",
    "superarm.catalog": (
        "angle_ts bc_ucb bcucb_t cascade_kl_ucb cascade_ucb1 cascade_ucb_v cts cucb cucb_t directional_kl_moss "
        "directional_kl_ucb discounted epsilon_greedy escb escb_c escb_delta follow_the_leader gaussian_cts "
        "joint_kl_moss kl_moss kl_ucb least_played ols_ucb_c shared_cts sliding_window ts_cascade ucb_v uniform"
    ),
    "superarm.arrays": "Probabilities",
    "superarm.context": "Context Features",
    "superarm.errors": (
        "CompileError ConflictingFeedback InvalidArgument InvalidSpec MissingExtra SuperarmError UnknownDecision"
    ),
    "superarm.experiments": "Experiment",
    "superarm.oracles": (
        "Certificate ContinuousGreedy CostBenefit Exhaustive Failing Greedy GreedyMax Guarantee IMM KnapsackScheme "
        "KnapsackTable LazyGreedy Linearised LocalSearch Modular PartialEnumeration Reversed Solution StochasticGreedy "
        "TopArms certified certify exact solve"
    ),
    "superarm.policies.contextual": "c2_ucb c3_ucb comb_lin_ts logistic_kl_ucb logistic_ts vac2_ucb",
    "superarm.policies": "EpsilonGreedy IndexPolicy SetBonus",
    "superarm.problem": "Problem",
    "superarm.rewards": "ClippedLinear Conjunctive Coverage Linear Logistic Smoothness Spread",
    "superarm.service.client": "connect",
    "superarm.simulation": "Instance Results simulate",
    "superarm.tally": "Tally",
}
_PACKAGES = (
    *("actions", "agent", "context", "data", "diffusion", "environments", "experiments", "indices", "learner"),
    *("offline", "oracles", "pages", "policies", "rewards", "service", "simulation", "testing", "theory"),
)
_SEARCHED = ("environments", "indices", "policies", "oracles", "actions", "rewards", "simulation")
"""Where a name that is not here may be."""
_ALIASES = {"instances": "superarm.simulation.instances", "models": "superarm.context.models"}
_MODULES = {**_ALIASES, **{name: f"superarm.{name}" for name in _PACKAGES}}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted([*_NAMES, *_MODULES])


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that the command line starts without numba."""
    if name == "__version__":
        globals()[name] = _find_version()  # once: it reads a file
        return globals()[name]
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if not name.startswith("_"):
        for package in _SEARCHED:
            if name in import_module(f"superarm.{package}").__all__:
                raise AttributeError(f"module 'superarm' has no attribute {name!r}; it is superarm.{package}.{name}")
    raise unknown_name(__name__, name)


find_old_modules()


def _find_version() -> str:
    """The version that was installed: that of the last tag of the sources."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("superarm")
    except PackageNotFoundError:  # sources that are not installed
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
