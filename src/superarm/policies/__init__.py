"""Policies: they choose the next batch from the problem and the tally, for all replications at once.

base · memory: what a policy knows · index: score every entry, then maximise · single_seed: one random
number for all entries · hybrid: regularised leader with importance weights · directional, covariance, batch: one bound
per arm or batch · pooling, pooled, baseline: a prior fitted to all arms, sampling from it, and starting from a list ·
total: learning from totals of batches · dirichlet: sampling the distributions of scores ·
spending: ladders and sets within a mean spend · forgetting, wrappers: around other policies, and a policy as two
functions · catalog: policies by their names in the papers, all of which are also here
"""

from superarm.policies import catalog
from superarm.policies.base import Policy
from superarm.policies.batch import BatchPolicy, Delta, SetBonus
from superarm.policies.catalog import *  # noqa: F403
from superarm.policies.covariance import CovarianceBox, CovarianceEllipsoid, CovariancePolicy
from superarm.policies.directional import Covariance, DirectionalPolicy, SampleVariance, Triangle
from superarm.policies.dirichlet import Shapes
from superarm.policies.forgetting import Forgetting
from superarm.policies.hybrid import Hybrid
from superarm.policies.index import IndexPolicy
from superarm.policies.memory import Memory
from superarm.policies.pooled import PooledThompson
from superarm.policies.single_seed import SingleSeed
from superarm.policies.spending import SpendLadder, SpendSet
from superarm.policies.total import GreedyThenCommit, TotalThompson
from superarm.policies.wrappers import EpsilonGreedy, OneGaussian, Uniform, policy

__all__ = [
    "BatchPolicy",
    "Covariance",
    "CovarianceBox",
    "CovarianceEllipsoid",
    "CovariancePolicy",
    "Delta",
    "DirectionalPolicy",
    "EpsilonGreedy",
    "Forgetting",
    "GreedyThenCommit",
    "Hybrid",
    "IndexPolicy",
    "Memory",
    "OneGaussian",
    "Policy",
    "PooledThompson",
    "SampleVariance",
    "SetBonus",
    "Shapes",
    "SingleSeed",
    "SpendLadder",
    "SpendSet",
    "TotalThompson",
    "Triangle",
    "Uniform",
    "policy",
]
__all__ += catalog.__all__
