"""What a batch is worth: rewards."""

from superarm.rewards.base import Reward, Smoothness, Terms, absorb, accrue, forget, fresh, gain, gradient, total, value
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
    "absorb",
    "accrue",
    "forget",
    "fresh",
    "gain",
    "gradient",
    "total",
    "value",
]
