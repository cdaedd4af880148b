"""The direct method and the entrywise one-step estimator: means of entries in the reward, and a correction."""

from typing import TYPE_CHECKING

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.offline.estimators.entries import entry_means, seen_shares
from superarm.offline.estimators.importance import FOLDS, RoundScores, fold_of_rounds
from superarm.offline.estimators.slates import CELLS, mean_slopes, slate_slopes, value_each_slate
from superarm.offline.estimators.targets import SlateMixture

if TYPE_CHECKING:
    from superarm.offline.log import Log


def score_direct(log: "Log", mixture: SlateMixture) -> RoundScores:
    r"""The direct method: :math:`r(A; \hat p)` at the means of the log, and each round's influence on it.

    .. math:: V = \sum_g \frac{n_g}{n} E_{A \sim \pi_g} r(A; \hat p_g)

    The score of a round is :math:`V + n_g \sum_{ij} \frac{c_{ij}}{N_{ij}}(X_{ij} - \hat p_{ij})` over what was observed
    in it, with the derivatives c of the first term. The corrections add up to 0; their spread is that of V, whatever
    the dependence of the outcomes of a round.
    """
    check_additive(log)
    means = entry_means(log)
    scale = np.bincount(log.groups, minlength=log.n_groups) / np.maximum(means.seen, 1.0).T
    values, slopes = _values_and_slopes(log, mixture, means.mean)
    shares = np.bincount(log.groups, minlength=log.n_groups) / max(log.n_rounds, 1)
    return RoundScores(float(shares @ values) + _corrections(log, slopes * scale.T, means.mean, None))


def score_one_step(log: "Log", mixture: SlateMixture) -> RoundScores:
    r"""The entrywise one-step estimator: the direct method, corrected by the errors of its predictions.

    .. math:: V = \frac1n \sum_t \Bigl\{ E_{A \sim \pi} r(A; \hat p)
              + \sum_{j \in A_t} \sum_i \frac{c_{ij}\,o_{t,ij}}{e_{t,j}\,\hat s_{ij}} (X_{t,ij} - \hat p_{ij}) \Bigr\}

    where :math:`c_{ij} = E_{A \sim \pi}[\partial r(A; \hat p)/\partial p_{ij}]`, :math:`e_{t,j}` is the probability
    that the slate of round t contains arm j, :math:`o_{t,ij}` is 1 if the outcome was seen, and :math:`\hat p` and
    :math:`\hat s` are the means of the other folds and the share of outcomes seen in them. It is the first-order
    expansion of r, so its error is the product of the errors of :math:`\hat p` and :math:`e \hat s`, plus a
    second-order term from the curvature of r; for a linear reward it is the doubly robust estimator of single arms.
    Whether an outcome is seen must not depend on what it is. Derived for superarm (``docs/theory/offline.md``), after
    [RobinsRotnitzkyZhao1994]_ and [ChernozhukovEtAl2018]_.
    """
    check_additive(log)
    score, folds = np.zeros(log.n_rounds), fold_of_rounds(log.n_rounds)
    for fold in range(FOLDS):
        mean, here = entry_means(log, folds != fold).mean, folds == fold
        share = seen_shares(log, folds != fold)
        if mixture.logged:
            score[here] = _logged_scores(log, mean, share)[here]
            continue
        values, slopes = _values_and_slopes(log, mixture, mean)
        score[here] = (values[log.groups] + _corrections(log, slopes / share, mean, log.rows.inclusion))[here]
    return RoundScores(score)


def check_additive(log: "Log") -> None:
    """Refuse rewards that have no derivatives entry by entry."""
    if not log.problem.reward.additive:
        raise InvalidArgument("method", "the reward is not a sum over items", "take method='intervals'")


def _values_and_slopes(log: "Log", mixture: SlateMixture, mean: Floats) -> tuple[Floats, Floats]:
    """The target's value in each group, (n_groups,), and its derivatives, (n_groups, n_entries)."""
    values, slopes = np.zeros(log.n_groups), np.zeros(mean.shape)
    for g in range(log.n_groups):
        values[g] = mixture.shares[g] @ value_each_slate(log.problem, mean[g], mixture.slates)
        slopes[g] = mean_slopes(log.problem, mean[g], mixture.slates, mixture.shares[g])
    return values, slopes


def _corrections(log: "Log", slopes: Floats, mean: Floats, inclusion: Floats | None) -> Floats:
    """The sum over the observations of each round of slope times error, divided by ``inclusion`` if given, (n,)."""
    group = log.groups[log.rows.round][:, None]
    error = np.where(log.observed, log.rows.outcome - mean[group, log.entries], 0.0)
    part = (slopes[group, log.entries] * error).sum(axis=1)
    if inclusion is not None:
        part = np.where(part == 0.0, 0.0, part / inclusion)
    return np.bincount(log.rows.round, part, log.n_rounds).astype(float)


def _logged_scores(log: "Log", mean: Floats, share: Floats) -> Floats:
    """The one-step scores of the logged slates: the value of each at the means, plus slopes times errors over shares.

    ``share`` is how often each entry is seen, (n_groups, n_entries).
    """
    rows, score, error = log.rows, np.zeros(log.n_rounds), np.zeros(log.rows.outcome.shape)
    shown, step = np.flatnonzero(rows.slot >= 0), max(1, CELLS // (log.problem.n_items * log.slates.shape[1]))
    for g in range(log.n_groups):
        every, own = np.flatnonzero(log.groups == g), shown[log.groups[rows.round[shown]] == g]
        score[every] = value_each_slate(log.problem, mean[g], log.slates[every])
        for n in range(0, len(every), step):
            rounds = every[n : n + step]
            part = own[(rows.round[own] >= rounds[0]) & (rows.round[own] <= rounds[-1])]
            slopes = slate_slopes(log.problem, mean[g], log.slates[rounds])
            slopes = slopes[np.searchsorted(rounds, rows.round[part]), rows.slot[part]]
            off = (rows.outcome[part] - mean[g][log.entries[part]]) / share[g][log.entries[part]]
            error[part] = np.where(log.observed[part], slopes * off, 0.0)
    return np.asarray(score + np.bincount(rows.round, error.sum(axis=1), log.n_rounds))
