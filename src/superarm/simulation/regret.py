r"""The target that regret is measured against, and regret itself.

``optimal``
    The value of the best batch, :math:`r_{\max}`.
``approximation``
    :math:`\alpha\beta\,r_{\max}` with the guarantee of the policies' oracle: the paper's regret, [MerlisMannor2019]_
    (equation regretDef). All policies of a comparison have the same one: see ``choose_reference``.
``oracle``
    The value of the batch that the default oracle finds at the true parameters: the practical target.
``default``
    ``optimal`` where the optimum is known exactly without a long search, ``oracle`` elsewhere: see ``default_kind``.

Where the optimum cannot be found (see ``optimum``), the value of the best batch found takes its place: the regret may
then be negative, the bounds of ``superarm.theory`` hold against it as well, and the text of the target says how much
larger the optimum can be.

Where the world changes, so does the target: it is found for every era, the rounds between two changes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from superarm.actions import Subsets
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.oracles import Default, Exhaustive, solve
from superarm.oracles.certificate import upper_bound
from superarm.oracles.exhaustive import MAX_LISTED_BATCHES
from superarm.oracles.subset_search import SearchRecord, SubsetSearch
from superarm.policies import Policy
from superarm.problem import Problem
from superarm.simulation.instances import Instance

Kind: TypeAlias = Literal["optimal", "approximation", "oracle"]
KINDS: tuple[Kind, ...] = ("optimal", "approximation", "oracle")
Choice: TypeAlias = Literal["default", "optimal", "approximation", "oracle"]
CHOICES: tuple[Choice, ...] = ("default", *KINDS)

MAX_DEFAULT_BATCHES = 20_000
"""By default the best of at most so many batches, over all eras or contexts, is searched for: 0.1 s when compiled."""

MAX_OPTIMUM_NODES = 2_000_000
"""A branch-and-bound search for the optimum stops after so many nodes: a second or two."""


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
        share = ""
        if self.r_max is not None and self.kind == "approximation" and self.r_max.low > 0.0:
            share = f", {self.value / self.r_max.low:.4g} of {self.r_max.low:.6g}"
        text = f"{self.kind} ({self.value:.6g} per round{moving}{share})"
        if self.r_max is None or self.r_max.exact:
            return text
        low, high = self.r_max
        more = f", {high / low - 1.0:.0%} more" if low > 0.0 else ""
        return f"{text}, where the best batch found is worth {low:.6g} and the optimum at most {high:.6g}{more}"


def optimum(problem: Problem, p: Floats) -> Bracket:
    """The value of the best batch at ``p``: exact where it can be found with bounded effort, a bracket otherwise.

    It is exact if the default oracle is, if there are at most ``MAX_LISTED_BATCHES`` batches, or if branch and bound
    over ``Subsets`` needs at most ``MAX_OPTIMUM_NODES`` nodes. The lower end of a bracket is the best batch found, the
    upper end a certificate.

    >>> from superarm.rewards import Linear
    >>> problem = Problem(n_arms=3, n_items=1, reward=Linear(), actions=Subsets(2))
    >>> optimum(problem, np.array([[0.5], [0.25], [0.125]]))
    Bracket(low=0.75, high=0.75)
    """
    best, reward = Default().resolve(problem), problem.reward
    if best.guarantee(problem).alpha < 1.0 and problem.actions.n_batches(problem.n_arms) <= MAX_LISTED_BATCHES:
        best = Exhaustive()
    action = solve(problem, p, best)
    low = float(problem.value(p, action))
    if best.guarantee(problem).alpha == 1.0:
        return Bracket(low, low)
    if isinstance(problem.actions, Subsets) and reward.additive and reward.monotone:
        record = SearchRecord()
        done = SubsetSearch(problem, p, MAX_OPTIMUM_NODES).search(np.inf, -1, record)
        low = max(low, record.below)
        if done:
            return Bracket(low, low)
    return Bracket(low, max(low, upper_bound(problem, p, action)))


def default_kind(instance: Instance, horizon: int = 1) -> Kind:
    """``optimal`` if the optimum is known exactly, ``oracle`` otherwise.

    It is known if the environment says so, if the default oracle is exact, or if it is found by evaluating at most
    ``MAX_DEFAULT_BATCHES`` batches.

    >>> from superarm.simulation.instances import random_coverage
    >>> [default_kind(random_coverage(n_arms=n, k=3)) for n in (20, 100)]
    ['optimal', 'oracle']
    """
    problem, environment = instance.problem, instance.environment
    known = _known_optimum(instance)
    if known is not None or environment.own_reward:
        return "optimal" if known is not None and known.exact else "oracle"
    promise = Default().guarantee(problem)
    if promise.alpha == promise.beta == 1.0:
        return "optimal"
    times = environment.n_contexts or len(environment.changes(horizon))
    return "optimal" if problem.actions.n_batches(problem.n_arms) * times <= MAX_DEFAULT_BATCHES else "oracle"


def target(instance: Instance, policy: Policy[Any], choice: Choice = "default", horizon: int = 1) -> Target:
    """The target for ``policy`` on ``instance``, up to round ``horizon``."""
    if choice not in CHOICES:
        raise InvalidArgument("target", f"{choice!r} is unknown", f"give one of {', '.join(CHOICES)}")
    kind = default_kind(instance, horizon) if choice == "default" else choice
    since = [int(t) for t in instance.environment.changes(horizon)]
    found = [_find_target(instance, t, policy, kind) for t in since]
    if len(found) == 1:
        return found[0]
    share = np.diff([*since, horizon + 1]) / horizon
    brackets = [one.r_max for one in found if one.r_max is not None]
    r_max = Bracket(*(float(share @ ends) for ends in np.transpose(brackets))) if brackets else None
    eras = tuple((t, one.value) for t, one in zip(since, found, strict=True))
    return Target(kind, float(share @ [one.value for one in found]), r_max, eras)


def choose_reference(problem: Problem, policies: Mapping[str, Policy[Any]]) -> Policy[Any]:
    """The policy whose guarantee the approximation target of all ``policies`` takes, so that they can be compared.

    Policies that guarantee nothing, such as ``uniform``, take that of the others.
    """
    shares = {name: _share(problem, policy) for name, policy in policies.items()}
    known = {name: share for name, share in shares.items() if policies[name].guarantee(problem).alpha > 0.0}
    if len(set(known.values())) > 1 or not any(shares.values()):
        listed = ", ".join(f"{name} {share:.4g}" for name, share in shares.items())
        wrong = f"the oracles of the policies guarantee different shares of the optimum, or none ({listed})"
        raise InvalidArgument("target", wrong, 'use "optimal" or "oracle", or one oracle for all policies')
    return policies[next(iter(known or policies))]


def _share(problem: Problem, policy: Policy[Any]) -> float:
    """alpha * beta of the policy's oracle; of the default oracle if the policy guarantees nothing."""
    promise = policy.guarantee(problem)
    promise = promise if promise.alpha * promise.beta > 0.0 else Default().guarantee(problem)
    return promise.alpha * promise.beta


def average(targets: Sequence[Target]) -> Target:
    """The average of targets of one kind, on several instances."""
    if len(targets) == 1:
        return targets[0]
    brackets = [one.r_max for one in targets if one.r_max is not None]
    r_max = Bracket(*np.mean(brackets, axis=0).tolist()) if brackets else None
    return Target(targets[0].kind, float(np.mean([one.value for one in targets])), r_max)


def _find_target(instance: Instance, t: int, policy: Policy[Any], kind: Kind) -> Target:
    """The target while the parameters of round ``t`` hold."""
    problem, environment = instance.problem, instance.environment
    if environment.n_contexts:
        return _average_target(instance, policy, kind)
    p, known = problem.support.to_user(environment.means(problem, t)[0]), environment.best_at(problem, t)
    r_max = None if known is None else Bracket(*known)
    if kind == "oracle" and environment.totals and r_max is not None:
        return Target(kind, r_max.low, r_max)  # arms need not add up: the oracle for effects would be another one
    if kind == "oracle":
        action = solve(problem, p, Default())
        return Target(kind, float(environment.expected(problem, action[None], t)[0]), None)
    r_max = r_max or optimum(problem, p)
    if kind == "optimal":
        return Target(kind, r_max.low, r_max)
    return Target(kind, _share(problem, policy) * r_max.low, r_max)


def _average_target(instance: Instance, policy: Policy[Any], kind: Kind) -> Target:
    """The target of an average context; the simulation adds what each round's context is worth more or less."""
    problem, environment = instance.problem, cast(Any, instance.environment)
    if kind == "oracle":
        return Target(kind, float(environment.best_worth.mean()), None)
    tables = (problem.support.to_user(entries) for entries in environment.table(problem))
    brackets = np.array([optimum(problem, p) for p in tables])
    r_max = Bracket(*(float(end) for end in brackets.mean(axis=0)))
    return Target(kind, r_max.low * (_share(problem, policy) if kind == "approximation" else 1.0), r_max)


def _known_optimum(instance: Instance) -> Bracket | None:
    """What the best batch is worth, where the environment says so itself."""
    found = None if instance.environment.n_contexts else instance.environment.best(instance.problem)
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
