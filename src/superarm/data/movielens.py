"""MovieLens, in the layout of ``ml-latest-small``: films, and groups of users with the same favourite genre."""

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.data.files import read_rows

_NO_GENRE = "(no genres listed)"


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
    """Read ``ratings.csv`` and ``movies.csv`` from a directory, or from the published zip.

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
