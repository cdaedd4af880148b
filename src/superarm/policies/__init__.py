"""Policies: rules that choose the next batch from what was observed so far.

- ``base.py``, ``traits.py``: the family, its verbs and its optional properties.
- ``index_policy.py``, ``start.py``, ``scoring.py``: policies that score every entry by an index; ``joint_policy.py``,
  ``dependence.py``: the same with estimated dependence between items.
- ``directional_policy.py``, ``directions.py``, ``directional_catalog.py``: one bound per arm, on what it would add.
- ``covariance_policy.py``, ``covariance_regions.py``, ``covariance_catalog.py``: one bonus per batch from covariances.
- ``batch_policy.py``, ``batch_bonus.py``, ``set_bonus.py``, ``set_search.py``: one bonus per batch.
- ``epsilon_greedy.py``, ``one_gaussian.py``, ``uniform.py``: random exploration; ``cascade_catalog.py``: for lists.
- ``forgetting.py``, ``policy_state.py``: windows and discounts, and what such policies keep besides the tally.
- ``contextual/``: policies for decisions with a context; ``fast/``: the same decisions with less work.
"""

from superarm._renamed import old_names
from superarm.policies.base import Policy, Round, choose, learn, prepare
from superarm.policies.batch_bonus import Delta, LeastPlayed
from superarm.policies.batch_policy import BatchPolicy
from superarm.policies.covariance_catalog import escb_c, ols_ucb_c
from superarm.policies.covariance_policy import CovariancePolicy
from superarm.policies.covariance_regions import CovarianceBox, CovarianceEllipsoid
from superarm.policies.directional_catalog import directional_kl_moss, directional_kl_ucb
from superarm.policies.directional_policy import DirectionalPolicy
from superarm.policies.directions import Covariance, Triangle
from superarm.policies.epsilon_greedy import EpsilonGreedy
from superarm.policies.forgetting import Forgetting, blocks_without_moments
from superarm.policies.index_policy import IndexPolicy, screened
from superarm.policies.joint_policy import JointPolicy
from superarm.policies.one_gaussian import OneGaussian
from superarm.policies.policy_state import (
    KeptRows,
    PolicyState,
    block_age,
    forget_alike,
    forgets,
    memory_with_actions,
    plan_refit,
    restore_memory,
    save_state,
)
from superarm.policies.set_bonus import SetBonus
from superarm.policies.set_search import Ascent, EveryBatch
from superarm.policies.shared_draw import SharedDraw
from superarm.policies.start import NoStart, Start, TryEveryArm
from superarm.policies.uniform import Uniform

__all__ = [
    "Ascent",
    "BatchPolicy",
    "Covariance",
    "CovarianceBox",
    "CovarianceEllipsoid",
    "CovariancePolicy",
    "Delta",
    "DirectionalPolicy",
    "EpsilonGreedy",
    "EveryBatch",
    "Forgetting",
    "IndexPolicy",
    "JointPolicy",
    "KeptRows",
    "LeastPlayed",
    "NoStart",
    "OneGaussian",
    "Policy",
    "PolicyState",
    "Round",
    "SetBonus",
    "SharedDraw",
    "Start",
    "Triangle",
    "TryEveryArm",
    "Uniform",
    "block_age",
    "blocks_without_moments",
    "choose",
    "directional_kl_moss",
    "directional_kl_ucb",
    "escb_c",
    "forget_alike",
    "forgets",
    "learn",
    "memory_with_actions",
    "ols_ucb_c",
    "plan_refit",
    "prepare",
    "restore_memory",
    "save_state",
    "screened",
]

__getattr__ = old_names(
    __name__,
    {
        "Fading": "Forgetting",
        "Kept": "PolicyState",
        "Moment": "Round",
        "Optimistic": "superarm.policies.index_policy:without_start",
        "Screened": "superarm.policies.fast.listed:Screened",
        "Sieve": "superarm.policies.fast.sieve:Sieve",
        "SparseSieve": "superarm.policies.fast.sparse_sieve:SparseSieve",
        "kept": "save_state",
        "remembering": "restore_memory",
    },
)
