"""How strongly items vary together: against the definition, pull by pull; order, merge and undo are exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import superarm as sa
from superarm.core.moments import EVENTS, EXPECTED, JointTally
from superarm.core.support import Dense, Sparse
from superarm.core.tally import Feedback, Tally

SUMS = (*JointTally.SUMS, "mean", "deviation")
STATES = 2.0 ** np.arange(-3, 1) * [0, 1, 1, 1]

pulls = st.lists(
    st.tuples(
        st.permutations(range(4)).map(lambda arms: arms[:2]),
        st.lists(st.sampled_from(STATES.tolist()), min_size=6, max_size=6),
        st.lists(st.sampled_from([True, True, True, False]), min_size=6, max_size=6),
    ),
    max_size=20,
)


def play(tally, history, sign=1.0):
    for arms, outcome, seen in history:
        x, marks = (np.reshape(part, (1, 2, 3)) for part in (outcome, seen))
        tally.record(Feedback(1, np.array([arms]), np.where(marks, x, 0.0), marks), sign)
    return tally


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in SUMS)


def told(history):
    return play(JointTally(Dense(3, 4), 1, True), history)


def by_definition(history, arm):
    """The correlation of one arm; means and variances of items are over all pulls in which each was seen."""
    rows = [
        (x[3 * n : 3 * n + 3], seen[3 * n : 3 * n + 3]) for arms, x, seen in history for n in range(2) if arms[n] == arm
    ]
    items = [[x[i] for x, seen in rows if seen[i]] for i in range(3)]
    whole = [x for x, seen in rows if all(seen)]
    if not whole:
        return EXPECTED
    mean, variance = sum(map(np.mean, items)), [np.var(values) for values in items]
    most = sum(np.sqrt(variance)) ** 2 - sum(variance)
    if most < 1e-9:
        return EXPECTED
    seen = np.clip((np.mean([sum(x) ** 2 for x in whole]) - mean**2 - sum(variance)) / most, 0.0, 1.0)
    events = sum(sum(x) > 0 for x in whole)
    return (EVENTS * EXPECTED + events * seen) / (EVENTS + events)


@given(pulls)
def test_correlation_is_that_of_the_definition(history):
    found = told(history).correlation()[0]
    np.testing.assert_allclose(found[:4], [by_definition(history, j) for j in range(4)], atol=1e-4)


@given(pulls, pulls, st.randoms(use_true_random=False))
def test_order_merge_and_undo_are_exact(a, b, shuffler):
    both = [*a, *b]
    shuffler.shuffle(both)
    whole, merged = told(both), told(a)
    merged.add(told(b))
    assert same(whole, merged)
    assert same(play(told(both), b, -1.0), told(a))
    again = JointTally(Dense(3, 4), 1, True).from_arrays(whole.to_arrays())
    assert same(whole, again)


def test_the_correlation_of_all_arms_is_that_of_their_sums():
    """One arm whose items are the same and one whose items exclude one another, as often: none in the mean."""
    tally = JointTally(Dense(2, 2))
    for n in range(400):
        x = np.array([[[n % 2, n % 2], [n % 2, 1 - n % 2]]], float)
        tally.record(Feedback(1, np.array([[0, 1]]), x))
    first, second, both = tally.correlation()[0]
    assert first > 0.98
    assert second < 0.02
    assert both < 0.02


def test_a_sparse_support_counts_what_a_dense_one_does():
    rng = np.random.default_rng(3)
    sparse = Sparse(3, 4, np.arange(0, 13, 3), np.tile(np.arange(3), 4))
    tallies = [JointTally(support, 2, True) for support in (Dense(3, 4), sparse)]
    for t in range(60):
        arms = np.array([rng.permutation(4)[:2] for _ in range(2)])
        x, seen = rng.random((2, 2, 3)).round(2), rng.random((2, 2, 3)) < 0.9
        for tally in tallies:
            tally.record(Feedback(t, arms, x * seen, seen))
    np.testing.assert_allclose(*(tally.correlation() for tally in tallies), rtol=1e-12)
    assert (tallies[0].correlation() != EXPECTED).all()


def test_segments_share_the_correlation_of_an_arm():
    """Two segments in which an arm's items are the same: one arm, one number."""
    tally = JointTally(Dense(2, 1), 2)
    for n in range(40):
        x = np.array([[[n % 2, n % 2]], [[n % 2, n % 2]]], float)
        tally.record(Feedback(1, np.zeros((2, 1), int), x))
    one = (EVENTS * EXPECTED + 40.0) / (EVENTS + 40.0)
    np.testing.assert_allclose(tally.correlation(2), [[one, one]], atol=1e-6)


@pytest.mark.parametrize("more", [{"n_arms": 6, "n_items": 3}, {"n_arms": 6, "n_items": 4}])
def test_growth(more):
    """New arms know nothing; with new items no pull was seen whole."""
    old = told([([0, 1], [1.0] * 6, [True] * 6), ([0, 2], [0.0] * 6, [True] * 6)])
    new = old.grown(sa.Problem(reward=sa.Coverage(), actions=sa.Subsets(2), **more))
    if more["n_items"] == 3:
        assert new.correlation()[0, [0, 1, 2, 3, 6]].tolist() == old.correlation()[0].tolist()
        assert new.correlation()[0, 4:6].tolist() == [EXPECTED] * 2
    else:
        assert new.whole.shape == (1, 6)
        assert not new.whole.any()


def test_past_data_without_pulls_keep_what_is_expected():
    tally = JointTally(Dense(2, 3))
    past = Tally(Dense(2, 3))
    past.record(Feedback(1, np.array([[0]]), np.array([[[1.0, 0.0]]])))
    tally.add(past)
    assert tally.pulls.tolist() == [[1.0, 0.0, 0.0]]
    assert tally.correlation().tolist() == [[EXPECTED] * 4]


def test_what_another_policy_learnt_is_not_taken_back():
    agent = sa.Agent(sa.Problem(3, 2, sa.Coverage(), sa.Subsets(2)), sa.bc_ucb(), seed=1)
    decision = agent.ask()
    agent.tell(decision, np.ones((2, 2)))
    agent.change_policy("pooled_thompson")
    agent.tell(decision, np.zeros((2, 2)), amend=True)
    assert [agent.tally.whole.sum(), agent.tally.eventful.sum(), agent.tally.joint.sum()] == [0.0, 0.0, 0.0]
    agent.tell(agent.ask(), np.ones((2, 2)))
    assert [agent.tally.whole.sum(), agent.tally.joint.sum()] == [2.0, 8.0]
