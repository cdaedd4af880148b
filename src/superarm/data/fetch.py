"""Downloads of public data, once each and with checksums."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

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
            f"{source.url} cannot be reached ({error}); download it elsewhere and give its path"
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
