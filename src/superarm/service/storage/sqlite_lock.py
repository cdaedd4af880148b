"""The locks by which one process serves a SQLite file."""

import fcntl
import os
from pathlib import Path

from superarm.core.errors import SuperarmError


def lock_file(path: Path) -> list[int]:
    """Handles that keep other processes from serving the file, by whatever path they find it.

    One is a lock file beside the real file, which earlier versions know as well. The other is the file itself, so the
    lock follows it through hard links and renaming. ``flock`` is apart from the locks that SQLite takes, but to close
    any handle of a file ends SQLite's locks in this process, so it is closed after SQLite's connections.
    """
    if not path.parent.is_dir():
        raise SuperarmError(f"{path}: there is no directory {path.parent}; create it, or see that the path is right")
    real = path.resolve()
    handles: list[int] = []
    try:
        for name, mode in ((real.parent / f".{real.name}.lock", 0o600), (real, 0o644)):
            handles.append(os.open(name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, mode))
            fcntl.flock(handles[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        for handle in handles:
            os.close(handle)
        if isinstance(error, BlockingIOError):
            raise SuperarmError(f"{path} is served by another process; stop it, or give another --db") from None
        raise
    return handles
