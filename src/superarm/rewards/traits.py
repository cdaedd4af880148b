"""Optional properties of rewards, one accessor for each: see ``RewardHooks``."""

from typing import Any

from superarm.parameters import has_method
from superarm.rewards.base import Reward


def is_reward(value: Any) -> bool:
    """Whether ``value`` is a reward, rather than a class of rewards or something else."""
    return has_method(value, "join") and not isinstance(value, str | bytes)  # "a".join is another one


def monotone(reward: Reward) -> bool:
    """Whether no arm lowers the value; True by default."""
    return bool(getattr(reward, "monotone", True))


def gains_shrink(reward: Reward) -> bool:
    """Whether gains never grow as the batch grows even in rounded arithmetic; False by default."""
    return bool(getattr(reward, "gains_shrink", False))


def linear_gain(reward: Reward) -> bool:
    """Whether the gain of an arm is linear in its parameters, given the batch; False by default."""
    return bool(getattr(reward, "linear_gain", False))


def additive(reward: Reward) -> bool:
    """Whether r(A; p) is a sum over items; False if the reward defines ``value``."""
    return not has_method(reward, "value")
