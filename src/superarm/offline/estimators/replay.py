"""Replay: the rounds in which a target agrees with the log."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import Bools
from superarm.core.errors import InvalidArgument
from superarm.offline.estimators.importance import RoundScores
from superarm.offline.estimators.targets import (
    LOGGED,
    PolicyTarget,
    SlateMixture,
    feedback_by_round,
    is_policy_target,
    mix_slates,
    new_learner,
)

if TYPE_CHECKING:
    from superarm.offline.log import Log


def score_replay(log: "Log", target: Any) -> RoundScores:
    """The rewards of the rounds whose logged slate holds the arms that ``target`` would have played; NaN elsewhere.

    A policy starts without data and learns from the rounds in which it agrees with the log, [LiEtAl2011]_. A mixture of
    slates agrees with the probability that it gives to the logged set of arms.
    """
    if isinstance(target, str) and target == LOGGED:
        return RoundScores(log.rewards)
    agreed = replay_policy(log, target) if is_policy_target(target) else _agreements(log, mix_slates(log, target))
    return RoundScores(np.where(agreed, log.rewards, np.nan), agreed.astype(float))


def replay_policy(log: "Log", policy: Any) -> Bools:
    """In which rounds a policy that learns on the way would have played the logged arms, (n,)."""
    target = policy if isinstance(policy, PolicyTarget) else PolicyTarget(policy)
    if log.problem.context is not None or target.explore:
        wrong = "the policy learns in segments" if log.problem.context is not None else "the policy explores besides"
        raise InvalidArgument("method", f"'replay', and {wrong}", "take another method, or a policy without either")
    learner, key = new_learner(log, target.policy), np.zeros(1, np.uint64)
    eligible = learner.playable(target.eligible)
    sets = [frozenset(slate[slate >= 0].tolist()) for slate in log.slates]
    agreed, t = np.zeros(log.n_rounds, bool), 0
    for n, feedback in enumerate(feedback_by_round(log)):
        slate = learner.choose(learner.view(t + 1, key, eligible))
        if frozenset(slate.tolist()) == sets[n]:
            t += 1
            agreed[n] = True
            learner.pend(slate, t)
            learner.unpend(slate)
            learner.apply(replace(feedback, t=t), key)
    return agreed


def _agreements(log: "Log", mixture: SlateMixture) -> Bools:
    """In which rounds a draw from the mixture holds the logged arms, (n,)."""
    sets = np.sort(log.slates, axis=1)
    width = max(sets.shape[1], mixture.slates.shape[1])
    wanted = np.sort(_pad(mixture.slates, width), axis=1)
    rng = np.random.default_rng(0)
    drawn = (
        np.array([rng.choice(len(wanted), p=mixture.shares[g]) for g in log.groups])
        if len(wanted) > 1
        else np.zeros(log.n_rounds, int)
    )
    return np.asarray((wanted[drawn] == np.sort(_pad(sets, width), axis=1)).all(axis=1))


def _pad(slates: Any, width: int) -> Any:
    return np.pad(slates, ((0, 0), (0, width - slates.shape[1])), constant_values=-1)
