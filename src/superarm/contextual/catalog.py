"""Contextual policies by their names in the papers, and which policy suits which problem."""

from dataclasses import replace
from typing import Any

from superarm.context.design import design_of
from superarm.context.models import Segments
from superarm.contextual.linear import LinearPolicy
from superarm.contextual.logistic import GroupedPolicy, LogisticPolicy, is_one_hot
from superarm.contextual.rules import Ellipsoid, GaussianPosterior, VarianceWeighted
from superarm.contextual.segments import SegmentPolicy
from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense
from superarm.indices import KL, BetaPosterior
from superarm.oracles.base import Oracle
from superarm.oracles.default import Default
from superarm.oracles.heaviest import TopArms
from superarm.policies.base import Policy
from superarm.policies.wrappers import Wrapper
from superarm.problem import Problem

__all__ = ["c2_ucb", "c3_ucb", "comb_lin_ts", "logistic_kl_ucb", "logistic_ts", "vac2_ucb"]

_DEFAULT, _TOP = Default(), TopArms()


@named
def c2_ucb(rho: float = 1.0, ridge: float = 1.0, oracle: Oracle = _DEFAULT) -> LinearPolicy:
    """C²-UCB: ridge regression with one ellipsoid around the estimate; it does not use variances.

    Implements [LiuEtAl2023]_ (Algorithm 1), after [QinChenZhu2014]_, for problems with a linear model.

    Parameters
    ----------
    rho
        Scales the exploration; the theorem is for 1.
    ridge
        The penalty of the regression, for features of length at most 1.
    oracle
        The algorithm that finds a batch; by default the one that suits the problem.

    Examples
    --------
    >>> c2_ucb().rule
    Ellipsoid(rho=1, ridge=1)
    """
    return LinearPolicy(Ellipsoid(rho, ridge), oracle)


@named
def vac2_ucb(rho: float = 0.02, ridge: float = 1.0, oracle: Oracle = _DEFAULT) -> LinearPolicy:
    """VAC²-UCB: regression weighted by the variances that the confidence intervals allow.

    Implements [LiuEtAl2023]_ (Algorithm 2) for problems with a linear model. The paper has ``rho=1`` and
    ``ridge=4k``; then the radius is about 200 standard deviations for 10 features (``docs/guides/context.md``). The
    default ``rho`` is that of the experiment ``context``, and no bound is claimed for it.

    Parameters
    ----------
    rho
        Scales the exploration.
    ridge, oracle
        As of :func:`c2_ucb`.

    Examples
    --------
    >>> vac2_ucb(rho=1.0).rule
    VarianceWeighted(rho=1, ridge=1)
    """
    return LinearPolicy(VarianceWeighted(rho, ridge), oracle)


@named
def comb_lin_ts(
    rho: float = 1.0, ridge: float = 1.0, oracle: Oracle = _DEFAULT, noise: float = 0.5, prior: float = 0.0
) -> LinearPolicy:
    """CombLinTS: one draw of the parameters from their Gaussian posterior per round.

    Implements [WenKvetonAshkan2015]_ (Algorithm 1) for problems with a linear model. With a shared model one draw moves
    all arms together.

    Parameters
    ----------
    rho
        Scales the standard deviation of the draw.
    ridge
        The precision of the prior, 1 / variance, for features of length at most 1.
    oracle
        As of :func:`c2_ucb`.
    noise, prior
        The standard deviations of an outcome, and of a parameter before any outcome: the paper's σ and λ. With
        ``prior``, ``ridge`` does not count.
    """
    return LinearPolicy(GaussianPosterior(rho, ridge, noise, prior), oracle)


@named
def c3_ucb(rho: float = 1.0, ridge: float = 1.0, discount: float = 1.0, oracle: Oracle = _TOP) -> LinearPolicy:
    r"""C³-UCB: lists by the ridge estimate and its ellipsoid, largest first; it learns from what was seen of a list.

    Implements [LiWangZhangChen2016]_ (Algorithm 1) for problems with a linear model and one item. An observation at
    position n, from 0, has the weight :math:`\gamma_n^2` with :math:`\gamma_n = discount^n`. Differs: the paper has any
    falling :math:`\gamma_n`; their squares are rounded to multiples of 1/16 here, to at least 1/16.

    Parameters
    ----------
    rho, ridge
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
    return LinearPolicy(Ellipsoid(rho, ridge), oracle, discount)


@named
def logistic_kl_ucb(rho: float = 1.0, c: float = 3.0, ridge: float = 1.0, oracle: Oracle = _DEFAULT) -> LogisticPolicy:
    r"""KL-UCB for logistic models: the largest probability whose likelihood is not too small.

    .. math:: q = \max\{\sigma(\phi^\top\theta) : L_t(\theta) - L_t(\hat\theta) \le \rho\log t + c\log^+\log t\}

    Exact where all features are one-hot: there it is :func:`superarm.kl_ucb` bit for bit. Otherwise the set is replaced
    by the ellipsoid around the estimate, as in [LeeYunJun2024]_. No regret bound is claimed.

    Parameters
    ----------
    rho, c
        The constants of the exploration, as in ``kl_ucb``.
    ridge, oracle
        As of :func:`c2_ucb`.
    """
    return LogisticPolicy(KL(rho, c), 0.0, ridge, oracle)


@named
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
        As of :func:`c2_ucb`.
    """
    if not rho > 0.0:
        raise InvalidArgument("rho", f"{rho}", "give a number above 0", "logistic_ts")
    return LogisticPolicy(KL(), rho, ridge, oracle)


def for_context(policy: Any, problem: Problem) -> Policy[Any]:
    """``policy`` for ``problem``: on the tally of the user's segment, where the problem has segments.

    >>> from superarm.actions import Subsets
    >>> from superarm.context import Context, Features
    >>> from superarm.problem import Problem
    >>> from superarm.policies import IndexPolicy
    >>> from superarm.rewards import Coverage
    >>> context = Context(Features(categorical={"country": ["NO", "SE"]}))
    >>> problem = Problem(5, 1, Coverage(), Subsets(2), context=context)
    >>> for_context(IndexPolicy(KL()), problem).pooling
    0.0
    """
    if problem.context is None:
        if policy.reads_context:
            wrong = f"{type(policy).__name__} needs a context"
            raise InvalidArgument("policy", wrong, "give Problem(…, context=Context(…))")
        return policy
    model = problem.context.model
    if isinstance(policy, Wrapper) and (policy.forgets or policy.reads_context):
        inner: Any = for_context(policy.policy, problem)
        if policy.forgets and isinstance(inner, LogisticPolicy):
            inner = replace(inner, refits=False)  # what is kept for refits has no weights
        return _fit(replace(policy, policy=inner), problem)
    if policy.reads_context:
        _fit(policy, problem)
        if isinstance(policy, LogisticPolicy) and is_one_hot(problem.context, design_of(problem)):
            return GroupedPolicy(BetaPosterior() if policy.draws > 0.0 else policy.index, policy.oracle)
        return policy
    if isinstance(model, Segments):
        shared = policy.shares_segments and isinstance(problem.support, Dense)
        return _fit(policy if shared else SegmentPolicy(policy, model.pooling), problem)
    wrong = f"{type(policy).__name__} does not read features"
    raise InvalidArgument("policy", wrong, "give e.g. vac2_ucb() or comb_lin_ts(), or use models.Segments()")


def _fit(policy: Policy[Any], problem: Problem) -> Policy[Any]:
    policy.validate(problem)
    return policy
