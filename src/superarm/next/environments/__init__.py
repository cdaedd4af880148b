"""Environments: what draws the outcomes of batches and knows the true means; for simulation alone."""

from superarm.next.environments.base import Environment
from superarm.next.environments.bernoulli import Bernoulli

__all__ = ["Bernoulli", "Environment"]
