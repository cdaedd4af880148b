"""Names and parameters in a spec, turned into components by calling the function that makes them."""

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from superarm._jit import components
from superarm.describe import build
from superarm.errors import InvalidArgument, InvalidSpec

_FAMILIES = {"oracle": "oracles", "reward": "rewards", "actions": "actions", "outcomes": "environments"}
_GENERATORS = (
    "superarm.simulation.instances",
    "superarm.experiments.applications",
    "superarm.data.instances",
    "superarm.data.influence",
)
Path = tuple[str, ...]


def generators() -> dict[str, Callable[..., Any]]:
    """Every function that makes an instance, by name."""
    homes = [importlib.import_module(home) for home in _GENERATORS]
    return {name: function for home in homes for name, function in _functions(home).items()}


def policies() -> dict[str, Callable[..., Any]]:
    """Every function of the catalogue, by name."""
    return _functions(importlib.import_module("superarm.catalog"))


def _functions(module: Any) -> dict[str, Callable[..., Any]]:
    public = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
    return {n: f for n, f in public.items() if inspect.isfunction(f) and f.__module__ == module.__name__}


def _components(family: str) -> dict[str, Callable[..., Any]]:
    module = importlib.import_module(f"superarm.{_FAMILIES[family]}")
    named = {name: getattr(module, name) for name in module.__all__}
    return {name: thing for name, thing in named.items() if thing in components.values()}


def part(family: str, value: Any, path: Path, *given: Any) -> Any:
    """A component from its name, or from a table with its ``name`` and parameters.

    >>> part("reward", {"name": "Logistic", "c": 2.0}, ("reward",))
    Logistic(c=2.0)
    """
    if isinstance(value, Mapping) and "type" in value:
        return build(value)
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping) or "name" not in table:
        raise InvalidSpec(path, f"{value!r} is not a component", 'give a name, or { name = "…", parameter = … }')
    makers = _components(family)
    maker = makers[choice(table["name"], makers, path)]
    return call(maker, {k: v for k, v in table.items() if k != "name"}, path, *given)


def accept(function: Callable[..., Any], table: Mapping[str, Any], path: Path, *given: Any) -> dict[str, Any]:
    """``table`` as arguments of ``function`` (those of ``given`` aside), after checking every key and type."""
    parameters = dict(list(inspect.signature(function).parameters.items())[len(given) :])
    arguments = {}
    for key, value in table.items():
        annotation = parameters[choice(key, parameters, (*path, key), "key")].annotation
        arguments[key] = _argument(key, value, annotation, (*path, key))
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in table:
            raise InvalidSpec(path, f"lacks {key!r}", f"add {key} = …")
    return arguments


def call(function: Callable[..., Any], table: Mapping[str, Any], path: Path, *given: Any) -> Any:
    """``function(*given, **table)``; what it refuses is told in the words of the spec."""
    arguments = accept(function, table, path, *given)
    try:
        return function(*given, **arguments)
    except InvalidSpec:
        raise
    except InvalidArgument as error:
        if error.argument in table:
            raise InvalidSpec((*path, error.argument), error.wrong, error.remedy) from error
        raise InvalidSpec(path, f"{error.argument}: {error.wrong}", error.remedy) from error


def _argument(key: str, value: Any, annotation: Any, path: Path) -> Any:
    if key in _FAMILIES and isinstance(value, str | Mapping):
        return part(key, value, path)
    wanted = {int: (int,), float: (int, float), str: (str,), bool: (bool,)}.get(annotation)
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and annotation is not bool)):
        raise InvalidSpec(
            path, f"{value!r} is not of type {annotation.__name__}", f"give a value of type {annotation.__name__}"
        )
    return value


def choice(name: Any, valid: Iterable[str], path: Path, what: str = "name") -> str:
    """``name`` if it is one of ``valid``; otherwise an error with the nearest of them."""
    names = list(valid)
    if isinstance(name, str) and name in names:
        return name
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    options = f"give one of {', '.join(names)}" if names else "it takes no parameters"
    raise InvalidSpec(path, f"unknown {what} {name!r}", f"did you mean {near[0]!r}?" if near else options)
