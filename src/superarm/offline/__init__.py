"""Logs of past decisions: evaluate any slate or policy offline, learn from what is there, and say how sure it is.

A log holds rounds: what was shown, what came of it and, where known, with which probability it was shown.

- ``log.py``, ``rows.py``: :class:`Log`; ``formats``: logs from files, frames and arrays.
- ``estimators``: every estimator of what a slate or a policy is worth.
- ``value.py``, ``result.py``: the value of a target, with an interval and its difference from a baseline;
  ``cautions.py``: warnings.
- ``assumption.py``, ``check.py``: the test of the semi-bandit assumption, and what a log holds.
- ``learning.py``: the slate to ship, by pessimism, and its guarantee.
- ``comparison.py``: several targets side by side.
- ``simulated.py``, ``inclusion.py``: logs of which the truth is known, and the probabilities in them.
"""

from superarm.offline.assumption import AssumptionTest
from superarm.offline.check import LogCheck
from superarm.offline.comparison import LogComparison
from superarm.offline.estimators.methods import METHODS
from superarm.offline.inclusion import explored_inclusion
from superarm.offline.learning import Recommendation, clcb_bound, kl_clcb_bound
from superarm.offline.log import Log
from superarm.offline.result import PolicyValue, ValueInterval
from superarm.offline.rows import LogRows
from superarm.offline.simulated import simulate_log

__all__ = [
    "METHODS",
    "AssumptionTest",
    "Log",
    "LogCheck",
    "LogComparison",
    "LogRows",
    "PolicyValue",
    "Recommendation",
    "ValueInterval",
    "clcb_bound",
    "explored_inclusion",
    "kl_clcb_bound",
    "simulate_log",
]
