r"""The target that regret is measured against, and regret itself.

``optimal``
    The value of the best batch, :math:`r_{\max}`.
``approximation``
    :math:`\alpha\beta\,r_{\max}` with the guarantee of the policy's own oracle: the paper's regret,
    [MerlisMannor2019]_ (equation regretDef).
``oracle``
    The value of the batch that the default oracle finds at the true parameters: the practical target.
``default``
    ``optimal`` where the optimum is known exactly without a long search, ``oracle`` elsewhere: see ``default_kind``.

Where the world changes, so does the target: it is found for every era, the rounds between two changes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.environments.traits import changes, has_contexts, has_own_reward, known_best
from superarm.errors import InvalidArgument
from superarm.oracles import Default, Exhaustive, solve
from superarm.oracles.certificate import upper_bound
from superarm.oracles.exhaustive import MAX_LISTED_BATCHES
from superarm.policies import Policy
from superarm.problem import Problem
from superarm.simulation.instances import Instance

Kind: TypeAlias = Literal["optimal", "approximation", "oracle"]
KINDS: tuple[Kind, ...] = ("optimal", "approximation", "oracle")
Choice: TypeAlias = Literal["default", "optimal", "approximation", "oracle"]
CHOICES: tuple[Choice, ...] = ("default", *KINDS)

MAX_DEFAULT_BATCHES = 20_000
"""By default the best of at most so many batches, over all eras or contexts, is searched for: 0.1 s when compiled."""


class Bracket(NamedTuple):
    """A value known to lie in [low, high]; exact if both are equal."""

    low: float
    high: float

    @property
    def exact(self) -> bool:
        return self.low == self.high


class Target(NamedTuple):
    """The value that one round is measured against; it is derived from ``r_max`` unless the kind is ``oracle``.

    In a world that changes both are averages over rounds, and ``eras`` has the first round and the value of each era.
    """

    kind: Kind
    value: float
    r_max: Bracket | None
    eras: tuple[tuple[int, float], ...] = ()

    def __str__(self) -> str:
        moving = f" on average, over {len(self.eras)} eras" if self.eras else ""
        text = f"{self.kind} ({self.value:.6g} per round{moving})"
        if self.r_max is None or self.r_max.exact:
            return text
        return f"{text}, where r_max is only known to lie in [{self.r_max.low:.6g}, {self.r_max.high:.6g}]"


def optimum(problem: Problem, p: Floats) -> Bracket:
    """The value of the best batch at ``p``: exact where an exact oracle is available, a bracket otherwise.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=sa.Subsets(2))
    >>> optimum(problem, np.array([[0.5], [0.25], [0.125]]))
    Bracket(low=0.75, high=0.75)
    """
    best = Default().fit(problem)
    if best.guarantee(problem).alpha < 1.0 and problem.actions.n_batches(problem.n_arms) <= MAX_LISTED_BATCHES:
        best = Exhaustive().fit(problem)
    action = solve(problem, p, best)
    low = float(problem.value(p, action))
    if best.guarantee(problem).alpha == 1.0:
        return Bracket(low, low)
    return Bracket(low, max(low, upper_bound(problem, p, action)))


def default_kind(instance: Instance, horizon: int = 1) -> Kind:
    """``optimal`` if the optimum is known exactly, ``oracle`` otherwise.

    It is known if the environment says so, if the default oracle is exact, or if it is found by evaluating at most
    ``MAX_DEFAULT_BATCHES`` batches.

    >>> import superarm as sa
    >>> [default_kind(sa.instances.random_coverage(n_arms=n, k=3)) for n in (20, 100)]
    ['optimal', 'oracle']
    """
    problem, environment = instance.problem, instance.environment
    known = _known_optimum(instance)
    if known is not None or has_own_reward(environment):
        return "optimal" if known is not None and known.exact else "oracle"
    promise = Default().fit(problem).guarantee(problem)
    if promise.alpha == promise.beta == 1.0:
        return "optimal"
    starts = changes(environment, horizon)
    world: Any = environment
    times = len(world.p) if has_contexts(environment) else 1 if starts is None else len(starts)
    return "optimal" if problem.actions.n_batches(problem.n_arms) * times <= MAX_DEFAULT_BATCHES else "oracle"


def target(instance: Instance, policy: Policy, choice: Choice = "default", horizon: int = 1) -> Target:
    """The target for ``policy`` on ``instance``, up to round ``horizon``."""
    if choice not in CHOICES:
        raise InvalidArgument("target", f"{choice!r} is unknown", f"give one of {', '.join(CHOICES)}")
    kind = default_kind(instance, horizon) if choice == "default" else choice
    starts = changes(instance.environment, horizon)
    if starts is None:
        return _find_target(instance, instance.p, policy, kind)
    since = [int(t) for t in starts]
    found = [
        _find_target(instance, instance.problem.entries(instance.environment.means(t)), policy, kind) for t in since
    ]
    share = np.diff([*since, horizon + 1]) / horizon
    brackets = [one.r_max for one in found if one.r_max is not None]
    r_max = Bracket(*(float(share @ ends) for ends in np.transpose(brackets))) if brackets else None
    eras = tuple((t, one.value) for t, one in zip(since, found, strict=True))
    return Target(kind, float(share @ [one.value for one in found]), r_max, eras)


def _find_target(instance: Instance, p: Floats, policy: Policy, kind: Kind) -> Target:
    """The target while the true parameters are ``p``."""
    problem = instance.problem
    if has_contexts(instance.environment):
        return _average_target(instance, policy, kind)
    if kind == "oracle":
        action = solve(problem, p, Default())
        worth = instance.value(action) if has_own_reward(instance.environment) else problem.value(p, action)
        return Target(kind, worth, None)
    r_max = _known_optimum(instance) or optimum(problem, p)
    if kind == "optimal":
        return Target(kind, r_max.high, r_max)
    promise = policy.fit(problem).guarantee(problem)
    return Target(kind, promise.alpha * promise.beta * r_max.high, r_max)


def _average_target(instance: Instance, policy: Policy, kind: Kind) -> Target:
    """The target of an average context; the simulation adds what each round's context is worth more or less."""
    environment: Any = instance.environment
    if kind == "oracle":
        return Target(kind, float(environment.best.mean()), None)
    brackets = np.array([optimum(instance.problem, p) for p in environment.p])
    r_max = Bracket(*(float(end) for end in brackets.mean(axis=0)))
    promise = policy.fit(instance.problem).guarantee(instance.problem)
    return Target(kind, r_max.high * (promise.alpha * promise.beta if kind == "approximation" else 1.0), r_max)


def _known_optimum(instance: Instance) -> Bracket | None:
    """What the best batch is worth, where the world says so itself."""
    found = known_best(instance.environment, instance.problem)
    return None if found is None else Bracket(*found)


def regret(target: Target, rounds: Ints, earned: Floats) -> Floats:
    r"""Regret up to each of ``rounds``: the targets of all rounds, less the expected reward of the batches played.

    .. math:: R(t) = \sum_{\tau \le t} target(\tau) - \sum_{\tau \le t} r(A_\tau; p(\tau))
    """
    if not target.eras:
        return np.asarray(rounds, float) * target.value - earned
    since, values = (np.array(part, float) for part in zip(*target.eras, strict=True))
    lasted = np.clip(np.asarray(rounds, float)[:, None] + 1.0 - since, 0.0, np.diff(since, append=np.inf))
    return np.asarray(lasted @ values - earned)


def find_negative(means: Mapping[str, float], rounds: int, value: float) -> list[str]:
    """The names whose mean regret after ``rounds`` is below 0 by more than the sum's rounding error."""
    return [name for name, mean in means.items() if mean < -1e-12 * rounds * abs(value)]


def warn_of_negative(names: Sequence[str], kind: str) -> list[str]:
    """A sentence about policies with negative mean regret against a target of this ``kind``; nothing without names."""
    if not names:
        return []
    remedy = "" if kind == "optimal" else ', so use target = "optimal" for them'
    return [
        f"warning: negative mean regret of {', '.join(names)}: they earned more than the {kind} target. "
        f"Differences between policies do not depend on the target; ratios and slopes do{remedy}."
    ]
