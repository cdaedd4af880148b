"""Finished replications of cells that are not finished, so that an interrupted run loses little.

Each finished task of a cell is one file, ``parts/<digest>/<first>.npz``. They are read when the run continues, and
removed when the cell is written.
"""

import shutil
import zipfile
from pathlib import Path

import numpy as np

from superarm.experiments.store import write_atomically
from superarm.simulation.runs import ARRAYS, Runs


def write_part(directory: Path, digest: str, first: int, runs: Runs) -> None:
    """Store the runs of the replications from ``first`` on."""
    folder = _folder(directory, digest)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: getattr(runs, name) for name in ARRAYS}

    def write(partial: Path) -> None:
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    write_atomically(folder / f"{first}.npz", write)


def read_parts(directory: Path, digest: str) -> dict[int, Runs]:
    """The stored runs of a cell, by the first replication of each file; unreadable files count as missing."""
    found: dict[int, Runs] = {}
    for path in _folder(directory, digest).glob("*.npz"):
        try:
            with np.load(path) as arrays:
                found[int(path.stem)] = Runs(**{name: arrays[name] for name in ARRAYS}, done=True)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            continue
    return found


def remove_parts(directory: Path, digest: str) -> None:
    """Remove the stored runs of a cell that is finished."""
    shutil.rmtree(_folder(directory, digest), ignore_errors=True)


def _folder(directory: Path, digest: str) -> Path:
    return directory / "parts" / digest
