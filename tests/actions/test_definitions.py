"""Empty and inconsistent definitions are refused, by the name of the argument; and what each set is, by hand."""

import numpy as np
import pytest

import superarm as sa
from superarm.actions import heaviest
from superarm.actions.traits import budgeted, exchange, tractable, uniform
from superarm.candidates import Candidates

WRONG = [
    (lambda: sa.PartitionMatroid([], []), "groups"),
    (lambda: sa.PartitionMatroid([0, 1], [1]), "limits"),
    (lambda: sa.PartitionMatroid([0, 1], [1, 0]), "limits"),
    (lambda: sa.PartitionMatroid([0, 0], [1, 1]), "groups"),
    (lambda: sa.PartitionMatroid([0], [1.5]), "limits"),
    (lambda: sa.Laminar([]), "families"),
    (lambda: sa.Laminar([([], 1)]), "families"),
    (lambda: sa.Laminar([([0, 1], 0)]), "families"),
    (lambda: sa.Laminar([([0, 1], 1), ([1, 2], 1)]), "families"),
    (lambda: sa.GraphicMatroid(3, []), "edges"),
    (lambda: sa.GraphicMatroid(0, [(0, 1)]), "n_nodes"),
    (lambda: sa.GraphicMatroid(3, [(0, 3)]), "edges"),
    (lambda: sa.GraphicMatroid(3, [(1, 1)]), "edges"),
    (lambda: sa.GraphicMatroid(3, [(0, 1, 2)]), "edges"),
    (lambda: sa.SpanningTrees(4, [(0, 1), (2, 3)]), "edges"),
    (lambda: sa.SpanningTrees(2, [(0.0, 1.0)]), "edges"),
    (lambda: sa.Matching(0, 1, [(0, 0)]), "left"),
    (lambda: sa.Matching(1, 1, []), "edges"),
    (lambda: sa.Matching(1, 1, [(0, 1)]), "edges"),
    (lambda: sa.Matching(2, 2, [(0, 1), (0, 1)]), "edges"),
    (lambda: sa.Paths(2, [(0, 1)], 0, 0), "target"),
    (lambda: sa.Paths(2, [(0, 1)], 0, 2), "target"),
    (lambda: sa.Paths(3, [(0, 1), (1, 0), (1, 2)], 0, 2), "edges"),
    (lambda: sa.Paths(4, [(0, 1), (1, 2), (1, 3)], 0, 2), "edges"),
    (lambda: sa.Knapsack([], 1.0), "costs"),
    (lambda: sa.Knapsack([1.0, 0.0], 1.0), "costs"),
    (lambda: sa.Knapsack([1.0, -1.0], 1.0), "costs"),
    (lambda: sa.Knapsack([1.0, 2.0], 1.5), "budget"),
    (lambda: sa.Knapsack([1.0, float("nan")], 1.5), "costs"),
    (lambda: sa.Slots([]), "allowed"),
    (lambda: sa.Slots([[0, 1], []]), "allowed"),
    (lambda: sa.Slots([[0, -1]]), "allowed"),
    (lambda: sa.Pinned(sa.Subsets(2), []), "arms"),
    (lambda: sa.Pinned(sa.Subsets(2), [1, 1]), "arms"),
    (lambda: sa.Pinned(sa.Pinned(sa.Subsets(2), [1]), [0]), "actions"),
    (lambda: sa.Pinned([0, 1], [0]), "actions"),
]
MISFITS = [
    (sa.PartitionMatroid([0, 0, 1], [1, 1]), "groups"),
    (sa.Laminar([(range(9), 1)]), "families"),
    (sa.GraphicMatroid(2, [(0, 1)]), "edges"),
    (sa.SpanningTrees(2, [(0, 1)]), "edges"),
    (sa.Matching(2, 2, [(0, 1)]), "edges"),
    (sa.Paths(2, [(0, 1)], 0, 1), "edges"),
    (sa.Knapsack([1.0], 1.0), "costs"),
    (sa.Slots([[0, 1, 2]]), "allowed"),
    (sa.Slots([[0, 1, 2, 3, 4]]), "allowed"),
    (sa.Pinned(sa.Subsets(2), [4]), "arms"),
    (sa.Pinned(sa.Subsets(2), [0, 1, 2]), "arms"),
    (sa.Pinned(sa.PartitionMatroid([0, 0, 1, 1], [1, 1]), [0, 1]), "arms"),
]


@pytest.mark.parametrize(("make", "argument"), WRONG)
def test_an_empty_or_inconsistent_definition_is_refused(make, argument):
    with pytest.raises(sa.InvalidArgument) as refusal:
        make()
    assert refusal.value.argument == argument
    assert refusal.value.remedy


@pytest.mark.parametrize(("actions", "argument"), MISFITS)
def test_a_problem_refuses_an_action_set_that_does_not_fit_its_arms(actions, argument):
    with pytest.raises(sa.InvalidArgument) as refusal:
        sa.Problem(4, 1, sa.Coverage(), actions)
    assert refusal.value.argument == argument


def test_costs_that_add_up_to_the_budget_but_for_rounding_are_within_it():
    bag = sa.Knapsack([0.1, 0.2, 0.3], 0.3)
    assert bag.includes(np.array([0, 1]))
    assert not bag.includes(np.array([0, 2]))


def test_a_batch_of_slots_tells_who_stands_where():
    page = sa.Slots([[0, 1], [1, 2], [0, 3]])
    slots = page.assignment([1, 0, 2])
    assert sorted(slots.tolist()) == [0, 1, 2]
    assert all(page.allowed[slot, arm] for slot, arm in zip(slots, [1, 0, 2], strict=True))
    with pytest.raises(sa.InvalidArgument, match="no slot is left"):
        sa.Slots([[0, 1]]).assignment([0, 1])


def test_groups_may_have_names():
    shelf = sa.PartitionMatroid(["a", "b", "a"], {"a": 1, "b": 3})
    assert sorted(shelf.batches(3)) == [(0, 1), (1, 2)]
    assert shelf.k == 2


@pytest.mark.parametrize("k", [1, 4, 9, 30])
@pytest.mark.parametrize("levels", [1, 3, 1000])
def test_the_heaviest_subset_is_the_start_of_all_arms_in_order(k, levels):
    rng = np.random.default_rng(k)
    for _ in range(20):
        weights, pulls = rng.integers(0, levels, 90) / levels, rng.integers(1, 4, 90).astype(float)
        candidates = Candidates(pulls, rng.random(90) < rng.choice([0.05, 0.5, 1.0]))
        line = sorted(np.flatnonzero(candidates.eligible), key=lambda j: (-weights[j], pulls[j], j))
        assert heaviest(sa.Subsets(k), weights, candidates).tolist() == line[:k]


def test_trees_have_no_batch_where_the_eligible_edges_do_not_connect():
    trees = sa.SpanningTrees(3, [(0, 1), (1, 2), (0, 1)])
    some = Candidates(np.zeros(3), np.array([True, False, True]))
    assert len(heaviest(trees, np.ones(3), some)) == 0


@pytest.mark.parametrize(
    ("actions", "traits"),
    [
        (sa.Subsets(2), (True, True, 1.0, False, True)),
        (sa.Explicit([[0], [1, 2]]), (False, True, np.inf, False, False)),
        (sa.SpanningTrees(2, [(0, 1)]), (True, True, 1.0, False, False)),
        (sa.Matching(1, 1, [(0, 0)]), (False, True, 2.0, False, False)),
        (sa.Paths(2, [(0, 1)], 0, 1), (False, True, np.inf, False, False)),
        (sa.Knapsack([1.0], 1.0), (False, False, np.inf, True, False)),
        (sa.Pinned(sa.Subsets(2), [0]), (True, True, 1.0, False, True)),
        (sa.Pinned(sa.Knapsack([1.0], 1.0), [0]), (False, False, np.inf, True, False)),
    ],
)
def test_what_an_action_set_says_of_itself(actions, traits):
    said = actions.matroid, tractable(actions), exchange(actions), budgeted(actions), uniform(actions)
    assert said == traits


def test_huge_sets_are_counted_as_infinite():
    assert sa.Subsets(50).n_batches(100_000) == np.inf
    assert sa.Knapsack(np.ones(2000), 1000.0).n_batches(2000) == np.inf
    ring = [(v, (v + 1) % 60) for v in range(60)] + [(v, (v + 7) % 60) for v in range(60)]
    assert sa.SpanningTrees(60, ring).n_batches(120) == np.inf


def test_the_same_arms_in_another_order_are_the_same_batch():
    assert sa.Explicit([[1, 0], [2], [0, 1], [2, 0], [2]]).table.tolist() == [[1, 0], [2, -1], [2, 0]]
    assert sa.Explicit([[1, 0], [0, 1]]).n_batches(2) == 1
