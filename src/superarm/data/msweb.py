"""A table of visits, users x areas, in the layout of UCI's anonymous Microsoft web data (``anonymous-msweb.data``)."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superarm.arrays import Bools
from superarm.data.files import text
from superarm.errors import InvalidArgument


@dataclass(frozen=True)
class Visits:
    """``table[u, a]`` tells whether user ``u`` visited area ``a``."""

    table: Bools
    users: tuple[str, ...]
    areas: tuple[str, ...]


def read_visits(path: str | Path) -> Visits:
    """Read the lines ``A,1277,1,"NetShow for PowerPoint","/stream"`` (an area), ``C,"10001",10001`` (a user) and
    ``V,1000,1`` (a visit of that user); all other lines are the file's own description.
    """
    areas: dict[str, str] = {}
    users: list[str] = []
    seen: list[tuple[int, str]] = []
    with text(path, "anonymous-msweb.data" if Path(path).suffix == ".zip" or Path(path).is_dir() else "") as file:
        for line in csv.reader(file):
            if line and line[0] == "A":
                areas[line[1]] = line[3]
            elif line and line[0] == "C":
                users.append(line[2])
            elif line and line[0] == "V":
                if not users or line[1] not in areas:
                    raise InvalidArgument(
                        "path", f"a visit of area {line[1]!r} by nobody, or to nowhere", "give the published file"
                    )
                seen.append((len(users) - 1, line[1]))
    if not seen:
        raise InvalidArgument("path", f"{path} holds no visits", "give the published file, with A, C and V lines")
    column = {area: n for n, area in enumerate(areas)}
    table = np.zeros((len(users), len(areas)), bool)
    for user, area in seen:
        table[user, column[area]] = True
    return Visits(table, tuple(users), tuple(areas.values()))
