"""Parameters of components: their range checks, each of which raises ``InvalidArgument``, and having none."""

import math
from typing import Any, NamedTuple

from superarm.errors import InvalidArgument


class NoParameters(NamedTuple):
    """The fields of a component that has none; a subclass can state its properties as class attributes."""


def positive(component: Any, *fields: str) -> None:
    """Refuse a field that is not a finite number above 0."""
    for field in fields:
        value = getattr(component, field)
        if not (0.0 < value < math.inf):
            raise InvalidArgument(
                field, f"{value} is not positive", "give a finite number > 0", type(component).__name__
            )


def nonnegative(component: Any, *fields: str) -> None:
    """Refuse a field that is not a finite number of at least 0."""
    for field in fields:
        value = getattr(component, field)
        if not (0.0 <= value < math.inf):
            raise InvalidArgument(
                field, f"{value} is negative or not finite", "give a finite number >= 0", type(component).__name__
            )


def fraction(component: Any, *fields: str) -> None:
    """Refuse a field outside [0, 1]."""
    for field in fields:
        value = getattr(component, field)
        if not (0.0 <= value <= 1.0):
            raise InvalidArgument(
                field, f"{value} is outside [0, 1]", "give a share in [0, 1]", type(component).__name__
            )


def has_method(value: Any, name: str) -> bool:
    """Whether ``value``, an object and not a class, has a method of this name."""
    return not isinstance(value, type) and callable(getattr(value, name, None))
