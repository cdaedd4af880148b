"""What users give, turned into arrays: copies, right types, and errors that name the argument."""

import numpy as np
import pytest
from scipy import sparse

from superarm.actions import Subsets
from superarm.core.arrays import arms, floats, probabilities
from superarm.core.errors import InvalidArgument
from superarm.problem import Problem
from superarm.rewards import Linear


def refusal(call, *args, **kwargs):
    with pytest.raises(InvalidArgument) as told:
        call(*args, **kwargs)
    return str(told.value)


def test_floats_is_a_float64_copy():
    mine = np.array([[0.0, 1.0]])
    theirs = floats(mine, "p", low=0.0, high=1.0)
    mine[0, 0] = 0.5
    assert theirs.tolist() == [[0.0, 1.0]]
    assert floats([[1, 0]], "p", low=0.0, high=1.0).dtype == np.float64
    assert floats(np.ones((2, 3), order="F"), "p", low=0.0, high=1.0).flags.c_contiguous
    assert floats([], "p", low=0.0, high=1.0).size == 0


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ([0.5, 1.5], "values range over [0.5, 1.5]; give values in [0, 1]"),
        ([-0.5, 1.0], "values range over [-0.5, 1]; give values in [0, 1]"),
        ([0.5, np.inf], "values range over [0.5, inf]; give values in [0, 1]"),
        ([np.nan, 7.0], "contains NaN; give numbers"),
        ([None], "contains NaN; give numbers"),
        ("many", "str is not an array of numbers; give numbers"),
        ([[1], [1, 0]], "list is not an array of numbers; give numbers"),
    ],
)
def test_floats_refuses(value, wrong):
    assert refusal(floats, value, "p", low=0.0, high=1.0).startswith(f"p: {wrong}")


def test_an_amount_that_is_told_as_an_outcome_is_refused_with_its_remedy():
    problem = Problem(3, 1, Linear(), Subsets(2))
    said = "outcomes: values range over [49.9, 49.9]; give values in [0, 1]; sa.agent.Scale turns amounts into outcomes"
    assert refusal(problem.past, [0, 1], [[49.9], [0.5]]) == said


def test_probabilities_of_a_sparse_matrix_are_its_entries_row_after_row():
    p = sparse.coo_array(([0.3, 0.1, 0.2], ([1, 0, 0], [0, 0, 2])), shape=(2, 3))
    assert probabilities(p, "p").tolist() == [0.1, 0.2, 0.3]
    assert refusal(probabilities, p * 10, "p") == "p: values range over [1, 3]; give values in [0, 1]"


@pytest.mark.parametrize("value", [[2, 0], (2, 0), np.array([2, 0], np.int32), np.array([2, 0], np.uint8)])
def test_arms_keep_their_order(value):
    found = arms(value, "action", 3)
    assert found.dtype == np.int64
    assert found.tolist() == [2, 0]


def test_no_arms():
    assert arms([], "action", 3).size == 0


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ([0, 3], "unknown arm 3; arms are 0 to 2"),
        ([-1], "unknown arm -1; arms are 0 to 2"),
        ([1, 1], "the same arm appears twice; give each arm once"),
        ([0.0, 1.0], "[0.0, 1.0] is not a flat list of arms; give one integer per arm"),
        ([True, False], "[True, False] is not a flat list of arms; give one integer per arm"),
        ([[0, 1]], "[[0, 1]] is not a flat list of arms; give one integer per arm"),
        ([[0], [1, 2]], "[[0], [1, 2]] is not a flat list of arms; give one integer per arm"),
        (["a"], "['a'] is not a flat list of arms; give one integer per arm"),
        (1, "1 is not a flat list of arms; give one integer per arm"),
        (None, "None is not a flat list of arms; give one integer per arm"),
    ],
)
def test_arms_refuses(value, wrong):
    assert refusal(arms, value, "action", 3) == f"action: {wrong}"
