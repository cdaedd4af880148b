"""Moments against raw outcomes: exact in any order, undone and merged exactly, and grown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from superarm.core.errors import InvalidArgument
from superarm.core.moments import Moments, MomentTally
from superarm.core.support import Dense, Sparse
from superarm.core.tally import Feedback

PARTS = Moments.PARTS


def case(seed):
    """A support, weights, and feedback to a few rounds of R replications, some of it not seen."""
    rng = np.random.default_rng(seed)
    n_arms, n_items, R = (int(n) for n in rng.integers(1, 6, 3))  # noqa: N806
    matrix = rng.random((n_arms, n_items)) < 0.6
    matrix[0, 0] = True
    support = Dense(n_items, n_arms) if rng.random() < 0.5 else Sparse.of(sparse.csr_array(matrix))
    told = []
    for t in range(1, 8):
        action = np.array([rng.permutation(n_arms)[: min(2, n_arms)] for _ in range(R)])
        action[rng.random(action.shape) < 0.2] = -1
        x = rng.choice([0.0, 1.0, 0.3, rng.random()], (*action.shape, support.widest))
        told.append(Feedback(t, action, x, rng.random(x.shape) < 0.8 if rng.random() < 0.5 else None))
    return support, rng.choice([0.0, 0.7, 1.3], n_items), R, told, rng


def recorded(support, weights, R, told, signs=None):  # noqa: N803
    tally = MomentTally(support, Moments(support, weights, R, products=True))
    for feedback, sign in zip(told, signs or [1.0] * len(told), strict=True):
        tally.record(feedback, sign)
    return tally


def assert_equal(a, b):
    for name in PARTS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)


@given(st.integers(0, 2**32 - 1))
def test_order_undo_merge_and_refresh_are_exact(seed):
    support, weights, R, told, rng = case(seed)  # noqa: N806
    tally = recorded(support, weights, R, told)
    backwards = recorded(support, weights, R, told[::-1])
    assert_equal(tally.moments, backwards.moments)
    undone = recorded(support, weights, R, [*told, *told[3:]], [1.0] * len(told) + [-1.0] * len(told[3:]))
    assert_equal(undone.moments, recorded(support, weights, R, told[:3]).moments)
    cut = int(rng.integers(0, len(told)))
    merged, rest = (recorded(support, weights, R, part) for part in (told[:cut], told[cut:]))
    merged.add(rest)
    assert_equal(merged.moments, tally.moments)
    merged.add(rest, -1.0)
    assert_equal(merged.moments, recorded(support, weights, R, told[:cut]).moments)
    tally.moments.refresh()
    assert_equal(tally.moments, backwards.moments)
    assert_equal(tally.like().moments, Moments(support, weights, R, products=True))


@given(st.integers(0, 2**32 - 1))
def test_moments_are_those_of_the_complete_observations(seed):
    support, weights, R, told, _ = case(seed)  # noqa: N806
    moments = recorded(support, weights, R, told).moments
    items = np.arange(support.n_items)
    for r in range(R):
        for j in range(support.n_arms):
            own = items if isinstance(support, Dense) else support.items[support.start[j] : support.start[j + 1]]
            rows = [
                feedback.outcome[r, k, : len(own)]
                for feedback in told
                for k in np.flatnonzero(feedback.action[r] == j)
                if feedback.seen is None or feedback.seen[r, k, : len(own)].all()
            ]
            assert moments.pulls[r, j] == len(rows)
            if not rows or not len(own):
                continue
            x, u = np.round(np.array(rows) * 2**24) / 2**24, weights[own]
            part = (r, slice(None), j) if isinstance(support, Dense) else (r, slice(*support.start[j : j + 2]))
            np.testing.assert_allclose(moments.mean[part], x.mean(0), atol=1e-12)
            np.testing.assert_allclose(moments.deviation[part] ** 2, x.var(0), atol=1e-7)  # squares are rounded
            np.testing.assert_allclose(moments.spread[r, j] ** 2, (x @ u).var(), atol=3e-7 * (1.0 + u.sum() ** 2))
            assert (moments.top[part] >= x.max(0) - 1e-12).all()
            assert moments.peak[r, j] >= (x @ u).max() - 1e-6
            pairs = [np.cov(x[:, a], x[:, b], bias=True)[0, 1] for a in range(len(own)) for b in range(a)]
            np.testing.assert_allclose(moments.covariance[r, j, : len(pairs)], pairs, atol=1e-7)


@given(st.integers(0, 2**32 - 1))
def test_a_grown_support_has_the_same_moments_and_room_for_more(seed):
    support, weights, R, told, rng = case(seed)  # noqa: N806
    more = Dense(support.n_items, support.n_arms + 2)
    if isinstance(support, Sparse):
        start = np.append(support.start, support.start[-1] + support.n_items * np.arange(1, 3))
        items = np.append(support.items, np.tile(np.arange(support.n_items), 2))
        more = Sparse(support.n_items, support.n_arms + 2, start, items)
    grown = recorded(support, weights, R, told).moments.grown(more)

    def widened(feedback):
        room = ((0, 0), (0, 0), (0, more.widest - support.widest))
        seen = None if feedback.seen is None else np.pad(feedback.seen, room)
        return Feedback(feedback.t, feedback.action, np.pad(feedback.outcome, room), seen)

    assert_equal(grown, recorded(more, weights, R, [widened(feedback) for feedback in told]).moments)
    grown.record(Feedback(9, np.full((R, 1), support.n_arms + 1), rng.random((R, 1, more.widest))))
    assert (grown.pulls[:, -1] == 1.0).all()


@given(st.integers(0, 2**32 - 1))
def test_discounted_observations_keep_their_mean_and_bounds_hold(seed):
    support, weights, R, told, _ = case(seed)  # noqa: N806
    whole = recorded(support, weights, R, told).moments
    half = recorded(support, weights, R, told, [0.25] * len(told)).moments
    np.testing.assert_allclose(half.mean, whole.mean, atol=1e-7)
    np.testing.assert_allclose(half.spread, whole.spread, atol=1e-3)
    np.testing.assert_array_equal(half.peak, whole.peak)
    assert (half.top >= np.minimum(whole.top, 1.0) - 1e-3).all()


def test_moments_of_other_weights_are_not_merged():
    support = Dense(2, 2)
    with pytest.raises(InvalidArgument, match="other weights"):
        Moments(support, np.ones(2)).add(Moments(support, np.array([1.0, 2.0])))
