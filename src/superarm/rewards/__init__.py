"""Rewards: functions from a batch and its parameters to a number, defined item by item.

``base`` holds the family and the only loops over items; ``coverage``, ``logistic``, ``linear``, ``conjunctive`` and
``spread`` hold the rewards.
"""

from superarm._renamed import old_names
from superarm.rewards.base import (
    Reward,
    Smoothness,
    Terms,
    clear_batch,
    gain,
    gradient,
    initial_states,
    join_arm,
    join_batch,
    value,
    value_of_states,
)
from superarm.rewards.conjunctive import Conjunctive
from superarm.rewards.coverage import Coverage
from superarm.rewards.linear import ClippedLinear, Linear
from superarm.rewards.logistic import Logistic
from superarm.rewards.spread import Spread

__all__ = [
    "ClippedLinear",
    "Conjunctive",
    "Coverage",
    "Linear",
    "Logistic",
    "Reward",
    "Smoothness",
    "Spread",
    "Terms",
    "clear_batch",
    "gain",
    "gradient",
    "initial_states",
    "join_arm",
    "join_batch",
    "value",
    "value_of_states",
]

__getattr__ = old_names(
    __name__,
    {
        "absorb": "join_arm",
        "accrue": "join_batch",
        "forget": "clear_batch",
        "fresh": "initial_states",
        "total": "value_of_states",
    },
)
