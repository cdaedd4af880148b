"""All that the library knows of numba, but for its machine code on disk.

``kernel`` compiles a function, ``component`` compiles the methods of a NamedTuple, and ``verb`` is how
one kernel calls a component's method: ``score(index, ...)`` is ``index.score(...)``, resolved by the
type of ``index``, so that a composition specialises fully and its cache survives the process.
"""

import functools
import inspect
import operator
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

import numba
import numpy as np
from numba.extending import overload

from superarm._cache import KernelCache, has_source, watch
from superarm.errors import InvalidArgument

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

_config: Any = numba.config
_compiled: list[Any] = []

components: dict[str, type] = {}
"""Every component class by ``module:name``, so that a plain description can be turned back into one."""

_config.SLP_VECTORIZE = 1  # sums in fixed lanes become vector instructions only with it; numba's default is off


def kernel(fn: F) -> F:
    """Compile ``fn``; it stays callable from Python, and is plain Python under NUMBA_DISABLE_JIT=1."""
    return _compile(fn)


_LEAN: Any = {"_nrt": False}
_INLINED: Any = {"_nrt": False, "forceinline": True}


def lean(fn: F) -> F:
    """A kernel, or a component's method, that makes no arrays and returns none, and so counts no references: they cost
    more than small work."""
    return _compile(fn, **_LEAN)


def inlined(fn: F) -> F:
    """A lean kernel compiled into its callers: for the innermost ones, where passing arrays costs as much as work."""
    return _compile(fn, **_INLINED)


def wrapping(fn: F) -> F:
    """A kernel whose uint64 arithmetic wraps silently, as plain Python too: NumPy's scalars would warn."""
    return np.errstate(over="ignore")(fn) if _config.DISABLE_JIT else _compile(fn)


def _compile(fn: F, **options: Any) -> F:
    if _config.DISABLE_JIT:
        return fn
    watch(fn)
    return _dispatcher(fn, **options)


def _dispatcher(fn: F, **options: Any) -> F:
    compiled: Any = numba.njit(fn, nogil=True, error_model="numpy", **options)
    _compiled.append(compiled)
    if has_source(fn):
        compiled._cache = KernelCache(fn)
    return compiled  # type: ignore[no-any-return]


class _Method:
    """A component's method, made a kernel when it is first looked up: a process uses few of those that it imports."""

    def __init__(self, cls: type, name: str, fn: FunctionType) -> None:
        watch(fn)
        self._cls, self._name, self._fn = cls, name, fn

    def __get__(self, instance: Any, owner: type) -> Any:
        compiled: Any = _dispatcher(self._fn)
        setattr(self._cls, self._name, compiled)
        return compiled.__get__(instance, owner)


def interpreted(fn: F) -> F:
    """Mark a component's method as plain Python, never to be called from a kernel."""
    fn.__dict__["interpreted"] = True
    return fn


def component(cls: type[T]) -> type[T]:
    """Compile the public methods of a NamedTuple, and make its constructor coerce and validate.

    Fields annotated ``float`` or ``int`` are coerced, so that ``Bernstein(3)`` and ``Bernstein(3.0)`` are one
    compiled type; a field annotated ``Annotated[..., f]`` becomes ``f(value, name)``. ``_check(self)`` raises on
    values that make no sense. A class that derives its fields from something else is a subclass of the
    NamedTuple that holds them, with a ``__new__`` of its own.
    """
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and not name.startswith("_") and "interpreted" not in vars(method):
            setattr(cls, name, method if _config.DISABLE_JIT else _Method(cls, name, method))
    if "__new__" not in vars(cls) or tuple in cls.__bases__:
        _validate_on_construction(cls)
    cls.__reduce__ = _reduce  # type: ignore[method-assign]
    components[f"{cls.__module__}:{cls.__qualname__}"] = cls
    return cls


def _reduce(self: Any) -> Any:
    return type(self)._make, (tuple(self),)


def _validate_on_construction(cls: Any) -> None:
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
    """In place of NamedTuple's own, so that what is replaced, unpickled or built anew is validated, too."""
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


class verb(Generic[P, R]):
    """A method of a family of components, as a function that kernels can call.

    ``default`` serves the components that do not define the method. A method that is ``lean`` is called without
    counting references: to count those of every array it is given would cost more than flipping a few coins.
    """

    def __init__(self, method: Callable[P, R], default: Callable[..., R] | None = None) -> None:
        functools.update_wrapper(self, method)
        self._name = method.__name__
        self._default = default
        overload(self, strict=False)(self._resolve)
        overload(self, jit_options=_INLINED, strict=False)(self._resolve_lean)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._method(type(args[0]))(*args)

    def _method(self, cls: type) -> Callable[..., R]:
        method: Callable[..., R] | None = getattr(cls, self._name, None) or self._default
        if method is None:
            raise TypeError(f"{cls.__name__} has no method {self._name!r}")
        return method

    def _resolve(self, component: Any, *args: Any) -> Callable[..., Any] | None:
        method = self._method(component.instance_class)
        return None if _is_lean(method) else _calling(method)

    def _resolve_lean(self, component: Any, *args: Any) -> Callable[..., Any] | None:
        method = self._method(component.instance_class)
        return _calling(method) if _is_lean(method) else None


def _is_lean(method: Any) -> bool:
    return method.targetoptions.get("_nrt") is False


def _calling(method: Any) -> Callable[..., Any]:
    return lambda component, *args: method(component, *args)  # noqa: PLW0108 (numba wants a Python function)
