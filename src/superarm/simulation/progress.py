"""A progress bar on a terminal or in a notebook; nothing elsewhere."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Protocol


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


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


def can_show_bar() -> bool:
    """Whether there is a place for a progress bar, a terminal or a notebook, and tqdm is installed."""
    return (in_notebook() or sys.stderr.isatty()) and find_spec("tqdm") is not None


@contextlib.contextmanager
def progress_bar(total: int, wanted: bool) -> Iterator[Progress]:
    """A progress bar over ``total`` rounds, on a terminal or in a notebook, if ``wanted`` and if tqdm is installed."""
    if not wanted or not can_show_bar():
        yield _Silent()
        return
    if in_notebook() and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm  # in a notebook, a line of text that is written again and again

    with tqdm(total=total, unit="round", unit_scale=True, smoothing=0.1) as shown:
        yield _Bar(shown)
