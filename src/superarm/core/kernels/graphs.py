"""Heaviest assignments and paths, with ties by the fewest pulls in total."""

# mypy: ignore-errors
import math

import numpy as np

from superarm.core.kernels.numeric import apart, kernel


@kernel
def assignment(gain, pulls, column_of):
    """The column of each row in an assignment of largest total ``gain`` (R, n, m), n <= m; of several, fewest pulls."""
    R, n, m = gain.shape
    row_price, column_price, slack = np.empty((n, 2)), np.empty((m, 2)), np.empty((m, 2))
    previous, visited, row_of = np.empty(m, np.int64), np.empty(m, np.bool_), np.empty(m, np.int64)
    for r in range(R):
        row_price[:], column_price[:], row_of[:] = 0.0, 0.0, -1
        for row in range(n):
            slack[:], visited[:], previous[:] = math.inf, False, -1
            last = visit_column(gain[r], pulls[r], row_price, column_price, slack, previous, visited, row_of, row, -1)
            while row_of[last] >= 0:
                last = visit_column(
                    gain[r], pulls[r], row_price, column_price, slack, previous, visited, row_of, row, last
                )
            while last >= 0:  # the augmenting path, backwards
                before = previous[last]
                row_of[last] = row if before < 0 else row_of[before]
                last = before
        for column in range(m):
            if row_of[column] >= 0:
                column_of[r, row_of[column]] = column


@apart
def visit_column(gain, pulls, row_price, column_price, slack, previous, visited, row_of, row, last):
    """Visit column ``last``, update the prices, and return the nearest column not visited; -1 starts at ``row``."""
    at = row
    if last >= 0:
        visited[last] = True
        at = row_of[last]
    nearest, least, fewest = -1, math.inf, math.inf
    for c in range(len(visited)):
        if visited[c]:
            continue
        a = -gain[at, c] - row_price[at, 0] - column_price[c, 0]
        b = pulls[at, c] - row_price[at, 1] - column_price[c, 1]
        if a < slack[c, 0] or (a == slack[c, 0] and b < slack[c, 1]):
            slack[c, 0], slack[c, 1], previous[c] = a, b, last
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


@kernel
def heaviest_path(edges, sweep, n_nodes, source, target, worth, counts, usable, out):
    """The heaviest path of usable edges, in order, into ``out`` (R, K) of -1; of several, that of the fewest pulls."""
    weight, fewest, via = np.empty(n_nodes), np.empty(n_nodes), np.empty(n_nodes, np.int64)
    for r in range(worth.shape[0]):
        weight[:], fewest[:], via[:] = -math.inf, 0.0, -1
        weight[source] = 0.0
        for j in sweep:
            tail, head = edges[j, 0], edges[j, 1]
            if not usable[r, j] or weight[tail] == -math.inf:
                continue
            w, pulls = weight[tail] + worth[r, j], fewest[tail] + counts[r, j]
            if w > weight[head] or (w == weight[head] and pulls < fewest[head]):
                weight[head], fewest[head], via[head] = w, pulls, j
        size, node = 0, target
        while via[node] >= 0:
            node = edges[via[node], 0]
            size += 1
        node = target
        while via[node] >= 0:
            size -= 1
            out[r, size] = via[node]
            node = edges[via[node], 0]
