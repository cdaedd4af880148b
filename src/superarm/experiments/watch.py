"""Watch: how far the whole grid is, and whether it shall stop."""

import threading

from superarm.simulation.progress import Progress


class Watch:
    """Counts rounds for the progress bar; a task that is played again after an accident is not counted twice."""

    def __init__(self, shown: Progress) -> None:
        self.stop = threading.Event()
        self._shown, self._lock, self._done = shown, threading.Lock(), dict[int, int]()

    def told(self, number: int, done: int) -> None:
        """Task ``number`` has ``done`` rounds behind it."""
        with self._lock:
            more = done - self._done.get(number, 0)
            if more > 0:
                self._done[number] = done
        if more > 0:
            self._shown.advance(more)

    def say(self, text: str) -> None:
        """Show what is being done now."""
        self._shown.say(text)
