"""Components, problems and arrays as plain dicts that JSON can hold, and back.

A component of superarm is ``{"type": "Bernstein", "rho": 3.0}``: its class by name, wherever its module is; one of a
user is named ``module:Class``. ``build`` makes only subclasses of ``Component``: a description can neither import a
module nor run code.

Agent states, logs and results hold such descriptions. Those of earlier commits have the names of modules and fields of
their time; the tables below translate them.
"""

import base64
import importlib
import pkgutil
from typing import Any

import numpy as np

from superarm.core.component import Component
from superarm.core.errors import InvalidArgument

_TYPE, _ARRAY, _MAPPING = "type", "array", "mapping"
_HOME = "superarm."
_PACKAGES = (
    "rewards",
    "indices",
    "actions",
    "oracles",
    "environments",
    "policies",
    "context",
    "contextual",
    "diffusion",
)
"""Where superarm's own components are, besides ``core``; imported when a name is not known yet."""

_RENAMED = {
    "Fading": "Forgetting",
    "Optimistic": "IndexPolicy",
    "Sieve": "IndexPolicy",
    "SparseSieve": "IndexPolicy",
    "Screened": "IndexPolicy",
    "SharedDraw": "IndexPolicy",
    "DirectionalSieve": "DirectionalPolicy",
    "LazyGreedy": "Greedy",
    "RangedGreedy": "Greedy",
    "CostBenefit": "GreedyMax",
}
"""Classes that had another name, or that were another class's optimisation."""

_GONE = {
    "JointPolicy": "joint policies were removed; take directional_kl_moss(), and warm-start it with the agent's data",
    "Failing": "oracles that fail at random were removed; take the oracle itself",
}
"""Classes without a counterpart, and what to do instead."""

_VALUES: dict[str, Any] = {"Exact": "exact", "Coin": "coin", "TryEveryArm": True, "NoStart": False}
_VALUES |= dict.fromkeys(("Ascent", "EveryBatch", "RegressionLayout", "SegmentLayout"))
"""Components that are plain parameters now, or nothing at all."""

_ADDED: dict[str, dict[str, Any]] = {"Optimistic": {"start": False}, "SharedDraw": {"shared": True}}
"""Parameters that the name of a class said."""

_FIELDS: dict[str, dict[str, str]] = {
    "IndexPolicy": {"confidence": "index", "intake": "rounding", "table": "", "sizes": "", "slack": ""},
    "DirectionalPolicy": {"confidence": "index"},
    "GroupedPolicy": {"confidence": "index", "design": ""},
    "LogisticPolicy": {"kl": "index", "design": "", "offset": "", "kept": "", "support": ""},
    "LinearPolicy": {"design": "", "ridge": ""},
    "Ellipsoid": {"gamma": "ridge"},
    "VarianceWeighted": {"gamma": "ridge"},
    "GaussianPosterior": {"prior": "ridge"},
    "SegmentPolicy": {"intake": ""},
    "Forgetting": {"intake": ""},
    "ContextForgetting": {"layout": ""},
    "EpsilonGreedy": {"leader": "policy"},
    "BatchPolicy": {"hope": "bonus"},
    "LeastPlayed": {"scale": ""},
    "SetBonus": {"finder": ""},
    "CovariancePolicy": {"finder": ""},
    "CovarianceBox": {"n_entries": "", "batch_entries": ""},
    "CovarianceEllipsoid": {"n_entries": ""},
    "Greedy": {"slack": ""},
    "Exhaustive": {"table": "", "sizes": ""},
    "KnapsackTable": {"units": "", "room": ""},
    "IMM": {"start": "", "source": "", "entry": ""},
    "IndependentCascade": {"start": "", "held": "", "worth": ""},
    "Slots": {"k": ""},
    "GraphicMatroid": {"ends": "edges", "k": ""},
    "SpanningTrees": {"ends": "edges"},
    "Matching": {"ends": "edges", "k": ""},
    "Paths": {"ends": "edges", "sweep": "", "k": ""},
    "FreeSamples": {"world": "environment"},
    "Replay": {"average": ""},
    "Cohorts": {"average": ""},
    "Blocks": {"p": ""},
}
"""For each class, what the fields of earlier descriptions are called now; nothing if they follow from the others."""


def describe(thing: Any) -> Any:
    """A plain description of a component, a problem, an array or a plain value.

    >>> from superarm.actions import Subsets
    >>> describe(Subsets(3))
    {'type': 'Subsets', 'k': 3}
    """
    if isinstance(thing, Component):
        return {_TYPE: _name(type(thing))} | {field: describe(value) for field, value in thing.parameters().items()}
    if isinstance(thing, np.ndarray):
        little = np.ascontiguousarray(thing, thing.dtype.newbyteorder("<"))
        data = base64.b64encode(little.tobytes()).decode("ascii")
        return {_ARRAY: little.dtype.str, "shape": list(thing.shape), "data": data}
    if isinstance(thing, dict):
        return {_MAPPING: [[describe(key), describe(value)] for key, value in thing.items()]}
    if isinstance(thing, list | tuple):
        return [describe(part) for part in thing]
    if callable(thing):
        raise InvalidArgument("component", f"the function {thing!r} cannot be stored", "make it a class of your own")
    return thing.item() if isinstance(thing, np.generic) else thing


def build(description: Any) -> Any:
    """What ``describe`` described, now or in an earlier version; lists come back as tuples.

    >>> build({'type': 'superarm.actions.subsets:Subsets', 'k': 3})
    Subsets(k=3)
    """
    if isinstance(description, list):
        return tuple(build(part) for part in description)
    if not isinstance(description, dict):
        return description
    if _ARRAY in description:
        flat = np.frombuffer(base64.b64decode(description["data"]), dtype=np.dtype(description[_ARRAY]))
        return flat.reshape(description["shape"]).astype(flat.dtype.newbyteorder("="))
    if _MAPPING in description:
        return {build(key): build(value) for key, value in description[_MAPPING]}
    if _TYPE not in description:
        raise InvalidArgument("description", f"it has no type but {sorted(description)}", "describe it anew")
    fields = {field: build(value) for field, value in description.items() if field != _TYPE}
    return _make(description[_TYPE], fields)


def _make(name: str, fields: dict[str, Any]) -> Any:
    module, _, last = name.rpartition(":")
    own = not module or module.split(".")[0] == "superarm"
    if own and last in _VALUES:
        return _VALUES[last]
    if own and last in _GONE:
        raise InvalidArgument("description", f"{last} cannot be read", _GONE[last])
    if own and last == "Terms":
        return fields
    fields = _ADDED.get(last, {}) | fields if own else fields
    short = _RENAMED.get(last, last) if own else name
    for field, today in _FIELDS.get(short, {}).items():
        if field in fields:
            value = fields.pop(field)
            fields |= {today: value} if today else {}
    if own and short in _EARLIER:
        fields = _EARLIER[short](fields)
    cls: Any = _class(short)
    try:
        return cls(**fields)
    except TypeError as wrong:
        raise InvalidArgument("description", f"{name}: {wrong}", "describe it anew") from None


def _name(cls: type) -> str:
    """The name of a class in descriptions."""
    own = cls.__module__.startswith(_HOME)
    return cls.__qualname__ if own else f"{cls.__module__}:{cls.__qualname__}"


def _class(name: str) -> type[Component]:
    known = _find(name)
    if known is None and ":" not in name:
        _import_components()
        known = _find(name)
    if known is None:
        remedy = f"import {name.partition(':')[0]} first" if ":" in name else "read it with the version that wrote it"
        raise InvalidArgument("description", f"unknown component {name!r}", remedy)
    return known


def _import_components() -> None:
    for package in _PACKAGES:
        home = importlib.import_module(_HOME + package)
        for module in pkgutil.iter_modules(getattr(home, "__path__", ()), home.__name__ + "."):
            importlib.import_module(module.name)


def _find(name: str) -> type[Component] | None:
    if ":" in name:
        return Component.classes.get(name)
    found = (cls for cls in Component.classes.values() if cls.__qualname__ == name and cls.__module__.startswith(_HOME))
    return next(found, None)


# --- descriptions of earlier versions whose fields have another form ---


def _problem(fields: dict[str, Any]) -> dict[str, Any]:
    terms = fields.pop("terms", {})
    return fields | terms


def _sparse(fields: dict[str, Any]) -> dict[str, Any]:
    return {"n_arms": len(fields["start"]) - 1} | fields


def _explicit(fields: dict[str, Any]) -> dict[str, Any]:
    if "table" not in fields:
        return fields
    rows = zip(fields["table"].tolist(), fields["sizes"].tolist(), strict=True)
    return {"actions": [row[:size] for row, size in rows]}


def _knapsack(fields: dict[str, Any]) -> dict[str, Any]:
    if "money" not in fields:
        return fields
    from superarm.actions.knapsack import ROUNDING_ALLOWANCE

    budget = fields["money"] / ROUNDING_ALLOWANCE
    near = (budget, np.nextafter(budget, 0.0), np.nextafter(budget, np.inf))
    nearest = min(near, key=lambda one: abs(one * ROUNDING_ALLOWANCE - fields["money"]))
    return {"costs": fields["costs"], "budget": float(nearest)}


def _laminar(fields: dict[str, Any]) -> dict[str, Any]:
    if "member" not in fields:
        return fields
    families = zip(fields["member"], fields["limits"].tolist(), strict=True)
    return {"families": [(np.flatnonzero(member).tolist(), limit) for member, limit in families]}


def _partition(fields: dict[str, Any]) -> dict[str, Any]:
    if "group" not in fields:
        return fields
    return {"groups": fields["group"].tolist(), "limits": fields["limits"].tolist()}


_EARLIER = {
    "Problem": _problem,
    "Sparse": _sparse,
    "Explicit": _explicit,
    "Knapsack": _knapsack,
    "Laminar": _laminar,
    "PartitionMatroid": _partition,
}
