"""Compiled kernels, components and verbs: how the library uses numba.

``kernel`` compiles a function, ``component`` compiles the methods of a NamedTuple, and a ``verb`` is the function by
which a kernel calls a method of a component: ``score(index, ...)`` is ``index.score(...)``, resolved by the type of
``index`` when the kernel is compiled. So every composition has machine code of its own, which is stored on disk.

numba's private interfaces are in ``_numba_private.py`` and the other files ``_numba_*.py``, the directories of stored
machine code in ``_cache.py``.
"""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

import numba
import numpy as np
from numba.extending import overload

from superarm import _compiling, _numba_linking
from superarm._cache import has_source, is_ours, watch
from superarm._compile_errors import declared
from superarm._construction import reduce_to_fields, validate_on_construction
from superarm._lazy_kernel import LazyKernel
from superarm._numba_libraries import LINKED
from superarm._numba_private import COUNTED, LEAN, VECTORISED, keep_on_disk, note_changed_sources
from superarm._renamed import find_old_fields_in_kernels, old_hooks

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

_config: Any = numba.config
_compiled: list[Any] = []
_lean: set[Any] = set()

components: dict[str, type] = {}
"""Every component class by ``module:name``, so that ``describe.build`` can find it."""


def kernel(fn: F) -> F:
    """Compile ``fn``; it stays callable from Python, and is plain Python under NUMBA_DISABLE_JIT=1."""
    return _compile(fn)


def lean(fn: F) -> F:
    """Compile ``fn``, a function or a component's method, without reference counting.

    Only for kernels that neither make arrays nor return any. Counting the references to their arguments would take
    longer than their work.
    """
    return _compile(fn, **LEAN)


def allocating(fn: F) -> F:
    """Compile ``fn``, which makes arrays, so that ``lean`` kernels can call it: it counts references all the same.

    numba compiles a function that a lean kernel calls like that kernel, unless told otherwise.
    """
    return _compile(fn, **COUNTED)


def inlined(fn: F) -> F:
    """Compile ``fn`` as ``lean`` does, and into its callers: for innermost kernels, where a call costs most."""
    return _compile(fn, **LEAN, forceinline=True)


def shared(fn: F) -> F:
    """Compile ``fn`` once for all kernels that call it, never into them: for kernels that many compositions have.

    Otherwise LLVM would optimise and translate it again for each composition. A call takes some nanoseconds.
    """
    return _separately(fn)


def separate(fn: F) -> F:
    """Compile ``fn`` as ``lean`` does, and as ``shared`` does: for large kernels that are called at many places."""
    return _separately(fn, **LEAN)


def _separately(fn: F, **options: Any) -> F:
    if _config.DISABLE_JIT:
        return fn
    _watch(fn)
    return _lazily(fn, _numba_linking.SeparateKernel if LINKED else None, **options)


def for_kernels(fn: F) -> F:
    """Compile ``fn``, a function or a component's method, for the kernels that call it; from Python it is plain Python.

    For functions that are as fast as plain Python, such as those that make arrays and leave all loops to kernels: where
    Python calls them, nothing is compiled.
    """
    if _config.DISABLE_JIT:
        return fn
    _watch(fn)
    return _lazily(fn, _numba_linking.InnerKernel if LINKED else None)


def wrapping(fn: F) -> F:
    """Compile ``fn`` as ``inlined`` does; its uint64 arithmetic wraps around, without a warning as plain Python."""
    return np.errstate(over="ignore")(fn) if _config.DISABLE_JIT else inlined(fn)


def _compile(fn: F, **options: Any) -> F:
    if _config.DISABLE_JIT:
        return fn
    _watch(fn)
    return _lazily(fn, **options)


def _watch(*functions: Callable[..., Any]) -> None:
    for fn in functions:
        watch(fn)
    if functions and not is_ours(functions[0]):
        note_changed_sources()
        find_old_fields_in_kernels()


def _lazily(fn: F, kind: Any = None, **options: Any) -> F:
    """A stand-in of the kernel where that is possible, otherwise the kernel."""
    if not LINKED:
        return _dispatcher(fn, **options)
    plain = kind is _numba_linking.InnerKernel
    return LazyKernel(fn, functools.partial(_dispatcher, fn, kind, **options), plain)  # type: ignore[return-value]


def _dispatcher(fn: F, kind: Any = None, **options: Any) -> F:
    # numba would hand forceinline on to all kernels that are first compiled for an inlined one.
    options = {"nogil": True, "error_model": "numpy", "forceinline": False, **options}
    compiled: Any
    if LINKED:
        kind = kind or _numba_linking.Kernel
        compiled = kind(fn, targetoptions={"nopython": True, "boundscheck": None, **options})
    else:
        compiled = numba.njit(fn, **VECTORISED, **options)
    _compiled.append(compiled)
    if LEAN and LEAN.items() <= options.items():
        _lean.add(compiled)
    if has_source(fn):
        keep_on_disk(compiled, fn)
    return compiled  # type: ignore[no-any-return]


class _Method:
    """A component's method, made a kernel when it is first used: a process uses few of the methods that it imports."""

    def __init__(self, cls: type, name: str, fn: FunctionType) -> None:
        self._cls, self._name, self.py_func = cls, name, fn

    def __get__(self, instance: Any, owner: type) -> Any:
        compiled: Any = _dispatcher(self.py_func)
        setattr(self._cls, self._name, compiled)
        return compiled.__get__(instance, owner)


def interpreted(fn: F) -> F:
    """Leave a component's method as plain Python; kernels cannot call it."""
    fn.__dict__["interpreted"] = True
    return fn


_OLD_HOOKS = {
    "earn": "expected_reward",
    "form": "bound_argument",
    "keep": "save_state",
    "lift": "item_gain",
    "recall": "restore_state",
    "slope": "bound_slope",
    "widest": "max_answer_entries",
}
"""Optional methods of components by their names of 0.1.0."""


def component(cls: type[T]) -> type[T]:
    """Compile the public methods of a NamedTuple, and make its constructor coerce and validate.

    Fields annotated ``float`` or ``int`` are converted, so that ``Bernstein(3)`` and ``Bernstein(3.0)`` have the same
    compiled type. A field annotated ``Annotated[..., f]`` becomes ``f(value, name)``. If the class has a method
    ``_check(self)``, it is called after construction and raises an error on values outside their range. A class that
    computes its fields from other arguments is a subclass of the NamedTuple that holds them, with its own ``__new__``.
    """
    old_hooks(cls, _OLD_HOOKS)
    if not _config.DISABLE_JIT:
        methods = _compilable(cls)
        _watch(*methods.values())
        for name, method in methods.items():
            setattr(cls, name, _Method(cls, name, method))
    if "__new__" not in vars(cls) or tuple in cls.__bases__:
        validate_on_construction(cls)
    cls.__reduce__ = reduce_to_fields  # type: ignore[method-assign]
    components[f"{cls.__module__}:{cls.__qualname__}"] = cls
    _compiling.components.add(cls)
    return cls


def _compilable(cls: type) -> dict[str, FunctionType]:
    """The public methods of a class, but for those that are ``interpreted`` or compiled already."""
    own = {name: value for name, value in vars(cls).items() if isinstance(value, FunctionType)}
    return {name: fn for name, fn in own.items() if not name.startswith("_") and "interpreted" not in vars(fn)}


class verb(Generic[P, R]):
    """A method of a family of components, as a function that kernels can call.

    ``default`` is called for the components that do not define the method. Methods that are ``lean`` are called without
    reference counting and inlined. A method that ``allocates`` may make arrays even if a lean kernel calls it.

    At run time a verb is a plain function: numba's ``overload`` is documented for functions only. This class gives it
    its type.
    """

    def __new__(
        cls, method: Callable[P, R], default: Callable[..., R] | None = None, allocates: bool = False
    ) -> "verb[P, R]":
        name = method.__name__
        declared.setdefault(name, []).append(method)

        def find(owner: type) -> Callable[..., R]:
            found: Callable[..., R] | None = getattr(owner, name, None) or default
            if found is None:
                raise TypeError(f"{owner.__name__} has no method {name!r}")
            return found

        def call(*args: Any) -> R:
            found = getattr(type(args[0]), name, None) or find(type(args[0]))
            return found(*args)

        functools.update_wrapper(call, method)
        call.__dict__["find_method"] = find
        if not _config.DISABLE_JIT:
            resolve = _numba_linking.resolve_verb if LINKED else _overload
            resolve(call, find, allocates)
        return call  # type: ignore[return-value]

    def __init__(
        self, method: Callable[P, R], default: Callable[..., R] | None = None, allocates: bool = False
    ) -> None: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...  # type: ignore[empty-body]


def _overload(call: Callable[..., Any], find: Callable[[type], Any], allocates: bool) -> None:
    """Register with numba which kernel ``call`` resolves to, by the type of its first argument."""

    def resolve(component: Any, *args: Any) -> Callable[..., Any] | None:
        method = find(component.instance_class)
        return None if method in _lean else _make_caller(method)

    def resolve_lean(component: Any, *args: Any) -> Callable[..., Any] | None:
        method = find(component.instance_class)
        return _make_caller(method) if method in _lean else None

    options: Any = COUNTED if allocates else {}
    overload(call, jit_options=options, strict=False)(resolve)
    if LEAN:
        options = {**LEAN, "forceinline": True}
        overload(call, jit_options=options, strict=False)(resolve_lean)


def _make_caller(method: Any) -> Callable[..., Any]:
    return lambda component, *args: method(component, *args)  # noqa: PLW0108 (numba wants a Python function)
