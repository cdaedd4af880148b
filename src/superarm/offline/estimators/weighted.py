"""Weights of logged slates under a target, and the estimators of ``importance`` on a log."""

from typing import TYPE_CHECKING

import numpy as np

from superarm.arrays import Bools, Floats, Ints
from superarm.errors import InvalidArgument
from superarm.offline.estimators import importance
from superarm.offline.estimators.entries import entry_means
from superarm.offline.estimators.mixture import SlateMixture
from superarm.offline.estimators.model_based import FOLDS, fold_of_rounds
from superarm.offline.estimators.scores import RoundScores
from superarm.offline.estimators.slates import value_each_slate

if TYPE_CHECKING:
    from superarm.offline.log import Log

MAX_PAIRS = 3_000
"""The pseudoinverse estimator fits one coefficient per pair of slot and arm; more than so many take too long."""


def score_slate_ips(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Inverse propensity scores of ordered slates."""
    if mixture.logged:
        return RoundScores(log.rewards)
    weight = slate_weights(log, mixture)
    return RoundScores(importance.slate_ips(log.rewards, weight), weight)


def score_slate_snips(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Self-normalised inverse propensity scores of ordered slates."""
    if mixture.logged:
        return RoundScores(log.rewards)
    weight, known = slate_weights(log, mixture), ~np.isnan(log.rewards)
    score = np.full(log.n_rounds, np.nan)
    score[known] = importance.slate_snips(log.rewards[known], weight[known])
    return RoundScores(score, np.where(known, weight, 0.0))


def score_independent_ips(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Inverse propensity scores of single arms in their slots."""
    if mixture.logged:
        return RoundScores(log.rewards)
    logged = slot_table(log, log.rows.position_propensity)
    weight = _ratio(position_probabilities(log, mixture), logged, log.slates)
    score = importance.independent_ips(slot_rewards(log), weight) + reward_of_nothing(log)
    return RoundScores(score, weight.max(axis=1))


def score_cascade_ips(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Inverse propensity scores of the beginnings of slates."""
    if mixture.logged:
        return RoundScores(log.rewards)
    weight = prefix_weights(log, mixture)
    return RoundScores(importance.cascade_ips(slot_rewards(log), weight) + reward_of_nothing(log), weight[:, -1])


def score_cascade_dr(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Cascade doubly robust, with predictions from the means of the other folds of the log."""
    if mixture.logged:
        return RoundScores(log.rewards)
    weight = prefix_weights(log, mixture)
    q_hat, v_hat = np.zeros(weight.shape), np.zeros(weight.shape)
    folds = fold_of_rounds(log.n_rounds)
    matches = prefix_matches(log, mixture)
    for fold in range(FOLDS):
        mean = entry_means(log, folds != fold).mean
        for group in range(log.n_groups):
            rounds = np.flatnonzero((folds == fold) & (log.groups == group))
            if len(rounds):
                q_hat[rounds], v_hat[rounds] = _predict(log, mixture, mean[group], matches[:, rounds], rounds, group)
    score = importance.cascade_dr(slot_rewards(log), weight, q_hat, v_hat) + reward_of_nothing(log)
    return RoundScores(score, weight[:, -1])


def _predict(
    log: "Log", mixture: SlateMixture, mean: Floats, matches: Bools, rounds: Ints, group: int
) -> tuple[Floats, Floats]:
    """The predicted reward from each slot on, with and without the arm of that slot, (len(rounds), k) each.

    ``matches`` (m, len(rounds), k) says which slates of the mixture begin as the logged one does up to each slot.
    """
    problem, width = log.problem, log.slates.shape[1]
    whole = value_each_slate(problem.reward, problem.terms, mean, mixture.slates)
    share = mixture.shares[group][:, None, None]
    before = np.concatenate([np.ones((*matches.shape[:2], 1), bool), matches[:, :, :-1]], axis=2)
    expected = [np.einsum("m,mnl->nl", whole * share[:, 0, 0], part) for part in (matches, before)]
    chance = [np.maximum((share * part).sum(axis=0), 1e-300) for part in (matches, before)]
    begun = np.empty((len(rounds), width))
    for slot in range(width):
        slates = log.slates[rounds].copy()
        slates[:, slot:] = -1
        distinct, which = np.unique(slates, axis=0, return_inverse=True)
        begun[:, slot] = value_each_slate(problem.reward, problem.terms, mean, distinct)[which.reshape(-1)]
    q_hat = np.where(expected[0] > 0.0, expected[0] / chance[0] - begun, 0.0)
    return q_hat, np.where(expected[1] > 0.0, expected[1] / chance[1] - begun, 0.0)


def score_pseudoinverse(log: "Log", mixture: SlateMixture) -> RoundScores:
    """The pseudoinverse estimator, on the pairs of slot and arm that occur in the log."""
    if mixture.logged:
        return RoundScores(log.rewards)
    width = max(log.slates.shape[1], mixture.slates.shape[1])
    n_pairs = width * log.problem.n_arms
    if n_pairs > MAX_PAIRS:
        wrong = f"{n_pairs} pairs of slot and arm"
        raise InvalidArgument("method", wrong, f"the pseudoinverse estimator takes at most {MAX_PAIRS}")
    known = np.flatnonzero(~np.isnan(log.rewards))
    features = pair_indicators(log.slates, width, log.problem.n_arms)[known]
    target = (group_shares(log)[:, None] * mixture.shares).sum(axis=0) @ pair_indicators(
        mixture.slates, width, log.problem.n_arms
    )
    score, weight = np.full(log.n_rounds, np.nan), np.zeros(log.n_rounds)
    score[known], weight[known] = importance.pseudoinverse(log.rewards[known], features, target)
    return RoundScores(score, weight)


def pair_indicators(slates: Ints, width: int, n_arms: int) -> Floats:
    """Which pairs of slot and arm each slate has, (n, width * n_arms)."""
    marks = np.zeros((len(slates), width * n_arms))
    row, slot = np.nonzero(slates >= 0)
    marks[row, slot * n_arms + slates[row, slot]] = 1.0
    return marks


def group_shares(log: "Log") -> Floats:
    """The share of each group in the rounds, (n_groups,)."""
    return np.bincount(log.groups, minlength=log.n_groups) / max(log.n_rounds, 1)


def reward_of_nothing(log: "Log") -> float:
    """What an empty slate is worth: 0 for most rewards."""
    none = np.full((1, 1), -1)
    return float(value_each_slate(log.problem.reward, log.problem.terms, np.zeros(log.problem.n_entries), none)[0])


def slot_table(log: "Log", values: Floats) -> Floats:
    """One value per row of the log as a table (n, k); NaN where a slate is shorter."""
    table, own = np.full(log.slates.shape, np.nan), log.rows.slot >= 0
    table[log.rows.round[own], log.rows.slot[own]] = values[own]
    return table


def slot_rewards(log: "Log") -> Floats:
    """What each slot added to the realised reward, (n, k); NaN in rounds whose reward is not known."""
    table = np.nan_to_num(slot_table(log, log.slot_rewards))
    table[np.isnan(log.rewards)] = np.nan
    return table


def prefix_matches(log: "Log", mixture: SlateMixture) -> Bools:
    """Whether slate m of the mixture begins as the slate of round n does, up to slot l: (m, n, k)."""
    width = log.slates.shape[1]
    slates = np.full((len(mixture.slates), width), -1)
    slates[:, : min(width, mixture.slates.shape[1])] = mixture.slates[:, :width]
    return np.asarray(np.minimum.accumulate(slates[:, None, :] == log.slates[None, :, :], axis=2), bool)


def whole_matches(log: "Log", mixture: SlateMixture) -> Bools:
    """Whether slate m of the mixture is the slate of round n, in the same order: (m, n)."""
    if mixture.slates.shape[1] > log.slates.shape[1]:
        longer = np.asarray(mixture.slates[:, log.slates.shape[1] :].max(axis=1) >= 0)
        return np.asarray(prefix_matches(log, mixture)[:, :, -1] & ~longer[:, None])
    return np.asarray(prefix_matches(log, mixture)[:, :, -1])


def slate_weights(log: "Log", mixture: SlateMixture) -> Floats:
    """The ratio of the probabilities of each logged slate, in its order, under target and logging policy, (n,)."""
    chance = (mixture.shares[log.groups].T * whole_matches(log, mixture)).sum(axis=0)
    return np.asarray(chance / last_prefix(log))


def last_prefix(log: "Log") -> Floats:
    """The propensity of each whole slate, in its order, (n,); NaN if unknown."""
    sizes = (log.slates >= 0).sum(axis=1)
    table = slot_table(log, log.rows.prefix)
    return np.asarray(table[np.arange(log.n_rounds), np.maximum(sizes - 1, 0)])


def prefix_weights(log: "Log", mixture: SlateMixture) -> Floats:
    """The ratio of the probabilities of the beginning of each logged slate up to each slot, (n, k)."""
    share = mixture.shares[log.groups].T[:, :, None]
    return _ratio((share * prefix_matches(log, mixture)).sum(axis=0), slot_table(log, log.rows.prefix), log.slates)


def position_probabilities(log: "Log", mixture: SlateMixture) -> Floats:
    """The probability of each logged arm in its slot under the target, (n, k)."""
    width = log.slates.shape[1]
    slates = np.full((len(mixture.slates), width), -1)
    slates[:, : min(width, mixture.slates.shape[1])] = mixture.slates[:, :width]
    share = mixture.shares[log.groups].T[:, :, None]
    return np.asarray((share * (slates[:, None, :] == log.slates[None, :, :])).sum(axis=0))


def _ratio(chance: Floats, logged: Floats, slates: Ints) -> Floats:
    """The ratio of two probabilities; 0 where a slate is shorter."""
    return np.asarray(np.where(slates >= 0, chance / np.where(slates >= 0, logged, 1.0), 0.0))
