r"""What a policy is measured against.

``optimal``
    The value of the best batch, :math:`r_{\max}`.
``approximation``
    :math:`\alpha\beta\,r_{\max}` with the guarantee of the policy's own oracle: the paper's regret,
    [MerlisMannor2019]_ (equation regretDef).
``oracle``
    The value of the batch that the default oracle finds at the true parameters: the practical target.
"""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.oracles import Default, Exhaustive, solve
from superarm.oracles.certificate import upper_bound
from superarm.oracles.exhaustive import MOST
from superarm.policies import Policy
from superarm.problem import Problem
from superarm.simulation.instances import Instance

Kind: TypeAlias = Literal["optimal", "approximation", "oracle"]
KINDS: tuple[Kind, ...] = ("optimal", "approximation", "oracle")


class Bracket(NamedTuple):
    """A value known to lie in [low, high]; exact if both are equal."""

    low: float
    high: float

    @property
    def exact(self) -> bool:
        return self.low == self.high


class Target(NamedTuple):
    """What one round is measured against: ``value``, which rests on ``r_max`` where the kind is not ``oracle``."""

    kind: Kind
    value: float
    r_max: Bracket | None

    def __str__(self) -> str:
        text = f"{self.kind} ({self.value:.6g} a round)"
        if self.r_max is None or self.r_max.exact:
            return text
        return f"{text}, where r_max is only known to lie in [{self.r_max.low:.6g}, {self.r_max.high:.6g}]"


def optimum(problem: Problem, p: Floats) -> Bracket:
    """The value of the best batch at ``p``: exact where an exact oracle serves, a bracket otherwise.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=sa.Subsets(2))
    >>> optimum(problem, np.array([[0.5], [0.25], [0.125]]))
    Bracket(low=0.75, high=0.75)
    """
    best = Default().fit(problem)
    if best.guarantee(problem).alpha < 1.0 and problem.actions.n_batches(problem.n_arms) <= MOST:
        best = Exhaustive().fit(problem)
    action = solve(problem, p, best)
    low = problem.value(p, action)
    if best.guarantee(problem).alpha == 1.0:
        return Bracket(low, low)
    return Bracket(low, max(low, upper_bound(problem, p, action)))


def target(instance: Instance, policy: Policy, kind: Kind) -> Target:
    """What ``policy`` is measured against on ``instance``."""
    if kind not in KINDS:
        raise InvalidArgument("target", f"{kind!r} is unknown", f"give one of {', '.join(KINDS)}")
    problem, p = instance.problem, instance.p
    if kind == "oracle":
        return Target(kind, instance.value(solve(problem, p, Default())), None)
    r_max = _best(instance) or optimum(problem, p)
    if kind == "optimal":
        return Target(kind, r_max.high, r_max)
    promise = policy.fit(problem).guarantee(problem)
    return Target(kind, promise.alpha * promise.beta * r_max.high, r_max)


def _best(instance: Instance) -> Bracket | None:
    """What the best batch is worth, where the world says so itself."""
    if not hasattr(instance.environment, "best"):
        return None
    found = instance.environment.best(instance.problem)
    return None if found is None else Bracket(*found)


def regret(target: Target, rounds: Ints, earned: Floats) -> Floats:
    r"""Regret up to each of ``rounds``: the target so often, less the expected reward of the batches played.

    .. math:: R(t) = t \cdot target - \sum_{\tau \le t} r(A_\tau; p)
    """
    return np.asarray(rounds, float) * target.value - earned
