"""What is evaluated: a slate, a policy or the logged slates, as a mixture of slates for each group of rounds."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.offline.estimators.next_slates import PolicyTarget, next_slates, pad_slates
from superarm.policies.traits import is_policy

if TYPE_CHECKING:
    from superarm.offline.log import Log

LOGGED = "logged"
"""The name of the target that is the slates of the log."""


class SlateMixture(NamedTuple):
    """Slates (m, k), padded with -1, and the share of each in every group, (n_groups, m); shares add up to 1.

    ``logged`` says that they are the slates of the log itself.
    """

    slates: Ints
    shares: Floats
    logged: bool = False


def is_policy_target(target: Any) -> bool:
    """Whether ``target`` is a policy; an array has a method ``choose``, too."""
    return isinstance(target, PolicyTarget) or (not isinstance(target, np.ndarray) and is_policy(target))


def mix_slates(log: "Log", target: Any) -> SlateMixture:
    """The mixture of slates that ``target`` means.

    For a policy, these are the slates that it would play in the round after the log, having learnt from all of it.
    """
    if isinstance(target, SlateMixture):
        return target
    if isinstance(target, str):
        if target != LOGGED:
            raise InvalidArgument("target", f"{target!r}", f"give {LOGGED!r}, a slate or a policy such as kl_ucb()")
        return logged_slates(log)
    if is_policy_target(target):
        return _mix_each_group(next_slates(log, target))
    if isinstance(target, dict):
        return _by_group(log, target)
    if not isinstance(target, Iterable):
        raise InvalidArgument("target", f"{target!r}", "give a slate, a dict of slates or a policy")
    return _mix_each_group([_not_empty(log.numbers(target))[None, :]] * log.n_groups)


def logged_slates(log: "Log") -> SlateMixture:
    """The distinct slates of the log, with their shares in each group."""
    slates, which = np.unique(log.slates, axis=0, return_inverse=True)
    counts = np.zeros((log.n_groups, len(slates)))
    np.add.at(counts, (log.groups, which.reshape(-1)), 1.0)
    return SlateMixture(slates, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0), True)


def _mix_each_group(slates: list[Ints]) -> SlateMixture:
    """The mixture of slates (m, k) drawn for each group, all of them with equal weights."""
    width = max(part.shape[1] for part in slates)
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in slates]
    distinct, which = np.unique(np.concatenate(padded), axis=0, return_inverse=True)
    shares = np.zeros((len(slates), len(distinct)))
    group = np.repeat(np.arange(len(slates)), [len(part) for part in slates])
    np.add.at(shares, (group, which.reshape(-1)), 1.0)
    return SlateMixture(distinct, shares / shares.sum(axis=1, keepdims=True))


def _by_group(log: "Log", target: dict[Any, Any]) -> SlateMixture:
    names = {str(name): slate for name, slate in target.items()}
    wrong = sorted(set(names) ^ set(log.group_names))
    if wrong:
        known = ", ".join(log.group_names[:5])
        raise InvalidArgument(
            "target", f"{wrong[0]!r} is in only one of target and log", f"give one slate for each group: {known}"
        )
    chosen = [_not_empty(log.numbers(names[name])) for name in log.group_names]
    return SlateMixture(pad_slates(chosen), np.eye(len(chosen)))


def _not_empty(slate: Ints) -> Ints:
    if not len(slate):
        raise InvalidArgument("target", "an empty slate", "give at least one arm")
    return slate
