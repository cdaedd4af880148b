"""Oracles: algorithms that find a good batch for given parameters.

``base`` holds the family, ``default`` the choice of an oracle for a problem, ``certificate`` upper bounds of the
optimum, and ``branch`` exact search. ``gains`` and ``budgets`` are shared; every other file holds one oracle.
"""

from typing import TYPE_CHECKING

from superarm._renamed import suggest_names
from superarm.oracles.base import Guarantee, Oracle, maximize, solve
from superarm.oracles.branch import exact
from superarm.oracles.certificate import Certificate, Solution, certified, certify, upper_bound
from superarm.oracles.continuous import ContinuousGreedy
from superarm.oracles.cost_benefit import CostBenefit
from superarm.oracles.default import Default
from superarm.oracles.exhaustive import Exhaustive
from superarm.oracles.failing import Failing
from superarm.oracles.greedy import Greedy
from superarm.oracles.greedy_max import GreedyMax
from superarm.oracles.imm import IMM
from superarm.oracles.knapsack_scheme import KnapsackScheme
from superarm.oracles.knapsack_table import KnapsackTable
from superarm.oracles.lazy import LazyGreedy
from superarm.oracles.linearised import Linearised
from superarm.oracles.local_search import LocalSearch
from superarm.oracles.modular import Modular
from superarm.oracles.partial_enumeration import PartialEnumeration
from superarm.oracles.stochastic import StochasticGreedy
from superarm.oracles.top_arms import Reversed, TopArms

__all__ = [
    "IMM",
    "Certificate",
    "ContinuousGreedy",
    "CostBenefit",
    "Default",
    "Exhaustive",
    "Failing",
    "Greedy",
    "GreedyMax",
    "Guarantee",
    "KnapsackScheme",
    "KnapsackTable",
    "LazyGreedy",
    "Linearised",
    "LocalSearch",
    "Modular",
    "Oracle",
    "PartialEnumeration",
    "Reversed",
    "Solution",
    "StochasticGreedy",
    "TopArms",
    "certified",
    "certify",
    "exact",
    "maximize",
    "solve",
    "upper_bound",
]

if not TYPE_CHECKING:
    __getattr__ = suggest_names(__name__)
