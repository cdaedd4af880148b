"""Which twin of an operation runs: ``kernels`` (numba, its public interface alone) or ``reference`` (NumPy, same bits).

numba is optional and imported late. Small work runs in NumPy until somebody has loaded the kernels.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SMALL = 20_000
"""Elements that one call touches. Below it NumPy answers before numba would be imported."""

_state: dict[str, Any] = {"mode": "auto", "kernels": None}


def load() -> Any:
    """Import the kernels now; the reference if numba is not installed or does not compile."""
    if _state["kernels"] is None:
        compiles = importlib.util.find_spec("numba") and os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
        home = "kernels" if compiles else "reference"
        _state["kernels"] = importlib.import_module(f"superarm.core.{home}")
    return _state["kernels"]


def op(name: str, size: int) -> Callable[..., Any]:
    """The operation ``name`` for arrays of ``size`` elements; one without a kernel is NumPy alone."""
    from superarm.core import reference

    small = _state["mode"] == "auto" and _state["kernels"] is None and size < SMALL
    if _state["mode"] == "numpy" or small:
        return getattr(reference, name)
    return getattr(load(), name, None) or getattr(reference, name)


def kernels_allowed() -> bool:
    """Whether operations that exist as kernels only, such as screens, may be used."""
    return _state["mode"] != "numpy" and load().__name__.endswith("kernels")


@contextmanager
def engine(mode: str) -> Iterator[None]:
    """Run with NumPy alone (``numpy``), with kernels always (``numba``), or with whichever is quicker (``auto``)."""
    before = _state["mode"]
    _state["mode"] = mode
    try:
        yield
    finally:
        _state["mode"] = before
