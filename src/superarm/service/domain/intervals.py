"""The value of slates and arms: from outcomes, and from estimates with intervals."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.actions import Candidates
from superarm.core.arrays import Floats, Ints
from superarm.core.support import Dense, Sparse, Support
from superarm.offline.estimators.entries import EntryMeans, entry_intervals
from superarm.oracles.gains import gains
from superarm.rewards import Reward, Terms, gain, initial_states, join_arm
from superarm.rewards.base import reset_states, value_of_states

MAX_BLOCK_ENTRIES = 20_000
"""The values of so many entries are computed by one call."""


@kernel
def gains_each(reward: Reward, terms: Terms, q: Floats, sizes: Ints) -> tuple[Floats, float]:
    """What each row of ``q`` adds to those before it in its slate, and what an empty slate is worth.

    ``q`` is flat: one row of n_items per arm, slate after slate; ``sizes`` says how many rows each slate has.
    """
    added = np.zeros(sizes.sum())
    memo = initial_states(reward, terms)
    nothing = value_of_states(reward, terms, memo)
    row = 0
    for size in sizes:
        reset_states(reward, terms, memo)
        for _ in range(size):
            added[row] = gain(reward, terms, memo, q, row)
            join_arm(reward, terms, memo, q, row)
            row += 1
    return added, nothing


def row_terms(problem: Any, n_rows: int) -> Terms:
    """Weights, and where the parameters of ``n_rows`` rows with one value per item lie."""
    dense = isinstance(problem.support, Dense)
    return problem.terms if dense else Terms(problem.weights, Dense(n_rows, problem.n_items))


class Band(NamedTuple):
    """Lower ends, estimates and upper ends, of one shape."""

    low: Floats
    mean: Floats
    high: Floats


class KnownMeans(NamedTuple):
    """How often the entries of some arms were seen, and the sums of their outcomes, (len(arms), n_items).

    An item that an arm cannot touch has NaN in ``seen``: its mean is 0, and known.
    """

    seen: Floats
    total: Floats

    @property
    def mean(self) -> Floats:
        """The estimates; 0 where nothing was seen."""
        return self.total / np.fmax(np.nan_to_num(self.seen), 1.0)


def known_means(tally: Any, support: Support, arms: Ints) -> KnownMeans:
    """What was seen of the entries of some arms."""
    rows, items, entries = _entries(support, arms)
    n = tally.pulls[arms][rows]
    if tally.missed.size:
        n = n - tally.missed[entries]
    known = KnownMeans(np.full((len(arms), support.n_items), np.nan), np.zeros((len(arms), support.n_items)))
    known.seen[rows, items] = n
    known.total[rows, items] = tally.total[entries]
    return known


def time_uniform(tally: Any, support: Support, arms: Ints, delta: float = 0.05) -> Band:
    """The parameters of some arms, (len(arms), n_items), with intervals that hold together, at all times.

    Those of all entries of the problem do, with probability 1 - ``delta``, whatever chose the arms: see
    ``superarm.offline.estimators.entries``. Nothing known: from 0 to 1. An item that an arm cannot touch: 0.
    """
    known = known_means(tally, support, arms)
    touched = ~np.isnan(known.seen)
    part = EntryMeans(known.seen[touched], known.total[touched])
    band = Band(*(np.zeros(known.seen.shape) for _ in Band._fields))
    if not part.seen.size:
        return band
    for table, values in zip(band, entry_intervals(part, delta * part.seen.size / len(tally.total)), strict=True):
        table[touched] = values
    return band


def _entries(support: Support, arms: Ints) -> tuple[Ints, Ints, Ints]:
    """For every entry of some arms: its row among them, its item, and where it lies."""
    if isinstance(support, Sparse):
        spans = [np.arange(*support.span(int(j))) for j in arms]
        entries = np.concatenate([np.zeros(0, np.int64), *spans])
        return np.repeat(np.arange(len(arms)), [len(span) for span in spans]), support.items[entries], entries
    n = support.n_items
    return (
        np.repeat(np.arange(len(arms)), n),
        np.tile(np.arange(n), len(arms)),
        (arms[:, None] * n + np.arange(n)).reshape(-1),
    )


def mean_alone(problem: Any, tally: Any, arms: Ints) -> Floats:
    """What each of some arms is worth on its own, at the estimates."""
    if isinstance(problem.support, Dense):  # in blocks: one call for all would keep other threads waiting
        size = max(1, MAX_BLOCK_ENTRIES // problem.n_items)
        blocks = [arms[n : n + size] for n in range(0, len(arms), size)]
        parts = [value_alone(problem, known_means(tally, problem.support, block).mean) for block in blocks]
        return np.concatenate([np.zeros(0), *parts])
    counts = np.repeat(tally.pulls, np.diff(problem.support.start)) - (tally.missed if tally.missed.size else 0.0)
    everyone = Candidates(tally.pulls, np.ones(problem.n_arms, bool))
    worth: Floats = gains(
        problem, initial_states(problem.reward, problem.terms), tally.total / np.maximum(counts, 1.0), everyone
    )
    return worth[arms]


def value_alone(problem: Any, q: Floats) -> Floats:
    """The value of each row of parameters as a slate of one arm."""
    return _gains(problem, q, np.ones(len(q), np.int64))[0]


def value_each_arm(problem: Any, band: Band) -> Band:
    """The value of each arm on its own, at the lower ends, the estimates and the upper ends of its parameters."""
    return Band(*(value_alone(problem, part) for part in band))


def value_in_order(problem: Any, band: Band) -> tuple[Floats, Band]:
    """What each arm adds to those before it, at the estimates, and what all of them are worth together."""
    sizes = np.array([len(band.mean)], np.int64)
    totals = []
    for part in band:
        added, nothing = _gains(problem, part, sizes)
        totals.append(np.array([nothing + added.sum()]))
    return _gains(problem, band.mean, sizes)[0], Band(*totals)


def _gains(problem: Any, q: Floats, sizes: Ints) -> tuple[Floats, float]:
    terms = row_terms(problem, len(q))
    return gains_each(problem.reward, terms, np.ascontiguousarray(q).reshape(-1), sizes)
