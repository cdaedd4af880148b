"""The base of oracles."""

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument
from superarm.core.streams import seed_sequence
from superarm.core.tally import View
from superarm.problem import Problem


class Guarantee(NamedTuple):
    r"""What an oracle guarantees: with probability ``beta``, at least ``alpha`` times the optimum.

    ``alpha=0`` guarantees nothing. Implements [MerlisMannor2019]_ (section Preliminaries, :math:`(\alpha, \beta)`
    approximation oracle).
    """

    alpha: float
    beta: float = 1.0


def share_of_optimum(problem: Problem, alpha: float, beta: float = 1.0) -> Guarantee:
    """The guarantee (alpha, beta) of a theorem about rewards without negative values; for any other reward, nothing.

    A share of a negative optimum would lie above it.
    """
    reward = problem.reward
    nothing = reward.worth(problem.weights[None], reward.empty_states(problem, 1))
    return Guarantee(alpha, beta) if alpha >= 1.0 or float(np.sum(nothing)) >= 0.0 else Guarantee(0.0)


GREEDY = 1.0 - 1.0 / math.e
"""The alpha of greedy for a monotone submodular reward on ``Subsets``, [NemhauserWolseyFisher1978]_, for all k."""


class Oracle(Component):
    """An oracle. Subclass it and define ``maximize``; without ``guarantee`` it promises nothing.

    >>> class BestAlone(Oracle):
    ...     def maximize(self, problem, q, view):
    ...         return problem.actions.heaviest(worth_alone(problem, q, view), view)
    >>> BestAlone()
    BestAlone()
    """

    ranking: ClassVar[Any] = False
    """Whether it only ranks arms, so that parameters may be any numbers."""
    cascade: ClassVar[Any] = False
    """Whether its batches are lists that are read from the top, and left at the first success."""

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        """Good batches (R, K) at the entries ``q``, arms in the order of picking, padded with -1."""
        raise NotImplementedError

    def guarantee(self, problem: Problem) -> Guarantee:
        """What the oracle guarantees on this problem."""
        return Guarantee(0.0)

    def validate(self, problem: Problem) -> None:
        """Raise ``InvalidArgument`` if the oracle does not apply to this problem."""

    def needs(self, right: bool, what: str, remedy: str = "take Greedy() or Exhaustive()") -> None:
        """Refuse a problem that is not ``right``: the oracle needs ``what``."""
        if not right:
            raise InvalidArgument("oracle", f"{type(self).__name__} needs {what}", remedy)


def solve(problem: Problem, p: Any, oracle: Oracle | None = None, seed: Any = 0) -> Ints:
    """Find a batch for known parameters.

    Parameters
    ----------
    problem
        Arms, items, reward and action set.
    p
        The parameters, (n_arms, n_items).
    oracle
        The algorithm; by default the one that suits the problem.
    seed
        For oracles that draw random numbers.

    Returns
    -------
    The arms of the batch, in the order in which the oracle picked them.

    Examples
    --------
    >>> from superarm.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> from superarm.actions import Subsets
    >>> problem = Problem(n_arms=3, n_items=2, reward=Coverage(), actions=Subsets(2))
    >>> solve(problem, [[0.9, 0.0], [0.8, 0.0], [0.0, 0.5]])
    array([0, 2])
    """
    if oracle is None:
        from superarm.oracles.default import Default

        oracle = Default()
    oracle.validate(problem)
    keys = seed_sequence(seed).generate_state(1, np.uint64)
    batch = oracle.maximize(problem, problem.entries(p), problem.view(keys=keys))[0]
    return batch[batch >= 0]


def worth_alone(problem: Problem, q: Floats, view: View) -> Floats:
    """The reward of every arm alone, at least 0 where the heaviest batch needs that: (R, n_arms)."""
    gains = problem.reward.gains(problem, problem.reward.empty_states(problem, len(view)), q)
    return gains if problem.actions.any_worth else np.maximum(0.0, gains)


def held(problem: Problem, name: str, make: Callable[[], Any]) -> Any:
    """What an oracle needs of a problem at every call: made by the first."""
    if name not in problem.__dict__:
        problem.__dict__[name] = make()
    return problem.__dict__[name]
