"""Text in plain, gzipped and zipped files."""

import csv
import gzip
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from superarm.core.errors import InvalidArgument


@contextmanager
def open_text(path: str | Path, member: str = "") -> Iterator[IO[str]]:
    """Open a text file; in a directory or a zip, the one whose name ends with ``member``."""
    file = Path(path)
    if member and file.is_dir():
        file = next(
            (found for found in sorted(file.rglob(Path(member).name)) if str(found).endswith(member)), file / member
        )
    if not file.is_file():
        raise InvalidArgument("path", f"there is no {file}", f"give the path of {member or 'the data'}")
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive, archive.open(_find_member(archive, member, file)) as raw:
            yield io.TextIOWrapper(raw, encoding="utf-8", newline="")
    elif file.suffix == ".gz":
        with gzip.open(file, "rt", encoding="utf-8", newline="") as unpacked:
            yield unpacked
    else:
        with file.open(encoding="utf-8", newline="") as plain:
            yield plain


def _find_member(archive: zipfile.ZipFile, member: str, file: Path) -> str:
    names = [name for name in archive.namelist() if name.endswith(member)]
    if not names:
        raise InvalidArgument("path", f"{file} has no {member}", "give the published archive")
    return min(names, key=len)


def read_rows(path: str | Path, member: str, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The named columns of a CSV file with a header, one tuple per row."""
    with open_text(path, member) as file:
        reader = csv.reader(file)
        head = next(reader, [])
        missing = [column for column in columns if column not in head]
        if missing:
            raise InvalidArgument(
                "path", f"{member} has no column {missing[0]!r}", f"its header must have {', '.join(columns)}"
            )
        positions = [head.index(column) for column in columns]
        for row in reader:
            if row:
                yield tuple(row[n] for n in positions)
