"""Thompson sampling: what is proved of CTS, in the limit; the constants of its bounds at a given T are not known."""

import numpy as np

from superarm.actions import Subsets
from superarm.core.errors import InvalidArgument
from superarm.environments import Bernoulli, Comonotone
from superarm.rewards import Linear, smoothness_of
from superarm.simulation.instances import Instance
from superarm.theory.gaps import Gaps, gaps

INEXACT = (
    "its oracle is not exact; with some such oracles the regret of CTS grows like T in a share of runs [WangChen2018], "
    "and with greedy, against what greedy finds, like log T over the square of a gap [KongEtAl2021]"
)


def is_independent(instance: Instance) -> bool:
    """Whether all entries are independent."""
    one_item = isinstance(instance.environment, Comonotone) and instance.problem.n_items == 1
    return one_item or isinstance(instance.environment, Bernoulli)


def growth_cts(instance: Instance, known: Gaps | None = None) -> float:
    r"""What the regret of CTS with an exact oracle, divided by log T, tends to at most.

    .. math:: \limsup_{T\to\infty}\frac{R(T)}{\log T} \le \sum_j\frac{8B^2KM^2}{\Delta_{j,\min}}, \qquad
              B = \gamma_\infty\max_i w_i

    if all entries are independent, [WangChen2018]_ (Theorem 1, as :math:`\varepsilon \to 0`; its base arms are the
    entries, so that arms and batches count M times). Its term that does not grow with T is exponential in the size of
    the best batch. For one item of weight w, ``Linear`` and ``Subsets``, with any dependence,
    :math:`\sum_j w^2/\Delta_j` over the arms outside of the best batch, :math:`\Delta_j` by how much the worst arm in
    it is better (Theorem 4).

    >>> from superarm import environments
    >>> from superarm.problem import Problem
    >>> problem = Problem(n_arms=3, n_items=1, reward=Linear(), actions=Subsets(1))
    >>> growth_cts(Instance(problem, environments.Bernoulli([[0.5], [0.25], [0.25]])))
    8.0
    """
    problem, g = instance.problem, gaps(instance, alpha=1.0) if known is None else known
    if type(problem.reward) is Linear and problem.n_items == 1 and isinstance(problem.actions, Subsets):
        worth = np.sort(problem.weights[0] * instance.p[:, 0])[::-1]
        behind = worth[problem.k - 1] - worth[problem.k :]
        return float(problem.weights[0] ** 2 * (1.0 / behind[behind > 0.0]).sum())
    if not is_independent(instance):
        raise InvalidArgument("instance", "its entries are dependent", "give environments.Bernoulli(p)")
    steep = smoothness_of(problem.reward, problem.k).gamma_inf * float(problem.weights.max())
    size = problem.k * problem.n_items**2
    with np.errstate(divide="ignore"):
        return float((8.0 * steep**2 * size / g.minimum[g.suboptimal]).sum())
