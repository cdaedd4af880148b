"""Deezer carousels: users with embeddings and segments, playlists with weights, and the probability of a stream.

The data of [BendadaEtAl2020]_: ``user_features.csv`` (974,960 users) and ``playlist_features.csv`` (862 playlists).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.data.files import open_text


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
    r"""Read the two published files, and keep ``n_users`` users drawn with ``seed`` (all, if there are fewer).

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
    with open_text(path, member if Path(path).is_dir() or Path(path).suffix == ".zip" else "") as file:
        head = next(file, "").strip().split(",")
        lines = [line for line in file if line.strip()]
    if not lines:
        raise InvalidArgument("path", f"{path} has no rows", f"give {member}")
    if n is not None and n < len(lines):
        kept = np.sort(np.random.default_rng(seed).choice(len(lines), n, replace=False))
        lines = [lines[at] for at in kept]
    return head, [line.strip().split(",") for line in lines]
