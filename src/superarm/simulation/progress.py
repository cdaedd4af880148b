"""A progress bar, where there is a terminal to show it on."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Protocol


class Progress(Protocol):
    """Something that can be told how far the work is."""

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
def bar(total: int, wanted: bool) -> Iterator[Progress]:
    """A bar over ``total`` rounds; silent if not ``wanted``, off a terminal, or without tqdm."""
    if not wanted or not sys.stderr.isatty() or find_spec("tqdm") is None:
        yield _Silent()
        return
    from tqdm import tqdm

    with tqdm(total=total, unit="round", unit_scale=True, smoothing=0.1) as shown:
        yield _Bar(shown)
