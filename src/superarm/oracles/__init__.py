"""Oracles: algorithms that find a good batch for given parameters, for all replications at once.

base · default: which oracle suits a problem · greedy · heaviest: modular rewards, rankings, linearisation ·
exhaustive · budgets · exchanges: local search, continuous greedy · certificate: bounds of the optimum, exact search ·
subset_search: branch and bound over subsets
"""

from superarm.oracles.base import Guarantee, Oracle, solve
from superarm.oracles.budgets import GreedyMax, KnapsackScheme, KnapsackTable, PartialEnumeration
from superarm.oracles.certificate import Certificate, Solution, certified, certify, exact, upper_bound
from superarm.oracles.default import Default
from superarm.oracles.exchanges import ContinuousGreedy, LocalSearch
from superarm.oracles.exhaustive import Exhaustive
from superarm.oracles.greedy import Greedy, StochasticGreedy
from superarm.oracles.heaviest import Ladder, Linearised, Modular, Reversed, TopArms

__all__ = [
    "Certificate",
    "ContinuousGreedy",
    "Default",
    "Exhaustive",
    "Greedy",
    "GreedyMax",
    "Guarantee",
    "KnapsackScheme",
    "KnapsackTable",
    "Ladder",
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
    "solve",
    "upper_bound",
]
