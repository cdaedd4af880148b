"""Contextual policies by their names in the papers."""

from superarm.oracles import Default, Oracle
from superarm.policies.contextual.regression import LinearPolicy
from superarm.policies.contextual.rules import Ellipsoid, GaussianPosterior, VarianceWeighted

_DEFAULT = Default()


def c2_ucb(rho: float = 1.0, gamma: float = 1.0, oracle: Oracle = _DEFAULT) -> LinearPolicy:
    """C²-UCB: ridge regression with one ellipsoid around the estimate, blind to variances.

    Implements [LiuEtAl2023]_ (Algorithm 1), after [QinChenZhu2014]_, for problems with a linear model.

    Parameters
    ----------
    rho
        Scales the exploration; the theorem is for 1.
    gamma
        The penalty of the regression, for features of length at most 1.
    oracle
        The algorithm that finds a batch; by default the one that suits the problem.

    Examples
    --------
    >>> c2_ucb().rule
    Ellipsoid(rho=1.0, gamma=1.0)
    """
    return LinearPolicy(Ellipsoid(rho, gamma), oracle)


def vac2_ucb(rho: float = 0.02, gamma: float = 1.0, oracle: Oracle = _DEFAULT) -> LinearPolicy:
    """VAC²-UCB: regression weighted by the variances that the confidence intervals allow.

    Implements [LiuEtAl2023]_ (Algorithm 2) for problems with a linear model. The paper has ``rho=1`` and
    ``gamma=4k``; then the radius is about 200 standard deviations for 10 features (``docs/context.md``). The default
    ``rho`` is that of the experiment ``context``, and no bound is claimed for it.

    Parameters
    ----------
    rho
        Scales the exploration.
    gamma
        The penalty of the regression, for features of length at most 1.
    oracle
        The algorithm that finds a batch; by default the one that suits the problem.

    Examples
    --------
    >>> vac2_ucb(rho=1.0).rule
    VarianceWeighted(rho=1.0, gamma=1.0)
    """
    return LinearPolicy(VarianceWeighted(rho, gamma), oracle)


def comb_lin_ts(rho: float = 1.0, prior: float = 1.0, oracle: Oracle = _DEFAULT) -> LinearPolicy:
    """CombLinTS: one draw of the parameters from their Gaussian posterior per round.

    Implements [WenKvetonAshkan2015]_ (Algorithm 1) for problems with a linear model. With a shared model one draw moves
    all arms together.

    Parameters
    ----------
    rho
        Scales the standard deviation of the draw.
    prior
        The variance of the prior, for features of length at most 1.
    oracle
        The algorithm that finds a batch; by default the one that suits the problem.
    """
    return LinearPolicy(GaussianPosterior(rho, prior), oracle)
