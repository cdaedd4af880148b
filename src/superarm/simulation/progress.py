"""A progress bar on a terminal; nothing elsewhere."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Protocol

from superarm._compiling import announce_to


class Progress(Protocol):
    """Receives how much of the work is done."""

    def advance(self, n: int) -> None:
        """``n`` more units are done."""
        ...

    def say(self, text: str) -> None:
        """Show what is being done now."""
        ...


class _Silent:
    def advance(self, n: int) -> None:
        pass

    def say(self, text: str) -> None:
        pass


class _Bar:
    def __init__(self, shown: Any) -> None:
        self._shown, self._lock = shown, threading.Lock()

    def advance(self, n: int) -> None:
        with self._lock:
            self._shown.update(n)

    def say(self, text: str) -> None:
        with self._lock:
            self._shown.set_postfix_str(text)


@contextlib.contextmanager
def progress_bar(total: int, wanted: bool) -> Iterator[Progress]:
    """A progress bar over ``total`` rounds; shows nothing unless ``wanted``, on a terminal, with tqdm installed."""
    if not wanted or not sys.stderr.isatty() or find_spec("tqdm") is None:
        yield _Silent()
        return
    from tqdm import tqdm

    with tqdm(total=total, unit="round", unit_scale=True, smoothing=0.1) as shown:
        bar = _Bar(shown)
        with announce_to(bar.say):
            yield bar
