"""Names and parameters in a spec, turned into calls of the functions and components that they name."""

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from superarm.core.component import Component
from superarm.core.describe import build
from superarm.core.errors import InvalidArgument, InvalidSpec
from superarm.experiments.spec.imports import find_named, is_component, list_imported
from superarm.experiments.spec.sweeps import KeyPath
from superarm.policies import Policy

_FAMILIES = {
    "oracle": ("superarm.oracles:Oracle", "superarm.diffusion"),
    "reward": ("superarm.rewards:Reward", "superarm.diffusion"),
    "actions": ("superarm.actions:Actions",),
    "outcomes": ("superarm.environments:Environment", "superarm.diffusion"),
    "spread": ("superarm.policies:SampleVariance",),
    "model": ("superarm.context:Model",),
}
"""The base of the components that a parameter of this name takes, after its module; and further modules of theirs."""
_POLICY_MODULES = ("superarm.policies.catalog", "superarm.contextual.catalog")
_GENERATOR_MODULES = (
    "superarm.simulation.instances",
    "superarm.simulation.contextual_instances",
    "superarm.experiments.applications",
    "superarm.data.instances",
    "superarm.data.contextual",
    "superarm.data.influence",
)


def find_generators() -> dict[str, Callable[..., Any]]:
    """Every function that generates an instance, by name; those of imported modules included."""
    homes = [importlib.import_module(home) for home in _GENERATOR_MODULES]
    shipped = {name: function for home in homes for name, function in _public_functions(home).items()}
    return list_imported() | shipped


def find_policies() -> dict[str, Callable[..., Any]]:
    """Every function of the policy catalogue, by name; functions and policies of imported modules included."""
    homes = [importlib.import_module(home) for home in _POLICY_MODULES]
    shipped = {name: thing for home in homes for name, thing in vars(home).items() if hasattr(thing, "__wrapped__")}
    return list_imported() | list_imported(Policy) | shipped


def find_maker(name: Any, makers: Mapping[str, Callable[..., Any]], path: KeyPath, what: str) -> Callable[..., Any]:
    """The function or component of this name: one of ``makers``, or what ``module:Name`` or ``file.py:Name`` names."""
    if isinstance(name, str) and ":" in name:
        return find_named(name, path)
    return makers[check_choice(name, makers, path, what)]


def _public_functions(module: Any) -> dict[str, Callable[..., Any]]:
    public = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
    return {n: f for n, f in public.items() if inspect.isfunction(f) and f.__module__ == module.__name__}


def _find_components(family: str) -> dict[str, Callable[..., Any]]:
    first, *others = _FAMILIES[family]
    home, _, name = first.partition(":")
    modules = [importlib.import_module(module) for module in (home, *others)]
    base: type[Component] = getattr(modules[0], name)
    things = {name: thing for module in modules for name, thing in vars(module).items()}
    return list_imported(base) | {name: thing for name, thing in things.items() if is_component(thing, base)}


def resolve_component(family: str, value: Any, path: KeyPath, *given: Any) -> Any:
    """A component from its name, or from a table with its ``name`` and parameters; ``given`` arguments come first.

    >>> resolve_component("reward", {"name": "Logistic", "c": 2.0}, ("reward",))
    Logistic(c=2)
    """
    if isinstance(value, Mapping) and "type" in value:
        return build(value)
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping) or "name" not in table:
        raise InvalidSpec(path, f"{value!r} is not a component", 'give a name, or { name = "…", parameter = … }')
    makers = _find_components(family)
    maker = find_maker(table["name"], makers, path, "name")
    return call(maker, {k: v for k, v in table.items() if k != "name"}, path, *given)


def check_arguments(
    function: Callable[..., Any], table: Mapping[str, Any], path: KeyPath, *given: Any
) -> dict[str, Any]:
    """The arguments of ``function`` from ``table``, with every key and type checked; ``given`` arguments come first."""
    parameters = dict(list(inspect.signature(function).parameters.items())[len(given) :])
    arguments = {}
    for key, value in table.items():
        annotation = parameters[check_choice(key, parameters, (*path, key), "key")].annotation
        arguments[key] = _check_argument(key, value, annotation, (*path, key))
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in table:
            raise InvalidSpec(path, f"lacks {key!r}", f"add {key} = …")
    return arguments


def call(function: Callable[..., Any], table: Mapping[str, Any], path: KeyPath, *given: Any) -> Any:
    """``function(*given, **table)``; if it refuses an argument, the error names the key in the spec."""
    arguments = check_arguments(function, table, path, *given)
    try:
        return function(*given, **arguments)
    except InvalidSpec:
        raise
    except InvalidArgument as error:
        if error.argument in table:
            raise InvalidSpec((*path, error.argument), error.wrong, error.remedy) from error
        raise InvalidSpec(path, f"{error.argument}: {error.wrong}", error.remedy) from error


def _check_argument(key: str, value: Any, annotation: Any, path: KeyPath) -> Any:
    if key in _FAMILIES and isinstance(value, str | Mapping):
        return resolve_component(key, value, path)
    wanted = {int: (int,), float: (int, float), str: (str,), bool: (bool,)}.get(annotation)
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and annotation is not bool)):
        raise InvalidSpec(
            path, f"{value!r} is not of type {annotation.__name__}", f"give a value of type {annotation.__name__}"
        )
    return value


def check_choice(name: Any, valid: Iterable[str], path: KeyPath, what: str = "name") -> str:
    """Return ``name`` if it is one of ``valid``; otherwise raise an error that names the nearest of them."""
    names = list(valid)
    if isinstance(name, str) and name in names:
        return name
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    options = f"give one of {', '.join(names)}" if names else "it takes no parameters"
    raise InvalidSpec(path, f"unknown {what} {name!r}", f"did you mean {near[0]!r}?" if near else options)
