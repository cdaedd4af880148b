r"""Estimators that weight logged slates by propensities, as functions of arrays with one row per round.

Each returns one score per round; the mean of the scores is the estimate. R is the reward of a round, :math:`r_l` that
of slot l, w a ratio of the target's probability to that of the logging policy.
"""

import numpy as np

from superarm.arrays import Floats


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
