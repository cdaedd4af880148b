"""Contextual policies by their names in the papers."""

from superarm.errors import InvalidArgument
from superarm.indices import KL
from superarm.oracles import Default, Oracle, TopArms
from superarm.policies.contextual.logistic import LogisticPolicy
from superarm.policies.contextual.regression import LinearPolicy
from superarm.policies.contextual.rules import Ellipsoid, GaussianPosterior, VarianceWeighted

_DEFAULT = Default()
_TOP = TopArms()


def c2_ucb(rho: float = 1.0, gamma: float = 1.0, oracle: Oracle = _DEFAULT) -> LinearPolicy:
    """C²-UCB: ridge regression with one ellipsoid around the estimate; it does not use variances.

    Implements [LiuEtAl2023]_ (Algorithm 1), after [QinChenZhu2014]_, for problems with a linear model. Differs: indices
    are clipped to [0, 1] before the oracle sees them, for linear rewards as well, so that indices above 1 tie.

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
    all arms together. Differs: the means that a draw gives are clipped to [0, 1] before the oracle sees them, so that
    those above 1 tie, and ties go to the arm with the fewest pulls; the algorithm has no clipping.

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


def c3_ucb(rho: float = 1.0, gamma: float = 1.0, discount: float = 1.0, oracle: Oracle = _TOP) -> LinearPolicy:
    r"""C³-UCB: lists by the ridge estimate and its ellipsoid, largest first; it learns from what was seen of a list.

    Implements [LiWangZhangChen2016]_ (Algorithm 1) for problems with a linear model and one item. An observation at
    position n, from 0, has the weight :math:`\gamma_n^2` with :math:`\gamma_n = discount^n`. Differs: the paper has any
    falling :math:`\gamma_n`; their squares are rounded to multiples of 1/16 here, to at least 1/16.

    Parameters
    ----------
    rho, gamma
        As of :func:`c2_ucb`.
    discount
        By how much less a list earns if its success is one position further down, in (0, 1]; 1 means that positions
        do not matter.
    oracle
        The algorithm that finds a list; by default the arms with the largest optimistic parameters, best first.

    Examples
    --------
    >>> c3_ucb(discount=0.9).oracle
    TopArms()
    """
    return LinearPolicy(Ellipsoid(rho, gamma), oracle, discount=discount)


def logistic_kl_ucb(rho: float = 1.0, c: float = 3.0, ridge: float = 1.0, oracle: Oracle = _DEFAULT) -> LogisticPolicy:
    r"""KL-UCB for logistic models: the largest probability whose likelihood is not too small.

    .. math:: q = \max\{\sigma(\phi^\top\theta) : L_t(\theta) - L_t(\hat\theta) \le \rho\log t + c\log^+\log t\}

    Exact where all features are one-hot: there it is :func:`superarm.kl_ucb` bit for bit. Otherwise the set is replaced
    by the ellipsoid around the estimate, as in [LeeYunJun2024]_. No regret bound is claimed.

    Parameters
    ----------
    rho, c
        The constants of the exploration, as in ``kl_ucb``.
    ridge
        The penalty of the regression, for features of length at most 1.
    oracle
        The algorithm that finds a batch; by default the one that suits the problem.
    """
    return LogisticPolicy(KL(rho, c), 0.0, ridge, oracle)


def logistic_ts(rho: float = 1.0, ridge: float = 1.0, oracle: Oracle = _DEFAULT) -> LogisticPolicy:
    """Thompson sampling for logistic models: one Gaussian draw of the parameters per round, for all arms.

    After the Laplace approximation of [ChapelleLi2011]_; Beta posteriors where all features are one-hot. No regret
    bound is claimed.

    Parameters
    ----------
    rho
        Scales the standard deviation of the draw; above 0.
    ridge
        The precision of the prior, for features of length at most 1.
    oracle
        The algorithm that finds a batch; by default the one that suits the problem.
    """
    if not rho > 0.0:
        raise InvalidArgument("rho", f"{rho}", "give a number above 0", "logistic_ts")
    return LogisticPolicy(KL(), rho, ridge, oracle)
