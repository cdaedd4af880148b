"""Every action set, on random small ones, against brute force and against the compiled engine."""

import itertools

import numpy as np
import pytest

from superarm import actions as old_actions
from superarm.core.errors import InvalidArgument
from superarm.actions import (
    Actions,
    Explicit,
    Knapsack,
    Laminar,
    Matching,
    PartitionMatroid,
    Paths,
    Pinned,
    Slots,
    SpanningTrees,
    Subsets,
)
from superarm.actions.base import add_arms, joinable_after, take_rows, total_worth
from superarm.core.problem import Problem
from superarm.rewards import Linear
from tests.action_sets import ALL, KINDS, playable, random_set
from tests.next.both import arms, candidates, modern, random_view


class NoNeighbours(Actions):
    """An action set of a user's own, whose ``join`` does something for -1."""

    k: int

    def capacity(self, n_arms):
        return self.k

    def start(self, eligible):
        return eligible.copy()

    def joinable(self, free, eligible):
        return free

    def join(self, free, arm):
        return free & (np.abs(np.arange(free.shape[1]) - arm[:, None]) > 1)


def draws(kind, n_draws=6, seed=0):
    """Random action sets of both engines, the number of arms, and a generator."""
    for n in range(n_draws):
        rng = np.random.default_rng([seed, n, len(kind)])
        theirs, n_arms = random_set(kind, rng)
        yield theirs, modern(theirs), n_arms, rng


def plain_problem(actions, n_arms):
    return Problem(n_arms, 1, Linear(), actions)


def contains(batch, arms):
    return set(arms) <= set(batch)


@pytest.mark.parametrize("kind", ALL)
def test_batches_counts_and_membership_are_those_of_the_compiled_engine(kind):
    for theirs, ours, n, _ in draws(kind):
        ours.validate(n)
        assert ours.capacity(n) == old_actions.capacity(theirs, n)
        assert list(ours.batches(n)) == list(theirs.batches(n))
        assert len(list(ours.batches(n))) <= ours.n_batches(n) == theirs.n_batches(n)
        sets = itertools.chain(*(itertools.combinations(range(n), size) for size in range(n + 1)))
        assert all(ours.includes(np.array(s, int), n) == theirs.includes(np.array(s, int)) for s in sets)
        traits = old_actions.traits
        assert (ours.matroid, ours.tractable) == (theirs.matroid, traits.tractable(theirs))
        assert (ours.exchange, ours.budgeted) == (traits.exchange(theirs), traits.budgeted(theirs))
        assert ours == modern(theirs)
        assert hash(ours) == hash(modern(theirs))


@pytest.mark.parametrize("kind", KINDS)
def test_an_arm_may_join_if_some_playable_batch_has_it_and_the_arms_before_it(kind):
    for _, ours, n, rng in draws(kind, 12):
        view = random_view(plain_problem(ours, n), rng)
        known = playable(ModernIncludes(ours, n), n, view.eligible[0])
        chosen = []
        while True:
            free = joinable_after(ours, np.array([chosen], np.int64).reshape(1, -1), view.eligible)[0]
            true = [j for j in range(n) if j not in chosen and any(contains(b, [*chosen, j]) for b in known)]
            assert np.flatnonzero(free).tolist() == true
            if not true:
                break
            chosen.append(int(rng.choice(true)))
        assert not known or tuple(sorted(chosen)) in known


class ModernIncludes:
    """The action set as ``playable`` asks it."""

    def __init__(self, actions, n_arms):
        self.includes = lambda action: actions.includes(action, n_arms)


@pytest.mark.parametrize("kind", ALL)
def test_the_heaviest_batch_is_playable_and_heaviest_and_below_the_ceiling(kind):
    for theirs, ours, n, rng in draws(kind, 12):
        view = random_view(plain_problem(ours, n), rng, rows=3)
        worth = rng.choice([rng.random((3, n)), rng.integers(0, 2, (3, n)).astype(float)])
        heaviest, ceiling = ours.heaviest(worth, view), ours.ceiling(worth, view)
        sampled = ours.sample(view, rng.random((3, n)))
        for r in range(3):
            known = playable(ModernIncludes(ours, n), n, view.eligible[r])
            batch = arms(heaviest[r])
            for found in (batch, arms(sampled[r])):
                assert tuple(sorted(found)) in known if known else not found
                assert found[: len(ours.pins)] == list(ours.pins)[: len(found)]
            if not known:
                continue
            most, total = max(worth[r, list(b)].sum() for b in known), worth[r, batch].sum()
            assert total >= (1.0 if ours.tractable else 0.5) * most - 1e-12
            assert ceiling[r] >= most - 1e-12
            if not kind.startswith("pinned"):
                same = old_actions.heaviest(theirs, worth[r], candidates(view, r))
                assert worth[r, same].sum() == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_ties_go_as_in_the_compiled_engine(kind):
    for theirs, ours, n, rng in draws(kind, 12):
        view = random_view(plain_problem(ours, n), rng, rows=2, distinct=True)
        worth = rng.integers(0, 3, (2, n)) / 2.0
        found = ours.heaviest(worth, view)
        for r in range(2):
            assert arms(found[r]) == old_actions.heaviest(theirs, worth[r], candidates(view, r)).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_replications_do_not_see_each_other(kind):
    for _, ours, n, rng in draws(kind):
        problem = plain_problem(ours, n)
        view, gains = random_view(problem, rng, rows=4), rng.random((4, n))
        for many in (type(ours).heaviest, type(ours).ceiling, sample, greedy):
            together = many(ours, gains, view)
            for r in range(4):
                np.testing.assert_array_equal(together[[r]], many(ours, gains[[r]], take_rows(view, [r])))


def sample(actions, numbers, view):
    return actions.sample(view, numbers)


def greedy(actions, worth, view):
    return add_arms(actions, view, lambda: worth, lambda arm: None)


@pytest.mark.parametrize("kind", KINDS)
def test_pins_of_a_round_are_as_a_pinned_set(kind):
    for _, ours, n, rng in draws(kind):
        batch = next(ours.batches(n))
        pinned = Pinned(ours, batch[:1])
        view = random_view(plain_problem(pinned, n), rng, rows=3)
        worth = rng.random((3, n))
        for found in (ours.heaviest(worth, view), ours.sample(view, worth), greedy(ours, worth, view)):
            for r in range(3):
                known = playable(ModernIncludes(pinned, n), n, view.eligible[r])
                assert tuple(sorted(arms(found[r]))) in known if known else (found[r] < 0).all()


def test_all_listed_batches_are_drawn_equally_often():
    actions, rng = Explicit([[0, 1], [2], [0, 2]]), np.random.default_rng(0)
    view = random_view(plain_problem(actions, 3), rng, rows=3000, share=(1.0,))
    table, counts = np.unique(actions.sample(view, rng.random((3000, 3))), axis=0, return_counts=True)
    assert len(table) == 3
    assert np.abs(counts - 1000).max() < 130  # five standard deviations: false alarms 2e-6


def test_an_action_set_of_ones_own():
    actions = NoNeighbours(2)
    assert list(actions.batches(5)) == [(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4)]
    assert actions.includes(np.array([3, 0]), 5)
    assert not actions.includes(np.array([3, 2]), 5)
    rest = joinable_after(actions, np.array([[2, -1], [0, 2]]), np.ones((2, 5), bool))
    assert rest.tolist() == [[True, False, False, False, True], [False] * 5]


def test_total_worth_of_nothing_is_zero():
    assert total_worth(np.ones((2, 3)), np.array([[0, -1], [-1, -1]])).tolist() == [1.0, 0.0]


def test_a_matching_and_paths_of_moderate_size():
    rng = np.random.default_rng(1)
    pairs = [(a, b) for a in range(12) for b in range(9)]
    matching, worth = Matching(12, 9, pairs), rng.random((2, len(pairs)))
    view = random_view(plain_problem(matching, len(pairs)), rng, rows=2, share=(1.0,))
    from scipy.optimize import linear_sum_assignment

    for r, total in enumerate(total_worth(worth, matching.heaviest(worth, view))):
        table = worth[r].reshape(12, 9)
        assert total == pytest.approx(table[linear_sum_assignment(table, maximize=True)].sum())


WRONG = [
    (lambda: Explicit([[0, 0]]), "actions"),
    (lambda: Explicit([[]]), "actions"),
    (lambda: Explicit([[0.5]]), "actions"),
    (lambda: Explicit(3), "actions"),
    (lambda: Subsets(0), "k"),
    (lambda: Pinned(Subsets(2), []), "arms"),
    (lambda: Pinned(Pinned(Subsets(2), [0]), [1]), "actions"),
    (lambda: plain_problem(Pinned(Explicit([[0, 1], [2]]), [0, 2]), 3), "arms"),
    (lambda: plain_problem(Explicit([[0], [2]]), 3), "actions"),
    (lambda: PartitionMatroid([0, 1], [1]), "limits"),
    (lambda: PartitionMatroid([0, 0], [1, 1]), "groups"),
    (lambda: PartitionMatroid([0, 0], [0]), "limits"),
    (lambda: Laminar([([0, 1], 1), ([1, 2], 1)]), "families"),
    (lambda: SpanningTrees(3, [(0, 1)]), "edges"),
    (lambda: SpanningTrees(2, [(0, 0)]), "edges"),
    (lambda: Paths(3, [(0, 1), (1, 0), (1, 2)], 0, 2), "edges"),
    (lambda: Paths(3, [(0, 1), (0, 2)], 0, 2), "edges"),
    (lambda: Paths(3, [(0, 1)], 0, 0), "target"),
    (lambda: Matching(1, 1, [(0, 0), (0, 0)]), "edges"),
    (lambda: Matching(1, 1, [(0, 1)]), "edges"),
    (lambda: Knapsack([1.0, 3.0], 2.0), "budget"),
    (lambda: Knapsack([0.0], 2.0), "costs"),
    (lambda: Slots([[], [0]]), "allowed"),
    (lambda: plain_problem(Slots([[0]]), 2), "allowed"),
]


@pytest.mark.parametrize(("make", "argument"), WRONG)
def test_wrong_arguments_are_refused(make, argument):
    with pytest.raises(InvalidArgument) as wrong:
        make()
    assert wrong.value.argument == argument
