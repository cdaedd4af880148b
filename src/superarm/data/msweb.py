"""A table of visits, users by areas, in the layout of UCI's anonymous Microsoft web data (``anonymous-msweb.data``)."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superarm.core.arrays import Bools
from superarm.core.errors import InvalidArgument
from superarm.data.files import open_text


@dataclass(frozen=True)
class Visits:
    """``table[u, a]`` says whether user ``u`` visited area ``a``."""

    table: Bools
    users: tuple[str, ...]
    areas: tuple[str, ...]


def read_visits(path: str | Path) -> Visits:
    """Read the lines of areas, users and visits; all other lines describe the file and are skipped.

    They look like ``A,1277,1,"NetShow for PowerPoint","/stream"`` (an area), ``C,"10001",10001`` (a user) and
    ``V,1000,1`` (a visit of the last user).
    """
    areas: dict[str, str] = {}
    users: list[str] = []
    visited: list[tuple[int, str]] = []
    with open_text(path, "anonymous-msweb.data" if Path(path).suffix == ".zip" or Path(path).is_dir() else "") as file:
        for line in csv.reader(file):
            if line and line[0] == "A":
                areas[line[1]] = line[3]
            elif line and line[0] == "C":
                users.append(line[2])
            elif line and line[0] == "V":
                if not users or line[1] not in areas:
                    raise InvalidArgument(
                        "path",
                        f"a visit of area {line[1]!r} before any user, or of an unknown area",
                        "give the published file",
                    )
                visited.append((len(users) - 1, line[1]))
    if not visited:
        raise InvalidArgument("path", f"{path} has no visits", "give the published file, with A, C and V lines")
    column = {area: n for n, area in enumerate(areas)}
    table = np.zeros((len(users), len(areas)), bool)
    for user, area in visited:
        table[user, column[area]] = True
    return Visits(table, tuple(users), tuple(areas.values()))
