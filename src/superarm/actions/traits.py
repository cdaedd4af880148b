"""Optional properties of action sets, one accessor for each: see ``ActionHooks``.

If a set does not define one, the weakest value is assumed.
"""

import math
from typing import Any

from superarm.actions.base import Actions
from superarm.parameters import has_method


def is_action_set(value: Any) -> bool:
    """Whether ``value`` is an action set, rather than a class of them or something else."""
    return has_method(value, "admits")


def tractable(actions: Actions) -> bool:
    """Whether ``heaviest`` is exact, so that modular rewards are maximised exactly."""
    return bool(getattr(actions, "tractable", actions.matroid))


def exchange(actions: Actions) -> float:
    r"""The p of a p-system: within any set of arms, no maximal batch is more than p times as large as another one.

    Greedy has alpha = 1/p for modular and 1/(p + 1) for monotone submodular rewards, [FisherNemhauserWolsey1978]_.
    p is 1 for a matroid, and infinite where nothing is known.
    """
    return float(getattr(actions, "exchange", 1.0 if actions.matroid else math.inf))


def budgeted(actions: Actions) -> bool:
    """Whether batches are limited by a budget: the set has the verbs ``cost`` and ``budget``."""
    return bool(getattr(actions, "budgeted", False))


def uniform(actions: Actions) -> bool:
    """Whether any k arms may be played, or any k that include the pinned ones."""
    return bool(getattr(actions, "uniform", False))
