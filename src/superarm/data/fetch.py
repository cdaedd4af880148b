"""Fetching public data once, and never again unless it is asked for; with checksums."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from superarm.errors import InvalidArgument, MissingExtra, SuperarmError

_KNOWN = "checksums.json"


@dataclass(frozen=True)
class Source:
    """Where a data set is published, and under which name it is kept here."""

    url: str
    file: str


SOURCES = {
    "movielens": Source("https://files.grouplens.org/datasets/movielens/ml-latest-small.zip", "ml-latest-small.zip"),
    "msweb": Source("https://archive.ics.uci.edu/static/public/4/anonymous+microsoft+web+data.zip", "msweb.zip"),
    "ca-hepth": Source("https://snap.stanford.edu/data/ca-HepTh.txt.gz", "ca-HepTh.txt.gz"),
    "open-bandit": Source("https://research.zozo.com/data_release/open_bandit_dataset.zip", "open_bandit_dataset.zip"),
}


def cache() -> Path:
    """Where fetched data is kept: ``SUPERARM_DATA``, or the user's cache directory."""
    given = os.environ.get("SUPERARM_DATA")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "superarm-data"


def fetch(source: str, sha256: str | None = None, directory: str | Path | None = None) -> Path:
    """The local copy of a data set: ``source`` is one of ``SOURCES`` or a URL.

    ``sha256`` is checked if given. Otherwise the checksum of the first download is written down in
    ``checksums.json`` and checked from then on, since some publishers change files in place: what was computed with
    one version cannot silently go on with another.
    """
    known = SOURCES.get(source) or Source(source, source.rsplit("/", 1)[-1])
    if "://" not in known.url or not known.file:
        raise InvalidArgument("source", f"unknown data {source!r}", f"give a URL, or one of {', '.join(SOURCES)}")
    place = Path(directory) if directory is not None else cache()
    expected = sha256 or _checksums(place).get(known.file)
    path = _retrieve(known, expected, place)
    if expected is None:
        _write_down(place, known.file, path)
    return path


def _retrieve(source: Source, expected: str | None, place: Path) -> Path:
    try:
        import pooch
    except ImportError:
        raise MissingExtra("pooch", "data") from None
    known = f"sha256:{expected}" if expected else None
    try:
        return Path(pooch.retrieve(source.url, known, fname=source.file, path=place, progressbar=False))
    except ValueError as error:  # pooch's word for a checksum that differs
        raise SuperarmError(
            f"{source.url} is not what it was: {error}; if the change is meant, remove its line in {place / _KNOWN}"
        ) from error
    except OSError as error:
        raise SuperarmError(
            f"{source.url} cannot be reached ({error}); download it elsewhere and give its path"
        ) from error


def _checksums(place: Path) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads((place / _KNOWN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def _write_down(place: Path, name: str, path: Path) -> None:
    import pooch

    known = _checksums(place) | {name: pooch.file_hash(str(path))}
    partial = place / f".{_KNOWN}.{os.getpid()}"
    partial.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, place / _KNOWN)
