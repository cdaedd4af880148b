"""The value of slates and arms: from outcomes, and from estimates with intervals."""

from typing import Any, NamedTuple

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.support import AnySupport
from superarm.core.tally import Tally
from superarm.core.totals import TotalTally
from superarm.offline.estimators.entries import EntryMeans, entry_intervals
from superarm.problem import Problem


def gains_each(problem: Problem, rows: Floats, sizes: Ints, weights: Any = None) -> tuple[Floats, float]:
    """What each of ``rows`` (n, n_items) adds to those before it in its slate, and what an empty slate is worth.

    Rows are one per arm, slate after slate; ``sizes`` says how many each slate has. ``weights`` are other ones than the
    problem's. Of a reward that is no sum over items, these are the gains of direct influence.

    >>> from superarm.actions import Subsets
    >>> from superarm.rewards import Coverage
    >>> gains_each(Problem(3, 1, Coverage(), Subsets(2)), np.array([[0.5], [0.5], [1.0]]), np.array([2, 1]))
    (array([0.5 , 0.25, 1.  ]), 0.0)
    """
    reward, added, first = problem.reward, np.zeros(len(rows)), np.cumsum(sizes) - sizes
    weights = (problem.weights if weights is None else weights)[None]
    states = np.array(reward.start(np.repeat(weights, len(sizes), 0)), float)
    nothing = float(reward.worth(weights, reward.start(weights)).sum())
    for place in range(int(sizes.max(initial=0))):
        here = np.flatnonzero(sizes > place)
        q = rows[first[here] + place]
        added[first[here] + place] = reward.gain(weights, states[here], q).sum(1)
        states[here] = reward.join(states[here], q)
    return added, nothing


def values_each(problem: Problem, rows: Floats, sizes: Ints, weights: Any = None) -> Floats:
    """The values of slates, as in ``gains_each``, in the units of scores if there are any; none of them is empty."""
    added, nothing = gains_each(problem, rows, sizes, weights)
    if not len(sizes):
        return np.zeros(0)
    return np.asarray(problem.floor + nothing + np.add.reduceat(added, np.cumsum(sizes) - sizes))


def outcome_values(problem: Problem, rows: Floats, sizes: Ints) -> Floats:
    """The values of slates at outcomes: where items are thresholds, what the best score of each is worth."""
    if problem.thresholds is None or not len(sizes):
        return values_each(problem, rows, sizes)
    best = np.maximum.reduceat(rows, np.cumsum(sizes) - sizes)
    return np.asarray(problem.floor + best @ problem.weights)


def worth_each(problem: Problem, rows: Floats, sizes: Ints) -> Floats:
    """What each item contributes to the values of slates, (len(sizes), n_items); rows and sizes as in ``gains_each``.

    >>> from superarm.actions import Subsets
    >>> from superarm.rewards import Coverage
    >>> worth_each(Problem(3, 2, Coverage(), Subsets(2)), np.array([[0.5, 0.0], [0.5, 1.0]]), np.array([2]))
    array([[0.75, 1.  ]])
    """
    reward, weights, first = problem.reward, problem.weights[None], np.cumsum(sizes) - sizes
    states = np.array(reward.start(np.repeat(weights, len(sizes), 0)), float)
    for place in range(int(sizes.max(initial=0))):
        here = np.flatnonzero(sizes > place)
        states[here] = reward.join(states[here], rows[first[here] + place])
    return np.asarray(reward.worth(weights, states))


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


def known_means(tally: Tally, support: AnySupport, arms: Ints) -> KnownMeans:
    """What was seen of the entries of some arms, by a tally of one replication."""
    seen = np.broadcast_to(tally.counts(tally.pulls), tally.total.shape)

    def table(entries: Floats, fill: float) -> Floats:
        return support.rows_to_items(support.rows(entries, arms[None]), arms[None], fill)[0]

    return KnownMeans(table(seen, np.nan), table(tally.total, 0.0))


def time_uniform(tally: Tally, support: AnySupport, arms: Ints, delta: float = 0.05) -> Band:
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
    for table, values in zip(band, entry_intervals(part, delta * part.seen.size / support.size), strict=True):
        table[touched] = values
    return band


def effects(tally: TotalTally, arms: Ints) -> Band:
    """The effects of some arms on totals, with ±2 deviations, as far as arms add up: an estimate of a model."""
    mean, deviation = tally.model.mean[0, arms], np.sqrt((tally.model.root[0, arms] ** 2).sum(1))
    return Band(mean - 2.0 * deviation, mean, mean + 2.0 * deviation)


def mean_alone(problem: Problem, tally: Tally, arms: Ints) -> Floats:
    """What each of some arms is worth on its own, at the estimates."""
    reward = problem.reward
    return np.asarray(reward.gains(problem, reward.empty_states(problem, 1), tally.mean)[0][arms])
