"""Where entries lie: spans tile the entries, items are those of the matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense, Sparse, item, length, rows, size, span

masks = arrays(bool, st.tuples(st.integers(1, 6), st.integers(1, 6)))


def entries(support):
    """All (arm, item), in the order of the entries, after checking that the spans tile them."""
    found, at = [], 0
    for j in range(support.n_arms):
        first, last = span(support, j)
        assert first == at <= last
        found += [(j, item(support, first, o)) for o in range(last - first)]
        at = last
    assert at == size(support)
    return found


@given(st.integers(1, 6), st.integers(1, 6))
def test_dense_has_every_entry_row_after_row(n_arms, n_items):
    assert entries(Dense(n_arms, n_items)) == [(j, i) for j in range(n_arms) for i in range(n_items)]


@given(masks, st.sampled_from(["csr", "csc", "coo", "lil"]))
def test_sparse_has_the_stored_entries_row_after_row(mask, layout):
    support = Sparse(sparse.csr_array(mask).asformat(layout))
    assert (support.n_arms, support.n_items) == mask.shape
    assert entries(support) == [tuple(place) for place in np.argwhere(mask).tolist()]


def test_stored_zeros_belong_to_the_support_and_order_and_duplicates_do_not_matter():
    values, columns, starts = [0.0, 1.0, 1.0, 1.0], [2, 0, 1, 1], [0, 2, 4]
    support = Sparse(sparse.csr_array((values, columns, starts), shape=(2, 3)))
    assert entries(support) == [(0, 0), (0, 2), (1, 1)]


@given(masks, st.data())
def test_rows_and_length_follow_the_action(mask, data):
    support = Sparse(sparse.csr_array(mask))
    action = np.array(data.draw(st.permutations(range(len(mask)))), np.int64)
    values = np.arange(float(size(support)))
    ids = np.full(mask.shape, -1.0)
    ids[mask] = values  # C order: row after row
    wanted = np.concatenate([ids[j][mask[j]] for j in action])
    assert rows(support, values, action).tolist() == wanted.tolist()
    assert length(support, action) == mask.sum()


def test_what_is_not_sparse_is_refused():
    with pytest.raises(InvalidArgument, match="support: ndarray is not sparse; give a SciPy sparse matrix"):
        Sparse(np.eye(2))
