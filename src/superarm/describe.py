"""Components, problems and arrays as plain dicts that JSON can hold, and back.

A component is ``{"type": "superarm.indices.bernstein:Bernstein", "rho": 3.0}``. Only classes that were made with
``@component`` are ever built from a description: nothing is imported or evaluated on the word of a file.
"""

import base64
from typing import Any

import numpy as np

from superarm._jit import components
from superarm.errors import InvalidArgument
from superarm.problem import Problem
from superarm.rewards import Terms

_TYPE, _ARRAY = "type", "array"
_PLAIN: dict[str, Any] = {"Problem": Problem, "Terms": Terms}


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
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return {_TYPE: _name(type(thing))} | {f: describe(v) for f, v in zip(thing._fields, thing, strict=True)}
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
        cls = _class(description[_TYPE])
        try:
            return cls._make(build(description[field]) for field in cls._fields)
        except KeyError as missing:
            raise InvalidArgument("description", f"{description[_TYPE]} lacks {missing}", "describe it anew") from None
    return description


def _name(cls: type) -> str:
    for name, plain in _PLAIN.items():
        if plain is cls:
            return name
    return f"{cls.__module__}:{cls.__qualname__}"


def _class(name: str) -> Any:
    cls = _PLAIN.get(name) or components.get(name)
    if cls is None:
        module = name.partition(":")[0]
        raise InvalidArgument("description", f"unknown component {name!r}", f"import {module} first")
    return cls
