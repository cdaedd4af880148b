r"""The upper bounds that the paper states or compares with, corrected where its statement is wrong.

Notation as in [MerlisMannor2019]_: L arms, M items, batches of at most K, :math:`\bar M = \sum_i w_i`; sums run over
the arms that belong to some suboptimal batch. All assume the same means in every round, outcomes in [0, 1] that are
independent over rounds, every arm in some batch, and complete feedback before the next round.
"""

import math
from typing import Any

import numpy as np

from superarm.core.arrays import Floats
from superarm.rewards import Coverage, Logistic
from superarm.simulation.instances import Instance
from superarm.theory.bound import (
    BERNSTEIN_FAILURES,
    CHERNOFF_FAILURES,
    Bound,
    Setting,
    grow,
    initial_and_failed,
    rounds,
    setting,
)
from superarm.theory.gaps import Gaps
from superarm.theory.sequences import Sequences, best_sequences, factor, levels


def paper_gamma_g(s: Setting) -> float:
    r"""The bound of :math:`\gamma_g` that [MerlisMannor2019]_ states (section Preliminaries); else the exact value.

    For ``Logistic`` the paper's :math:`\frac14\sqrt{1 + \log c}` is false for c < 0.485 and undefined for c < 1/e.
    """
    reward, exact = s.reward, s.smoothness.gamma_g
    if isinstance(reward, Coverage):
        return 1.0 / math.sqrt(math.e)
    if isinstance(reward, Logistic) and reward.c >= 0.48497:
        return max(exact, math.sqrt(1.0 + math.log(reward.c)) / 4.0)
    return exact


def upper_bound(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""Theorem 1: the regret of BC-UCB, with the paper's constants and its bound of gamma_g.

    .. math:: R(T) \le \Bigl[8640\gamma_g^2\bar M^2 \sum_j \frac{1}{\Delta_{j,\min}} + 340\gamma_\infty\bar M
              \sum_j\Bigl(1 + \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr] k_0^2 \log T
              + L\Delta_{\max}\Bigl(1 + M\frac{2\pi^2}{3}\Bigr)

    [MerlisMannor2019]_ (Theorem 1). Differs: :math:`k_0 = \max(1, \lceil\log_5 K\rceil)`, where the paper's
    :math:`\lceil\log K/1.61\rceil` is 0 for K = 1, which makes the statement false, and too small for K = 626, since
    1.61 > log 5; sums leave out arms in no suboptimal batch. ``known`` gaps are not computed again.

    >>> from superarm.simulation import instances
    >>> bound = upper_bound(instances.disjoint_batches(4), [1, 10**6])
    >>> [f"{x:.4g}" for x in bound.value]
    ['774.5', '7.863e+06']
    """
    s = setting(instance, known)
    k0 = levels(s.k)
    g = 8640.0 * paper_gamma_g(s) ** 2 * s.weight**2 * s.inverse_gaps * k0**2
    inf = 340.0 * s.smoothness.gamma_inf * s.weight * s.log_ratios * k0**2
    return grow("upper_bound", s, horizon, g, inf, initial_and_failed(s, BERNSTEIN_FAILURES))


def upper_bound_gap_free(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""Corollary 1: a bound for BC-UCB that needs no gap but the largest.

    .. math:: R(T) \le 2\sqrt{8640}\,\gamma_g\bar M k_0\sqrt{LT\log T} + u_2\log T\Bigl(2 +
              \log^+\frac{\Delta_{\max}T}{u_2\log T}\Bigr) + L\Delta_{\max}\Bigl(1 + M\frac{2\pi^2}{3}\Bigr),
              \qquad u_2 = 340\gamma_\infty\bar M L k_0^2

    [MerlisMannor2019]_ (Corollary 1). Differs: :math:`\log^+` for log, without which the right-hand side can be
    negative; :math:`k_0` as in :func:`upper_bound`. It holds: let
    :math:`\Delta=\sqrt{u_1\log T/T}+u_2\log T/T`. If :math:`\Delta>\Delta_{\max}`,
    :math:`R(T)\le T\Delta=\sqrt{u_1T\log T}+u_2\log T`. Otherwise the paper's computation holds, and
    :math:`\log(\Delta_{\max}/\Delta)\le\log^+(\Delta_{\max}T/(u_2\log T))`. At T = 1 the growing terms are 0.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_gap_free(instances.disjoint_batches(4), 10**6)):.4g}"
    '6.194e+06'
    """
    s = setting(instance, known)
    k0 = levels(s.k)
    u1 = 8640.0 * paper_gamma_g(s) ** 2 * s.weight**2 * s.n_arms * k0**2
    u2 = 340.0 * s.smoothness.gamma_inf * s.weight * s.n_arms * k0**2

    def slow(t: Floats) -> Floats:
        threshold = u2 * np.log(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(threshold > 0.0, s.largest * t / threshold, 1.0)
        return threshold * (2.0 + np.maximum(0.0, np.log(np.maximum(ratio, 1e-300))))

    terms = (lambda t: 2.0 * np.sqrt(u1 * t * np.log(t)), slow, initial_and_failed(s, BERNSTEIN_FAILURES))
    return Bound("upper_bound_gap_free", rounds(horizon), terms, s.largest, s.alpha)


def upper_bound_sequences(
    instance: Instance | Setting, horizon: Any, known: Gaps | None = None, sequences: Sequences | None = None
) -> Bound:
    r"""Theorem 1 with any sequences :math:`a_k, b_k` in the lemma on small gaps, by default the best that we found.

    .. math:: \Bigl[1728\gamma_g^2\bar M^2\sum_j\frac{1}{\Delta_{j,\min}} + 68\gamma_\infty\bar M\sum_j\Bigl(1 +
              \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\Lambda\log T + L\Delta_{\max}\Bigl(1 +
              M\frac{2\pi^2}{3}\Bigr), \qquad \Lambda = \Bigl(\sum_{k \le k_0}\frac{a_k}{b_k}\Bigr)\ell

    [MerlisMannor2019]_ (lemma sumOfSmallGaps, first form); ``sequences.geometric(k)`` are the paper's. The lemma holds
    for decreasing positive :math:`a_k,b_k` with :math:`b_0=1`, :math:`b_{k_0}\le1/K`, :math:`k_0\ge1`: if no
    :math:`G^k_t` occurs, :math:`|S^k|<Kb_k` for :math:`1\le k\le k_0` and :math:`S^{k_0}=\emptyset`; by Abel summation

    .. math:: \sum_{j\in A_t}\frac{\log t}{N_j}<\frac{\Delta^2}g\sum_{k=1}^{k_0}\frac{|S^{k-1}|-|S^k|}{a_k}
              \le\frac{\Delta^2K}g\ell,\qquad\ell=\sum_{k=1}^{k_0}\frac{b_{k-1}-b_k}{a_k}+\frac{b_{k_0}}{a_{k_0}}.

    >>> from superarm.simulation import instances
    >>> best = upper_bound_sequences(instances.disjoint_batches(8), 10**6)
    >>> bool(best.value < 0.45 * upper_bound(instances.disjoint_batches(8), 10**6).value)
    True
    """
    s = setting(instance, known)
    product = factor(best_sequences(s.k) if sequences is None else sequences, s.k)
    g = 1728.0 * paper_gamma_g(s) ** 2 * s.weight**2 * s.inverse_gaps * product
    inf = 68.0 * s.smoothness.gamma_inf * s.weight * s.log_ratios * product
    return grow("upper_bound_sequences", s, horizon, g, inf, initial_and_failed(s, BERNSTEIN_FAILURES))


def upper_bound_unsplit(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""Theorem 1 for the reward as one function of all K M parameters, without the split into items.

    .. math:: R(T) \le \Bigl[8640\gamma_g^2 M\lVert w\rVert_2^2 \sum_j \frac{1}{\Delta_{j,\min}} + 340\gamma_\infty M
              \max_i w_i\sum_j\Bigl(1 + \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr] k_0(KM)^2 \log T
              + L\Delta_{\max}\Bigl(1 + M\frac{2\pi^2}{3}\Bigr)

    [MerlisMannor2019]_ (first remark after Corollary 1). As one function of its K M parameters the reward has
    :math:`\gamma_g\lVert w\rVert_2` and :math:`\gamma_\infty\max_iw_i`, since
    :math:`\sum_{i,j}p_{ij}(1-p_{ij})(w_i\partial_jr_i)^2\le\gamma_g^2\sum_iw_i^2`: this is Theorem 1 for M L arms in
    batches of K M. It is never
    below :func:`upper_bound`, since :math:`\bar M^2 \le M\lVert w\rVert_2^2` and :math:`\bar M \le M\max_i w_i`, and
    equal to it for one item. It is for comparison: it does not use that a reward is a sum over items.

    >>> from superarm.simulation import instances
    >>> instance = instances.lower_bound(6, 3, n_items=4)
    >>> bool(upper_bound_unsplit(instance, 100).value >= upper_bound(instance, 100).value)
    True
    """
    s = setting(instance, known)
    k0 = levels(s.k * s.n_items)
    g = 8640.0 * paper_gamma_g(s) ** 2 * s.n_items * float(s.weights @ s.weights) * s.inverse_gaps * k0**2
    inf = 340.0 * s.smoothness.gamma_inf * s.n_items * s.weights.max() * s.log_ratios * k0**2
    return grow("upper_bound_unsplit", s, horizon, g, inf, initial_and_failed(s, BERNSTEIN_FAILURES))


def upper_bound_wang_chen(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""CUCB: what smoothness in gamma_inf alone gives, with a factor K where BC-UCB has log K.

    .. math:: R(T) \le \sum_{i,j}\frac{48 B^2 MK\log T}{\Delta_{j,\min}} + 2Bm + m\Delta_{\max}\frac{\pi^2}{3},
              \qquad B = \gamma_\infty\max_i w_i,\ m = ML

    [WangChen2017]_ with the explicit constants of [LiuEtAl2023]_ (Theorem 4, appendix C.1), in the form that
    [MerlisMannor2019]_ compares with. Differs: the last term is printed without m, which the union bound over base
    arms needs.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_wang_chen(instances.disjoint_batches(4), 10**6)):.4g}"
    '4.392e+05'
    """
    s = setting(instance, known)
    b, m = s.smoothness.gamma_inf * s.weights.max(), s.n_items * s.n_arms
    slow = 48.0 * b**2 * s.n_items**2 * s.k * s.inverse_gaps
    return grow("upper_bound_wang_chen", s, horizon, 0.0, slow, 2.0 * b * m + m * s.largest * CHERNOFF_FAILURES)
