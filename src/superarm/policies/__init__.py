"""Which batch next: policies."""

from superarm.policies.base import Policy, Round, choose, learn, prepare
from superarm.policies.batch_bonus import Delta, LeastPlayed
from superarm.policies.batch_policy import BatchPolicy
from superarm.policies.epsilon_greedy import EpsilonGreedy
from superarm.policies.forgetting import Forgetting
from superarm.policies.index_policy import IndexPolicy
from superarm.policies.joint_policy import JointPolicy
from superarm.policies.one_gaussian import OneGaussian
from superarm.policies.optimistic import Optimistic
from superarm.policies.policy_state import PolicyState, block_age, forget_alike, forgets, restore_memory, save_state
from superarm.policies.screened import Screened, screened
from superarm.policies.set_bonus import SetBonus
from superarm.policies.set_search import Ascent, EveryBatch
from superarm.policies.sieve import Sieve
from superarm.policies.sparse_sieve import SparseSieve
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
    "OneGaussian",
    "Optimistic",
    "Policy",
    "PolicyState",
    "Round",
    "Screened",
    "SetBonus",
    "Sieve",
    "SparseSieve",
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
