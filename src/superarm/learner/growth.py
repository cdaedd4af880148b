"""Problems and tallies that grow: arms and items are only ever added at the end, so indices stay what they were."""

from typing import Any

import numpy as np

from superarm.actions import Actions
from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.moments import moments_with_arms
from superarm.problem import Problem
from superarm.support import Dense, Sparse, Support
from superarm.tally import Tally, allow_missing, moments_of


def with_arms(problem: Problem, n: int, actions: Actions | None, support: Any) -> Problem:
    """``problem`` with ``n`` more arms; a sparse problem needs the whole new ``support``."""
    if not isinstance(problem.support, Dense) and support is None:
        raise InvalidArgument("support", "missing", "a sparse problem needs the support of all arms, new ones included")
    return Problem(
        problem.n_arms + n, problem.n_items, problem.reward, actions or problem.actions, problem.weights, support
    )


def support_with_arms(support: Support, rows: list[list[int]]) -> Sparse:
    """A sparse support with one more arm for each of ``rows``, the items that it can touch."""
    if not isinstance(support, Sparse):
        raise InvalidArgument("support", "every arm may touch every item", "leave it out")
    new = [np.sort(np.array(row, np.int64)) for row in rows]
    start = support.start[-1] + np.cumsum([len(row) for row in new])
    items = np.concatenate([support.items, *new]).astype(np.int64)
    return Sparse._make((np.concatenate([support.start, start]).astype(np.int64), items, support.n_items))


def with_items(problem: Problem, weights: Any) -> Problem:
    """``problem`` with one more item for each of ``weights``; every arm may touch it."""
    if not isinstance(problem.support, Dense):
        raise InvalidArgument("items", "the support is sparse", "new items of a sparse problem need a new problem")
    more = np.concatenate([problem.weights, np.asarray(weights, float)])
    return Problem(problem.n_arms, len(more), problem.reward, problem.actions, more)


def without_items(problem: Problem, items: Ints) -> Problem:
    """``problem`` with the weight 0 for some items."""
    weights = problem.weights.copy()
    weights[items] = 0.0
    support = None if isinstance(problem.support, Dense) else problem.support
    return Problem(problem.n_arms, problem.n_items, problem.reward, problem.actions, weights, support)


def tally_with_arms(tally: Tally, before: Problem, after: Problem) -> Tally:
    """The tally of the larger problem: the new arms have no pulls."""
    entries = after.n_entries - before.n_entries

    def longer(values: Floats, n: int) -> Floats:
        return np.concatenate([values, np.zeros(n)])

    return Tally(
        longer(tally.pulls, after.n_arms - before.n_arms),
        longer(tally.total, entries),
        longer(tally.square, entries),
        longer(tally.missed, entries) if tally.missed.size else tally.missed,
        longer(tally.joint, 3 * (after.n_arms - before.n_arms)) if tally.joint.size else tally.joint,
        *moments_with_arms(moments_of(tally), after.support, before.n_arms),
    )


def tally_with_items(tally: Tally, before: Problem, after: Problem) -> Tally:
    """The tally of the larger problem: of the new items, every pull so far was missed, so none was seen whole.

    Moments begin anew: the policy that asks for them adds empty ones.
    """
    shape, more = (before.n_arms, before.n_items), after.n_items - before.n_items
    unseen = np.repeat(tally.pulls[:, None], more, axis=1)
    tally = allow_missing(tally)

    def widened(values: Floats, new: Floats) -> Floats:
        return np.concatenate([values.reshape(shape), new], axis=1).reshape(-1)

    nothing = np.zeros((before.n_arms, more))
    return Tally(
        tally.pulls,
        widened(tally.total, nothing),
        widened(tally.square, nothing),
        widened(tally.missed, unseen),
        np.zeros_like(tally.joint),
    )
