"""The covariance-aware policies of the literature for rewards that add up, by name."""

import math

from superarm.policies.covariance_policy import CovariancePolicy
from superarm.policies.covariance_regions import CovarianceBox, CovarianceEllipsoid


def escb_c(rho: float = 8.0, c: float = 4.0 * math.e, caution: float = 1.0) -> CovariancePolicy:
    r"""ESCB-C: one bonus per batch from a region that knows the covariance of an arm's items; linear rewards.

    After [PerraultPerchetValko2020]_, with their level :math:`8(\log t + \log\log t) + 4em` by default, where m is the
    number of entries in a batch. No regret bound is known for smaller constants.

    Parameters
    ----------
    rho, c
        The constants of the level :math:`\rho(\log t + \log\log t) + c\,m`.
    caution
        Scales the bound of the error of an estimated covariance; 0 takes the estimate for the truth.

    Examples
    --------
    >>> escb_c(rho=1.0, c=0.0).region.rho
    1.0
    """
    return CovariancePolicy(CovarianceBox(rho, c, caution))


def ols_ucb_c(rho: float = 1.0, c: float = 0.0, caution: float = 1.0) -> CovariancePolicy:
    r"""OLS-UCB-C: one bonus per batch from an ellipsoid shaped by the covariance of an arm's items; linear rewards.

    After [ZhouEtAl2024]_. Their theorem has a level of the order :math:`\log t + d\log\log t`, with d the number of
    entries.

    Parameters
    ----------
    rho, c
        The constants of the level :math:`\rho\log t + c\,d\log\log t`.
    caution
        As that of :func:`escb_c`.

    Examples
    --------
    >>> ols_ucb_c().region
    CovarianceEllipsoid(rho=1.0, c=0.0, caution=1.0, n_entries=1.0)
    """
    return CovariancePolicy(CovarianceEllipsoid(rho, c, caution))
