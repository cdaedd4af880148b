"""Machine code on disk: one process compiles a composition, all later ones load it, until a source changes.

It lies in a directory named by the fingerprint of all that it was made from. numba alone would notice a change of a
kernel's own file, but not of those that the kernel calls.
"""

import hashlib
import inspect
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba.core.caching
import numba.core.runtime
import numba.cpython.hashing  # lends the symbols that machine code for hashing strings refers to
import numpy as np

_numba: Any = numba  # whose functions carry no types
_config = _numba.config
_package = Path(__file__).parent
_KEPT = 12  # fingerprints whose machine code stays on disk: versions and files of components side by side


def _digest(path: Path | str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


_constants: set[bytes] = set()
_files = {str(path): _digest(path) for path in _package.rglob("*.py")}
"""Sources by what they were when they were imported: machine code is made from that, not from what is edited later."""


def has_source(fn: Callable[..., Any]) -> bool:
    """Whether machine code of ``fn`` may be kept.

    What was typed at a prompt has no file to watch, and a component of __main__ is another type in every process, so
    that no machine code on disk can be taken for one with it.
    """
    return fn.__module__ != "__main__" and Path(inspect.getfile(fn)).is_file()


def watch(fn: Callable[..., Any]) -> None:
    """Note what machine code of a user's own ``fn`` freezes: its file, constants from elsewhere, modules it names."""
    if fn.__module__.startswith("superarm.") or not has_source(fn):
        return
    source = inspect.getfile(fn)
    _files[source] = _digest(source)  # each time, since modules can be reloaded
    names = inspect.getclosurevars(fn)
    for value in (*names.globals.values(), *names.nonlocals.values()):
        if isinstance(value, np.ndarray):
            _constants.add(value.tobytes())
        elif isinstance(value, int | float | str | tuple):
            _constants.add(repr(value).encode())
        elif inspect.ismodule(value) and getattr(value, "__file__", None):
            named = str(value.__file__)
            _files[named] = _files.get(named) or _digest(named)


def fingerprint() -> str:
    """A name for all sources seen so far, and all constants from elsewhere."""
    parts = [*(_files[path] for path in sorted(_files)), *sorted(_constants)]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def cache_directory() -> Path:
    """Where machine code is kept: ``NUMBA_CACHE_DIR``, or the user's cache directory."""
    if _config.CACHE_DIR:
        return Path(_config.CACHE_DIR)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "superarm"


class KernelCache(_numba.core.caching.FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, in our directory, and quicker to start with.

    It looks for its files when a signature is first asked for, since a process runs few of the library's kernels; and
    again when a component of the user's own has been defined meanwhile, which any composition may call.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._name, self._fn, self._cache_path = repr(fn), fn, None
        self._place: Path | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for ``sig``, or None.

        To run it takes numba's runtime alone. numba's own method would first import all that compiling takes, SciPy's
        linear algebra among it, which lasts longer than all else between the import of numba and the first result.
        """
        self._settle()
        _numba.core.runtime.rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def flush(self) -> None:
        """Forget what is on disk."""
        self._settle()
        super().flush()

    def _settle(self) -> None:
        place = cache_directory() / fingerprint()
        if place == self._place:
            return
        _make_room(place)
        before, _config.CACHE_DIR = _config.CACHE_DIR, str(place)
        try:
            super().__init__(self._fn)
        finally:
            _config.CACHE_DIR = before
        self._place = place
        if not str(self._cache_path).startswith(str(place)):
            self.disable()  # it could not be written to, and numba turned to a directory that no fingerprint names


def _make_room(place: Path) -> None:
    """Discard the oldest machine code beside ``place``, unless that is there already."""
    if not place.parent.is_dir() or place.is_dir():
        return
    caches = sorted((d for d in place.parent.iterdir() if d.is_dir() and len(d.name) == 16), key=_age)
    for old in caches[: max(0, len(caches) - _KEPT + 1)]:
        shutil.rmtree(old, ignore_errors=True)


def _age(directory: Path) -> float:
    try:
        return directory.stat().st_mtime
    except FileNotFoundError:  # another process discarded it first
        return 0.0
