"""The policies and rewards that a problem can name: those of the library, and those that an operator adds.

A module that ``superarm serve --import`` names adds its own with ``add_policy`` and ``add_reward``.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import Struct

from superarm import contextual, policies
from superarm.core.errors import InvalidArgument
from superarm.diffusion import Spread
from superarm.rewards import ClippedLinear, Conjunctive, Coverage, Linear, Logistic


class PolicyEntry(NamedTuple):
    """A policy that can be named.

    ``random`` policies draw slates in a way of their own, so that their propensities are not known. Those that score
    ``whole_batches`` are asked for a smaller slate instead of a part of a larger one.
    """

    make: Callable[..., Any]
    random: bool = False
    whole_batches: bool = False


_PLAIN = ("kl_ucb", "bc_ucb", "cucb", "ucb_v", "kl_moss", "follow_the_leader", "cucb_t", "bcucb_t")
_DIRECTIONAL = ("directional_kl_ucb", "directional_kl_moss")
_CASCADES = ("cascade_ucb1", "cascade_kl_ucb", "cascade_ucb_v")
_RANDOM = ("cts", "angle_ts", "gaussian_cts", "shared_cts", "epsilon_greedy", "uniform", "ts_cascade")
_CONTEXTUAL = ("c2_ucb", "vac2_ucb", "c3_ucb", "logistic_kl_ucb")
_RANDOM_CONTEXTUAL = ("comb_lin_ts", "logistic_ts")
_BATCHES = ("escb", "escb_delta", "escb_c", "ols_ucb_c", "least_played")

POLICIES: dict[str, PolicyEntry] = {
    **{name: PolicyEntry(getattr(policies, name)) for name in (*_PLAIN, *_CASCADES, *_DIRECTIONAL)},
    **{name: PolicyEntry(getattr(contextual, name)) for name in _CONTEXTUAL},
    **{name: PolicyEntry(getattr(policies, name), random=True) for name in _RANDOM},
    **{name: PolicyEntry(getattr(contextual, name), random=True) for name in _RANDOM_CONTEXTUAL},
    **{name: PolicyEntry(getattr(policies, name), whole_batches=True) for name in _BATCHES},
}
_REPLACED = {"joint_kl_moss": "kl_moss"}
"""Policies that logs may name and that are no longer there, with those that learn from the same counters."""

REWARDS: dict[str, Callable[..., Any]] = {
    "coverage": Coverage,
    "linear": Linear,
    "logistic": Logistic,
    "clipped_linear": ClippedLinear,
    "conjunctive": Conjunctive,
    "spread": Spread,
}


def add_policy(name: str, make: Callable[..., Any], *, random: bool = False, whole_batches: bool = False) -> None:
    """Let problems name a policy; ``make`` takes its parameters, which are numbers, and returns it."""
    _check_free(name, POLICIES)
    POLICIES[name] = PolicyEntry(make, random, whole_batches)


def add_reward(name: str, make: Callable[..., Any]) -> None:
    """Let problems name a reward; ``make`` takes its parameters, which are numbers, and returns it."""
    _check_free(name, REWARDS)
    REWARDS[name] = make


def _check_free(name: str, known: dict[str, Any]) -> None:
    if name in known or not name.isidentifier():
        raise InvalidArgument("name", f"{name!r} is taken, or not an identifier", "choose another name")


def find(name: str, known: dict[str, Any], argument: str) -> Any:
    """The component of a name."""
    if name not in known:
        raise InvalidArgument(argument, f"unknown {name!r}", f"give one of {', '.join(known)}")
    return known[name]


def find_policy(name: str) -> PolicyEntry:
    """The policy of a name, also of one that only logs hold."""
    return find(_REPLACED.get(name, name), POLICIES, "policy.name")  # type: ignore[no-any-return]


def parameters_of(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a component that can be given as numbers; components within it keep their defaults."""
    given = inspect.signature(make).parameters.items()
    return {name: one for name, one in given if one.default is inspect.Parameter.empty or _is_number(one.default)}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def build(make: Callable[..., Any], parameters: dict[str, float], argument: str) -> Any:
    """The component with these parameters."""
    known = parameters_of(make)
    for name in parameters:
        if name not in known:
            raise InvalidArgument(argument, f"unknown {name!r}", f"known: {', '.join(known) or 'none'}")
    try:
        return make(**parameters)
    except TypeError:
        raise InvalidArgument(argument, "incomplete", f"give {', '.join(known)}") from None


class ParameterInfo(Struct, frozen=True, omit_defaults=True):
    """A parameter, with its default; one without has to be given."""

    name: str
    default: float | None = None


class ComponentInfo(Struct, frozen=True):
    """A component that can be named: what it is, in a line and at length, and its parameters."""

    name: str
    summary: str
    description: str
    parameters: list[ParameterInfo]


def list_policies() -> list[ComponentInfo]:
    """All policies that can be named."""
    return [_describe(name, entry.make) for name, entry in POLICIES.items()]


def list_rewards() -> list[ComponentInfo]:
    """All rewards that can be named."""
    return [_describe(name, make) for name, make in REWARDS.items()]


def list_actions(specs: Iterable[Any]) -> list[ComponentInfo]:
    """Action sets, by the types that describe them."""
    found = []
    for spec in specs:
        fields = spec.__annotations__["parameters"].__struct_fields__
        said = inspect.cleandoc(spec.__doc__ or "")
        needed = [ParameterInfo(name) for name in fields]
        found.append(ComponentInfo(str(spec.__struct_config__.tag), said.splitlines()[0], said, needed))
    return found


def _describe(name: str, make: Callable[..., Any]) -> ComponentInfo:
    said = inspect.cleandoc(make.__doc__ or name)
    parameters = []
    for parameter, one in parameters_of(make).items():
        default = None if one.default is inspect.Parameter.empty else float(one.default)
        parameters.append(ParameterInfo(parameter, default))
    return ComponentInfo(name, said.splitlines()[0], said, parameters)
