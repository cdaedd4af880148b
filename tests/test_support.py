"""Where entries lie: dense and sparse supports against arrays with holes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense, Sparse

masks = arrays(bool, st.tuples(st.integers(1, 6), st.integers(1, 6)))


def places(support):
    """(arm, item) of every entry, in the order of the entries."""
    if isinstance(support, Dense):
        return [(j, i) for i in range(support.n_items) for j in range(support.n_arms)]
    return list(zip(support.arm_of.tolist(), support.items.tolist(), strict=True))


@given(masks, st.sampled_from(["csr", "csc", "coo", "lil"]))
def test_sparse_has_the_stored_entries_row_after_row(mask, layout):
    support = Sparse.of(sparse.csr_array(mask).asformat(layout))
    assert (support.n_arms, support.n_items, support.size) == (*mask.shape, mask.sum())
    assert places(support) == [tuple(place) for place in np.argwhere(mask).tolist()]
    assert support.widest == mask.sum(1).max(initial=0)


def test_stored_zeros_belong_to_the_support_and_order_and_duplicates_do_not_matter():
    values, columns, starts = [0.0, 1.0, 1.0, 1.0], [2, 0, 1, 1], [0, 2, 4]
    support = Sparse.of(sparse.csr_array((values, columns, starts), shape=(2, 3)))
    assert places(support) == [(0, 0), (0, 2), (1, 1)]


@given(masks, st.booleans(), st.integers(0, 2**32 - 1))
def test_both_supports_do_what_is_done_to_arrays_with_holes(mask, dense, seed):
    """Sums, broadcasting, rows and joins of two replications, against (R, n_arms, n_items) with 0 outside."""
    rng = np.random.default_rng(seed)
    mask = np.ones_like(mask) if dense else mask
    n_arms, n_items = mask.shape
    support = Dense(n_items, n_arms) if dense else Sparse.of(sparse.csr_array(mask))
    full = np.where(mask, rng.integers(0, 99, (2, n_arms, n_items)).astype(float), 0.0)
    entries = np.stack([full[r].T if dense else full[r][mask] for r in range(2)])
    assert entries.shape == support.shape(2)
    np.testing.assert_array_equal(support.sum_items(entries), full.sum(2))
    np.testing.assert_array_equal(support.sum_arms(entries), full.sum(1))
    of_arm, of_item = rng.random((2, n_arms)), rng.random((2, n_items))
    for found, wanted in (
        (support.by_arm(of_arm), np.broadcast_to(of_arm[:, :, None], full.shape)),
        (support.by_item(of_item), np.broadcast_to(of_item[:, None, :], full.shape)),
    ):
        expected = np.stack([wanted[r].T if dense else wanted[r][mask] for r in range(2)])
        np.testing.assert_array_equal(np.broadcast_to(found, entries.shape), expected)
    action = np.array([rng.permutation(n_arms)[: min(2, n_arms)] for _ in range(2)])
    rows = support.rows(entries, action)
    np.testing.assert_array_equal(support.rows_to_items(rows, action), np.take_along_axis(full, action[:, :, None], 1))
    states, arm = np.zeros((2, n_items)), np.array([n_arms - 1, -1])
    support.join(states, entries, arm, lambda state, q: state + q)
    np.testing.assert_array_equal(states, [full[0, -1], np.zeros(n_items)])
    user = support.to_user(entries[0])
    np.testing.assert_array_equal(user, full[0] if dense else full[0][mask])
    np.testing.assert_array_equal(support.to_entries(user)[0], entries[0])


def test_what_is_not_sparse_is_refused():
    with pytest.raises(InvalidArgument, match="support: ndarray is not sparse; give a SciPy sparse matrix"):
        Sparse.of(np.eye(2))
    with pytest.raises(InvalidArgument, match="give the whole support"):
        Sparse.of(sparse.csr_array(np.eye(2))).grown(1)
    assert Dense(2, 3).grown(2) == Dense(2, 5)
