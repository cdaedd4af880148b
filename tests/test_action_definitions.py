"""Empty and inconsistent action sets are refused, by the name of the argument; and what each set is, by hand."""

import numpy as np
import pytest

from superarm import actions as sets
from superarm.core.errors import InvalidArgument
from superarm.problem import Problem
from superarm.rewards import Coverage

WRONG = [
    (lambda: sets.Subsets(0), "k"),
    (lambda: sets.Explicit([[0, 0]]), "actions"),
    (lambda: sets.Explicit([[]]), "actions"),
    (lambda: sets.Explicit([[0.5]]), "actions"),
    (lambda: sets.Explicit(3), "actions"),
    (lambda: sets.PartitionMatroid([], []), "groups"),
    (lambda: sets.PartitionMatroid([0, 1], [1]), "limits"),
    (lambda: sets.PartitionMatroid([0, 1], [1, 0]), "limits"),
    (lambda: sets.PartitionMatroid([0, 0], [1, 1]), "groups"),
    (lambda: sets.PartitionMatroid([0], [1.5]), "limits"),
    (lambda: sets.PartitionMatroid([0, 1], {}, k=0), "k"),
    (lambda: sets.PartitionMatroid([0, 1], [1, 1], minimums={0: 1}), "minimums"),
    (lambda: sets.PartitionMatroid([0, 1], {}, k=3, minimums={0: 2}), "minimums"),
    (lambda: sets.PartitionMatroid([0, 1], {}, k=3, minimums={2: 1}), "minimums"),
    (lambda: sets.PartitionMatroid([0, 0, 1], {}, k=1, minimums={0: 1}), "minimums"),
    (lambda: sets.Intersection([sets.Subsets(2)]), "rules"),
    (lambda: sets.Intersection([sets.Subsets(2), sets.Knapsack([1.0], 1.0)]), "rules"),
    (lambda: sets.Laminar([]), "families"),
    (lambda: sets.Laminar([([], 1)]), "families"),
    (lambda: sets.Laminar([([0, 1], 0)]), "families"),
    (lambda: sets.Laminar([([0, 1], 1), ([1, 2], 1)]), "families"),
    (lambda: sets.GraphicMatroid(3, []), "edges"),
    (lambda: sets.GraphicMatroid(0, [(0, 1)]), "n_nodes"),
    (lambda: sets.GraphicMatroid(3, [(0, 3)]), "edges"),
    (lambda: sets.GraphicMatroid(3, [(1, 1)]), "edges"),
    (lambda: sets.GraphicMatroid(3, [(0, 1, 2)]), "edges"),
    (lambda: sets.SpanningTrees(4, [(0, 1), (2, 3)]), "edges"),
    (lambda: sets.SpanningTrees(2, [(0.0, 1.0)]), "edges"),
    (lambda: sets.Matching(0, 1, [(0, 0)]), "left"),
    (lambda: sets.Matching(1, 1, []), "edges"),
    (lambda: sets.Matching(1, 1, [(0, 1)]), "edges"),
    (lambda: sets.Matching(2, 2, [(0, 1), (0, 1)]), "edges"),
    (lambda: sets.Paths(2, [(0, 1)], 0, 0), "target"),
    (lambda: sets.Paths(2, [(0, 1)], 0, 2), "target"),
    (lambda: sets.Paths(3, [(0, 1), (1, 0), (1, 2)], 0, 2), "edges"),
    (lambda: sets.Paths(4, [(0, 1), (1, 2), (1, 3)], 0, 2), "edges"),
    (lambda: sets.Knapsack([], 1.0), "costs"),
    (lambda: sets.Knapsack([1.0, 0.0], 1.0), "costs"),
    (lambda: sets.Knapsack([1.0, -1.0], 1.0), "costs"),
    (lambda: sets.Knapsack([1.0, 2.0], 0.5), "budget"),
    (lambda: sets.Knapsack([1.0, float("nan")], 1.5), "costs"),
    (lambda: sets.Copies({}, 1), "copies"),
    (lambda: sets.Copies(["a", "b"], 1), "copies"),
    (lambda: sets.Copies({"a": 0}, 1), "copies"),
    (lambda: sets.Copies({"a": 2}, 1.5), "budget"),
    (lambda: sets.Copies({"a": 2}, 3, {"a": 4}), "budget"),
    (lambda: sets.Copies({"a": 2}, 3, {"b": 1}), "prices"),
    (lambda: sets.Copies({"a": 2}, 3, {"a": 0}), "prices"),
    (lambda: sets.Slots([]), "allowed"),
    (lambda: sets.Slots([[0, 1], []]), "allowed"),
    (lambda: sets.Slots([[0, -1]]), "allowed"),
    (lambda: sets.Pinned(sets.Subsets(2), []), "arms"),
    (lambda: sets.Pinned(sets.Subsets(2), [1, 1]), "arms"),
    (lambda: sets.Pinned(sets.Pinned(sets.Subsets(2), [1]), [0]), "actions"),
    (lambda: sets.Pinned([0, 1], [0]), "actions"),
]
MISFITS = [
    (sets.Explicit([[0], [2]]), "actions"),
    (sets.Pinned(sets.Explicit([[0, 1], [2, 3]]), [0, 2]), "arms"),
    (sets.PartitionMatroid([0, 0, 1], [1, 1]), "groups"),
    (sets.Intersection([sets.PartitionMatroid([0, 0, 1], [1, 1]), sets.Subsets(2)]), "groups"),
    (sets.Laminar([(range(9), 1)]), "families"),
    (sets.GraphicMatroid(2, [(0, 1)]), "edges"),
    (sets.SpanningTrees(2, [(0, 1)]), "edges"),
    (sets.Matching(2, 2, [(0, 1)]), "edges"),
    (sets.Paths(2, [(0, 1)], 0, 1), "edges"),
    (sets.Knapsack([1.0], 1.0), "costs"),
    (sets.Copies({"a": 2, "b": 1}, 2), "costs"),
    (sets.Slots([[0, 1, 2]]), "allowed"),
    (sets.Slots([[0, 1, 2, 3, 4]]), "allowed"),
    (sets.Pinned(sets.Subsets(2), [4]), "arms"),
    (sets.Pinned(sets.Subsets(2), [0, 1, 2]), "arms"),
    (sets.Pinned(sets.PartitionMatroid([0, 0, 1, 1], [1, 1]), [0, 1]), "arms"),
]


@pytest.mark.parametrize(("make", "argument"), WRONG)
def test_an_empty_or_inconsistent_definition_is_refused(make, argument):
    with pytest.raises(InvalidArgument) as refusal:
        make()
    assert refusal.value.argument == argument
    assert refusal.value.remedy


@pytest.mark.parametrize(("actions", "argument"), MISFITS)
def test_a_problem_refuses_an_action_set_that_does_not_fit_its_arms(actions, argument):
    with pytest.raises(InvalidArgument) as refusal:
        Problem(4, 1, Coverage(), actions)
    assert refusal.value.argument == argument


def test_a_budget_that_buys_no_arm_is_refused_and_dear_arms_are_in_no_batch():
    with pytest.raises(InvalidArgument, match=r"0.5 buys no arm: the cheapest costs 1"):
        sets.Knapsack([1.0, 2.0, 1.5, 7.5], 0.5)
    assert list(sets.Knapsack([1.0, 2.0, 0.5, 7.5], 1.5).batches(4)) == [(0, 2)]


def test_costs_that_add_up_to_the_budget_but_for_rounding_are_within_it():
    bag = sets.Knapsack([0.1, 0.2, 0.3], 0.3)
    assert bag.includes(np.array([0, 1]), 3)
    assert not bag.includes(np.array([0, 2]), 3)


def test_a_batch_of_slots_tells_who_stands_where():
    page = sets.Slots([[0, 1], [1, 2], [0, 3]])
    slots = page.assignment([1, 0, 2])
    assert sorted(slots.tolist()) == [0, 1, 2]
    assert all(page.allowed[slot, arm] for slot, arm in zip(slots, [1, 0, 2], strict=True))
    with pytest.raises(InvalidArgument, match="no slot is left"):
        sets.Slots([[0, 1]]).assignment([0, 1])


def test_groups_may_have_names():
    shelf = sets.PartitionMatroid(["a", "b", "a"], {"a": 1, "b": 3})
    assert sorted(shelf.batches(3)) == [(0, 1), (1, 2)]
    assert shelf.capacity(3) == 2


def test_trees_have_no_batch_where_the_eligible_edges_do_not_connect():
    trees = sets.SpanningTrees(3, [(0, 1), (1, 2), (0, 1)])
    view = Problem(3, 1, Coverage(), trees).view()
    view.eligible = np.array([[True, False, True]])
    assert trees.heaviest(np.ones((1, 3)), view).tolist() == [[-1, -1]]


@pytest.mark.parametrize(
    ("actions", "traits"),
    [
        (sets.Subsets(2), (True, True, 1.0, False, True)),
        (sets.Explicit([[0], [1, 2]]), (False, True, np.inf, False, False)),
        (sets.SpanningTrees(2, [(0, 1)]), (True, True, 1.0, False, False)),
        (sets.Matching(1, 1, [(0, 0)]), (False, True, 2.0, False, False)),
        (sets.Paths(2, [(0, 1)], 0, 1), (False, True, np.inf, False, False)),
        (sets.Knapsack([1.0], 1.0), (False, False, np.inf, True, False)),
        (sets.Copies({"a": 2}, 1), (True, True, 1.0, False, False)),
        (sets.Copies({"a": 2}, 1, {"a": 1}), (False, False, np.inf, True, False)),
        (sets.Pinned(sets.Subsets(2), [0]), (True, True, 1.0, False, True)),
        (sets.Pinned(sets.Knapsack([1.0], 1.0), [0]), (False, False, np.inf, True, False)),
    ],
)
def test_what_an_action_set_says_of_itself(actions, traits):
    said = actions.matroid, actions.tractable, actions.exchange, actions.budgeted, actions.uniform
    assert said == traits


def test_huge_sets_are_counted_as_infinite():
    assert sets.Subsets(50).n_batches(100_000) == np.inf
    assert sets.Knapsack(np.ones(2000), 1000.0).n_batches(2000) == np.inf
    ring = [(v, (v + 1) % 60) for v in range(60)] + [(v, (v + 7) % 60) for v in range(60)]
    assert sets.SpanningTrees(60, ring).n_batches(120) == np.inf


def test_the_same_arms_in_another_order_are_the_same_batch():
    assert sets.Explicit([[1, 0], [2], [0, 1], [2, 0], [2]]).table.tolist() == [[1, 0], [2, -1], [2, 0]]
    assert sets.Explicit([[1, 0], [0, 1]]).n_batches(2) == 1
