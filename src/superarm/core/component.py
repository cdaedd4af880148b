"""Components: immutable values that compare by type and value, hash, and print as they are written."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, ParamSpec, Self, TypeVar, dataclass_transform

import numpy as np

from superarm.core.errors import InvalidArgument

P = ParamSpec("P")


@dataclass_transform(frozen_default=True, eq_default=False)
class Component:
    """The base of indices, rewards, action sets, oracles, environments and policies.

    A subclass is made a frozen dataclass: its annotated attributes are its parameters. Override ``check`` to refuse
    wrong parameters; it may convert one by ``self.convert(name, value)``. No decorator is needed.

    >>> class Scaled(Component):
    ...     scale: float = 0.5
    >>> Scaled(2.0), Scaled() == Scaled(0.5), {Scaled(): 1}[Scaled()]
    (Scaled(scale=2), True, 1)
    """

    classes: ClassVar[dict[str, type["Component"]]] = {}
    """Every component class by ``module:name``: stored descriptions can name these, and nothing else."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True, eq=False, repr=False)(cls)
        Component.classes[f"{cls.__module__}:{cls.__qualname__}"] = cls

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            if field.type is float:
                self.convert(field.name, self._number(field.name))
        self.check()

    def _number(self, name: str) -> float:
        value = getattr(self, name)
        try:
            return float(value if isinstance(value, int | float | np.number) else None)  # type: ignore[arg-type]
        except (TypeError, OverflowError):
            wrong = f"{shorten(repr(value))} is not a number"
            raise InvalidArgument(name, wrong, "give a number", type(self).__name__) from None

    def check(self) -> None:
        """Raise ``InvalidArgument`` if a parameter is wrong."""

    def convert(self, name: str, value: Any) -> None:
        """Set a parameter while the component is made."""
        object.__setattr__(self, name, value)

    def require(self, name: str, right: bool, remedy: str) -> None:
        """Refuse the parameter ``name`` unless it is ``right``; ``remedy`` says what to give."""
        if not right:
            raise InvalidArgument(name, f"{getattr(self, name)!r}", remedy, type(self).__name__)

    def require_family(self, name: str, family: type, example: str) -> None:
        """Refuse a parameter that is not a component of ``family``."""
        value = getattr(self, name)
        if not isinstance(value, family):
            raise InvalidArgument(name, wrong_family(value, family), f"give e.g. {example}", type(self).__name__)

    def parameters(self) -> dict[str, Any]:
        """The parameters by name, in order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def of_fields(cls, fields: dict[str, Any]) -> Self:
        """The component with these parameters, which may be those of an earlier superarm."""
        return cls(**fields)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        return getattr(self, "written", "") or write_call(type(self).__name__, self.parameters())

    def _key(self) -> Any:
        return tuple(_freeze(value) for value in self.parameters().values())


def wrong_family(value: Any, family: type) -> str:
    """What to say of a value that should be a component of ``family``."""
    if isinstance(value, type) and issubclass(value, family):
        return f"{value.__name__} is a class; write {value.__name__}(…)"
    return f"{shorten(repr(value))} is not {_article(family.__name__)}"


def write_call(name: str, arguments: dict[str, Any]) -> str:
    """A call as it is written: ``kl_ucb(rho=1, c=3)``."""
    return f"{name}({', '.join(f'{key}={_write(value)}' for key, value in arguments.items())})"


Made = TypeVar("Made", bound=Component)


def named(function: Callable[P, Made]) -> Callable[P, Made]:
    """Let what ``function`` makes print as the call that made it; components that are as by default are left out.

    >>> class Scaled(Component):
    ...     scale: float
    >>> @named
    ... def half(scale: float = 0.5): return Scaled(scale)
    >>> half(0.25), half()
    (half(scale=0.25), half(scale=0.5))
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def make(*arguments: P.args, **keywords: P.kwargs) -> Made:
        made = function(*arguments, **keywords)
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        shown = {
            name: value
            for name, value in bound.arguments.items()
            if isinstance(value, int | float) or repr(value) != repr(signature.parameters[name].default)
        }
        made.convert("written", write_call(function.__name__, shown))
        return made

    return make


def shorten(text: str, limit: int = 80) -> str:
    """One line of at most ``limit`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _write(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, np.ndarray) and value.size > 12:
        return f"<array {value.shape}>"
    return repr(value.tolist()) if isinstance(value, np.ndarray) else repr(value)


def _freeze(value: Any) -> Any:
    """A value that compares and hashes by its contents."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes())
    if isinstance(value, list | tuple):
        return tuple(_freeze(part) for part in value)
    if isinstance(value, dict):
        return tuple((key, _freeze(part)) for key, part in value.items())
    return value


def _article(family: str) -> str:
    words = {"Actions": "an action set", "Index": "an index", "Environment": "an environment", "Oracle": "an oracle"}
    return words.get(family, f"a {family.lower()}")
