"""The heaviest assignment of rows to columns."""

from typing import NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Bools, Floats, Ints


class _Search(NamedTuple):
    """Dual prices of rows and columns, and a search for an augmenting path; costs are (n, 2): gain, then pulls."""

    price: Floats
    toll: Floats
    slack: Floats
    way: Ints
    used: Bools
    row_of: Ints


@kernel
def assign(gain: Floats, pulls: Floats) -> Ints:
    r"""The column of each row in an assignment of greatest total ``gain`` (n_rows, n_columns), n_rows <= n_columns.

    .. math:: \max_\sigma \sum_r gain_{r \sigma(r)}

    Among equals the fewest total ``pulls``, of the same shape: costs are pairs, compared first by gain and then by
    pulls, and added and subtracted like numbers. Shortest augmenting paths with dual prices: [Kuhn1955]_, in the
    form of [JonkerVolgenant1987]_; O(n_rows² n_columns).
    """
    n_rows, n_columns = gain.shape
    search = _Search(
        np.zeros((n_rows, 2)),
        np.zeros((n_columns, 2)),
        np.empty((n_columns, 2)),
        np.empty(n_columns, np.int64),
        np.empty(n_columns, np.bool_),
        np.full(n_columns, -1),
    )
    for row in range(n_rows):
        search.slack[:] = np.inf
        search.used[:] = False
        last = _step(gain, pulls, search, row, -1)
        while search.row_of[last] >= 0:
            last = _step(gain, pulls, search, row, last)
        while last >= 0:  # the augmenting path, backwards
            before = search.way[last]
            search.row_of[last] = row if before < 0 else search.row_of[before]
            last = before
    column_of = np.full(n_rows, -1)
    for column in range(n_columns):
        if search.row_of[column] >= 0:
            column_of[search.row_of[column]] = column
    return column_of


@kernel
def _step(gain: Floats, pulls: Floats, search: _Search, row: int, last: int) -> int:
    """Visit column ``last`` (-1: the new ``row`` itself), reprice, and return the nearest column not visited."""
    price, toll, slack, used, row_of = search.price, search.toll, search.slack, search.used, search.row_of
    at = row
    if last >= 0:
        used[last] = True
        at = row_of[last]
    near, least, fewest = -1, np.inf, np.inf
    for c in range(len(used)):
        if used[c]:
            continue
        a = -gain[at, c] - price[at, 0] - toll[c, 0]
        b = pulls[at, c] - price[at, 1] - toll[c, 1]
        if a < slack[c, 0] or (a == slack[c, 0] and b < slack[c, 1]):
            slack[c, 0], slack[c, 1] = a, b
            search.way[c] = last
        if slack[c, 0] < least or (slack[c, 0] == least and slack[c, 1] < fewest):
            near, least, fewest = c, slack[c, 0], slack[c, 1]
    price[row, 0] += least
    price[row, 1] += fewest
    for c in range(len(used)):
        if used[c]:
            price[row_of[c], 0] += least
            price[row_of[c], 1] += fewest
            toll[c, 0] -= least
            toll[c, 1] -= fewest
        else:
            slack[c, 0] -= least
            slack[c, 1] -= fewest
    return near
