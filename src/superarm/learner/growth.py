"""Problems and tallies that grow: arms and items are only ever added at the end, so indices stay what they were."""

from collections.abc import Callable
from typing import Any

import numpy as np

from superarm.actions import Laminar
from superarm.arrays import Floats, Ints
from superarm.context.design import PER_ENTRY, group_count, make_design
from superarm.context.observations import ContextTally
from superarm.errors import InvalidArgument
from superarm.moments import moments_with_arms
from superarm.policies import KeptRows, PolicyState
from superarm.problem import Problem
from superarm.support import Dense, Sparse, Support
from superarm.tally import Tally, allow_missing, moments_of


def with_arms(problem: Problem, n: int, actions: Any = None, support: Any = None, features: Any = None) -> Problem:
    """``problem`` with ``n`` more arms; a sparse problem needs the whole new ``support``.

    ``features`` are those of the new arms, if arms have features.
    """
    if not isinstance(problem.support, Dense) and support is None:
        raise InvalidArgument("support", "missing", "a sparse problem needs the support of all arms, new ones included")
    if problem.context is None and features is not None:
        raise InvalidArgument("features", "the problem has no context", "leave them out")
    context = problem.context and problem.context.with_arms(n, features)
    return Problem(
        problem.n_arms + n,
        problem.n_items,
        problem.reward,
        actions or problem.actions,
        problem.weights,
        support,
        context,
    )


def require_actions(problem: Problem, actions: Any) -> None:
    """Raise ``InvalidArgument`` if new arms need ``actions``: nothing limits an arm in no family of a laminar set.

    Logs of earlier versions hold such arms, so ``with_arms`` takes them.
    """
    if actions is None and isinstance(problem.actions, Laminar):
        raise InvalidArgument("actions", "the families do not name the new arms", "give the families of all arms")


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
    return Problem(problem.n_arms, len(more), problem.reward, problem.actions, more, context=problem.context)


def without_items(problem: Problem, items: Ints) -> Problem:
    """``problem`` with the weight 0 for some items."""
    weights = problem.weights.copy()
    weights[items] = 0.0
    support = None if isinstance(problem.support, Dense) else problem.support
    return Problem(problem.n_arms, problem.n_items, problem.reward, problem.actions, weights, support, problem.context)


def tally_with_arms(tally: Any, before: Problem, after: Problem) -> Any:
    """The tally of the larger problem: the new arms have no pulls. It may hold several segments one after the other."""
    n_segments = len(tally.pulls) // before.n_arms
    entries = after.n_entries - before.n_entries

    def longer(values: Floats, n: int) -> Floats:
        return np.concatenate([values.reshape(n_segments, -1), np.zeros((n_segments, n))], axis=1).reshape(-1)

    grown = Tally(
        longer(tally.pulls, after.n_arms - before.n_arms),
        longer(tally.total, entries),
        longer(tally.square, entries),
        longer(tally.missed, entries) if tally.missed.size else tally.missed,
        longer(tally.joint, 3 * (after.n_arms - before.n_arms)) if tally.joint.size else tally.joint,
        *moments_with_arms(moments_of(tally), after.support, before.n_arms),
    )
    return with_grown_sums(tally, grown, before, after)


def tally_with_items(tally: Any, before: Problem, after: Problem) -> Any:
    """The tally of the larger problem: of the new items, every pull so far was missed, so none was seen whole.

    Moments begin anew: the policy that asks for them adds empty ones.
    """
    shape, more = (len(tally.pulls), before.n_items), after.n_items - before.n_items
    unseen = np.repeat(tally.pulls[:, None], more, axis=1)
    tally = allow_missing(tally)

    def widen(values: Floats, new: Floats) -> Floats:
        return np.concatenate([values.reshape(shape), new], axis=1).reshape(-1)

    nothing = np.zeros((len(tally.pulls), more))
    grown = Tally(
        tally.pulls,
        widen(tally.total, nothing),
        widen(tally.square, nothing),
        widen(tally.missed, unseen),
        np.zeros_like(tally.joint),
    )
    return with_grown_sums(tally, grown, before, after)


def with_grown_sums(tally: Any, counts: Tally, before: Problem, after: Problem) -> Any:
    """``counts`` with the sums of a regression, where ``tally`` has them."""
    if not isinstance(tally, ContextTally):
        return counts
    return ContextTally(*counts, *(grow_sums(values, before, after) for values in (tally.precision, tally.response)))


def grow_sums(sums: Floats, before: Problem, after: Problem) -> Floats:
    """The precisions or responses of a regression (n_groups, n) on the larger problem: what is new has seen nothing.

    New items are new coordinates at the end, new rows of a lower triangle, so that numbers are appended in both cases.
    """
    assert before.context is not None
    assert after.context is not None
    d, new_d = before.context.dimension(before.n_items), after.context.dimension(after.n_items)
    columns = new_d - d if sums.shape[1] == d else (new_d * (new_d + 1) - d * (d + 1)) // 2
    return grow_groups(np.pad(sums, ((0, 0), (0, columns))), before, after)


def grow_state(
    state: PolicyState | None, grow_block: Callable[[Tally], Tally], problems: tuple[Problem, Problem]
) -> PolicyState | None:
    """What a policy keeps, on the larger of two problems; ``grow_block`` gives the tallies of blocks."""
    return state and state.changed(grow_block)._replace(kept=grow_kept(state.kept, *problems))


def grow_kept(kept: KeptRows | None, before: Problem, after: Problem) -> KeptRows | None:
    """The observations and points of a logistic policy on the larger problem; rows name entries by arm and place."""
    if kept is None or before.context is None or after.context is None:
        return None
    point, marks = grow_sums(kept.point, before, after), grow_groups(kept.marks, before, after)
    if before.context.n_indicators(before.n_items) or not after.context.n_indicators(after.n_items):
        return kept._replace(point=point, marks=marks)
    bounds = kept.bounds * (0.0, 1.0)  # features begin to tell items apart: earlier observations have others
    return kept._replace(rows=kept.rows[:0], bounds=bounds, point=0.0 * point, marks=0.0 * marks)


def grow_groups(values: Floats, before: Problem, after: Problem) -> Floats:
    """Numbers of every parameter vector (n_groups, n) on the larger problem; those of new ones are 0."""
    assert after.context is not None
    design = make_design(after.context, after.n_arms, after.n_items)
    if design.sharing == PER_ENTRY and isinstance(before.support, Dense):
        table = values.reshape(before.n_arms, before.n_items, -1)
        more = ((0, after.n_arms - before.n_arms), (0, after.n_items - before.n_items), (0, 0))
        return np.pad(table, more).reshape(-1, values.shape[1])
    return np.pad(values, ((0, group_count(design, after.support) - len(values)), (0, 0)))
