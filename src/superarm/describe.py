"""Components, problems and arrays as plain dicts that JSON can hold, and back.

A component is ``{"type": "superarm.indices.bernstein:Bernstein", "rho": 3.0}``. ``build`` makes only classes that were
declared with ``@component``: a description can neither import a module nor run code.

Agent states, results directories and the digests of experiment cells hold these names. They stay the same when a class
is moved or renamed: the tables below map the class of today to the name in stored data, for reading and for writing.
"""

import base64
from typing import Any

import numpy as np

from superarm._jit import components
from superarm.errors import InvalidArgument
from superarm.problem import Problem
from superarm.rewards import Terms

_TYPE, _ARRAY, _CONTEXT = "type", "array", "context"
_PLAIN: dict[str, Any] = {"Problem": Problem, "Terms": Terms}

_INDEX_POLICY = "superarm.policies.index_policy:IndexPolicy"

_STORED_NAMES: dict[str, str] = {
    "superarm.environments.positions:DependentClick": "superarm.environments.places:DependentClick",
    "superarm.environments.positions:PositionBased": "superarm.environments.places:PositionBased",
    "superarm.policies.forgetting:Forgetting": "superarm.policies.fading:Fading",
    "superarm.policies.fast.listed:Screened": "superarm.policies.screened:Screened",
    "superarm.policies.fast.sieve:Sieve": "superarm.policies.sieve:Sieve",
    "superarm.policies.fast.sparse_sieve:SparseSieve": "superarm.policies.sparse_sieve:SparseSieve",
}
"""For each class that was moved or renamed: ``module:Class`` of today, and its name in stored data."""

_STORED_FIELDS: dict[str, dict[str, str]] = {"superarm.environments.free_samples:FreeSamples": {"environment": "world"}}
"""For each class with renamed fields: ``module:Class`` of today, and for each new field its name in stored data."""


_STORED_VARIANTS: dict[str, tuple[str, str, str]] = {
    "superarm.policies.index_policy:IndexPolicy": (_INDEX_POLICY, "start", "superarm.policies.start:TryEveryArm"),
    "superarm.policies.optimistic:Optimistic": (_INDEX_POLICY, "start", "superarm.policies.start:NoStart"),
}
"""Names in stored data of a current class with a certain component, without parameters, in one field."""


def describe(thing: Any) -> Any:
    """A plain description of a component, a problem, an array or a plain value.

    >>> import superarm as sa
    >>> describe(sa.Subsets(3))
    {'type': 'superarm.actions.subsets:Subsets', 'k': 3}
    """
    if isinstance(thing, np.ndarray):
        little = np.ascontiguousarray(thing, thing.dtype.newbyteorder("<"))
        data = base64.b64encode(little.tobytes()).decode("ascii")
        return {_ARRAY: little.dtype.str, "shape": list(thing.shape), "data": data}
    if isinstance(thing, Problem) and thing.context is not None:
        return describe(type(thing)._make(thing)) | {_CONTEXT: describe(thing.context)}
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        fields = _fields(type(thing))
        return _with_stored_variant(
            {_TYPE: _name(type(thing))} | {f: describe(v) for f, v in zip(fields, thing, strict=True)}
        )
    if isinstance(thing, np.generic):
        return thing.item()
    return thing


def build(description: Any) -> Any:
    """What ``describe`` described.

    >>> build({'type': 'superarm.actions.subsets:Subsets', 'k': 3})
    Subsets(k=3)
    """
    if isinstance(description, dict) and _ARRAY in description:
        flat = np.frombuffer(base64.b64decode(description["data"]), dtype=np.dtype(description[_ARRAY]))
        return flat.reshape(description["shape"]).astype(flat.dtype.newbyteorder("="))
    if isinstance(description, dict) and _TYPE in description:
        description = _without_stored_variant(description)
        cls = _class(description[_TYPE])
        try:
            made = cls._make(build(description[field]) for field in _fields(cls))
            return made.with_context(build(description[_CONTEXT])) if _CONTEXT in description else made
        except KeyError as missing:
            raise InvalidArgument("description", f"{description[_TYPE]} lacks {missing}", "describe it anew") from None
    return description


def _with_stored_variant(description: dict[str, Any]) -> dict[str, Any]:
    """The description under the stored name of its class and of the value of one of its fields."""
    for stored, (today, field, value) in _STORED_VARIANTS.items():
        if description[_TYPE] == today and description[field] == {_TYPE: value}:
            return {_TYPE: stored} | {f: v for f, v in description.items() if f not in (_TYPE, field)}
    return description


def _without_stored_variant(description: dict[str, Any]) -> dict[str, Any]:
    """The inverse of ``_with_stored_variant``."""
    if description[_TYPE] not in _STORED_VARIANTS:
        return description
    today, field, value = _STORED_VARIANTS[description[_TYPE]]
    return {field: {_TYPE: value}} | description | {_TYPE: today}


def _name(cls: type) -> str:
    """The name of a class in stored data."""
    for name, plain in _PLAIN.items():
        if plain is cls:
            return name
    return _STORED_NAMES.get(_place(cls), _place(cls))


def _fields(cls: Any) -> list[str]:
    """The names of a class's fields in stored data, in order."""
    renamed = _STORED_FIELDS.get(_place(cls), {})
    return [renamed.get(field, field) for field in cls._fields]


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _class(name: str) -> Any:
    """The class of a name in stored data; the name of today is understood as well."""
    today = {stored: place for place, stored in _STORED_NAMES.items()}.get(name, name)
    cls = _PLAIN.get(name) or components.get(today)
    if cls is None:
        module = today.partition(":")[0]
        raise InvalidArgument("description", f"unknown component {name!r}", f"import {module} first")
    return cls
