"""What the workers of one service have counted: each writes its numbers to a file, and any of them can add them up.

A worker that ended leaves its file, so that sums never go down. The directory belongs to the parent process and goes
away with it.
"""

import os
from pathlib import Path

import msgspec
from msgspec import Struct, field


class Counted(Struct):
    """The numbers of one worker that only ever grow.

    ``requests`` is by tenant, method, path and status; ``seconds``, the parts of ``Timings``, by tenant, method, path.
    """

    requests: list[tuple[str, str, str, int, int]] = field(default_factory=list)
    seconds: list[tuple[str, str, str, list[float]]] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)
    events: int = 0
    failures: int = 0


_decoder = msgspec.json.Decoder(Counted)


class WorkerFiles:
    """The files of all workers in a directory; without one, there is this process alone."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory) if directory else None

    @property
    def shared(self) -> bool:
        """Whether there may be other workers."""
        return self._directory is not None

    def publish(self, counted: Counted) -> None:
        """Write this worker's numbers."""
        if self._directory is not None:
            path = self._directory / f"{os.getpid()}.json"
            partial = path.with_suffix(".partial")
            partial.write_bytes(msgspec.json.encode(counted))
            partial.replace(path)

    def read_others(self) -> list[Counted]:
        """The numbers of all other workers, past ones included, as they were last written."""
        if self._directory is None:
            return []
        own = f"{os.getpid()}.json"
        return [_decoder.decode(path.read_bytes()) for path in self._directory.glob("*.json") if path.name != own]
