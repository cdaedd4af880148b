"""Problems and tallies that grow: arms and items are only ever added at the end, so numbers stay what they were."""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.actions.matroids import Laminar
from superarm.core.arrays import Ints
from superarm.core.errors import InvalidArgument
from superarm.core.support import AnySupport, Dense, Sparse
from superarm.core.tally import Tally

if TYPE_CHECKING:
    from superarm.core.problem import Problem


def with_arms(problem: "Problem", n: int, actions: Any = None, support: Any = None, features: Any = None) -> "Problem":
    """``problem`` with ``n`` more arms; a sparse problem needs the whole new ``support``.

    ``features`` are those of the new arms, if arms have features.
    """
    if not isinstance(problem.support, Dense) and support is None:
        raise InvalidArgument("support", "missing", "a sparse problem needs the support of all arms, new ones included")
    if problem.context is None and features is not None:
        raise InvalidArgument("features", "the problem has no context", "leave them out")
    context = None if problem.context is None else problem.context.with_arms(n, features)
    actions = problem.actions if actions is None else actions
    return problem.changed(n_arms=problem.n_arms + n, actions=actions, support=support, context=context)


def require_actions(problem: "Problem", actions: Any) -> None:
    """Raise ``InvalidArgument`` if new arms need ``actions``: nothing limits an arm in no family of a laminar set.

    Logs of earlier versions hold such arms, so ``with_arms`` takes them.
    """
    if actions is None and isinstance(problem.actions, Laminar):
        raise InvalidArgument("actions", "the families do not name the new arms", "give the families of all arms")


def support_with_arms(support: AnySupport, rows: list[list[int]]) -> Sparse:
    """A sparse support with one more arm for each of ``rows``, the items that it can touch."""
    if not isinstance(support, Sparse):
        raise InvalidArgument("support", "every arm may touch every item", "leave it out")
    new = [np.sort(np.array(row, np.int64)) for row in rows]
    ends = support.start[-1] + np.cumsum([len(row) for row in new], dtype=np.int64)
    items = np.concatenate([support.items, *new])
    return Sparse(support.n_items, support.n_arms + len(rows), np.concatenate([support.start, ends]), items)


def with_items(problem: "Problem", weights: Any) -> "Problem":
    """``problem`` with one more item for each of ``weights``; every arm may touch it."""
    if not isinstance(problem.support, Dense):
        raise InvalidArgument("items", "the support is sparse", "new items of a sparse problem need a new problem")
    more = np.concatenate([problem.weights, np.asarray(weights, float)])
    return problem.changed(n_items=len(more), weights=more, support=None)


def without_items(problem: "Problem", items: Ints) -> "Problem":
    """``problem`` with the weight 0 for some items."""
    weights = problem.weights.copy()
    weights[items] = 0.0
    return problem.changed(weights=weights)


def grow_tally(tally: Tally, after: "Problem") -> Tally:
    """The tally of the larger problem: new arms have no pulls, and of new items every pull so far was missed.

    Moments of new items begin anew: the policy that asks for them attaches empty ones.
    """
    old, new, moments = tally.support, after.support, tally.moments
    if hasattr(moments, "design"):
        from superarm.context.design import design_of

        moments = moments.grown(new, design_of(after))
    elif moments is not None:
        moments = moments.grown(new) if new.n_items == old.n_items else None
    grown = Tally(new, len(tally), tally.partial or new.n_items > old.n_items, moments)
    for name in Tally.SUMS:
        sums = getattr(tally, name)
        if sums.size:
            getattr(grown, name)[tuple(slice(n) for n in sums.shape)] = sums
    if new.n_items > old.n_items:
        grown.missed[:, old.n_items :] = grown.pulls[:, None, :]
    grown.refresh()
    return grown


OWN = (("newest", "blocks"), ("rows", "bounds", "maps", "point", "marks"))
"""What policies that forget keep beside the tally, and what logistic ones do."""


def own_parts(held: dict[str, Any] | None) -> set[str]:
    """The names of ``OWN`` in a state: all of a policy, since others may use one of them for something else."""
    return {name for names in OWN if held is not None and held.keys() >= set(names) for name in names}


def grow_held(held: dict[str, Any] | None, before: "Problem", after: "Problem") -> dict[str, Any] | None:
    """What a policy keeps beside the tally, on the larger problem."""
    if held is None:
        return None
    own = own_parts(held)
    if "blocks" in own:
        held = held | {"blocks": [grow_tally(block, after) for block in held["blocks"]]}
    if "rows" in own:
        from superarm.context.design import design_of
        from superarm.contextual.kept import grow_kept

        held = grow_kept(held, (design_of(before), before.support), (design_of(after), after.support))
    return held
