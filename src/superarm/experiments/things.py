"""Instances and policies of a spec: from tables to objects, and back."""

from collections.abc import Callable, Mapping
from typing import Any

from superarm import catalog as _catalog  # noqa: F401  (so that every component of the library can be built)
from superarm.describe import build, describe
from superarm.errors import InvalidArgument, InvalidSpec
from superarm.experiments import parts
from superarm.experiments.sweeps import Case, expand
from superarm.simulation.instances import Instance

Path = tuple[str, ...]


def check(kind: str, things: Mapping[str, Any]) -> None:
    """Refuse a section of a spec without entries, or with entries that are neither objects nor tables."""
    if not isinstance(things, Mapping) or not things:
        raise InvalidSpec((kind,), "empty", f"add a table [{kind}.<name>]")
    for name, thing in things.items():
        if isinstance(thing, Mapping):
            _check_table(kind, thing, (kind, name))
        elif not _is_object(kind, thing):
            remedy = "give an Instance" if kind == "instances" else "give e.g. kl_ucb(), with the parentheses"
            raise InvalidSpec((kind, name), f"{thing!r} is not one of {kind}", f"{remedy}, or a table")


def _is_object(kind: str, thing: Any) -> bool:
    if kind == "instances":
        return isinstance(thing, Instance)
    return callable(getattr(thing, "choose", None)) and not isinstance(thing, type)


def _check_table(kind: str, table: Mapping[str, Any], path: Path) -> None:
    """Names and keys of every case, before anything is built or read from a disk."""
    for _, filled in expand(table, path):
        if "type" in filled or "problem" in filled:
            continue
        key, makers = ("generator", parts.generators()) if kind == "instances" else ("policy", parts.policies())
        if key not in filled:
            parts.choice(None if not filled else next(iter(filled)), [key], path, "key")
            raise InvalidSpec(path, f"lacks {key!r}", f"add {key} = one of {', '.join(sorted(makers))}")
        maker = makers[parts.choice(filled[key], makers, (*path, key), key)]
        parts.accept(maker, {k: v for k, v in filled.items() if k not in (key, "outcomes")}, path)


def cases(kind: str, things: Mapping[str, Any]) -> list[tuple[Case, Any]]:
    """Every case of a section with its object."""
    make: Callable[[Mapping[str, Any], Path], Any] = _instance if kind == "instances" else _policy
    found: list[tuple[Case, Any]] = []
    for name, thing in things.items():
        if not isinstance(thing, Mapping):
            found.append((Case(name), thing))
            continue
        found += [(Case(name, axes), make(table, (kind, name))) for axes, table in expand(thing, (kind, name))]
    return found


def _instance(table: Mapping[str, Any], path: Path) -> Instance:
    if "problem" in table:
        return Instance(_built(table["problem"], path), _built(table["environment"], path))
    rest = {key: value for key, value in table.items() if key not in ("generator", "outcomes")}
    instance: Instance = parts.call(parts.generators()[table["generator"]], rest, path)
    if "outcomes" not in table:
        return instance
    means = instance.environment.means(1)
    return Instance(instance.problem, parts.part("outcomes", table["outcomes"], (*path, "outcomes"), means))


def _policy(table: Mapping[str, Any], path: Path) -> Any:
    if "type" in table:
        return _built(table, path)
    rest = {key: value for key, value in table.items() if key != "policy"}
    if isinstance(rest.get("of"), Mapping):
        _check_table("policies", rest["of"], (*path, "of"))
        rest["of"] = _policy(rest["of"], (*path, "of"))
    return parts.call(parts.policies()[table["policy"]], rest, path)


def _built(description: Any, path: Path) -> Any:
    try:
        return build(description)
    except InvalidArgument as error:
        raise InvalidSpec(path, error.wrong, error.remedy) from error


def plain(thing: Any) -> dict[str, Any]:
    """An instance or a policy as a table that TOML can hold."""
    if isinstance(thing, Mapping):
        return {key: plain(value) if isinstance(value, Mapping) else describe(value) for key, value in thing.items()}
    if isinstance(thing, Instance):
        return {"problem": describe(thing.problem), "environment": describe(thing.environment)}
    described: dict[str, Any] = describe(thing)
    return described
