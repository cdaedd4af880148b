"""Instances and policies of a spec: objects from tables, and tables from objects."""

from collections.abc import Callable, Mapping
from typing import Any

from superarm.core.component import Component
from superarm.core.describe import build, describe
from superarm.core.errors import InvalidArgument, InvalidSpec
from superarm.experiments.spec import resolve
from superarm.experiments.spec.sweeps import Case, KeyPath, expand
from superarm.policies import Policy
from superarm.simulation.instances import Instance

WRAPPED = "of"
"""The key of the policy that another one works on, such as a sliding window."""


def check_section(kind: str, section: Mapping[str, Any]) -> None:
    """Refuse a section (``instances`` or ``policies``) that is empty, or has entries that are no objects or tables."""
    if not isinstance(section, Mapping) or not section:
        raise InvalidSpec((kind,), "empty", f"add a table [{kind}.<name>]")
    for name, entry in section.items():
        if isinstance(entry, Mapping):
            _check_table(kind, entry, (kind, name))
        elif not isinstance(entry, Instance if kind == "instances" else Policy):
            remedy = "give an Instance" if kind == "instances" else "give e.g. kl_ucb(), with the parentheses"
            raise InvalidSpec((kind, name), f"{entry!r} is not one of {kind}", f"{remedy}, or a table")


def _check_table(kind: str, table: Mapping[str, Any], path: KeyPath) -> None:
    """Check the names and keys of every case, before anything is built or read from disk."""
    for _, filled in expand(table, path):
        if "type" in filled or "problem" in filled:
            continue
        instances = kind == "instances"
        key = "generator" if instances else "policy"
        makers = resolve.find_generators() if instances else resolve.find_policies()
        if key not in filled:
            resolve.check_choice(None if not filled else next(iter(filled)), [key], path, "key")
            raise InvalidSpec(path, f"lacks {key!r}", f"add {key} = one of {', '.join(sorted(makers))}")
        maker = resolve.find_maker(filled[key], makers, (*path, key), key)
        rest = {k: v for k, v in filled.items() if k not in (key, "outcomes", WRAPPED)}
        resolve.check_arguments(maker, rest, path, *((filled[WRAPPED],) if WRAPPED in filled else ()))


def build_cases(kind: str, section: Mapping[str, Any]) -> list[tuple[Case, Any]]:
    """Every case of a section with the object it describes."""
    make: Callable[[Mapping[str, Any], KeyPath], Any] = _make_instance if kind == "instances" else _make_policy
    found: list[tuple[Case, Any]] = []
    for name, entry in section.items():
        if not isinstance(entry, Mapping):
            found.append((Case(name), entry))
            continue
        found += [(Case(name, axes), make(table, (kind, name))) for axes, table in expand(entry, (kind, name))]
    return found


def _make_instance(table: Mapping[str, Any], path: KeyPath) -> Instance:
    if "problem" in table:
        return Instance(_build_description(table["problem"], path), _build_description(table["environment"], path))
    rest = {key: value for key, value in table.items() if key not in ("generator", "outcomes")}
    maker = resolve.find_maker(table["generator"], resolve.find_generators(), (*path, "generator"), "generator")
    instance: Instance = resolve.call(maker, rest, path)
    if not isinstance(instance, Instance):
        raise InvalidSpec(
            (*path, "generator"), f"{table['generator']} returned no Instance", "return superarm.Instance"
        )
    if "outcomes" not in table:
        return instance
    environment = resolve.resolve_component("outcomes", table["outcomes"], (*path, "outcomes"), instance.p)
    return Instance(instance.problem, environment)


def _make_policy(table: Mapping[str, Any], path: KeyPath) -> Any:
    if "type" in table:
        return _build_description(table, path)
    rest = {key: value for key, value in table.items() if key not in ("policy", WRAPPED)}
    maker = resolve.find_maker(table["policy"], resolve.find_policies(), (*path, "policy"), "policy")
    policy = resolve.call(maker, rest, path, *_make_wrapped(table, path))
    if not isinstance(policy, Policy):
        raise InvalidSpec(
            (*path, "policy"), f"{table['policy']} makes no policy", "name a policy, or a function of one"
        )
    return policy


def _make_wrapped(table: Mapping[str, Any], path: KeyPath) -> tuple[Any, ...]:
    """The policy that the one of ``table`` works on, its first argument; nothing if it has none."""
    if WRAPPED not in table:
        return ()
    own, inner = table[WRAPPED], (*path, WRAPPED)
    if not isinstance(own, Mapping):
        raise InvalidSpec(inner, f"{own!r} is not a policy", 'give { policy = "…" }')
    _check_table("policies", own, inner)
    return (_make_policy(own, inner),)


def _build_description(description: Any, path: KeyPath) -> Any:
    try:
        return build(description)
    except InvalidArgument as error:
        raise InvalidSpec(path, error.wrong, error.remedy) from error


def to_table(entry: Any) -> dict[str, Any]:
    """An instance or a policy as a table that TOML can hold."""
    if isinstance(entry, Instance):
        entry = {"problem": entry.problem, "environment": entry.environment}
    elif not isinstance(entry, Mapping):
        entry = describe(entry)
    parts = {key: _to_toml(value) for key, value in entry.items()}
    return {key: part for key, part in parts.items() if part is not None}  # TOML has no None: it is the default


def _to_toml(value: Any) -> Any:
    return to_table(value) if isinstance(value, Mapping | Component) else describe(value)
