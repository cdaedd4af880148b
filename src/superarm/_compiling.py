"""Around compiling: one line that says so, and a lock, so that no two processes compile the same kernel at once.

Compiling a composition takes seconds, once. By default a line on stderr says so after a second of it; ``announce_to``
sends it elsewhere. The lock is a file beside the machine code that the kernel will have. Python's garbage collector is
off meanwhile.
"""

import contextlib
import hashlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from superarm._garbage import let_garbage_wait

_QUIET_SECONDS = 1.0
"""Compiling that takes no longer is not announced."""

_MAX_WAIT_SECONDS = 120.0
"""How long a process waits for another one that compiles the same kernel before it compiles it, too."""

_POLL_SECONDS = 0.05

_FAMILIES = ("indices", "policies", "rewards", "actions", "environments")
"""The families that name a composition, in the order in which they are named."""

components: set[type] = set()
"""All component classes: those that a signature holds name its composition."""

_listeners: list[Callable[[str], None]] = []
_said: set[str] = set()
_composition: list[str] = []
"""The components of the composition that was made ready last, by name."""


def note_composition(*parts: Any) -> None:
    """Name what is compiled from now on by the components of ``parts``, also kernels that need few of them, or none.

    So a composition has one line, although it has kernels that it shares with others.
    """
    _composition[:] = _list_names(_list_classes(parts))


def _list_classes(parts: Iterable[Any]) -> Iterator[type]:
    """The classes of the components among ``parts``, and of those inside of them."""
    for part in parts:
        if isinstance(part, tuple):
            if type(part) in components:
                yield type(part)
            yield from _list_classes(part)


def _print_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        print(f"superarm: {message}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def announce_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Send announcements of all threads to ``listener`` instead of stderr; it is called from another thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def compiling(kernel: str, classes: list[type], place: Path | None, signature: str) -> Iterator[None]:
    """Say after a second that a kernel is being compiled for components of these ``classes``, and hold its lock.

    ``place`` is the directory that its machine code will be kept in; without one there is no lock.
    """
    waiting = threading.Event()

    def say() -> None:
        what = name_composition(kernel, classes)
        stored = place is not None and all(cls.__module__ != "__main__" for cls in classes)
        kept = f"once; kept in {place.parent}" if place and stored else "in each process that runs this script"
        text = f"waiting for another process that compiles {what}" if waiting.is_set() else f"compiling {what}, {kept}"
        (_listeners[-1] if _listeners else _print_once)(text)

    timer = threading.Timer(_QUIET_SECONDS, say)
    timer.daemon = True
    timer.start()
    try:
        with _hold_lock(place, signature, waiting), let_garbage_wait():
            yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def _hold_lock(place: Path | None, signature: str, waiting: threading.Event) -> Iterator[None]:
    """Hold a lock between processes, or go on without it: if there can be none, or if it takes too long."""
    with contextlib.ExitStack() as held:
        if place is not None and find_spec("fcntl"):
            digest = hashlib.sha256(signature.encode()).hexdigest()[:16]
            with contextlib.suppress(OSError):  # the directory cannot be written to, so nothing will be kept either
                file = held.enter_context((place / f"{digest}.lock").open("w"))
                _wait_for(file, waiting)
        yield


def _wait_for(file: Any, waiting: threading.Event) -> None:
    """Lock ``file``; closing it, also by the end of the process, gives the lock up."""
    import fcntl

    deadline = time.monotonic() + _MAX_WAIT_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
            waiting.set()
            time.sleep(_POLL_SECONDS)
        else:
            waiting.clear()
            return


def name_composition(kernel: str, classes: list[type]) -> str:
    """The kernels of a composition by its components, or one kernel by its name.

    >>> note_composition()
    >>> name_composition("choose", [])
    'the kernel choose'
    """
    names = _list_names(classes)
    if set(names) <= set(_composition):
        names = _composition
    return f"kernels for {' × '.join(names)}" if names else f"the kernel {kernel}"


def _list_names(classes: Iterable[type]) -> list[str]:
    """The names of components that name a composition, in the order in which they do."""
    found: dict[str, list[str]] = {family: [] for family in _FAMILIES}
    for cls in classes:
        room = cls.__module__.split(".")[1:2] if cls.__module__.startswith("superarm.") else ["policies"]
        if room and room[0] in found and cls.__name__ not in found[room[0]]:
            found[room[0]].append(cls.__name__)
    if found["indices"]:
        found["policies"] = []  # an index names its policy
    return [name for family in _FAMILIES for name in found[family]]
