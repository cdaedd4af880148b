"""The seam to ``superarm.theory``: bounds as curves, where they apply."""

import functools
import inspect
from typing import Any

import numpy as np

from superarm import theory
from superarm.actions import Explicit
from superarm.arrays import Floats, Ints
from superarm.environments import Comonotone, tells_worth
from superarm.errors import SuperarmError
from superarm.simulation import Instance

NAMES = {
    "upper_bound": "BC-UCB: Theorem 1 as in the paper",
    "upper_bound_sharp": "BC-UCB: sharpened constants",
    "upper_bound_gap_free": "BC-UCB: gap-free corollary",
    "upper_bound_kl": "KL-UCB with 3 log t",
    "upper_bound_wang_chen": "CUCB: Wang and Chen",
    "lower_bound": "lower bound: exact rate · log t",
}


def curve(name: str, instance: Instance, rounds: Ints) -> Floats | None:
    """A bound at each of ``rounds``; None where theory has no such bound for this instance."""
    function = getattr(theory, name)
    if not _seen_whole(instance) or (name == "lower_bound" and not _is_lower_bound_instance(instance)):
        return None
    known = {"known": _gaps(_Key(instance))} if "known" in inspect.signature(function).parameters else {}
    try:
        values = np.asarray(function(instance, np.asarray(rounds, float), **known), float)
    except SuperarmError:  # it says that it does not apply here
        return None
    return values if values.shape == np.shape(rounds) and np.isfinite(values).all() else None


def curves(instance: Instance, rounds: Ints, target: str) -> dict[str, Floats]:
    """Every bound that applies, by its words.

    The upper bounds are of regret against :math:`\\alpha\\beta\\,r_{\\max}`. With an exact oracle all targets are that
    one; with an approximate oracle the others ask for more, and no bound is shown for them.
    """
    from superarm.oracles import Default

    exact = Default().guarantee(instance.problem).alpha == 1.0
    names = NAMES if target == "approximation" or exact else {}
    found = {words: curve(name, instance, rounds) for name, words in names.items()}
    return {words: values for words, values in found.items() if values is not None}


class _Key:
    """An instance as a key: by identity, since arrays have no hash."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance

    def __hash__(self) -> int:
        return id(self.instance)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.instance is self.instance


@functools.lru_cache(maxsize=64)
def _gaps(key: _Key) -> Any:
    """The gaps of an instance, which all its bounds share; None where theory cannot tell them."""
    try:
        return theory.gaps(key.instance)
    except (AttributeError, SuperarmError):
        return None


def _seen_whole(instance: Instance) -> bool:
    """Whether every arm of a batch is observed and no other, as the theorems suppose."""
    return not getattr(instance.environment, "partial", False) and not tells_worth(instance.environment)


def _is_lower_bound_instance(instance: Instance) -> bool:
    """Whether this is the paper's instance, on which alone the lower bound is one."""
    problem = instance.problem
    shape = isinstance(problem.actions, Explicit) and isinstance(instance.environment, Comonotone)
    return shape and problem.actions.n_batches(problem.n_arms) == problem.n_arms - problem.k + 1
