"""Whether there is room on the disk for more than a few bytes."""

import os
from pathlib import Path

SCRATCH_BYTES = 262_144
"""More than a commit of some hundred small events takes."""


def write_scratch(path: Path) -> None:
    """Write ``SCRATCH_BYTES`` beside a file, force them to the disk and remove them; ``OSError`` if that is impossible.

    On a disk that is nearly full, a commit of one page may succeed where no event can be written any more.
    """
    beside = path.with_name(f".{path.name}.scratch")
    try:
        with beside.open("wb") as scratch:
            scratch.write(bytes(SCRATCH_BYTES))
            scratch.flush()
            os.fsync(scratch.fileno())
    finally:
        beside.unlink(missing_ok=True)
