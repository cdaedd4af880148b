"""Outcomes as users give them, checked and turned into the flat arrays that kernels take."""

from typing import Any

import numpy as np

from superarm.arrays import Bools, Floats, Ints, floats
from superarm.errors import InvalidArgument
from superarm.problem import Problem
from superarm.support import Dense, length


def check_outcome(problem: Problem, action: Ints, n_items: int, outcome: Any, seen: Any) -> tuple[Floats, Bools]:
    """Outcome and mask of ``action``, flat; items added since the problem had ``n_items`` count as not seen.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=2, n_items=2, reward=sa.Coverage(), actions=sa.Subsets(1))
    >>> check_outcome(problem, np.array([1]), 2, [[1, None]], [[True, False]])
    (array([1., 0.]), array([ True, False]))
    """
    dense = isinstance(problem.support, Dense)
    given = _array(outcome)
    if seen is None and dense and given.shape == (len(action), problem.n_items):  # as most outcomes are given
        values = floats(given, "outcome", low=0.0, high=1.0).reshape(-1)
        return values, np.ones(len(values), bool)
    flat = (length(problem.support, action),)
    shapes = [(len(action), problem.n_items), (len(action), n_items), flat] if dense else [flat]
    mask = np.ones(given.shape, bool) if seen is None else _array(seen)
    if mask.dtype != bool or mask.shape != given.shape:
        raise InvalidArgument("seen", f"{mask.dtype} of shape {mask.shape}", "give booleans in the outcome's shape")
    if mask.shape not in shapes:
        raise InvalidArgument(
            "outcome", f"shape {mask.shape}", f"give shape {shapes[0]}, one row per arm of the action"
        )
    values = floats(given if seen is None else np.where(mask, given, 0.0), "outcome", low=0.0, high=1.0)
    late = problem.n_items - mask.shape[1] if mask.ndim == 2 else 0
    if late:
        values, mask = np.pad(values, ((0, 0), (0, late))), np.pad(mask, ((0, 0), (0, late)))
    return values.reshape(-1), mask.reshape(-1)


def _array(values: Any) -> Any:
    """``values`` as an array of numbers or booleans; objects only for the None of what was not seen."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidArgument("outcome", "rows of different lengths", "give rows of one length, one per arm") from None
    kind = array.dtype.kind
    if kind not in "biufO" or (kind == "O" and any(isinstance(x, str) for x in array.flat)):
        text = next((x for x in np.asarray(values, object).flat if isinstance(x, str)), None)
        wrong = array.dtype.name if text is None else repr(text)
        raise InvalidArgument("outcome", f"{wrong} is not a number", "give numbers in [0, 1]")
    return array
