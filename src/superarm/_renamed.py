"""Names of modules that are found when they are first used: lazily loaded ones, and old spellings.

Old spellings of public names work for one more release, with a ``DeprecationWarning``.
"""

import importlib
import warnings
from collections.abc import Callable
from typing import Any


def load_on_use(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for ``package`` that imports a name's module when the name is first used.

    ``homes`` maps a module of ``package`` to the names in it, separated by spaces. So the command line starts without
    numba.
    """
    modules = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
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
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = names[name].rpartition(":")
        message = f"{module}.{name} is now called {home or module}.{new}; the old name goes in the next release"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(home or module), new)

    return find


def old_hooks(cls: Any, hooks: dict[str, str]) -> None:
    """Let a component that defines optional methods under their old names have them under the new ones."""
    for old, new in hooks.items():
        if callable(vars(cls).get(old)) and new not in vars(cls):
            message = f"{cls.__name__}.{old} is now called {new}; the old name goes in the next release"
            warnings.warn(message, DeprecationWarning, stacklevel=3)
            setattr(cls, new, vars(cls)[old])
