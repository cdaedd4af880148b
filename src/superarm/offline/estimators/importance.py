r"""Estimators that weight logged slates by propensities: as functions of arrays with one row per round, and on a log.

Each returns one score per round; the mean of the scores is the estimate. R is the reward of a round, :math:`r_l` that
of slot l, w a ratio of the target's probability to that of the logging policy.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.offline.estimators.entries import entry_means
from superarm.offline.estimators.slates import value_each_slate
from superarm.offline.estimators.targets import SlateMixture

if TYPE_CHECKING:
    from superarm.offline.log import Log

MAX_PAIRS = 3_000
"""The pseudoinverse estimator fits one coefficient per pair of slot and arm; more than so many take too long."""

FOLDS = 5
"""Cross-fitting: the means that predict a round are those of the rounds of the other folds."""


def fold_of_rounds(n_rounds: int) -> Ints:
    """The fold of each round: every fifth round is in the same one."""
    return np.arange(n_rounds) % FOLDS


class RoundScores(NamedTuple):
    """One score per round, whose mean is an estimate; NaN where the round tells nothing.

    ``weight`` are importance weights (n,), for the effective sample size; None where there are none.
    """

    score: Floats
    weight: Floats | None = None


def slate_ips(reward: Floats, weight: Floats) -> Floats:
    """Inverse propensity scores of whole slates, [HorvitzThompson1952]_: the scores w R.

    >>> slate_ips(np.array([1.0, 3.0]), np.array([2.0, 0.0])).mean()
    np.float64(1.0)
    """
    return weight * reward


def slate_snips(reward: Floats, weight: Floats) -> Floats:
    r"""Self-normalised inverse propensity scores: :math:`V + w (R - V)/\bar w` with :math:`V = \sum w R/\sum w`.

    [SwaminathanJoachims2015]_. The scores vary around V as the estimate does, to first order. NaN if all weights are 0.
    """
    total = weight.sum()
    if total == 0.0:
        return np.full(len(reward), np.nan)
    value = (weight * reward).sum() / total
    return np.asarray(value + weight * (reward - value) / weight.mean())


def independent_ips(slot_reward: Floats, weight: Floats) -> Floats:
    r"""Independent IPS: :math:`\sum_l w_l r_l`, where w_l weights the arm of slot l alone, [LiEtAl2018]_.

    ``slot_reward`` and ``weight`` are (n, k).
    """
    return np.asarray((weight * slot_reward).sum(axis=1))


def cascade_ips(slot_reward: Floats, prefix_weight: Floats) -> Floats:
    r"""Reward-interaction IPS: :math:`\sum_l w_{1:l} r_l`, weights of the slots up to l, [McInerneyEtAl2020]_."""
    return np.asarray((prefix_weight * slot_reward).sum(axis=1))


def cascade_dr(slot_reward: Floats, prefix_weight: Floats, q_hat: Floats, v_hat: Floats) -> Floats:
    r"""Cascade doubly robust: :math:`\sum_l [w_{1:l}(r_l - \hat Q_l) + w_{1:l-1}\hat V_l]`, [KiyoharaEtAl2022]_.

    Parameters
    ----------
    slot_reward, prefix_weight
        Rewards of the slots, and weights of the slates up to them, (n, k).
    q_hat
        The predicted reward from slot l on, given the arms up to slot l, (n, k).
    v_hat
        The mean of ``q_hat`` over the arm that the target has in slot l, given the arms before it, (n, k).
    """
    before = np.concatenate([np.ones((len(prefix_weight), 1)), prefix_weight[:, :-1]], axis=1)
    return np.asarray((prefix_weight * (slot_reward - q_hat) + before * v_hat).sum(axis=1))


def pseudoinverse(reward: Floats, features: Floats, target: Floats) -> tuple[Floats, Floats]:
    r"""The pseudoinverse estimator with the second moments of the log: scores (n,), and weights (n,).

    .. math:: V = q^\top \hat\Gamma^\dagger \frac1n \sum_t 1_{A_t} R_t, \qquad
              \hat\Gamma = \frac1n \sum_t 1_{A_t} 1_{A_t}^\top

    where :math:`1_A` marks the pairs of slot and arm of a slate and q is its mean under the target,
    [SwaminathanEtAl2017]_. Differs: :math:`\Gamma` is taken from the log, not from the logging policy, which makes it
    a least-squares fit of R to the pairs. The scores are the influence of each round on V.

    Parameters
    ----------
    reward, features, target
        R (n,), the indicators :math:`1_{A_t}` (n, d), and q (d,).
    """
    moments = features.T @ features / len(features)
    weight = features @ (np.linalg.pinv(moments, hermitian=True) @ target)
    value = float((weight * reward).mean())
    fitted = features @ np.linalg.lstsq(features, reward, rcond=None)[0]
    return np.asarray(value + weight * (reward - fitted)), np.asarray(weight)


def effective_sample_size(weight: Floats) -> float:
    r"""How many unweighted rounds vary as little: :math:`(\sum w)^2/\sum w^2`, [Kish1965]_.

    >>> effective_sample_size(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    square = float((weight**2).sum())
    return float(weight.sum()) ** 2 / square if square > 0.0 else 0.0


# --- the same on a log ---


def known_shares(log: "Log", beginnings: bool = True) -> Floats:
    """Of the rounds with the same slate up to each slot, the share whose reward is known, (n, k).

    Within a group; with ``beginnings=False`` of the rounds with the same arm in that slot. Rounds whose reward is known
    count 1 / share, so that slates with outcomes that were seen seldom are not under-represented.
    """
    known, share = ~np.isnan(log.rewards), np.ones(log.slates.shape)
    if known.all():
        return share
    for slot in range(log.slates.shape[1]):
        part = log.slates[:, 0 if beginnings else slot : slot + 1]
        same = np.unique(np.column_stack([log.groups, part]), axis=0, return_inverse=True)[1].reshape(-1)
        share[:, slot] = (np.bincount(same, known) / np.bincount(same))[same]
    return share


def _of_known(log: "Log", weight: Floats, share: Floats) -> Floats:
    """``weight`` / ``share`` in rounds whose reward is known, else 0; refuse what no known round stands for."""
    if bool(((weight > 0.0) & (share == 0.0)).any()):
        raise InvalidArgument(
            "method", "a slate that the target needs was never seen in full, so that its reward is not known",
            "take 'one_step', 'direct' or 'intervals', which use every outcome that was seen",
        )  # fmt: skip
    known = ~np.isnan(log.rewards).reshape(-1, *[1] * (weight.ndim - 1))
    return np.asarray(np.where(known, weight / np.where(share > 0.0, share, 1.0), 0.0))


def score_logged(log: "Log") -> RoundScores:
    """The rewards of the rounds, for the logged slates: weighted by ``known_shares`` if some round of each is known."""
    share = known_shares(log)[:, -1]
    if not share.all():
        return RoundScores(log.rewards)
    return RoundScores(np.nan_to_num(log.rewards) * _of_known(log, np.ones(log.n_rounds), share))


def score_slate_ips(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Inverse propensity scores of ordered slates."""
    weight = _of_known(log, slate_weights(log, mixture), known_shares(log)[:, -1])
    return RoundScores(slate_ips(np.nan_to_num(log.rewards), weight), weight)


def score_slate_snips(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Self-normalised inverse propensity scores of ordered slates."""
    weight, known = slate_weights(log, mixture), ~np.isnan(log.rewards)
    weight = weight / np.where(known, known_shares(log)[:, -1], 1.0)
    score = np.full(log.n_rounds, np.nan)
    score[known] = slate_snips(log.rewards[known], weight[known])
    return RoundScores(score, np.where(known, weight, 0.0))


def score_independent_ips(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Inverse propensity scores of single arms in their slots."""
    logged = slot_table(log, log.rows.position_propensity)
    weight = _ratio(position_probabilities(log, mixture), logged, log.slates)
    weight = _of_known(log, weight, known_shares(log, beginnings=False))
    score = independent_ips(slot_rewards(log), weight) + log.reward_of_nothing
    return RoundScores(score, weight.max(axis=1))


def score_cascade_ips(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Inverse propensity scores of the beginnings of slates."""
    weight = _of_known(log, prefix_weights(log, mixture), known_shares(log))
    return RoundScores(cascade_ips(slot_rewards(log), weight) + log.reward_of_nothing, weight[:, -1])


def score_cascade_dr(log: "Log", mixture: SlateMixture) -> RoundScores:
    """Cascade doubly robust, with predictions from the means of the other folds of the log."""
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
    known, share = ~np.isnan(log.rewards)[:, None], known_shares(log)
    error = np.where(known, (slot_rewards(log) - q_hat) / np.where(share > 0.0, share, 1.0), 0.0)
    score = cascade_dr(q_hat + error, weight, q_hat, v_hat) + log.reward_of_nothing
    return RoundScores(score, weight[:, -1])


def _predict(
    log: "Log", mixture: SlateMixture, mean: Floats, matches: Bools, rounds: Ints, group: int
) -> tuple[Floats, Floats]:
    """The predicted reward from each slot on, with and without the arm of that slot, (len(rounds), k) each.

    ``matches`` (m, len(rounds), k) says which slates of the mixture begin as the logged one does up to each slot.
    """
    problem, width = log.problem, log.slates.shape[1]
    whole = value_each_slate(problem, mean, mixture.slates)
    share = mixture.shares[group][:, None, None]
    before = np.concatenate([np.ones((*matches.shape[:2], 1), bool), matches[:, :, :-1]], axis=2)
    expected = [np.einsum("m,mnl->nl", whole * share[:, 0, 0], part) for part in (matches, before)]
    chance = [np.maximum((share * part).sum(axis=0), 1e-300) for part in (matches, before)]
    begun = np.empty((len(rounds), width))
    for slot in range(width):
        slates = log.slates[rounds].copy()
        slates[:, slot:] = -1
        distinct, which = np.unique(slates, axis=0, return_inverse=True)
        begun[:, slot] = value_each_slate(problem, mean, distinct)[which.reshape(-1)]
    q_hat = np.where(expected[0] > 0.0, expected[0] / chance[0] - begun, 0.0)
    return q_hat, np.where(expected[1] > 0.0, expected[1] / chance[1] - begun, 0.0)


def score_pseudoinverse(log: "Log", mixture: SlateMixture) -> RoundScores:
    """The pseudoinverse estimator, on the pairs of slot and arm that occur in the log."""
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
    score[known], weight[known] = pseudoinverse(log.rewards[known], features, target)
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


def slot_table(log: "Log", values: Floats) -> Floats:
    """One value per row of the log as a table (n, k); NaN where a slate is shorter."""
    table, own = np.full(log.slates.shape, np.nan), log.rows.slot >= 0
    table[log.rows.round[own], log.rows.slot[own]] = values[own]
    return table


def slot_rewards(log: "Log") -> Floats:
    """What each slot added to the realised reward, (n, k); to be left out in rounds whose reward is not known."""
    return np.nan_to_num(slot_table(log, log.slot_rewards))


def _slot_matches(log: "Log", mixture: SlateMixture) -> Bools:
    """Whether slate m of the mixture has the arm of round n in slot l: (m, n, k)."""
    width = log.slates.shape[1]
    slates = np.pad(mixture.slates, ((0, 0), (0, width)), constant_values=-1)[:, :width]
    return np.asarray(slates[:, None, :] == log.slates[None, :, :])


def prefix_matches(log: "Log", mixture: SlateMixture) -> Bools:
    """Whether slate m of the mixture begins as the slate of round n does, up to slot l: (m, n, k)."""
    return np.asarray(np.minimum.accumulate(_slot_matches(log, mixture), axis=2), bool)


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
    share = mixture.shares[log.groups].T[:, :, None]
    return np.asarray((share * _slot_matches(log, mixture)).sum(axis=0))


def _ratio(chance: Floats, logged: Floats, slates: Ints) -> Floats:
    """The ratio of two probabilities; 0 where a slate is shorter."""
    return np.asarray(np.where(slates >= 0, chance / np.where(slates >= 0, logged, 1.0), 0.0))
