"""What a problem is, as its owner writes it down, and the library's problem and policy made from it."""

import inspect
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from superarm import catalog
from superarm.actions import Explicit, Subsets
from superarm.errors import InvalidArgument
from superarm.learner.names import Names
from superarm.policies import Policy
from superarm.problem import Problem
from superarm.rewards import ClippedLinear, Coverage, Linear, Logistic, Reward

Name = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f/]*$")]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Weight = Annotated[float, Meta(ge=0.0, le=1e12)]
PolicyName = Literal[
    "kl_ucb", "bc_ucb", "cucb", "ucb_v", "kl_moss", "joint_kl_moss", "cts", "angle_ts", "epsilon_greedy", "uniform"
]
Mode = Literal["online", "apprentice", "logging_only"]
Late = Literal["ignore", "learn"]
Window = Annotated[float, Meta(gt=0.0, le=3.2e8)]
MaxPending = Annotated[int, Meta(ge=1, le=10_000_000)]
RewardName = Literal["coverage", "linear", "logistic", "clipped_linear"]

RANDOM_POLICIES = frozenset({"cts", "angle_ts", "epsilon_greedy", "uniform"})
"""Policies that draw slates at random in a way of their own: their propensities are not known."""

BATCH_POLICIES = frozenset({"escb", "escb_delta", "least_played"})
"""Policies that score whole batches: the best small slate is no part of the best large one."""

MAX_ARMS, MAX_ITEMS, MAX_ENTRIES, MAX_K = 100_000, 10_000, 5_000_000, 1_000


class PolicySpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy of the catalogue by its name, with its numbers."""

    name: PolicyName = "kl_ucb"
    parameters: dict[str, float] = field(default_factory=dict)


class RewardSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a slate is worth, by name, with its numbers."""

    name: RewardName = "coverage"
    parameters: dict[str, float] = field(default_factory=dict)


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """What may change while counters stay: each change is a new version, audited and reversible.

    ``at_window_end`` says what becomes of feedback that did not come: a number counts as that value, ``"ignore"``
    counts nothing. ``late`` says what becomes of feedback that comes after. ``explore`` is the share of slots
    drawn at random, with logged propensities.
    """

    policy: PolicySpec = PolicySpec()
    mode: Mode = "online"
    explore: Share = 0.0
    window_s: Window | None = 86_400.0
    at_window_end: Share | Literal["ignore"] = "ignore"
    late: Late = "ignore"
    max_pending: MaxPending = 100_000


class ProblemSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Arms, items, what a slate is worth, how large it is, and the settings."""

    arms: Annotated[list[Name], Meta(min_length=1, max_length=MAX_ARMS)]
    items: Annotated[list[Name], Meta(min_length=1, max_length=MAX_ITEMS)] = field(default_factory=lambda: ["value"])
    weights: Annotated[list[Weight], Meta(max_length=MAX_ITEMS)] | None = None
    reward: RewardSpec = RewardSpec()
    k: Annotated[int, Meta(ge=1, le=MAX_K)] = 1
    batches: Annotated[list[list[Name]], Meta(min_length=1, max_length=100_000)] | None = None
    settings: Settings = Settings()
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


_REWARDS: dict[str, Any] = {
    "coverage": Coverage,
    "linear": Linear,
    "logistic": Logistic,
    "clipped_linear": ClippedLinear,
}


def to_problem(spec: ProblemSpec) -> Problem:
    """The library's problem; ``InvalidArgument`` says what does not fit.

    >>> to_problem(ProblemSpec(arms=["a", "b"], k=2)).k
    2
    """
    if len(spec.arms) * len(spec.items) > MAX_ENTRIES:
        raise InvalidArgument("arms", f"{len(spec.arms)} arms x {len(spec.items)} items", f"at most {MAX_ENTRIES}")
    names = Names(spec.arms, "arms")
    Names(spec.items, "items")
    actions = Subsets(spec.k) if spec.batches is None else Explicit([names.numbers(batch) for batch in spec.batches])
    return Problem(len(spec.arms), len(spec.items), to_reward(spec.reward), actions, spec.weights)


def to_reward(spec: RewardSpec) -> Reward:
    """The library's reward."""
    return _made(_REWARDS[spec.name], spec.parameters, "reward.parameters")  # type: ignore[no-any-return]


def to_policy(spec: PolicySpec) -> Policy:
    """The library's policy.

    >>> to_policy(PolicySpec("bc_ucb", {"rho": 1.0})).confidence
    Bernstein(rho=1.0)
    """
    return _made(getattr(catalog, spec.name), spec.parameters, "policy.parameters")  # type: ignore[no-any-return]


def _made(make: Any, parameters: dict[str, float], argument: str) -> Any:
    known = [name for name in inspect.signature(make).parameters if name != "oracle"]
    for name in parameters:
        if name not in known:
            raise InvalidArgument(argument, f"unknown {name!r}", f"known: {', '.join(known) or 'none'}")
    try:
        return make(**parameters)
    except TypeError:
        raise InvalidArgument(argument, "incomplete", f"give {', '.join(known)}") from None


def check_settings(settings: Settings, actions: Any) -> None:
    """Refuse settings that the action set cannot honour."""
    to_policy(settings.policy)
    if settings.explore > 0.0 and not actions.matroid:
        raise InvalidArgument("settings.explore", "the action set is no matroid", "take k, partition, laminar or slots")
