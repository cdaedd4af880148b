"""Which batch next: policies."""

import importlib
import warnings
from typing import Any

from superarm.indices import Index
from superarm.intake import Exact, Intake
from superarm.oracles import Default, Oracle
from superarm.policies.base import Policy, Round, choose, learn, prepare
from superarm.policies.batch_bonus import Delta, LeastPlayed
from superarm.policies.batch_policy import BatchPolicy
from superarm.policies.epsilon_greedy import EpsilonGreedy
from superarm.policies.forgetting import Forgetting
from superarm.policies.index_policy import IndexPolicy, screened
from superarm.policies.joint_policy import JointPolicy
from superarm.policies.one_gaussian import OneGaussian
from superarm.policies.policy_state import PolicyState, block_age, forget_alike, forgets, restore_memory, save_state
from superarm.policies.set_bonus import SetBonus
from superarm.policies.set_search import Ascent, EveryBatch
from superarm.policies.start import NoStart, Start, TryEveryArm
from superarm.policies.uniform import Uniform

__all__ = [
    "Ascent",
    "BatchPolicy",
    "Delta",
    "EpsilonGreedy",
    "EveryBatch",
    "Forgetting",
    "IndexPolicy",
    "JointPolicy",
    "LeastPlayed",
    "NoStart",
    "OneGaussian",
    "Policy",
    "PolicyState",
    "Round",
    "SetBonus",
    "Start",
    "TryEveryArm",
    "Uniform",
    "block_age",
    "choose",
    "forget_alike",
    "forgets",
    "learn",
    "prepare",
    "restore_memory",
    "save_state",
    "screened",
]

_MOVED = {
    "Screened": "superarm.policies.fast.listed",
    "Sieve": "superarm.policies.fast.sieve",
    "SparseSieve": "superarm.policies.fast.sparse_sieve",
}


def _optimistic(confidence: Index, oracle: Oracle = Default(), intake: Intake = Exact()) -> IndexPolicy:  # noqa: B008
    return IndexPolicy(confidence, oracle, intake, NoStart())


def __getattr__(name: str) -> Any:
    """Names of 0.1.0, which warn; they go in the release after next."""
    if name == "Optimistic":
        advice = "write IndexPolicy(..., start=NoStart())"
    elif name in _MOVED:
        advice = "fit chooses it where it pays"
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"superarm.policies.{name} is deprecated: {advice}", DeprecationWarning, stacklevel=2)
    return _optimistic if name == "Optimistic" else getattr(importlib.import_module(_MOVED[name]), name)
