"""An executor around another one, and a progress bar, with which tests look at and interfere with a run."""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass
class ActAfterFirstTask:
    """Calls ``act`` when the first task of ``executor`` is finished, before any other result is taken."""

    executor: Any
    act: Callable[[], None]

    def capacity(self):
        return self.executor.capacity()

    def perform(self, tasks, progress):
        for n, finished in enumerate(self.executor.perform(tasks, progress)):
            if n == 0:
                self.act()
            yield finished


class CountingBar:
    """A progress bar that only counts."""

    def __init__(self):
        self.rounds, self.reports = 0, 0

    def advance(self, n):
        self.rounds, self.reports = self.rounds + n, self.reports + 1

    def say(self, text):
        self.texts.append(text)
