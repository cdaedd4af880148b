"""What is evaluated: a slate, a policy or the logged slates, as a mixture of slates for each group of rounds."""

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.learner import Learner
from superarm.policies import forgets
from superarm.policies.traits import is_policy
from superarm.streams import new_stream, seek
from superarm.tally import Feedback

if TYPE_CHECKING:
    from superarm.offline.log import Log

LOGGED = "logged"
"""The name of the target that is the slates of the log."""
DRAWS = 256
"""A policy that draws slates at random is evaluated as the mixture of so many of them."""


class SlateMixture(NamedTuple):
    """Slates (m, k), padded with -1, and the share of each in every group, (n_groups, m); shares add up to 1.

    ``logged`` says that they are the slates of the log itself.
    """

    slates: Ints
    shares: Floats
    logged: bool = False


def is_policy_target(target: Any) -> bool:
    """Whether ``target`` is a policy; an array has a method ``choose``, too."""
    return not isinstance(target, np.ndarray) and is_policy(target)


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
        slates = next_slates(log, target)
        return _one_mixture(log, slates)
    if isinstance(target, dict):
        return _by_group(log, target)
    try:
        slate = log.numbers(target)
    except TypeError:
        raise InvalidArgument("target", f"{target!r}", "give a slate, a dict of slates or a policy") from None
    return _one_mixture(log, _not_empty(slate)[None, :])


def logged_slates(log: "Log") -> SlateMixture:
    """The distinct slates of the log, with their shares in each group."""
    slates, which = np.unique(log.slates, axis=0, return_inverse=True)
    counts = np.zeros((log.n_groups, len(slates)))
    np.add.at(counts, (log.groups, which.reshape(-1)), 1.0)
    return SlateMixture(slates, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0), True)


def _one_mixture(log: "Log", slates: Ints) -> SlateMixture:
    distinct, counts = np.unique(slates, axis=0, return_counts=True)
    return SlateMixture(distinct, np.tile(counts / counts.sum(), (log.n_groups, 1)))


def _by_group(log: "Log", target: dict[Any, Any]) -> SlateMixture:
    names = {str(name): slate for name, slate in target.items()}
    wrong = sorted(set(names) ^ set(log.group_names))
    if wrong:
        known = ", ".join(log.group_names[:5])
        raise InvalidArgument(
            "target", f"{wrong[0]!r} is in only one of target and log", f"give one slate for each group: {known}"
        )
    chosen = [_not_empty(log.numbers(names[name])) for name in log.group_names]
    width = max(len(slate) for slate in chosen)
    slates = np.array([[*slate, *[-1] * (width - len(slate))] for slate in chosen])
    return SlateMixture(slates, np.eye(len(slates)))


def _not_empty(slate: Ints) -> Ints:
    if not len(slate):
        raise InvalidArgument("target", "an empty slate", "give at least one arm")
    return slate


def next_slates(log: "Log", policy: Any) -> Ints:
    """The slates that ``policy`` may play after the log: one, or ``DRAWS`` of them if it draws at random."""
    learner = learn_from(log, policy)
    stream, t = new_stream(np.random.SeedSequence(0)), log.n_rounds + 1
    slates: list[Ints] = []
    for draw in range(DRAWS):
        seek(stream, t, draw)
        before = int(stream.state[0])
        slates.append(learner.choose(t, learner.playable(), stream))
        if int(stream.state[0]) == before:  # it drew no random number
            break
    width = max(len(slate) for slate in slates)
    return np.array([[*slate, *[-1] * (width - len(slate))] for slate in slates])


def new_learner(log: "Log", policy: Any) -> Learner:
    """A learner for the problem of a log that has seen nothing yet."""
    if log.problem.context is not None:
        raise InvalidArgument(
            "target", "a policy, and the problem has a context, which logs do not hold", "give one slate per group"
        )
    return Learner(log.problem, policy, list(log.arms), list(log.items))


def learn_from(log: "Log", policy: Any) -> Learner:
    """A learner that has seen the whole log; a policy that forgets has seen it round by round."""
    learner = new_learner(log, policy)
    if not forgets(policy):
        learner.warm_start(log.tally)
        return learner
    stream = new_stream(np.random.SeedSequence(0))
    for t, feedback in enumerate(feedback_by_round(log), 1):
        learner.pend(feedback.action, t)
        learner.unpend(feedback.action)
        learner.apply(feedback._replace(t=t), stream)
    return learner


def feedback_by_round(log: "Log") -> list[Feedback]:
    """What was observed in each round, as policies take it."""
    ends = np.searchsorted(log.rows.round, np.arange(log.n_rounds + 1))
    inside = log.entries >= 0
    outcome = np.where(log.rows.seen, log.rows.outcome, 0.0)
    return [
        Feedback(n + 1, log.rows.arm[a:b].copy(), outcome[a:b][inside[a:b]], log.rows.seen[a:b][inside[a:b]])
        for n, (a, b) in enumerate(itertools.pairwise(ends))
    ]
