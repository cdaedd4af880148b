r"""How much the pulls of one arm can cost in all: the amortisation that the sharper theorems share.

If a batch with gap :math:`\Delta` is played only while :math:`\Delta \le c_1\sqrt S + c_2 S` with
:math:`S = \sum_{j \in A} f/N_j`, then its gap is paid for by charges to its arms, each value of :math:`N_j` is charged
once, and with :math:`D = \Delta_{j,\min}` and :math:`\bar D = \Delta_{j,\max}` the charges of arm j add up to at most

.. math:: \frac{c_1^2 f}{D}\,F + 2c_2 f\Bigl(E + E'\log\frac{\bar D}{D}\Bigr) + D, \qquad
          E = \lambda\log\Bigl(1 + \frac{K}{\lambda - 1}\Bigr),\quad E' = \frac{\lambda K}{K + \lambda - 1},\quad
          F = E + E'

for every :math:`\lambda > 1` (``docs/theory/amortisation.md``).
"""

import functools
import math
from typing import NamedTuple

from scipy.optimize import minimize_scalar

from superarm.errors import InvalidArgument

SMALLEST_K = 2
"""From this batch size on some finite lambda is best; for batches of one arm the limit of large lambda is."""


class ChargeFactors(NamedTuple):
    r""":math:`E` and :math:`E'` of one arm's charges; ``total`` is :math:`F = E + E'`."""

    base: float
    ratio: float

    @property
    def total(self) -> float:
        """The factor of the leading term."""
        return self.base + self.ratio


def factors_at(k: int, scale: float) -> ChargeFactors:
    r"""The factors for batches of at most ``k`` arms and :math:`\lambda` = ``scale``.

    After the amortisation of [LiuEtAl2023]_; ``scale=2`` is their doubling.

    >>> round(factors_at(5, 2.0).total, 4), round(2 * (math.log(6) + 5 / 6), 4)
    (5.2502, 5.2502)
    """
    return ChargeFactors(scale * math.log1p(k / (scale - 1.0)), scale * k / (k + scale - 1.0))


@functools.cache
def charge_factors(k: int) -> ChargeFactors:
    r"""The factors with the smallest leading term that a search over :math:`\lambda` finds.

    Every :math:`\lambda` gives a valid bound, so that the search cannot make the result wrong, only larger than
    necessary. At :math:`\lambda = 2` the leading factor is :math:`2(\log(K+1) + K/(K+1)) \le 2(1 + \log K + 1/K)`.
    For K = 1 the limit of large :math:`\lambda` is best: :math:`E = E' = 1`. Derived for superarm
    (``docs/theory/amortisation.md``) after [LiuEtAl2023]_.

    >>> [round(charge_factors(k).total, 2) for k in (1, 2, 5, 64)]
    [2.0, 3.53, 4.94, 8.11]
    """
    if k < 1:
        raise InvalidArgument("k", f"{k}", "give a batch size of at least 1")
    if k < SMALLEST_K:
        return ChargeFactors(1.0, 1.0)
    found = minimize_scalar(
        lambda x: factors_at(k, 1.0 + math.exp(x)).total, bounds=(-8.0, 2.0), method="bounded", options={"xatol": 1e-9}
    )
    return min(factors_at(k, 1.0 + math.exp(found.x)), factors_at(k, 2.0), key=lambda f: f.total)
