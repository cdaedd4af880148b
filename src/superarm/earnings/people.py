"""Shops whose visitors are real people, from published data sets that are on this machine already."""

import numpy as np

from superarm.core.arrays import Bools, Floats
from superarm.data import SOURCES, read_movielens, read_open_bandit
from superarm.data.files import cache_directory
from superarm.earnings.shops import Draft, Kind, Shop, common_places, make_problem

MOVIELENS, OPEN_BANDIT = "MovieLens", "Open Bandit"
SAMPLE = 60
"""From so many people the shop has its list."""


def real_shops() -> list[str]:
    """The names of the data sets that are in the directory of downloads, or in ``SUPERARM_DATA``."""
    files = {MOVIELENS: "movielens", OPEN_BANDIT: "open-bandit"}
    return [name for name, source in files.items() if (cache_directory() / SOURCES[source].file).exists()]


def draw_real(name: str, draws: int) -> Shop:
    """A shop on a data set; draws differ in the list, and in who comes when."""
    if name == MOVIELENS:
        films = read_movielens(cache_directory() / SOURCES["movielens"].file)
        return _shop(name, films.p.T, films.shares, 5, draws, films.liked > 0.0, films.first)
    clicks = read_open_bandit(cache_directory() / SOURCES["open-bandit"].file)
    return _shop(name, clicks.p.T, clicks.shares, 3, draws)


def _shop(
    name: str, p: Floats, shares: Floats, k: int, draws: int, people: Bools | None = None, groups: object = ()
) -> Shop:
    n_arms = p.shape[1]
    kind = Kind(lambda rng: Draft(p), n_arms, k, "items", tuple(shares.tolist()), held_out=True)
    place, order = common_places(name, n_arms)
    by_rank = [_rank(np.random.default_rng([len(name), number]), p, shares, people) for number in range(draws)]
    arms = np.stack([ranking[order] for ranking in by_rank])  # the product behind each arm, in each draw
    chances = np.stack([p[:, own] for own in arms])[:, None]
    tables = None if people is None else np.stack([people[:, own] for own in arms])
    everything = np.ones((draws, 1, n_arms), bool)
    return Shop(name, kind, make_problem(kind), chances, everything, np.ones((draws, n_arms)), place, tables, groups)


def _rank(rng: np.random.Generator, p: Floats, shares: Floats, people: Bools | None) -> np.ndarray:
    """Products by how many of some people took them, ties at random."""
    if people is None:
        taken = rng.binomial(SAMPLE * 50, np.clip(shares @ p, 0.0, 1.0))
    else:
        taken = people[rng.integers(0, len(people), SAMPLE)].sum(0)
    return np.argsort(-(taken + rng.random(p.shape[1])))
