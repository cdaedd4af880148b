"""What an action set says of itself beyond the protocol; sets that say nothing are taken at their least."""

import math

from superarm.actions.base import Actions


def tractable(actions: Actions) -> bool:
    """Whether ``heaviest`` is exact, so that modular rewards are maximised exactly."""
    return bool(getattr(actions, "tractable", actions.matroid))


def exchange(actions: Actions) -> float:
    r"""The p of a p-system: no maximal batch within any arms is more than p times as large as another one.

    Greedy is 1/p for modular and 1/(p + 1) for monotone submodular rewards, [FisherNemhauserWolsey1978]_;
    1 for a matroid, infinite where nothing is known.
    """
    return float(getattr(actions, "exchange", 1.0 if actions.matroid else math.inf))


def budgeted(actions: Actions) -> bool:
    """Whether batches are what a budget buys: the set has the verbs ``cost`` and ``budget``."""
    return bool(getattr(actions, "budgeted", False))


def uniform(actions: Actions) -> bool:
    """Whether any k arms, or any k with some pinned, may be played."""
    return bool(getattr(actions, "uniform", False))
