"""Every action set, on random small ones, against its definition and every set of arms."""

import copy
import itertools

import numpy as np
import pytest

from superarm.actions import Explicit, Matching, Pinned, Subsets
from superarm.actions.base import add_arms, joinable_after, take_rows, total_worth
from superarm.problem import Problem
from superarm.rewards import Linear
from tests.action_sets import ALL, KINDS, NoNeighbours, arms, playable, random_set, random_view


def draws(kind, n_draws=6, seed=0):
    """Random action sets, the number of arms, what may be played, and a generator."""
    for n in range(n_draws):
        rng = np.random.default_rng([seed, n, len(kind)])
        actions, n_arms, may_play = random_set(kind, rng)
        yield actions, n_arms, may_play, rng


def plain_problem(actions, n_arms):
    return Problem(n_arms, 1, Linear(), actions)


def contains(batch, arms):
    return set(arms) <= set(batch)


def bound_only(kind):
    """Whether the capacity is an upper bound."""
    return kind.startswith(("pinned", "rules"))


@pytest.mark.parametrize("kind", ALL)
def test_batches_counts_and_membership_are_those_of_the_definition(kind):
    for actions, n, may_play, _ in draws(kind, 12):
        actions.validate(n)
        sets = itertools.chain(*(itertools.combinations(range(n), size) for size in range(1, n + 1)))
        assert all(actions.includes(np.array(s, int), n) == may_play(s) for s in sets)
        allowed, listed = (set(map(frozenset, some)) for some in (playable(may_play, n), actions.batches(n)))
        assert {batch for batch in allowed if not any(batch < other for other in allowed)} <= listed <= allowed
        assert len(listed) == len(list(actions.batches(n))) <= actions.n_batches(n)
        largest = max(map(len, allowed))
        assert actions.capacity(n) == largest or (bound_only(kind) and actions.capacity(n) > largest)
        assert actions == copy.deepcopy(actions)
        assert hash(actions) == hash(copy.deepcopy(actions))


@pytest.mark.parametrize("kind", KINDS)
def test_an_arm_may_join_if_some_playable_batch_has_it_and_the_arms_before_it(kind):
    for actions, n, may_play, rng in draws(kind, 12):
        view = random_view(plain_problem(actions, n), rng)
        known = playable(may_play, n, view.eligible[0])
        chosen = []
        while True:
            free = joinable_after(actions, np.array([chosen], np.int64).reshape(1, -1), view.eligible)[0]
            true = [j for j in range(n) if j not in chosen and any(contains(b, [*chosen, j]) for b in known)]
            assert np.flatnonzero(free).tolist() == true
            if not true:
                break
            chosen.append(int(rng.choice(true)))
        assert not known or tuple(sorted(chosen)) in known


@pytest.mark.parametrize("kind", ALL)
def test_the_heaviest_batch_is_playable_and_heaviest_and_below_the_ceiling(kind):
    for actions, n, may_play, rng in draws(kind, 12):
        view = random_view(plain_problem(actions, n), rng, rows=3)
        worth = rng.choice([rng.random((3, n)), rng.integers(0, 2, (3, n)).astype(float)])
        heaviest, ceiling = actions.heaviest(worth, view), actions.ceiling(worth, view)
        sampled = actions.sample(view, rng.random((3, n)))
        for r in range(3):
            known = playable(may_play, n, view.eligible[r])
            batch = arms(heaviest[r])
            for found in (batch, arms(sampled[r])):
                assert tuple(sorted(found)) in known if known else not found
                assert found[: len(actions.pins)] == list(actions.pins)[: len(found)]
            if not known:
                continue
            most, total = max(worth[r, list(b)].sum() for b in known), worth[r, batch].sum()
            assert total >= (1.0 if actions.tractable else 0.5) * most - 1e-12
            assert ceiling[r] >= most - 1e-12
            if actions.tractable and not kind.startswith("pinned"):
                assert ceiling[r] == pytest.approx(most, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_of_equally_heavy_batches_one_with_new_arms_is_played(kind):
    for actions, n, may_play, rng in draws(kind, 12):
        view = random_view(plain_problem(actions, n), rng, rows=2)
        fresh = (view.counts == 0.0) & view.eligible
        found = actions.heaviest(fresh.astype(float), view)
        for r in range(2):
            known = playable(may_play, n, view.eligible[r])
            most = max((fresh[r, list(batch)].sum() for batch in known), default=0)
            assert fresh[r, arms(found[r])].any() == (most > 0)
            assert not actions.tractable or fresh[r, arms(found[r])].sum() == most


@pytest.mark.parametrize("k", [1, 4, 9, 30])
@pytest.mark.parametrize("levels", [1, 3, 1000])
def test_the_heaviest_subset_is_the_start_of_all_arms_in_order(k, levels):
    rng, actions = np.random.default_rng(k), Subsets(k)
    worth = rng.integers(0, levels, (20, 90)) / levels
    view = random_view(plain_problem(actions, 90), rng, rows=20, share=(0.05, 0.5, 1.0))
    for r, batch in enumerate(actions.heaviest(worth, view)):
        line = sorted(np.flatnonzero(view.eligible[r]), key=lambda j, r=r: (-worth[r, j], view.counts[r, j], j))
        assert arms(batch) == line[:k]


@pytest.mark.parametrize("kind", ALL)
def test_every_batch_is_sampled_sooner_or_later(kind):
    actions, n, _, rng = next(draws(kind, 1, seed=3))
    view = random_view(plain_problem(actions, n), rng, rows=3000, share=(1.0,))
    found = {tuple(sorted(arms(batch))) for batch in actions.sample(view, rng.random((3000, n)))}
    assert set(map(tuple, map(sorted, actions.batches(n)))) <= found


@pytest.mark.parametrize("kind", KINDS)
def test_replications_do_not_see_each_other(kind):
    for ours, n, _, rng in draws(kind):
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
    for ours, n, may_play, rng in draws(kind):
        batch = next(ours.batches(n))
        pinned = Pinned(ours, batch[:1])
        view = random_view(plain_problem(pinned, n), rng, rows=3)
        worth = rng.random((3, n))
        for found in (ours.heaviest(worth, view), ours.sample(view, worth), greedy(ours, worth, view)):
            for r in range(3):
                known = [b for b in playable(may_play, n, view.eligible[r]) if batch[0] in b]
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
