"""Logs of past decisions: evaluate any slate or policy offline, learn from what they hold, and report the uncertainty.

A log holds rounds: what was shown, what came of it and, where known, with which probability it was shown. The public
names are loaded when they are first used.

- ``log.py``, ``rows.py``: :class:`Log`; ``formats``: logs from files, frames and arrays.
- ``estimators``: every estimator of what a slate or a policy is worth.
- ``value.py``, ``result.py``: the value of a target, with an interval and its difference from a baseline;
  ``cautions.py``: warnings.
- ``assumption.py``, ``check.py``: the test of the semi-bandit assumption, and what a log holds.
- ``learning.py``: the slate to ship, by pessimism, and its guarantee; ``convergence.py``: whether the best slate is
  known; ``mean_sequences.py``: intervals for means of rewards that hold at all times.
- ``comparison.py``, ``page.py``: several targets side by side, as text and as a page; ``commands.py``: commands.
- ``simulated.py``, ``inclusion.py``: logs of which the truth is known, and the probabilities in them;
  ``validation.py``: the estimators against that truth.
"""

from typing import TYPE_CHECKING

from superarm._renamed import load_on_use

if TYPE_CHECKING:
    from superarm.offline.assumption import AssumptionTest
    from superarm.offline.check import LogCheck
    from superarm.offline.comparison import LogComparison
    from superarm.offline.convergence import Convergence, certify_convergence
    from superarm.offline.estimators.methods import METHODS
    from superarm.offline.inclusion import explored_inclusion, explored_positions
    from superarm.offline.learning import Recommendation, clcb_bound, kl_clcb_bound
    from superarm.offline.log import Log
    from superarm.offline.result import PolicyValue, ValueInterval
    from superarm.offline.rows import LogRows
    from superarm.offline.simulated import simulate_log

_HOMES = {
    "assumption": "AssumptionTest",
    "check": "LogCheck",
    "comparison": "LogComparison",
    "convergence": "Convergence certify_convergence",
    "estimators.methods": "METHODS",
    "inclusion": "explored_inclusion explored_positions",
    "learning": "Recommendation clcb_bound kl_clcb_bound",
    "log": "Log",
    "result": "PolicyValue ValueInterval",
    "rows": "LogRows",
    "simulated": "simulate_log",
}

__all__ = [
    "METHODS",
    "AssumptionTest",
    "Convergence",
    "Log",
    "LogCheck",
    "LogComparison",
    "LogRows",
    "PolicyValue",
    "Recommendation",
    "ValueInterval",
    "certify_convergence",
    "clcb_bound",
    "explored_inclusion",
    "explored_positions",
    "kl_clcb_bound",
    "simulate_log",
]

__getattr__ = load_on_use(__name__, _HOMES)
