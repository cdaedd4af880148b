"""Instances and policies of a spec: names, parameters and sweeps, turned into the objects that they describe."""

import difflib
import importlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from superarm.core.component import Component
from superarm.core.errors import InvalidArgument, InvalidSpec
from superarm.describe import build, describe
from superarm.environments import Totals
from superarm.experiments.spec.imports import find_named, is_component, list_imported
from superarm.policies import Hybrid, IndexPolicy, Policy
from superarm.simulation.instances import Instance, InstanceFamily

SWEEP = "sweep"
DRAWS = ("draws", "replications")
"""Keys of a table that makes a family of instances: how many, and how often each is played, once by default."""
PLAYED_BY = "policies"
"""The key of an instance that only some policies play: their names."""
KeyPath = tuple[str, ...]
WRAPPED = "of"
"""The key of the policy that another one works on, such as a sliding window."""
_FAMILIES = {
    "index": "superarm.indices:Index",
    "oracle": "superarm.oracles:Oracle",
    "reward": "superarm.rewards:Reward",
    "actions": "superarm.actions:Actions",
    "outcomes": "superarm.environments:Environment",
    "spread": "superarm.policies:SampleVariance",
    "model": "superarm.context:Model",
}
"""The base of the components that a parameter of this name takes, after their module."""
_POLICY_MODULES = ("superarm.policies.catalog", "superarm.contextual.catalog")
_GENERATOR_MODULES = (
    "superarm.simulation.instances",
    "superarm.simulation.contextual_instances",
    "superarm.data.instances",
)


@dataclass(frozen=True)
class Case:
    """One point of a sweep: the name it was declared under, and the value on each axis.

    Of a family, ``draw`` numbers the instances, which share a label, and each is played ``replications`` times. An
    instance with ``policies`` is played by these only.

    >>> Case("random", {"k": 4, "seed": 0}).label
    'random (k=4, seed=0)'
    """

    name: str
    axes: Mapping[str, Any] = field(default_factory=dict)
    draw: int | None = None
    replications: int | None = None
    policies: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name, followed by the values on the axes."""
        values = ", ".join(
            f"{axis}={value:g}" if isinstance(value, float) else f"{axis}={value}" for axis, value in self.axes.items()
        )
        return f"{self.name} ({values})" if values else self.name


def expand(table: Mapping[str, Any], path: KeyPath) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination of the swept values: the values by axis, and the table with these values filled in.

    >>> expand({"k": {"sweep": [2, 4]}, "n_arms": 10}, ())
    [({'k': 2}, {'k': 2, 'n_arms': 10}), ({'k': 4}, {'k': 4, 'n_arms': 10})]
    """
    found = list(_find_sweeps(table, path, ()))
    cases = []
    for values in itertools.product(*(values for _, values in found)):
        by_axis = {axis: value for (axis, _), value in zip(found, values, strict=True)}
        cases.append(({".".join(axis): value for axis, value in by_axis.items()}, _fill(table, (), by_axis)))
    return cases


def _find_sweeps(table: Mapping[str, Any], path: KeyPath, inner: KeyPath) -> Iterator[tuple[KeyPath, list[Any]]]:
    for key, value in table.items():
        here = (*path, *inner, key)
        if isinstance(value, Mapping) and SWEEP in value:
            values = value[SWEEP]
            if set(value) != {SWEEP} or not isinstance(values, list | tuple) or not values:
                raise InvalidSpec(here, "not a sweep", "write { sweep = [value, value, …] }, with at least one value")
            if len({repr(one) for one in values}) < len(values):
                raise InvalidSpec(here, "sweeps over a value twice", "give each value once")
            yield (*inner, key), list(values)
        elif isinstance(value, Mapping):
            yield from _find_sweeps(value, path, (*inner, key))


def _fill(table: Mapping[str, Any], inner: KeyPath, by_axis: Mapping[KeyPath, Any]) -> dict[str, Any]:
    """The table with the value of each swept key in place of its sweep."""
    filled = {}
    for key, value in table.items():
        here = (*inner, key)
        if here in by_axis:
            filled[key] = by_axis[here]
        else:
            filled[key] = _fill(value, here, by_axis) if isinstance(value, Mapping) else value
    return filled


def find_generators() -> dict[str, Callable[..., Any]]:
    """Every function that generates an instance, by name; those of imported modules included."""
    homes = [importlib.import_module(home) for home in _GENERATOR_MODULES]
    shipped = {name: function for home in homes for name, function in _public_functions(home).items()}
    del shipped["family"]  # it makes many instances, as draws = … does in a file
    return list_imported() | shipped


def find_policies() -> dict[str, Callable[..., Any]]:
    """Every function of the policy catalogue, by name; functions and policies of imported modules included."""
    homes = [importlib.import_module(home) for home in _POLICY_MODULES]
    shipped = {name: thing for home in homes for name, thing in vars(home).items() if hasattr(thing, "__wrapped__")}
    return list_imported() | list_imported(Policy) | shipped | {"IndexPolicy": IndexPolicy, "Hybrid": Hybrid}


def find_maker(name: Any, makers: Mapping[str, Callable[..., Any]], path: KeyPath, what: str) -> Callable[..., Any]:
    """The function or component of this name: one of ``makers``, or what ``module:Name`` or ``file.py:Name`` names."""
    if isinstance(name, str) and ":" in name:
        return find_named(name, path)
    return makers[check_choice(name, makers, path, what)]


def _public_functions(module: Any) -> dict[str, Callable[..., Any]]:
    public = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
    return {n: f for n, f in public.items() if inspect.isfunction(f) and f.__module__ == module.__name__}


def _find_components(family: str) -> dict[str, Callable[..., Any]]:
    home, _, name = _FAMILIES[family].partition(":")
    module = importlib.import_module(home)
    base: type[Component] = getattr(module, name)
    return list_imported(base) | {name: thing for name, thing in vars(module).items() if is_component(thing, base)}


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
    if key == "rules" and isinstance(value, list):
        return [resolve_component("actions", one, path) if isinstance(one, Mapping) else one for one in value]
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


def check_section(kind: str, section: Mapping[str, Any]) -> None:
    """Refuse a section (``instances`` or ``policies``) that is empty, or has entries that are no objects or tables."""
    if not isinstance(section, Mapping) or not section:
        raise InvalidSpec((kind,), "empty", f"add a table [{kind}.<name>]")
    for name, entry in section.items():
        if isinstance(entry, Mapping):
            _check_table(kind, entry, (kind, name))
        elif not isinstance(entry, Instance | InstanceFamily if kind == "instances" else Policy):
            remedy = "give an Instance" if kind == "instances" else "give e.g. kl_ucb(), with the parentheses"
            raise InvalidSpec((kind, name), f"{entry!r} is not one of {kind}", f"{remedy}, or a table")


def _check_table(kind: str, table: Mapping[str, Any], path: KeyPath) -> None:
    """Check the names and keys of every case, before anything is built or read from disk."""
    for _, filled in expand(table, path):
        if "type" in filled or "problem" in filled:
            continue
        instances = kind == "instances"
        key = "generator" if instances else "policy"
        makers = find_generators() if instances else find_policies()
        if key not in filled:
            check_choice(None if not filled else next(iter(filled)), [key], path, "key")
            raise InvalidSpec(path, f"lacks {key!r}", f"add {key} = one of {', '.join(sorted(makers))}")
        maker = find_maker(filled[key], makers, (*path, key), key)
        rest = {k: v for k, v in filled.items() if k not in (key, "outcomes", WRAPPED)}
        rest = {k: v for k, v in rest.items() if not instances or k not in (*DRAWS, PLAYED_BY)}
        check_arguments(maker, rest, path, *((filled[WRAPPED],) if WRAPPED in filled else ()))
        if instances:
            _check_draws(filled, maker, path)


def build_cases(kind: str, section: Mapping[str, Any]) -> list[tuple[Case, Any]]:
    """Every case of a section with the object it describes."""
    make: Callable[[Mapping[str, Any], KeyPath], Any] = _make_instance if kind == "instances" else _make_policy
    found: list[tuple[Case, Any]] = []
    for name, entry in section.items():
        if isinstance(entry, InstanceFamily):
            found += [(Case(name, {}, draw, 1), instance) for draw, instance in enumerate(entry)]
        elif not isinstance(entry, Mapping):
            found.append((Case(name), entry))
        else:
            for axes, table in expand(entry, (kind, name)):
                case = Case(name, axes, policies=tuple(table.get(PLAYED_BY, ())))
                rest = {key: value for key, value in table.items() if key != PLAYED_BY}
                found += _make_draws(case, rest) if DRAWS[0] in rest else [(case, make(rest, (kind, name)))]
    return found


def _make_draws(case: Case, table: Mapping[str, Any]) -> list[tuple[Case, Any]]:
    """The instances of a family, each with its own seed."""
    rest = {key: value for key, value in table.items() if key not in DRAWS}
    first, path = rest.get("seed", 0), ("instances", case.name)
    each = table.get(DRAWS[1], 1)
    return [
        (replace(case, draw=draw, replications=each), _make_instance(rest | {"seed": first + draw}, path))
        for draw in range(table[DRAWS[0]])
    ]


def _check_draws(table: Mapping[str, Any], maker: Callable[..., Any], path: KeyPath) -> None:
    """Refuse draws that are not whole positive numbers, or of a generator without a seed."""
    for key in DRAWS:
        number = table.get(key, 1)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise InvalidSpec((*path, key), f"{number!r} is not a whole number >= 1", "give an int >= 1")
    if DRAWS[1] in table and DRAWS[0] not in table:
        raise InvalidSpec((*path, DRAWS[1]), "there is one instance", "add draws = …, or set replications for all")
    if DRAWS[0] in table and "seed" not in inspect.signature(maker).parameters:
        raise InvalidSpec((*path, DRAWS[0]), "the generator has no seed", "draw from a generator with a parameter seed")


def _make_instance(table: Mapping[str, Any], path: KeyPath) -> Instance:
    if "problem" in table:
        return Instance(_build_description(table["problem"], path), _build_description(table["environment"], path))
    rest = {key: value for key, value in table.items() if key not in ("generator", "outcomes")}
    maker = find_maker(table["generator"], find_generators(), (*path, "generator"), "generator")
    instance: Instance = call(maker, rest, path)
    if not isinstance(instance, Instance):
        raise InvalidSpec(
            (*path, "generator"), f"{table['generator']} returned no Instance", "return superarm.Instance"
        )
    if "outcomes" not in table:
        return instance
    if table["outcomes"] == Totals.__name__:
        return call(instance.as_totals, {}, path)
    environment = resolve_component("outcomes", table["outcomes"], (*path, "outcomes"), instance.p)
    return Instance(instance.problem, environment)


def _make_policy(table: Mapping[str, Any], path: KeyPath) -> Any:
    if "type" in table:
        return _build_description(table, path)
    rest = {key: value for key, value in table.items() if key not in ("policy", WRAPPED)}
    maker = find_maker(table["policy"], find_policies(), (*path, "policy"), "policy")
    policy = call(maker, rest, path, *_make_wrapped(table, path))
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
    if isinstance(entry, InstanceFamily):
        maker = entry.generator
        known = find_generators().get(maker.__name__) is maker
        name = maker.__name__ if known else f"{maker.__module__}:{maker.__qualname__}"
        entry = {"generator": name, **entry.parameters, "draws": entry.draws, "seed": entry.seed}
    elif isinstance(entry, Instance):
        entry = {"problem": entry.problem, "environment": entry.environment}
    elif not isinstance(entry, Mapping):
        entry = describe(entry)
    parts = {key: _to_toml(value) for key, value in entry.items()}
    return {key: part for key, part in parts.items() if part is not None}  # TOML has no None: it is the default


def _to_toml(value: Any) -> Any:
    return to_table(value) if isinstance(value, Mapping | Component) else describe(value)
