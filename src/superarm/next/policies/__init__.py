"""Policies: they choose the next batch from the problem and the tally, for all replications at once."""

from superarm.next.policies.base import Policy
from superarm.next.policies.batch import BatchPolicy, Delta, LeastPlayed, SetBonus
from superarm.next.policies.covariance import CovarianceBox, CovarianceEllipsoid, CovariancePolicy
from superarm.next.policies.directional import Covariance, DirectionalPolicy, SampleVariance, Triangle
from superarm.next.policies.forgetting import Forgetting
from superarm.next.policies.functions import policy
from superarm.next.policies.index import IndexPolicy
from superarm.next.policies.wrappers import EpsilonGreedy, OneGaussian, Uniform

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
    "IndexPolicy",
    "LeastPlayed",
    "OneGaussian",
    "Policy",
    "SampleVariance",
    "SetBonus",
    "Triangle",
    "Uniform",
    "policy",
]
