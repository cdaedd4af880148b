"""Old spellings of public names: they work for one more release, with a ``DeprecationWarning``."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any


def old_names(module: str, names: dict[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for ``module`` that finds renamed objects under their old names.

    ``names`` maps an old name to the new one: a name of ``module`` itself, or ``"package.module:name"``.
    """

    def find(name: str) -> Any:
        if name not in names:
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
