"""Problems that grow: arms and items are only ever added at the end, so numbers stay what they were."""

from dataclasses import replace
from typing import Any

import numpy as np

from superarm.actions.base import Actions
from superarm.actions.knapsack import Knapsack
from superarm.actions.matroids import Laminar
from superarm.actions.subsets import Subsets
from superarm.core.arrays import Ints
from superarm.core.errors import InvalidArgument
from superarm.core.support import AnySupport, Dense, Sparse
from superarm.oracles.heaviest import Ladder
from superarm.policies.base import Policy
from superarm.policies.spending import SpendLadder
from superarm.problem import Problem


def with_arms(problem: Problem, n: int, actions: Any = None, support: Any = None, features: Any = None) -> Problem:
    """``problem`` with ``n`` more arms, or another action set; a sparse problem needs the whole new ``support``.

    ``features`` are those of the new arms, if arms have features.
    """
    if not n and support is None and features is None:
        return problem.changed(actions=problem.actions if actions is None else actions)
    require_actions(problem, actions)
    if not isinstance(problem.support, Dense) and support is None:
        raise InvalidArgument("support", "missing", "a sparse problem needs the support of all arms, new ones included")
    if problem.context is None and features is not None:
        raise InvalidArgument("features", "the problem has no context", "leave them out")
    context = None if problem.context is None else problem.context.with_arms(n, features)
    actions = problem.actions if actions is None else actions
    return problem.changed(n_arms=problem.n_arms + n, actions=actions, support=support, context=context)


def with_prices(
    actions: Actions, policy: Policy[Any], prices: dict[int, float], budget: float | None
) -> tuple[Actions, Policy[Any]]:
    """The action set and the policy, of which one has the costs of arms, with other ``prices`` by number and budget.

    >>> with_prices(Knapsack([1.0, 2.0], 2.0), SpendLadder(1.0), {1: 1.5, 2: 0.5}, None)[0]
    Knapsack(costs=[1.0, 1.5, 0.5], budget=2)
    """
    inner = getattr(policy, "policy", None)
    if isinstance(inner, Policy) and not isinstance(actions, Knapsack):  # the one that another policy wraps
        actions, inner = with_prices(actions, inner, prices, budget)
        return actions, replace(policy, policy=inner)  # type: ignore[call-arg]
    oracle = getattr(policy, "oracle", None)
    owner: Any = actions if isinstance(actions, Knapsack) else oracle if isinstance(oracle, Ladder) else policy
    if not isinstance(owner, Knapsack | Ladder | SpendLadder) or owner.costs is None:
        wrong = "no arm has a price: costs are learnt, or there are none"
        raise InvalidArgument("prices", wrong, "leave them out, or begin with Knapsack(costs, budget) or ladder(costs)")
    if budget is not None and isinstance(owner, Ladder):
        raise InvalidArgument("budget", "the ladder has a worth, and no budget", "take ladder(costs, spend=…)")
    n_known = len(owner.costs)
    n_arms = max(n_known, 1 + max(prices, default=0))
    costs = np.pad(owner.costs, (0, n_arms - n_known))
    costs[list(prices)] = list(prices.values())
    limit: Any = {} if budget is None else {"budget" if owner is actions else "spend": budget}
    owner = replace(owner, costs=costs, **limit)
    if isinstance(owner, Knapsack):
        return owner, policy
    own = replace(policy, oracle=owner) if isinstance(owner, Ladder) else owner  # type: ignore[call-arg]
    return with_room(actions, policy, n_known, n_arms - n_known), own


def with_room(actions: Actions, policy: Policy[Any], n_arms: int, n: int) -> Actions:
    """The action set with room for ``n`` more arms, if it is that of a ladder and had room for all ``n_arms``.

    >>> with_room(Subsets(2), SpendLadder(1.0), 2, 1), with_room(Subsets(2), SpendLadder(1.0), 3, 1)
    (Subsets(k=3), Subsets(k=2))
    """
    inner = getattr(policy, "policy", None)
    if isinstance(inner, Policy):
        return with_room(actions, inner, n_arms, n)
    ladder = isinstance(policy, SpendLadder) or isinstance(getattr(policy, "oracle", None), Ladder)
    return Subsets(n_arms + n) if ladder and type(actions) is Subsets and actions.k == n_arms else actions


def require_actions(problem: Problem, actions: Any) -> None:
    """Raise ``InvalidArgument`` if new arms need ``actions``: nothing limits an arm in no family of a laminar set."""
    if problem.actions.alike is not None or (actions is not None and actions.alike is not None):
        raise InvalidArgument("arms", "the arms are copies", "make a new agent for other copies")
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


def _require_items(problem: Problem) -> None:
    """Refuse to change items that are thresholds of scores."""
    if problem.thresholds is not None:
        raise InvalidArgument("items", "they are thresholds of scores", "make a new agent for another scale")


def with_items(problem: Problem, weights: Any) -> Problem:
    """``problem`` with one more item for each of ``weights``; every arm may touch it."""
    _require_items(problem)
    if not isinstance(problem.support, Dense):
        raise InvalidArgument("items", "the support is sparse", "new items of a sparse problem need a new problem")
    more = np.concatenate([problem.weights, np.asarray(weights, float)])
    return problem.changed(n_items=len(more), weights=more, support=None)


def without_items(problem: Problem, items: Ints) -> Problem:
    """``problem`` with the weight 0 for some items."""
    _require_items(problem)
    weights = problem.weights.copy()
    weights[items] = 0.0
    return problem.changed(weights=weights)
