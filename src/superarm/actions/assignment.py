"""The assignment problem: one column for each row, such that the total gain is largest."""

from typing import NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Bools, Floats, Ints


class _AugmentingSearch(NamedTuple):
    """State of the search for augmenting paths: dual prices of rows and columns, slacks, and the current matching.

    Prices and slacks are (n, 2): the first column belongs to the gains, the second to the pulls. ``previous`` is the
    column visited before each column, ``row_of`` the row matched to each column, or -1.
    """

    row_price: Floats
    column_price: Floats
    slack: Floats
    previous: Ints
    visited: Bools
    row_of: Ints


@kernel
def solve_assignment(gain: Floats, pulls: Floats) -> Ints:
    r"""Find the column of each row in an assignment of largest total ``gain`` (n_rows, n_columns), n_rows <= n_columns.

    .. math:: \max_\sigma \sum_r gain_{r \sigma(r)}

    Of several such assignments, the one with the fewest total ``pulls`` (same shape) is returned: costs are pairs,
    compared first by gain and then by pulls, and added and subtracted componentwise. The method is shortest augmenting
    paths with dual prices, [Kuhn1955]_, in the form of [JonkerVolgenant1987]_; it takes O(n_rows² n_columns) steps.
    """
    n_rows, n_columns = gain.shape
    search = _AugmentingSearch(
        np.zeros((n_rows, 2)),
        np.zeros((n_columns, 2)),
        np.empty((n_columns, 2)),
        np.empty(n_columns, np.int64),
        np.empty(n_columns, np.bool_),
        np.full(n_columns, -1),
    )
    for row in range(n_rows):
        search.slack[:] = np.inf
        search.visited[:] = False
        last = _visit_column(gain, pulls, search, row, -1)
        while search.row_of[last] >= 0:
            last = _visit_column(gain, pulls, search, row, last)
        while last >= 0:  # the augmenting path, backwards
            before = search.previous[last]
            search.row_of[last] = row if before < 0 else search.row_of[before]
            last = before
    column_of = np.full(n_rows, -1)
    for column in range(n_columns):
        if search.row_of[column] >= 0:
            column_of[search.row_of[column]] = column
    return column_of


@kernel
def _visit_column(gain: Floats, pulls: Floats, search: _AugmentingSearch, row: int, last: int) -> int:
    """Visit column ``last``, update the prices, and return the nearest column not visited; -1 starts at ``row``."""
    row_price, column_price, slack, visited, row_of = (
        search.row_price,
        search.column_price,
        search.slack,
        search.visited,
        search.row_of,
    )
    at = row
    if last >= 0:
        visited[last] = True
        at = row_of[last]
    nearest, least, fewest = -1, np.inf, np.inf
    for c in range(len(visited)):
        if visited[c]:
            continue
        a = -gain[at, c] - row_price[at, 0] - column_price[c, 0]
        b = pulls[at, c] - row_price[at, 1] - column_price[c, 1]
        if a < slack[c, 0] or (a == slack[c, 0] and b < slack[c, 1]):
            slack[c, 0], slack[c, 1] = a, b
            search.previous[c] = last
        if slack[c, 0] < least or (slack[c, 0] == least and slack[c, 1] < fewest):
            nearest, least, fewest = c, slack[c, 0], slack[c, 1]
    row_price[row, 0] += least
    row_price[row, 1] += fewest
    for c in range(len(visited)):
        if visited[c]:
            row_price[row_of[c], 0] += least
            row_price[row_of[c], 1] += fewest
            column_price[c, 0] -= least
            column_price[c, 1] -= fewest
        else:
            slack[c, 0] -= least
            slack[c, 1] -= fewest
    return nearest
