"""Policies: they choose the next batch from the problem and the tally, for all replications at once."""

from superarm.next.policies.base import Policy
from superarm.next.policies.functions import policy
from superarm.next.policies.index import IndexPolicy

__all__ = ["IndexPolicy", "Policy", "policy"]
