"""Policies for decisions with a context: any policy on segments, and policies on linear models.

``segment_policy`` runs any policy on the tally of the user's segment. ``regression`` holds the policies on linear
models, with ``rules`` (how far they explore), ``scoring`` and ``shared_scores`` (estimates and widths of all
entries), ``systems`` (estimates and inverses of several parameter vectors at once) and ``linear_algebra``;
``logistic`` those on logistic models, with ``kept_observations``, ``keeping`` and ``maximum_likelihood`` for refits;
``grouped`` is their exact form for one-hot features. ``catalog`` has the policies by the names of their papers,
``fitting`` says which policy suits which model, and ``forgetting_contexts`` has windows and discounts around any of
them.
"""

from superarm.policies.contextual.catalog import c2_ucb, c3_ucb, comb_lin_ts, logistic_kl_ucb, logistic_ts, vac2_ucb
from superarm.policies.contextual.fitting import for_context, record_as
from superarm.policies.contextual.forgetting_contexts import ContextForgetting
from superarm.policies.contextual.grouped import GroupedPolicy
from superarm.policies.contextual.logistic import LogisticPolicy
from superarm.policies.contextual.maximum_likelihood import Refit
from superarm.policies.contextual.regression import LinearPolicy
from superarm.policies.contextual.rules import Ellipsoid, GaussianPosterior, Rule, VarianceWeighted
from superarm.policies.contextual.segment_policy import SegmentPolicy

__all__ = [
    "ContextForgetting",
    "Ellipsoid",
    "GaussianPosterior",
    "GroupedPolicy",
    "LinearPolicy",
    "LogisticPolicy",
    "Refit",
    "Rule",
    "SegmentPolicy",
    "VarianceWeighted",
    "c2_ucb",
    "c3_ucb",
    "comb_lin_ts",
    "for_context",
    "logistic_kl_ucb",
    "logistic_ts",
    "record_as",
    "vac2_ucb",
]
