r"""Upper bounds of the regret on a given instance, one function per theorem.

Notation as in [MerlisMannor2019]_: L arms, M items, batches of at most K, :math:`\bar M = \sum_i w_i`; sums run over
the arms that belong to some suboptimal batch. Proofs of everything that is not in the paper: ``docs/theory``.
"""

import math
from typing import Any

import numpy as np

from superarm.arrays import Floats
from superarm.simulation.instances import Instance
from superarm.theory.bound import Bound, Setting, assemble, rounds, setting
from superarm.theory.gaps import Gaps
from superarm.theory.labels import LABELS
from superarm.theory.sequences import Sequences, factor, geometric, levels

_BERNSTEIN = 2.0 * math.pi**2 / 3.0
"""The sum over t of P(H_t) per entry, for BC-UCB: the sum of 4 t^-2."""

_CHERNOFF = math.pi**2 / 3.0
"""The same for the KL and the Hoeffding index: the sum of 2 t^-2."""


def upper_bound(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""Theorem 1: the regret of BC-UCB, with the paper's constants and its bound of gamma_g.

    .. math:: R(T) \le \Bigl[8640\gamma_g^2\bar M^2 \sum_j \frac{1}{\Delta_{j,\min}} + 340\gamma_\infty\bar M
              \sum_j\Bigl(1 + \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr] k_0^2 \log T
              + L\Delta_{\max}\Bigl(1 + M\frac{2\pi^2}{3}\Bigr)

    [MerlisMannor2019]_ (Theorem 1). Differs: :math:`k_0 = \max(1, \lceil\log_5 K\rceil)`, where the paper's
    :math:`\lceil\log K/1.61\rceil` is 0 for K = 1, which makes the statement false, and too small for K = 626, since
    1.61 > log 5; sums leave out arms in no suboptimal batch. ``known`` gaps are not computed again.

    >>> import superarm as sa
    >>> bound = upper_bound(sa.instances.disjoint_batches(4), [1, 10**6])
    >>> [f"{x:.4g}" for x in bound.value]
    ['774.5', '7.863e+06']
    """
    return theorem(setting(instance, known), horizon)


def theorem(s: Setting, horizon: Any) -> Bound:
    """:func:`upper_bound` of given numbers."""
    k0 = levels(s.k)
    g = 8640.0 * s.gamma_g_paper**2 * s.weight**2 * s.inverse_gaps * k0**2
    inf = 340.0 * s.smoothness.gamma_inf * s.weight * s.log_ratios(1.0) * k0**2
    return assemble(LABELS["upper_bound"], horizon, g, inf, _constant(s, 1.0, _BERNSTEIN))


def _constant(s: Setting, rounds_per_arm: float, failures: float) -> float:
    r""":math:`L\Delta_{\max}(rounds + M failures)`: initial rounds, and rounds in which some interval fails."""
    return s.n_arms * s.largest * (rounds_per_arm + s.n_items * failures)


def upper_bound_gap_free(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""Corollary 1: a bound for BC-UCB that needs no gap but the largest.

    .. math:: R(T) \le 2\sqrt{8640}\,\gamma_g\bar M k_0\sqrt{LT\log T} + u_2\log T\Bigl(2 +
              \log^+\frac{\Delta_{\max}T}{u_2\log T}\Bigr) + L\Delta_{\max}\Bigl(1 + M\frac{2\pi^2}{3}\Bigr),
              \qquad u_2 = 340\gamma_\infty\bar M L k_0^2

    [MerlisMannor2019]_ (Corollary 1). Differs: :math:`\log^+` for log, without which the right-hand side can be
    negative; :math:`k_0` as in :func:`upper_bound`.

    >>> import superarm as sa
    >>> f"{float(upper_bound_gap_free(sa.instances.disjoint_batches(4), 10**6)):.4g}"
    '6.194e+06'
    """
    return corollary(setting(instance, known), horizon)


def corollary(s: Setting, horizon: Any) -> Bound:
    """:func:`upper_bound_gap_free` of given numbers."""
    k0 = levels(s.k)
    u1 = 8640.0 * s.gamma_g_paper**2 * s.weight**2 * s.n_arms * k0**2
    u2 = 340.0 * s.smoothness.gamma_inf * s.weight * s.n_arms * k0**2

    def slow(t: Floats) -> Floats:
        threshold = u2 * np.log(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(threshold > 0.0, s.largest * t / threshold, 1.0)
        return threshold * (2.0 + np.maximum(0.0, np.log(np.maximum(ratio, 1e-300))))

    return assemble(
        LABELS["upper_bound_gap_free"],
        horizon,
        lambda t: 2.0 * np.sqrt(u1 * t * np.log(t)),
        slow,
        _constant(s, 1.0, _BERNSTEIN),
    )


def upper_bound_sequences(
    instance: Instance, horizon: Any, sequences: Sequences | None = None, known: Gaps | None = None
) -> Bound:
    r"""Theorem 1 with any sequences :math:`a_k, b_k` in the lemma on small gaps, by default the paper's.

    .. math:: \Bigl[1728\gamma_g^2\bar M^2\sum_j\frac{1}{\Delta_{j,\min}} + 68\gamma_\infty\bar M\sum_j\Bigl(1 +
              \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\Lambda\log T + L\Delta_{\max}\Bigl(1 +
              M\frac{2\pi^2}{3}\Bigr), \qquad \Lambda = \Bigl(\sum_{k \le k_0}\frac{a_k}{b_k}\Bigr)\ell

    [MerlisMannor2019]_ (lemma sumOfSmallGaps, first form); ``theory.best_sequences(k)`` are the best that we found.

    >>> import superarm as sa
    >>> best = upper_bound_sequences(sa.instances.disjoint_batches(8), 10**6, sa.theory.best_sequences(8))
    >>> bool(best.value < 0.45 * upper_bound(sa.instances.disjoint_batches(8), 10**6).value)
    True
    """
    s = setting(instance, known)
    product = factor(geometric(s.k) if sequences is None else sequences, s.k)
    g = 1728.0 * s.gamma_g_paper**2 * s.weight**2 * s.inverse_gaps * product
    inf = 68.0 * s.smoothness.gamma_inf * s.weight * s.log_ratios(1.0) * product
    return assemble(LABELS["upper_bound_sequences"], horizon, g, inf, _constant(s, 1.0, _BERNSTEIN))


def upper_bound_sharp(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""BC-UCB with sharper constants: the exact gamma_g, the sensitivity lemma with 2, reverse amortisation.

    .. math:: R(T) \le \sum_j\Bigl[\frac{384\gamma_g^2\bar M^2(2 + \log K)}{\Delta_{j,\min}} + 112\gamma_\infty\bar M
              \Bigl(1 + \log K + \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\log T
              + L\Delta_{\max}\Bigl(2 + M\frac{2\pi^2}{3}\Bigr)

    Derived for superarm (``docs/theory/bc-ucb.md``) from the algorithm of [MerlisMannor2019]_ with the amortisation of
    [LiuEtAl2023]_.

    >>> import superarm as sa
    >>> f"{float(upper_bound_sharp(sa.instances.disjoint_batches(4), 10**6)):.4g}"
    '1.216e+06'
    """
    return sharp(setting(instance, known), horizon)


def sharp(s: Setting, horizon: Any) -> Bound:
    """:func:`upper_bound_sharp` of given numbers."""
    log_k = math.log(s.k)
    g = 384.0 * s.smoothness.gamma_g**2 * s.weight**2 * (2.0 + log_k) * s.inverse_gaps
    inf = 112.0 * s.smoothness.gamma_inf * s.weight * s.log_ratios(1.0 + log_k)
    return assemble(LABELS["upper_bound_sharp"], horizon, g, inf, _constant(s, 2.0, _BERNSTEIN))


def upper_bound_kl(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""KL-UCB with exploration :math:`3\log t`, that is ``kl_ucb(rho=3, c=0)``: no term in gamma_inf at all.

    .. math:: R(T) \le 96\gamma_g^2\bar M^2(2 + \log K)\sum_j\frac{\log T}{\Delta_{j,\min}}
              + L\Delta_{\max}\Bigl(2 + M\frac{\pi^2}{3}\Bigr)

    Derived for superarm (``docs/theory/kl-ucb.md``) for the index of [GarivierCappe2011]_ and the setting of
    [MerlisMannor2019]_.

    >>> import superarm as sa
    >>> f"{float(upper_bound_kl(sa.instances.disjoint_batches(4), 10**6)):.4g}"
    '1.862e+05'
    """
    return kl(setting(instance, known), horizon)


def kl(s: Setting, horizon: Any) -> Bound:
    """:func:`upper_bound_kl` of given numbers."""
    g = 96.0 * s.smoothness.gamma_g**2 * s.weight**2 * (2.0 + math.log(s.k)) * s.inverse_gaps
    return assemble(LABELS["upper_bound_kl"], horizon, g, 0.0, _constant(s, 2.0, _CHERNOFF))


def upper_bound_kl_gap_free(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""The same without gaps but the largest.

    .. math:: R(T) \le 2\bar M\gamma_g\sqrt{96(2 + \log K)LT\log T} + L\Delta_{\max}\Bigl(2 + M\frac{\pi^2}{3}\Bigr)

    Derived for superarm (``docs/theory/kl-ucb.md``), in the setting of [MerlisMannor2019]_.

    >>> import superarm as sa
    >>> f"{float(upper_bound_kl_gap_free(sa.instances.disjoint_batches(4), 10**6)):.4g}"
    '7.705e+05'
    """
    s = setting(instance, known)
    u = 96.0 * (2.0 + math.log(s.k)) * s.n_arms

    def root(t: Floats) -> Floats:
        return 2.0 * s.weight * s.smoothness.gamma_g * np.sqrt(u * t * np.log(t))

    return assemble(LABELS["upper_bound_kl_gap_free"], horizon, root, lambda t: 0.0 * t, _constant(s, 2.0, _CHERNOFF))


def upper_bound_wang_chen(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""CUCB: what smoothness in gamma_inf alone gives, with a factor K where BC-UCB has log K.

    .. math:: R(T) \le \sum_{i,j}\frac{48 B^2 MK\log T}{\Delta_{j,\min}} + 2Bm + m\Delta_{\max}\frac{\pi^2}{3},
              \qquad B = \gamma_\infty\max_i w_i,\ m = ML

    [WangChen2017]_ with the explicit constants of [LiuEtAl2023]_ (Theorem 4, appendix C.1), in the form that
    [MerlisMannor2019]_ compares with. Differs: the last term is printed without m, which the union bound over base
    arms needs; ``theory.printed_wang_chen`` has it as printed.

    >>> import superarm as sa
    >>> f"{float(upper_bound_wang_chen(sa.instances.disjoint_batches(4), 10**6)):.4g}"
    '4.392e+05'
    """
    return wang_chen(setting(instance, known), horizon)


def wang_chen(s: Setting, horizon: Any) -> Bound:
    """:func:`upper_bound_wang_chen` of given numbers."""
    b, m = s.smoothness.gamma_inf * s.heaviest, s.n_items * s.n_arms
    slow = 48.0 * b**2 * s.n_items**2 * s.k * s.inverse_gaps
    return assemble(LABELS["upper_bound_wang_chen"], horizon, 0.0, slow, 2.0 * b * m + m * s.largest * _CHERNOFF)


def trivial(instance: Instance, horizon: Any, known: Gaps | None = None) -> Floats:
    r""":math:`\Delta_{\max}T`, which the regret of no policy exceeds, [MerlisMannor2019]_ (section Preliminaries).

    >>> import superarm as sa
    >>> round(float(trivial(sa.instances.lower_bound(5, 3), 10)), 12)
    1.0
    """
    return setting(instance, known).largest * rounds(horizon)
