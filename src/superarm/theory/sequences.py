r"""The sequences :math:`a_k, b_k` in the lemma on small gaps: the paper's, and the best that we found.

The lemma [MerlisMannor2019]_ (lemma sumOfSmallGaps) holds for any decreasing positive sequences with :math:`b_0 = 1`
and costs the factor

.. math:: \Lambda = \Bigl(\sum_{k=1}^{k_0}\frac{a_k}{b_k}\Bigr)\ell, \qquad
          \ell = \sum_{k=1}^{k_0}\frac{b_{k-1} - b_k}{a_k} + \frac{b_{k_0}}{a_{k_0}}, \qquad b_{k_0} \le 1/K.

For given b, Cauchy-Schwarz gives the best :math:`a_k \propto \sqrt{b_k c_k}` with :math:`c_k = b_{k-1} - b_k` for
:math:`k < k_0` and :math:`c_{k_0} = b_{k_0-1}`, and
:math:`\Lambda = (\sum_{k<k_0}\sqrt{\rho_k - 1} + \sqrt{\rho_{k_0}})^2` in the ratios :math:`\rho_k = b_{k-1}/b_k`.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument


class Sequences(NamedTuple):
    """:math:`a_1 … a_{k_0}` and :math:`b_1 … b_{k_0}`; :math:`b_0 = 1`."""

    a: Floats
    b: Floats


def levels(k: int) -> int:
    r""":math:`k_0 = \max(1, \lceil\log_5 K\rceil)`, the number of levels for the paper's sequences.

    [MerlisMannor2019]_ (Theorem 1). Differs: at least 1, and exact, where the paper divides by 1.61 > log 5.

    >>> [levels(k) for k in (1, 5, 6, 625, 626)]
    [1, 1, 2, 4, 5]
    """
    k0 = 1
    while 5**k0 < k:
        k0 += 1
    return k0


def geometric(k: int) -> Sequences:
    """The paper's sequences, :math:`a_k = b_k = 0.2^k`, [MerlisMannor2019]_ (lemma sumOfSmallGaps).

    >>> geometric(25).a
    array([0.2 , 0.04])
    """
    powers = 5.0 ** -np.arange(1.0, levels(k) + 1.0)
    return Sequences(powers, powers.copy())


def factor(sequences: Sequences, k: int) -> float:
    r""":math:`\Lambda`, by which the lemma multiplies; :math:`k_0(4k_0 + 1)` for the paper's sequences.

    [MerlisMannor2019]_ (lemma sumOfSmallGaps). Sequences that the lemma does not allow are refused.

    >>> factor(geometric(25), 25)
    18.0
    """
    a, b = (np.asarray(x, float) for x in sequences)
    if a.ndim != 1 or a.shape != b.shape or not a.size or not (a > 0.0).all() or not (b > 0.0).all():
        raise InvalidArgument("sequences", "not two lists of k0 positive numbers", "give a_1 … a_k0 and b_1 … b_k0")
    before = np.concatenate([[1.0], b[:-1]])
    if (np.diff(a) > 0.0).any() or (b > before).any() or b[-1] > (1.0 + 1e-12) / k:
        raise InvalidArgument("sequences", "not decreasing, or b ends above 1/k", f"let b fall from 1 to 1/{k}")
    ell = float(np.sum((before - b) / a) + b[-1] / a[-1])
    return float(np.sum(a / b)) * ell


@functools.cache
def best_sequences(k: int) -> Sequences:
    r"""The sequences with the smallest factor that we found: equal ratios, and a last one that makes up 1/K.

    One search along a line for each number of levels, in the lemma of [MerlisMannor2019]_ (lemma sumOfSmallGaps). The
    factor grows as :math:`1.54\log^2 K`, the paper's as :math:`1.54\log^2 K` too, but rounded up to whole levels.

    >>> round(factor(best_sequences(25), 25), 3), factor(geometric(25), 25)
    (17.872, 18.0)
    """
    if k < 1:
        raise InvalidArgument("k", f"{k}", "give a batch size of at least 1")
    candidates = [_from_ratios(np.full(1, float(k)))]
    for n in range(2, levels(k) + 4):
        line = np.geomspace(1.0 + 1e-9, k ** (1.0 / (n - 1)), 4001)[1:-1] if k > 1 else np.zeros(0)
        sizes = (n - 1) * np.sqrt(line - 1.0) + np.sqrt(k / line ** (n - 1))
        if sizes.size:
            ratio = float(line[np.argmin(sizes)])
            candidates.append(_from_ratios(np.array([ratio] * (n - 1) + [k / ratio ** (n - 1)])))
    return min((c for c in candidates if _is_valid(c, k)), key=lambda c: factor(c, k))


def _from_ratios(ratios: Floats) -> Sequences:
    b = np.asarray(1.0 / np.cumprod(ratios), np.float64)
    before = np.concatenate([[1.0], b[:-1]])
    cost = before - b
    cost[-1] = before[-1]
    return Sequences(np.sqrt(b * cost), b)


def _is_valid(sequences: Sequences, k: int) -> bool:
    a, b = sequences
    return bool((np.diff(a) <= 0.0).all() and (np.diff(b) <= 0.0).all() and math.isclose(b[-1], 1.0 / k))
