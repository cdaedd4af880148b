"""What a reward says of itself beyond the protocol, with one accessor for each: see ``RewardHooks``."""

from typing import Any

from superarm.parameters import has_method
from superarm.rewards.base import Reward


def is_reward(value: Any) -> bool:
    """Whether ``value`` is a reward, rather than a class of rewards or something else."""
    return has_method(value, "join")


def monotone(reward: Reward) -> bool:
    """Whether an arm never takes worth away; True unless the reward says otherwise."""
    return bool(getattr(reward, "monotone", True))


def gains_shrink(reward: Reward) -> bool:
    """Whether gains, rounded as they are, never grow as a batch grows; False unless the reward says so."""
    return bool(getattr(reward, "gains_shrink", False))


def additive(reward: Reward) -> bool:
    """Whether r(A; p) is the sum of what its items are worth; not if the reward has a ``value`` of its own."""
    return not has_method(reward, "value")
