"""Components, problems and arrays as plain dicts that JSON can hold, and back.

A component of superarm is ``{"type": "Bernstein", "rho": 3.0}``: its class by name, wherever its module is; one of a
user is named ``module:Class``. ``build`` makes only subclasses of ``Component``: a description can neither import a
module nor run code.

Agent states, logs and results hold such descriptions.
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
    """What ``describe`` described; lists come back as tuples.

    >>> build({'type': 'Subsets', 'k': 3})
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
    cls: Any = _class(description[_TYPE])
    try:
        return cls.of_fields(fields)
    except TypeError as wrong:
        raise InvalidArgument("description", f"{description[_TYPE]}: {wrong}", "describe it anew") from None


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
