"""Names that are found when they are first used: lazily loaded ones, and old spellings.

Old names of public objects, modules, attributes and keywords work in all versions 1.x, with a
``DeprecationWarning`` (RELEASING.md).
"""

import difflib
import functools
import importlib
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

OLD_MODULES = {
    "superarm.book": "superarm.agent",
    "superarm.environments.places": "superarm.environments",
    "superarm.experiments.cluster": "superarm.experiments",
    "superarm.experiments.executors": "superarm.experiments",
    "superarm.experiments.runner": "superarm.experiments",
    "superarm.experiments.shelf": "superarm.experiments",
    "superarm.experiments.study": "superarm.experiments",
    "superarm.experiments.tasks": "superarm.experiments",
    "superarm.policies.fading": "superarm.policies",
    "superarm.policies.keeping": "superarm.policies",
    "superarm.policies.optimistic": "superarm.policies",
    "superarm.policies.sieve": "superarm.policies",
    "superarm.policies.sparse_sieve": "superarm.policies",
}
"""The modules of 0.1.0 that defined public names and are gone, and the packages that have these names."""

OLD_FIELDS: dict[type, Mapping[str, str]] = {}
"""The classes with renamed fields: for each, the new name of every old one."""


def unknown_name(module: str, name: str, names: Iterable[str] | None = None) -> AttributeError:
    """The error for a name that ``module`` does not have, with the one of its public ``names`` that is nearest."""
    known = vars(sys.modules[module]).get("__all__", ()) if names is None else names
    near = () if name.startswith("_") else difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{meant}")


def suggest_names(module: str) -> Callable[[str], Any]:
    """A ``__getattr__`` for ``module`` that has an error for every name: it says which one is nearest."""
    return old_names(module, {})


def load_on_use(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for ``package`` that imports a name's module when the name is first used.

    ``homes`` maps a module of ``package`` to the names in it, separated by spaces. So the command line starts without
    numba.
    """
    modules = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in modules:
            raise unknown_name(package, name, modules)
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return load


def old_names(
    module: str, names: dict[str, str], find_other: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """A ``__getattr__`` for ``module`` that finds renamed objects under their old names.

    ``names`` maps an old name to the new one: a name of ``module`` itself, or ``"package.module:name"``. ``find_other``
    is called for all other names.
    """

    def find(name: str) -> Any:
        if name not in names:
            if find_other is not None:
                return find_other(name)
            raise unknown_name(module, name)
        home, _, new = names[name].rpartition(":")
        _warn(f"{module}.{name}", f"{home or module}.{new}")
        return getattr(importlib.import_module(home or module), new)

    return find


def old_hooks(cls: Any, hooks: dict[str, str]) -> None:
    """Let a component have its optional methods under both names, the old one and the new one."""
    for old, new in hooks.items():
        if callable(vars(cls).get(old)) and new not in vars(cls):
            _warn(f"{cls.__name__}.{old}", new, depth=4)
            setattr(cls, new, vars(cls)[old])
        elif new in vars(cls) and not any(old in vars(one) for one in cls.__mro__):
            setattr(cls, old, _OldAttribute(old, new))


class _OldAttribute:
    """The old name of an attribute."""

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def __get__(self, instance: Any, owner: type) -> Any:
        _warn(f"{owner.__name__}.{self._old}", f"{owner.__name__}.{self._new}")
        return getattr(owner if instance is None else instance, self._new)


def old_attributes(**names: str) -> Callable[[type[T]], type[T]]:
    """A class decorator: attributes are found under their old names, ``old="new"``, too."""

    def decorate(cls: type[T]) -> type[T]:
        for old, new in names.items():
            setattr(cls, old, _OldAttribute(old, new))
        return cls

    return decorate


def old_fields(**names: str) -> Callable[[type[T]], type[T]]:
    """A decorator of a NamedTuple: fields are found under their old names, ``old="new"``, by its constructor, too."""

    def decorate(cls: Any) -> Any:
        cls.__new__ = _take_old_keywords(cls.__new__, cls.__name__, names)
        OLD_FIELDS[cls] = names
        return old_attributes(**names)(cls)

    return decorate


def old_keywords(**names: str) -> Callable[[F], F]:
    """A decorator of a function: it takes arguments by their old keywords, ``old="new"``, too."""

    return lambda fn: _take_old_keywords(fn, fn.__qualname__, names)


def _take_old_keywords(fn: Any, title: str, names: Mapping[str, str]) -> Any:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        for old in names.keys() & kwargs.keys() if kwargs else ():
            _warn(f"{title}({old}=)", f"{title}({names[old]}=)")
            kwargs[names[old]] = kwargs.pop(old)
        return fn(*args, **kwargs)

    call.__dict__["old_keywords"] = tuple(names)
    return call


@functools.cache
def find_old_fields_in_kernels() -> None:
    """Let users' kernels read renamed fields; called when the first of them is compiled."""
    from superarm._numba_fields import find_fields

    find_fields(OLD_FIELDS, lambda cls, old, new: _warn(f"{cls.__name__}.{old}", new))


class _OldModules(MetaPathFinder, Loader):
    """Imports the modules of ``OLD_MODULES``; as the last finder it is asked only when no module was found."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in OLD_MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        home = OLD_MODULES[module.__name__]
        _warn(module.__name__, home)
        vars(module)["__getattr__"] = lambda name: getattr(importlib.import_module(home), name)


def find_old_modules() -> None:
    """Let old modules be imported; called once, when superarm is imported."""
    sys.meta_path.append(_OldModules())


def _warn(old: str, new: str, depth: int = 3) -> None:
    message = f"{old} is now called {new}; the old name goes away in version 2.0"
    warnings.warn(message, DeprecationWarning, stacklevel=depth)
