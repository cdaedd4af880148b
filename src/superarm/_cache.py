"""Where compiled code is kept on disk, and when it may be used again.

Every kernel has a directory named by a fingerprint of all sources that its machine code was made from. numba by itself
notices a change of a kernel's own file, but not of the kernels that it calls. The fingerprint covers

- the package's files that kernels can depend on, which is every file outside of ``_APART``;
- the files and constants of the user's own kernels and components, because any composition may call them;
- for a kernel inside ``_APART``, the files of its own sub-package that hold kernels, and the constants that it uses.

So an edit of the service, the experiments or a plain file of the theory recompiles nothing.
"""

import functools
import hashlib
import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

_config: Any = numba.config
_package = Path(__file__).parent

_APART = {
    "__init__", "_compile_errors", "_compile_rules", "_compiling", "_contract", "_garbage", "_renamed", "agent",
    "catalog", "cli", "data", "describe", "experiments", "learner", "service", "statistics", "testing", "theory",
    "warm",
}  # fmt: skip
"""Modules and sub-packages that kernels outside of them never call: they hold no components and no verbs."""

_KEPT_DIRECTORIES = 12
"""How many fingerprints keep their machine code on disk: several versions, and several sets of user components."""


def _digest(path: Path | str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


def _top(path: Path) -> str:
    """The first part of a file's path inside the package, without its suffix."""
    return path.relative_to(_package).parts[0].removesuffix(".py")


def _list_sources() -> Iterator[str]:
    """The package's files that kernels can depend on; by ``os.walk``, as ``Path.rglob`` takes longer than reading."""
    for folder, folders, names in os.walk(_package):
        apart = _APART if folder == str(_package) else ()
        folders[:] = [name for name in folders if name not in apart]
        wanted = (name for name in names if name.endswith(".py") and name.removesuffix(".py") not in apart)
        yield from (f"{folder}{os.sep}{name}" for name in wanted)


_constants: set[bytes] = set()
_files = {path: _digest(path) for path in _list_sources()}
"""Digests of the sources as they were when they were imported: machine code is made from that, not from later edits."""

_features: list[str] = []


def note_features(names: list[str]) -> None:
    """Add to the fingerprint which optional features of numba are in use: they change the machine code."""
    _features[:] = names


def is_ours(thing: Any) -> bool:
    """Whether a function or class belongs to this package."""
    return str(thing.__module__).startswith("superarm.")


def has_source(fn: Callable[..., Any]) -> bool:
    """Whether machine code of ``fn`` may be kept on disk.

    A function typed at a prompt has no file that could be watched. A component of ``__main__`` is another type in every
    process, so no stored machine code could be found for it.
    """
    return fn.__module__ != "__main__" and Path(inspect.getfile(fn)).is_file()


def watch(fn: Callable[..., Any]) -> None:
    """Let the fingerprint depend on a user's own ``fn``: its file, its constants, and the modules that it names."""
    if is_ours(fn):
        _apart(fn)  # now, since the files may be edited before ``fn`` is compiled
        return
    if not has_source(fn):
        return
    source = inspect.getfile(fn)
    _files[source] = _digest(source)  # each time, since modules can be reloaded
    _constants.update(_constants_of(fn))
    for value in _names_of(fn):
        if inspect.ismodule(value) and getattr(value, "__file__", None):
            named = str(value.__file__)
            _files[named] = _files.get(named) or _digest(named)


def _names_of(fn: Callable[..., Any]) -> tuple[Any, ...]:
    names = inspect.getclosurevars(fn)
    return (*names.globals.values(), *names.nonlocals.values())


def _constants_of(fn: Callable[..., Any]) -> Iterator[bytes]:
    """The constants that machine code of ``fn`` holds, as bytes."""
    for value in _names_of(fn):
        if isinstance(value, np.ndarray):
            yield value.tobytes()
        elif isinstance(value, int | float | str | tuple):
            yield repr(value).encode()


def fingerprint(fn: Callable[..., Any] | None = None) -> str:
    """A name for everything that machine code of ``fn`` is made from; without ``fn``, of any kernel outside _APART."""
    parts = [*(_files[path] for path in sorted(_files)), *sorted(_constants), *(name.encode() for name in _features)]
    if fn is not None:
        parts += _apart(fn)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _apart(fn: Callable[..., Any]) -> list[bytes]:
    """What a kernel inside ``_APART`` depends on besides: kernels of its own sub-package, and constants."""
    if not is_ours(fn) or fn.__module__.split(".")[1] not in _APART:
        return []
    source = Path(inspect.getfile(fn))
    if not source.is_relative_to(_package):
        return []
    return [*_kernel_files(_package / _top(source)), *sorted(set(_constants_of(fn)))]


@functools.cache
def _kernel_files(room: Path) -> list[bytes]:
    """Digests of the files below ``room`` that hold kernels, as they were when the first of them was imported."""
    texts = [path.read_bytes() for path in sorted(room.rglob("*.py"))]
    return [hashlib.sha256(text).digest() for text in texts if b"superarm._jit" in text]


def cache_directory() -> Path:
    """Where machine code is kept: ``NUMBA_CACHE_DIR``, or the user's cache directory."""
    if _config.CACHE_DIR:
        return Path(_config.CACHE_DIR)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "superarm"


def directory_of(fn: Callable[..., Any]) -> Path:
    """Where the machine code of ``fn`` is kept, as long as no source changes."""
    return cache_directory() / fingerprint(fn)


def make_room(place: Path) -> None:
    """Discard the oldest machine code beside ``place``, unless ``place`` exists already."""
    if not place.parent.is_dir() or place.is_dir():
        return
    caches = sorted((d for d in place.parent.iterdir() if d.is_dir() and len(d.name) == 16), key=_age)
    for old in caches[: max(0, len(caches) - _KEPT_DIRECTORIES + 1)]:
        shutil.rmtree(old, ignore_errors=True)


def _age(directory: Path) -> float:
    try:
        return directory.stat().st_mtime
    except FileNotFoundError:  # another process discarded it first
        return 0.0
