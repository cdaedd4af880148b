"""The statements as printed, including those that are wrong: for comparison only.

Where the paper's gamma_g is undefined or below the exact one (``Logistic`` with C < 0.485), the exact one takes its
place.
"""

import math
from typing import Any

import numpy as np

from superarm.arrays import Floats
from superarm.simulation.instances import Instance
from superarm.theory.bound import Setting, rounds, setting
from superarm.theory.gaps import Gaps


def printed_levels(k: int) -> int:
    r""":math:`\lceil\log K/1.61\rceil`, [MerlisMannor2019]_ (Theorem 1): 0 for K = 1, and one too few for K = 626.

    >>> [printed_levels(k) for k in (1, 5, 6, 626)]
    [0, 1, 2, 4]
    """
    return math.ceil(math.log(k) / 1.61)


def printed_theorem(instance: Instance, horizon: Any, known: Gaps | None = None) -> Floats:
    """Theorem 1 as printed in [MerlisMannor2019]_: false for K = 1, where it claims bounded regret.

    >>> import superarm as sa
    >>> printed_theorem(sa.instances.lower_bound(3, 1), [10, 10**6]).round(3).tolist()
    [2.274, 2.274]
    """
    s = setting(instance, known)
    g = 8640.0 * s.gamma_g_paper**2 * s.weight**2 * s.inverse_gaps
    inf = 340.0 * s.smoothness.gamma_inf * s.weight * s.log_ratios(1.0)
    return (g + inf) * printed_levels(s.k) ** 2 * np.log(rounds(horizon)) + _constant(s)


def printed_corollary(instance: Instance, horizon: Any, known: Gaps | None = None) -> Floats:
    """Corollary 1 as printed in [MerlisMannor2019]_: can be negative, and is NaN at T = 1 or K = 1.

    >>> import superarm as sa
    >>> bool(printed_corollary(sa.instances.disjoint_batches(4), 10) < 0)
    True
    """
    s, t = setting(instance, known), rounds(horizon)
    k0 = printed_levels(s.k)
    u2 = 340.0 * s.smoothness.gamma_inf * s.weight * s.n_arms * k0**2
    root = 2.0 * math.sqrt(8640.0) * s.gamma_g_paper * s.weight * k0 * np.sqrt(s.n_arms * t * np.log(t))
    with np.errstate(divide="ignore", invalid="ignore"):
        slow = u2 * np.log(t) * (2.0 + np.log(s.largest * t / (u2 * np.log(t))))
    return np.asarray(root + _constant(s) + slow)


def printed_wang_chen(instance: Instance, horizon: Any, known: Gaps | None = None) -> Floats:
    r"""The bound of [WangChen2017]_ as printed in [LiuEtAl2023]_ (appendix C.1): its last term lacks a factor m.

    >>> import superarm as sa
    >>> float(printed_wang_chen(sa.instances.lower_bound(3, 1), 1).round(3))
    6.329
    """
    s = setting(instance, known)
    b, m = s.smoothness.gamma_inf * s.heaviest, s.n_items * s.n_arms
    slow = 48.0 * b**2 * s.n_items**2 * s.k * s.inverse_gaps
    return slow * np.log(rounds(horizon)) + 2.0 * b * m + s.largest * math.pi**2 / 3.0


def _constant(s: Setting) -> float:
    return s.n_arms * s.largest * (1.0 + s.n_items * 2.0 * math.pi**2 / 3.0)
