"""Which batch next: policies."""

from superarm.policies.base import Moment, Policy, choose, learn, prepare
from superarm.policies.batch_bonus import Delta, LeastPlayed
from superarm.policies.batch_policy import BatchPolicy
from superarm.policies.epsilon_greedy import EpsilonGreedy
from superarm.policies.fading import Fading
from superarm.policies.index_policy import IndexPolicy
from superarm.policies.joint_policy import JointPolicy
from superarm.policies.keeping import Kept, block_age, forget_alike, forgets, kept, remembering
from superarm.policies.one_gaussian import OneGaussian
from superarm.policies.optimistic import Optimistic
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
    "Fading",
    "IndexPolicy",
    "JointPolicy",
    "Kept",
    "LeastPlayed",
    "Moment",
    "OneGaussian",
    "Optimistic",
    "Policy",
    "Screened",
    "SetBonus",
    "Sieve",
    "SparseSieve",
    "Uniform",
    "block_age",
    "choose",
    "forget_alike",
    "forgets",
    "kept",
    "learn",
    "prepare",
    "remembering",
    "screened",
]
