"""Policies for decisions with a context: any policy on segments, and policies on linear and logistic models."""

from superarm.next.contextual.catalog import c2_ucb, comb_lin_ts, logistic_kl_ucb, logistic_ts, vac2_ucb
