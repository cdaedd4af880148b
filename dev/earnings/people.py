"""Shops whose visitors are real people, from published data sets that are on this machine already."""

import numpy as np

from dev.earnings.shops import Draft, Kind, Shop, common_places, make_problem
from superarm.core.arrays import Bools, Floats
from superarm.data import SOURCES, read_open_bandit
from superarm.data.files import cache_directory
from superarm.data.readers import read_movielens_100k

MOVIELENS, OPEN_BANDIT = "MovieLens-100k", "Open Bandit"
FILES = {MOVIELENS: "recbole-*.whl", OPEN_BANDIT: SOURCES["open-bandit"].file}
"""Where the data are; those of MovieLens-100k are in the wheel of the package recbole (``pip download``)."""

SAMPLE = 60
"""From so many people the shop has its list."""


def real_shops() -> list[str]:
    """The names of the data sets that are in the directory of downloads, or in ``SUPERARM_DATA``."""
    return [name for name, file in FILES.items() if any(cache_directory().glob(file))]


def draw_real(name: str, draws: int, first: int = 0) -> Shop:
    """A shop on a data set; draws differ in the list, and in who comes when."""
    path = next(cache_directory().glob(FILES[name]))
    if name == MOVIELENS:  # one item: nothing is known of who comes
        liked = read_movielens_100k(path).liked > 0.0
        return _shop(name, liked.mean(0)[None], np.ones(1), 5, range(first, first + draws), liked, (0, len(liked)))
    clicks = read_open_bandit(path)
    return _shop(name, clicks.p.T, clicks.shares, 3, range(first, first + draws))


def _shop(
    name: str, p: Floats, shares: Floats, k: int, draws: range, people: Bools | None = None, groups: object = ()
) -> Shop:
    n_arms = p.shape[1]
    kind = Kind(lambda rng: Draft(p), n_arms, k, "items", tuple(shares.tolist()), held_out=True)
    place, order = common_places(name, n_arms)
    by_rank = [_rank(np.random.default_rng([len(name), number]), p, shares, people) for number in draws]
    arms = np.stack([ranking[order] for ranking in by_rank])  # the product behind each arm, in each draw
    chances = np.stack([p[:, own] for own in arms])[:, None]
    tables = None if people is None else np.stack([people[:, own] for own in arms])
    everything = np.ones((len(draws), 1, n_arms), bool)
    return Shop(
        name, kind, make_problem(kind), chances, everything, np.ones((len(draws), n_arms)), place, tables, groups
    )


def _rank(rng: np.random.Generator, p: Floats, shares: Floats, people: Bools | None) -> np.ndarray:
    """Products by how many of some people took them, ties at random."""
    if people is None:
        taken = rng.binomial(SAMPLE * 50, np.clip(shares @ p, 0.0, 1.0))
    else:
        taken = people[rng.integers(0, len(people), SAMPLE)].sum(0)
    return np.argsort(-(taken + rng.random(p.shape[1])))
