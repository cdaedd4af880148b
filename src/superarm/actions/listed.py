"""Batches listed in a table, and the best of them."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import kernel, verb
from superarm.actions.base import all_eligible, complete, remnant
from superarm.arrays import Ints
from superarm.candidates import Candidates


class Batches(NamedTuple):
    """Batches in a table, one per row: ``table`` is (n_batches, k), padded with -1, and ``sizes`` (n_batches,)."""

    table: Ints
    sizes: Ints


class BatchValue(Protocol):
    """A function from batches to numbers."""

    def value_of(self, action: Ints) -> float:
        """The value of ``action``; larger is better."""
        ...


value_of = verb(BatchValue.value_of)


def tabulate(batches: Iterable[Any]) -> Batches:
    """Write ``batches``, of which there is at least one, into a table.

    >>> tabulate([[0, 1], [2]]).table
    array([[ 0,  1],
           [ 2, -1]])
    """
    rows = list(batches)
    sizes = np.array([len(row) for row in rows], np.int64)
    if (sizes == sizes.max()).all():
        return Batches(np.array(rows, np.int64), sizes)
    table = np.full((len(rows), int(sizes.max())), -1, np.int64)
    for row, batch in zip(table, rows, strict=True):
        row[: len(batch)] = batch
    return Batches(table, sizes)


@kernel
def fewest_pulls(action: Ints, candidates: Candidates) -> float:
    """The smallest count among the arms of ``action``."""
    fewest = np.inf
    for j in action:
        fewest = min(fewest, candidates.counts[j])
    return fewest


@kernel
def best_batch(worth: BatchValue, actions: Any, batches: Batches, candidates: Candidates) -> Ints:
    """The listed batch with the largest value, or the eligible part of one where arms are excluded.

    Equal values go to the batch whose least-pulled arm has the fewest pulls, then to the first. The eligible part of a
    batch competes only if no eligible arm could join it. Otherwise it is contained in the eligible part of another
    batch, and a reward that falls with the number of arms would prefer the smaller one.
    """
    best, most, fewest = np.empty(0, np.int64), -np.inf, np.inf
    for row in range(len(batches.sizes)):
        action = batches.table[row, : batches.sizes[row]]
        if not all_eligible(action, candidates):
            action = remnant(actions, action, candidates)
            if len(action) == 0 or not complete(actions, action, candidates):
                continue
        r, pulls = value_of(worth, action), fewest_pulls(action, candidates)
        if r > most or (r == most and pulls < fewest):
            best, most, fewest = action, r, pulls
    return best.copy()
