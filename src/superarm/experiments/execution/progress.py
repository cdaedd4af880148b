"""TaskProgress: how many rounds all tasks have played together, and whether they should stop."""

import threading

from superarm.simulation.progress import Progress


class TaskProgress:
    """Counts rounds for the progress bar; a task that is restarted is not counted twice.

    ``stop`` is set when the tasks should end early.
    """

    def __init__(self, bar: Progress) -> None:
        self.stop = threading.Event()
        self._bar, self._lock, self._played = bar, threading.Lock(), dict[int, int]()

    def report(self, number: int, played: int) -> None:
        """Task ``number`` has played ``played`` rounds."""
        with self._lock:
            more = played - self._played.get(number, 0)
            if more > 0:
                self._played[number] = played
        if more > 0:
            self._bar.advance(more)

    def show(self, text: str) -> None:
        """Show what is being done now."""
        self._bar.say(text)
