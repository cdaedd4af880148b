"""How the constructors of components convert and validate their arguments."""

import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

from superarm.errors import InvalidArgument


def reduce_to_fields(self: Any) -> Any:
    """What pickle keeps of a component: its class and its fields."""
    return type(self)._make, (tuple(self),)


def validate_on_construction(cls: Any) -> None:
    """Have the constructor of a NamedTuple convert its arguments by their annotations, and call ``_check``."""
    signature = inspect.signature(cls.__new__)
    hints = get_type_hints(cls, include_extras=True)
    coerce = [_coercion(hints[field]) for field in cls._fields]
    check = getattr(cls, "_check", _as_is)

    def new(subclass: Any, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(subclass, *args, **kwargs)
        bound.apply_defaults()
        values = [f(v, n) for f, v, n in zip(coerce, bound.args[1:], cls._fields, strict=True)]
        made = tuple.__new__(subclass, values)
        check(made)
        return made

    new.__signature__ = signature  # type: ignore[attr-defined]
    cls.__new__ = new
    cls._make = classmethod(_make)


def _make(cls: Any, values: Iterable[Any]) -> Any:
    """In place of NamedTuple's ``_make``, so that ``_replace``, unpickling and ``build`` validate as well."""
    return cls(*values)


def _coercion(hint: Any) -> Callable[[Any, str], Any]:
    found: Callable[[Any, str], Any] = getattr(hint, "__metadata__", (_COERCIONS.get(hint, _as_is),))[0]
    return found


def _as_is(value: Any, *_: Any) -> Any:
    return value


def _float(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(name, f"{value!r} is not a number", "give a float") from None


def _int(value: Any, name: str) -> int:
    try:
        return int(operator.index(value))  # True is an index, too
    except TypeError:
        raise InvalidArgument(name, f"{value!r} is not an integer", "give an int") from None


_COERCIONS: dict[Any, Callable[[Any, str], Any]] = {float: _float, int: _int}
