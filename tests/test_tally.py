"""The tally against the definitions of N, mean and variance; merge and undo are exact."""

import itertools

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superarm.core.errors import InvalidArgument
from superarm.intake import Exact
from superarm.past_data import from_data, from_prior
from superarm.core.streams import new_stream
from superarm.core.support import Dense
from superarm.core.tally import Feedback, allow_missing, empty, estimates, merge, record

HERE = Dense(3, 2)
UNUSED = new_stream(np.random.SeedSequence(0))

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
        told = Feedback(t, np.array(action), np.array(outcome), np.array(seen))
        record(tally, HERE, told, Exact(), UNUSED, sign)
    return tally


def partial(history):
    return play(allow_missing(empty(HERE)), history)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_by_hand():
    # Arm 1 answered 1, 0.5 and 0 on item 0: sum 1.5, sum of squares 1.25, variance 1.25/3 - 0.25 = 1/6.
    tally = from_data(HERE, [1, 1, 1], [[1, 0], [0.5, 0], [0, 1]])
    assert tally.pulls.tolist() == [0, 3, 0]
    assert tally.total.tolist() == [0, 0, 1.5, 1, 0, 0]
    assert tally.square.tolist() == [0, 0, 1.25, 1, 0, 0]
    assert tally.missed.size == 0
    mean, variance = estimates(tally, HERE)
    assert mean.tolist() == pytest.approx([0, 0, 1 / 2, 1 / 3, 0, 0], rel=1e-15)
    assert variance.tolist() == pytest.approx([0, 0, 1 / 6, 2 / 9, 0, 0], rel=1e-14)


def test_an_arm_of_which_nothing_was_seen_was_not_observed():
    told = Feedback(1, np.array([1, 2]), np.array([1.0, 0.5, 1.0, 1.0]), np.array([False, True, False, False]))
    tally = allow_missing(empty(HERE))
    record(tally, HERE, told, Exact(), UNUSED, 1.0)
    assert tally.pulls.tolist() == [0, 1, 0]
    assert tally.missed.tolist() == [0, 0, 1, 0, 0, 0]
    assert tally.total.tolist() == [0, 0, 0, 0.5, 0, 0]
    record(tally, HERE, told, Exact(), UNUSED, -1.0)
    assert same(tally, allow_missing(empty(HERE)))


def test_joint_by_hand():
    # Of arm 1 two pulls were seen whole, with averages 0.75 and 0: sum 0.75, sum of squares 0.5625.
    seen = [[True, True], [True, True], [True, False]]
    tally = from_data(HERE, [1, 1, 1], [[1, 0.5], [0, 0], [1, 1]], seen)
    assert tally.joint.tolist() == [0, 0, 0, 2, 0.75, 0.5625, 0, 0, 0]
    assert merge(tally, from_prior(HERE, np.full((3, 2), 0.5), 4)).joint.tolist() == tally.joint.tolist()
    assert merge(tally._replace(joint=np.zeros(0)), tally).joint.tolist() == tally.joint.tolist()


@given(rounds)
def test_estimates_are_the_definitions(history):
    tally = partial(history)
    mean, variance = estimates(tally, HERE)
    for j, i in itertools.product(range(3), range(2)):
        x = [o[2 * a.index(j) + i] for a, o, s in history if j in a and s[2 * a.index(j) + i]]
        n, m, v = naive.statistics(x)
        assert tally.pulls[j] - tally.missed[2 * j + i] == n
        # Outcomes and squares are rounded to 2^-24 = 6e-8 each.
        assert mean[2 * j + i] == pytest.approx(m, abs=3.1e-8)
        assert variance[2 * j + i] == pytest.approx(v, abs=2e-7)
        assert variance[2 * j + i] >= 0.0


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_the_variance_of_binary_outcomes_is_p_times_1_minus_p(hits):
    tally = from_data(Dense(1, 1), [0] * len(hits), [[float(hit)] for hit in hits])
    mean, variance = (x[0] for x in estimates(tally, Dense(1, 1)))
    assert mean == sum(hits) / len(hits)
    assert variance == pytest.approx(mean * (1.0 - mean), rel=1e-14, abs=1e-16)


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0, 0.5])), min_size=1, max_size=40))
def test_estimates_do_not_depend_on_whether_all_outcomes_are_binary(pairs):
    seen = [from_data(Dense(1, n), [0] * len(pairs), [pair[:n] for pair in pairs]) for n in (1, 2)]
    (mean, variance), (means, variances) = (
        estimates(tally, Dense(1, n)) for tally, n in zip(seen, (1, 2), strict=True)
    )
    assert (mean[0], variance[0]) == (means[0], variances[0])


@pytest.mark.parametrize("value", [1 / 3, 0.1, 1 - 2**-24, 1e-5])
def test_the_variance_of_a_constant_is_clamped_at_zero(value):
    tally = from_data(Dense(1, 1), [0] * 7, [[value]] * 7)
    assert 0.0 <= estimates(tally, Dense(1, 1))[1][0] < 1e-7


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
        assert same(merge(merge(x, y), z), together)
        assert same(merge(x, merge(y, z)), together)


@given(rounds, rounds)
def test_undo_leaves_no_trace(before, slip):
    tally = partial(before)
    play(tally, slip)
    play(tally, slip[::-1], sign=-1.0)
    assert same(tally, partial(before))


def test_merging_full_with_partial_feedback_keeps_both():
    full = play(empty(HERE), [([0, 1], [1, 0, 1, 1], [True] * 4)])
    some = partial([([1, 2], [1, 1, 1, 1], [True, False, True, True])])
    for both in (merge(full, some), merge(some, full)):
        assert both.pulls.tolist() == [1, 2, 1]
        assert both.total.tolist() == [1, 0, 2, 1, 1, 1]
        assert both.missed.tolist() == [0, 0, 0, 1, 0, 0]
    assert full.missed.size == 0


def test_unseen_is_not_zero():
    tally = partial([([0, 1], [0.5, 0.5, 0.5, 0.5], [True, False, True, True])] * 4)
    mean, _ = estimates(tally, HERE)
    assert mean[:2].tolist() == [0.5, 0.0]  # nothing was seen of (0, 1): no estimate
    assert tally.missed[1] == tally.pulls[0] == 4


def test_a_tally_without_room_takes_everything_as_seen():
    tally = play(empty(HERE), [([0, 1], [1, 1, 1, 1], [False] * 4)])
    assert tally.total.tolist() == [1, 1, 1, 1, 0, 0]


def test_sums_are_exact_to_the_last_of_many_observations():
    # 2^29 - 1 observations of the smallest step: float64 holds the sum of 2^-24 exactly, and the next one counts.
    tally = from_prior(Dense(1, 1), [[1.0]], 2**29 - 1)
    record(tally, Dense(1, 1), Feedback(1, np.array([0]), np.array([2.0**-24]), np.ones(1, bool)), Exact(), UNUSED, 1.0)
    assert tally.total[0] - (2**29 - 1) == 2.0**-24


def test_prior():
    tally = from_prior(HERE, [[0.5, 0.25]] * 3, 8)
    assert tally.pulls.tolist() == [8] * 3
    assert tally.total.tolist() == tally.square.tolist() == [4, 2] * 3  # binary: x = x^2
    mean, variance = estimates(tally, HERE)
    assert mean.tolist() == [0.5, 0.25] * 3
    assert variance.tolist() == pytest.approx([0.25, 0.1875] * 3, rel=1e-15)


def test_past_data_may_hold_anything_where_nothing_was_seen():
    tally = from_data(HERE, [2], [[np.nan, 0.5]], [[False, True]])
    assert tally.total.tolist() == [0, 0, 0, 0, 0, 0.5]
    assert tally.missed.tolist() == [0, 0, 0, 0, 1, 0]


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
    with pytest.raises(InvalidArgument) as told:
        from_data(HERE, *given)
    assert told.value.argument == argument


@pytest.mark.parametrize("strength", [0, -1, 1.5, float("nan"), float("inf"), 2**29, "8", None])
def test_bad_strength_is_named(strength):
    with pytest.raises(InvalidArgument, match="strength"):
        from_prior(HERE, np.full((3, 2), 0.5), strength)


def test_a_prior_of_another_shape_is_named():
    with pytest.raises(InvalidArgument, match="mean: 2 values; the problem has 6 entries"):
        from_prior(HERE, [[0.5, 0.5]], 4)
