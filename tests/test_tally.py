"""The tally against the definitions of N, mean and variance; order, merge and undo are exact."""

import itertools

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import superarm as sa
from superarm.core.support import Dense, Sparse
from superarm.core.tally import GRID, Feedback, Tally

PROBLEM = sa.Problem(3, 2, sa.Linear(), sa.Subsets(2))
PARTS = (*Tally.SUMS, "mean", "deviation")

outcomes = st.floats(0.0, 1.0)
rounds = st.lists(
    st.tuples(
        st.permutations(range(3)).map(lambda arms: arms[:2]),
        st.lists(outcomes, min_size=4, max_size=4),
        st.lists(st.booleans(), min_size=4, max_size=4),
    ),
    max_size=12,
)


def play(tally, history, sign=1.0):
    for t, (action, outcome, seen) in enumerate(history, start=1):
        x, marks = (np.reshape(part, (1, 2, 2)) for part in (outcome, seen))
        tally.record(Feedback(t, np.array([action]), x, marks), sign)
    return tally


def partial(history):
    return play(Tally(PROBLEM.support, 1, True), history)


def merged(*tallies):
    whole = Tally(PROBLEM.support, 1)
    for tally in tallies:
        whole.add(tally)
    return whole


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in PARTS)


def flat(values):
    """Entries in the order of users: arm after arm."""
    return values[0].T.reshape(-1).tolist()


def test_by_hand():
    # Arm 1 answered 1, 0.5 and 0 on item 0: sum 1.5, sum of squares 1.25, variance 1.25/3 - 0.25 = 1/6.
    tally = PROBLEM.past([1, 1, 1], [[1, 0], [0.5, 0], [0, 1]])
    assert tally.pulls.tolist() == [[0, 3, 0]]
    assert flat(tally.total) == [0, 0, 1.5, 1, 0, 0]
    assert flat(tally.square) == [0, 0, 1.25, 1, 0, 0]
    assert not tally.partial
    assert flat(tally.mean) == pytest.approx([0, 0, 1 / 2, 1 / 3, 0, 0], rel=1e-15)
    assert flat(tally.deviation**2) == pytest.approx([0, 0, 1 / 6, 2 / 9, 0, 0], rel=1e-14)
    mean, variance = tally.known_estimates()
    assert np.isnan(mean[0, :, [0, 2]]).all()
    assert np.isnan(variance[0, :, [0, 2]]).all()


def test_an_arm_of_which_nothing_was_seen_was_not_observed():
    history = [([1, 2], [1.0, 0.5, 1.0, 1.0], [False, True, False, False])]
    tally = partial(history)
    assert tally.pulls.tolist() == [[0, 1, 0]]
    assert flat(tally.missed) == [0, 0, 1, 0, 0, 0]
    assert flat(tally.total) == [0, 0, 0, 0.5, 0, 0]
    assert same(play(tally, history, -1.0), partial([]))


@given(rounds)
def test_estimates_are_the_definitions(history):
    tally = partial(history)
    seen = tally.counts(tally.pulls)
    for j, i in itertools.product(range(3), range(2)):
        x = [o[2 * a.index(j) + i] for a, o, s in history if j in a and s[2 * a.index(j) + i]]
        n, m, v = naive.statistics(x)
        assert seen[0, i, j] == n
        # Outcomes and squares are rounded to 2^-24 = 6e-8 each.
        assert tally.mean[0, i, j] == pytest.approx(m, abs=3.1e-8)
        assert tally.deviation[0, i, j] ** 2 == pytest.approx(v, abs=2e-7)


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_the_variance_of_binary_outcomes_is_p_times_1_minus_p(hits):
    tally = sa.Problem(1, 1, sa.Linear(), sa.Subsets(1)).past([0] * len(hits), [[float(hit)] for hit in hits])
    mean = sum(hits) / len(hits)
    assert tally.mean.item() == mean
    assert tally.deviation.item() ** 2 == pytest.approx(mean * (1.0 - mean), rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("value", [1 / 3, 0.1, 1 - 2**-24, 1e-5])
def test_the_variance_of_a_constant_is_clamped_at_zero(value):
    tally = sa.Problem(1, 1, sa.Linear(), sa.Subsets(1)).past([0] * 7, [[value]] * 7)
    assert 0.0 <= tally.deviation.item() ** 2 < 1e-7


@given(rounds, st.randoms(use_true_random=False))
def test_the_order_of_observations_does_not_matter(history, shuffler):
    shuffled = list(history)
    shuffler.shuffle(shuffled)
    assert same(partial(history), partial(shuffled))


@given(rounds, rounds, rounds)
def test_merge_is_exact_commutative_and_associative(a, b, c):
    together = partial(a + b + c)
    parts = [partial(history) for history in (a, b, c)]
    for x, y, z in itertools.permutations(parts):
        assert same(merged(merged(x, y), z), together)
        assert same(merged(x, merged(y, z)), together)


@given(rounds, rounds)
def test_undo_leaves_no_trace(before, slip):
    tally = play(partial(before), slip)
    assert same(play(tally, slip[::-1], -1.0), partial(before))


def test_merging_full_with_partial_feedback_keeps_both():
    full = play(Tally(PROBLEM.support), [([0, 1], [1, 0, 1, 1], [True] * 4)])
    some = partial([([1, 2], [1, 1, 1, 1], [True, False, True, True])])
    for both in (merged(full, some), merged(some, full)):
        assert both.pulls.tolist() == [[1, 2, 1]]
        assert flat(both.total) == [1, 0, 2, 1, 1, 1]
        assert flat(both.missed) == [0, 0, 0, 1, 0, 0]
    assert not full.partial


def test_unseen_is_not_zero():
    tally = partial([([0, 1], [0.5, 0.5, 0.5, 0.5], [True, False, True, True])] * 4)
    assert tally.mean[0, :, 0].tolist() == [0.5, 0.0]  # nothing was seen of (0, 1): no estimate
    assert tally.unknown()[0].T.tolist() == [[False, True], [False, False], [True, True]]


def test_sums_are_exact_to_the_last_of_many_observations():
    # 2^29 - 1 observations of the smallest step: float64 holds the sum of 2^-24 exactly, and the next one counts.
    tally = sa.Problem(1, 1, sa.Linear(), sa.Subsets(1)).prior([[1.0]], 2**29 - 1)
    tally.record(Feedback(1, np.array([[0]]), np.array([[[1.0 / GRID]]])))
    assert tally.total.item() - (2**29 - 1) == 1.0 / GRID


def test_replications_are_taken_put_back_and_grown():
    rng, support = np.random.default_rng(0), PROBLEM.support
    tally = Tally(support, 4, True)
    x = rng.random((4, 2, 2))
    tally.record(Feedback(1, np.array([[0, 1], [2, -1], [1, 2], [0, 2]]), x, rng.random(x.shape) < 0.7))
    part = tally.take(np.array([1, 3]))
    np.testing.assert_array_equal(part.total, tally.total[[1, 3]])
    empty = Tally(Sparse(2, 3, np.zeros(4, int), np.zeros(0, int)), 4)  # a support without an entry
    assert empty.take(np.array([1])).total.shape == (1, 0)
    other = Tally(support, 4, True)
    other.put(np.array([1, 3]), part)
    np.testing.assert_array_equal(other.pulls[[1, 3]], tally.pulls[[1, 3]])
    assert not other.pulls[[0, 2]].any()
    grown = tally.grown(PROBLEM.changed(n_arms=5, support=None))
    np.testing.assert_array_equal(grown.mean[..., :3], tally.mean)
    assert not grown.pulls[:, 3:].any()


def test_prior():
    tally = PROBLEM.prior([[0.5, 0.25]] * 3, 8)
    assert tally.pulls.tolist() == [[8] * 3]
    assert flat(tally.total) == flat(tally.square) == [4, 2] * 3  # binary: x = x^2
    assert flat(tally.mean) == [0.5, 0.25] * 3
    assert flat(tally.deviation**2) == pytest.approx([0.25, 0.1875] * 3, rel=1e-15)


def test_past_data_may_hold_anything_where_nothing_was_seen():
    tally = PROBLEM.past([2], [[np.nan, 0.5]], [[False, True]])
    assert flat(tally.total) == [0, 0, 0, 0, 0, 0.5]
    assert flat(tally.missed) == [0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        (([0, 1], [[1, 0]]), "outcomes"),
        (([0], [[1, 0]], [[True, True], [True, True]]), "seen"),
        (([0], [[1, 0]], [[True]]), "seen"),
        (([0], [[1, 0, 1]]), "outcomes"),
        (([0], [[1, 2]]), "outcomes"),
        (([0], [[1, np.nan]]), "outcomes"),
        (([3], [[1, 0]]), "arms"),
        ((["first"], [[1, 0]]), "arms"),
    ],
)
def test_bad_past_data_is_named(given, argument):
    with pytest.raises(sa.InvalidArgument) as told:
        PROBLEM.past(*given)
    assert told.value.argument == argument


@pytest.mark.parametrize("strength", [0, -1, 1.5, float("nan"), float("inf"), 2**29, "8", None])
def test_bad_strength_is_named(strength):
    with pytest.raises(sa.InvalidArgument, match="strength"):
        PROBLEM.prior(np.full((3, 2), 0.5), strength)


def test_what_does_not_fit_is_refused():
    with pytest.raises(sa.InvalidArgument, match="mean"):
        PROBLEM.prior([[0.5, 0.5]], 4)
    with pytest.raises(sa.InvalidArgument, match="another support"):
        Tally(Dense(2, 3)).add(Tally(Dense(3, 2)))
