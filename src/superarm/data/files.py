"""Files: downloads of public data, once each and with checksums; text in plain, gzipped and zipped files."""

import csv
import gzip
import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from superarm.core.errors import InvalidArgument, MissingExtra, SuperarmError

_CHECKSUM_FILE = "checksums.json"


@dataclass(frozen=True)
class Source:
    """Where a data set is published, and the name of the local file."""

    url: str
    file: str


SOURCES = {
    "movielens": Source("https://files.grouplens.org/datasets/movielens/ml-latest-small.zip", "ml-latest-small.zip"),
    "msweb": Source("https://archive.ics.uci.edu/static/public/4/anonymous+microsoft+web+data.zip", "msweb.zip"),
    "ca-hepth": Source("https://snap.stanford.edu/data/ca-HepTh.txt.gz", "ca-HepTh.txt.gz"),
    "open-bandit": Source("https://research.zozo.com/data_release/open_bandit_dataset.zip", "open_bandit_dataset.zip"),
    "coding-models": Source(  # 25 models on 500 issues of SWE-bench, CC BY-NC 4.0
        "https://raw.githubusercontent.com/SWE-bench/swe-bench.github.io/"
        "f1176b65ae29d14f4f52208b48e3d8cfc972bc17/data/leaderboards.json",
        "coding-models.json",
    ),
    "deezer-users": Source("https://zenodo.org/records/4048678/files/user_features.csv", "user_features.csv"),
    "deezer-playlists": Source(
        "https://raw.githubusercontent.com/deezer/carousel_bandits/master/data/playlist_features.csv",
        "playlist_features.csv",
    ),
}


def cache_directory() -> Path:
    """The directory of downloaded files: ``SUPERARM_DATA``, or the user's cache directory."""
    given = os.environ.get("SUPERARM_DATA")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "superarm-data"


def fetch(source: str, sha256: str | None = None, directory: str | Path | None = None) -> Path:
    """The path of the local copy of a data set, which is downloaded if it is missing.

    Parameters
    ----------
    source
        One of ``SOURCES``, or a URL.
    sha256
        The expected checksum. By default the checksum of the first download is stored in ``checksums.json`` and
        checked from then on, because some publishers change files in place.
    directory
        Where files are kept; by default ``SUPERARM_DATA``, or the user's cache directory.
    """
    known = SOURCES.get(source) or Source(source, source.rsplit("/", 1)[-1])
    if "://" not in known.url or not known.file:
        raise InvalidArgument("source", f"unknown data set {source!r}", f"give a URL, or one of {', '.join(SOURCES)}")
    folder = Path(directory) if directory is not None else cache_directory()
    expected = sha256 or _read_checksums(folder).get(known.file)
    path = _download(known, expected, folder)
    if expected is None:
        _store_checksum(folder, known.file, path)
    return path


def _download(source: Source, expected: str | None, directory: Path) -> Path:
    try:
        import pooch
    except ImportError:
        raise MissingExtra("pooch", "data") from None
    known = f"sha256:{expected}" if expected else None
    try:
        return Path(pooch.retrieve(source.url, known, fname=source.file, path=directory, progressbar=False))
    except ValueError as error:  # pooch raises it for a checksum that differs
        raise SuperarmError(
            f"{source.url} has another checksum than expected: {error}; give the new one as sha256, "
            f"or remove the line of {source.file} from {directory / _CHECKSUM_FILE}"
        ) from error
    except OSError as error:
        raise SuperarmError(
            f"{source.url} cannot be reached ({error}); download it elsewhere and put it into {directory}"
        ) from error


def _read_checksums(directory: Path) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads((directory / _CHECKSUM_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def _store_checksum(directory: Path, name: str, path: Path) -> None:
    import pooch

    known = _read_checksums(directory) | {name: pooch.file_hash(str(path))}
    partial = directory / f".{_CHECKSUM_FILE}.{os.getpid()}"
    partial.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, directory / _CHECKSUM_FILE)


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
