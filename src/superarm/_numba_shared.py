"""Machine code that several entries call, made once per process. Private interfaces of numba.

An entry is a kernel that Python calls. A kernel that is ``separate`` or ``shared`` (``_jit.py``) is not linked into the
entries that reach it: it has machine code of its own, which they call by its symbol. So a further composition optimises
and translates only what is new in it. On disk an entry is kept together with the shared kernels that it calls, so that
no file refers to another.

The symbol of a shared kernel ends with a digest of its optimised code: kernels of one symbol are the same, whichever
process made them, and a process loads only the first one.
"""

import hashlib
from collections.abc import Iterable
from importlib import import_module
from typing import Any

_ENVIRONMENT = "_ZN08NumbaEnv"
"""How the symbols of numba's environments begin; an environment holds the constants of a function."""

Stored = tuple[str, Any, list[Any]]
"""A shared kernel on disk: its symbol, the library with its machine code, and the environments that it refers to."""

_loaded: dict[str, Stored] = {}
"""The shared kernels of this process by their symbols."""


def name_shared(module: Any, symbol: str) -> str:
    """Rename the function ``symbol`` of an optimised module to that of a shared kernel, which is returned."""
    found = f"{symbol}.{hashlib.sha256(module.as_bitcode()).hexdigest()[:24]}"
    module.get_function(symbol).name = found
    return found


def is_loaded(symbol: str) -> bool:
    """Whether this process has the shared kernel."""
    return symbol in _loaded


def note_shared(symbol: str, library: Any) -> None:
    """Remember a shared kernel that was compiled."""
    find = import_module("numba.core.environment").lookup_environment
    names = [variable.name for variable in library._final_module.global_variables]
    found = [find(name) for name in names if name.startswith(_ENVIRONMENT)]
    environments = [environment for environment in found if environment is not None]
    _connect(library.codegen, environments)
    kept = [environment for environment in environments if environment.can_cache()]
    _loaded[symbol] = symbol, library.serialize_using_object_code(), kept


def _connect(codegen: Any, environments: list[Any]) -> None:
    for environment in environments:
        codegen.set_env(environment.env_name, environment)


def store_shared(symbols: Iterable[str]) -> list[Stored]:
    """The shared kernels with these symbols, as they are kept on disk."""
    return [_loaded[symbol] for symbol in symbols]


def load_shared(codegen: Any, kernels: list[Stored]) -> None:
    """Load the shared kernels that this process does not have yet; each comes after those that it calls."""
    for symbol, state, environments in kernels:
        if symbol not in _loaded:
            codegen.unserialize_library(state)
            _connect(codegen, environments)
            _loaded[symbol] = symbol, state, environments
