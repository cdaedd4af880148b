"""Policies for decisions with a context: any policy on segments, and policies on linear and logistic models.

base: what they have in common · segments: any policy on the tally of the user's segment, and one model for all
segments · rules: how far policies on linear models explore · ridge: estimates and widths · linear, logistic: policies
on regression models · kept: observations kept for refits · history: what an agent keeps · catalog: policies by the
names of their papers
"""

from superarm.contextual import catalog
from superarm.contextual.base import ContextPolicy
from superarm.contextual.catalog import *  # noqa: F403
from superarm.contextual.catalog import for_context
from superarm.contextual.history import ContextHistory, DecisionContext, feature_names
from superarm.contextual.linear import LinearPolicy
from superarm.contextual.logistic import GroupedPolicy, LogisticPolicy
from superarm.contextual.rules import Ellipsoid, GaussianPosterior, Rule, VarianceWeighted
from superarm.contextual.segments import SegmentPolicy

__all__ = [
    "ContextHistory",
    "ContextPolicy",
    "DecisionContext",
    "Ellipsoid",
    "GaussianPosterior",
    "GroupedPolicy",
    "LinearPolicy",
    "LogisticPolicy",
    "Rule",
    "SegmentPolicy",
    "VarianceWeighted",
    "feature_names",
    "for_context",
]
__all__ += catalog.__all__
