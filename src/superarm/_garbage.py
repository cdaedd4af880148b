"""Python's garbage collector while the library makes many objects that stay: while it is imported, and compiles."""

import contextlib
import gc
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType


@contextlib.contextmanager
def let_garbage_wait() -> Iterator[None]:
    """Collect no garbage meanwhile.

    If two threads do so at once, the collector is on again when the first of them ends.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def import_module(name: str) -> ModuleType:
    """Import a module without searching what it makes for garbage, which would take a seventh of the time.

    ``gc.freeze`` and ``gc.unfreeze`` together make all objects old ones, as those of a module become sooner or later.
    If the program has frozen objects of its own, they stay frozen, and new objects stay young.
    """
    if name in sys.modules:
        return importlib.import_module(name)
    with let_garbage_wait():
        module = importlib.import_module(name)
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
    return module
