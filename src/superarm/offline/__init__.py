"""Logs of past decisions: evaluate any slate or policy offline, learn from what they hold, and report the uncertainty.

A log holds rounds: what was shown, what came of it and, where known, with which probability it was shown.

- ``log.py``: :class:`Log`; ``formats``: logs from files, frames and arrays.
- ``estimators``: every estimator of what a slate or a policy is worth.
- ``value.py``, ``result.py``: the values of targets, with intervals, differences from a baseline and warnings;
  ``page.py``: a page of them; ``commands.py``: commands.
- ``assumption.py``, ``check.py``: the test of the semi-bandit assumption, and what a log holds.
- ``learning.py``: the slate to ship, by pessimism, its guarantee, and whether the best slate is known;
  ``mean_sequences.py``: intervals for means of rewards that hold at all times.
- ``positions.py``: how likely each slot is looked at, and outcomes corrected for that.
- ``simulated.py``, ``inclusion.py``: logs of which the truth is known, and the probabilities in them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm.offline.assumption import AssumptionTest
    from superarm.offline.check import LogCheck
    from superarm.offline.estimators.methods import METHODS
    from superarm.offline.inclusion import explored_inclusion, explored_positions
    from superarm.offline.learning import (
        Convergence,
        Recommendation,
        certify_convergence,
        clcb_bound,
        kl_clcb_bound,
    )
    from superarm.offline.log import Log, LogRows
    from superarm.offline.positions import Positions
    from superarm.offline.result import PolicyValue, ValueInterval
    from superarm.offline.simulated import simulate_log
    from superarm.offline.value import LogComparison

_HOMES = {
    "METHODS": "estimators.methods",
    "AssumptionTest": "assumption",
    "Convergence": "learning",
    "Log": "log",
    "LogCheck": "check",
    "LogComparison": "value",
    "LogRows": "log",
    "PolicyValue": "result",
    "Positions": "positions",
    "Recommendation": "learning",
    "ValueInterval": "result",
    "certify_convergence": "learning",
    "clcb_bound": "learning",
    "explored_inclusion": "inclusion",
    "explored_positions": "inclusion",
    "kl_clcb_bound": "learning",
    "simulate_log": "simulated",
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
    "Positions",
    "Recommendation",
    "ValueInterval",
    "certify_convergence",
    "clcb_bound",
    "explored_inclusion",
    "explored_positions",
    "kl_clcb_bound",
    "simulate_log",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that the command line starts at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
