"""The bounds of ``superarm.theory`` as curves over the rounds, on the instances that they apply to."""

import functools
import inspect
from typing import Any

import numpy as np

from superarm import theory
from superarm.actions import Explicit
from superarm.arrays import Floats, Ints
from superarm.environments import Comonotone, has_own_reward
from superarm.environments.traits import partial
from superarm.errors import SuperarmError
from superarm.experiments.spec.claim_kinds import BOUNDS
from superarm.simulation import Instance


def bound_curve(name: str, instance: Instance, rounds: Ints) -> Floats | None:
    """The bound ``theory.<name>`` at each of ``rounds``; None if it does not apply to this instance."""
    function = getattr(theory, name)
    if not _observes_batch(instance) or (name == "lower_bound" and not _is_lower_bound_instance(instance)):
        return None
    known = {"known": _find_gaps(_ByIdentity(instance))} if "known" in inspect.signature(function).parameters else {}
    try:
        values = np.asarray(function(instance, np.asarray(rounds, float), **known), float)
    except SuperarmError:  # the bound does not apply here
        return None
    return values if values.shape == np.shape(rounds) and np.isfinite(values).all() else None


def bound_curves(instance: Instance, rounds: Ints, target: str) -> dict[str, Floats]:
    """Every bound that applies, by its label.

    The upper bounds are of regret against :math:`\\alpha\\beta\\,r_{\\max}`. With an exact oracle all targets are equal
    to it; with an approximate oracle the other targets are higher, and no bound is shown for them.
    """
    from superarm.oracles import Default

    exact = Default().guarantee(instance.problem).alpha == 1.0
    names = BOUNDS if target == "approximation" or exact else {}
    found = {label: bound_curve(name, instance, rounds) for name, label in names.items()}
    return {label: values for label, values in found.items() if values is not None}


class _ByIdentity:
    """An instance as a dictionary key, compared by identity: arrays cannot be hashed."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance

    def __hash__(self) -> int:
        return id(self.instance)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.instance is self.instance


@functools.lru_cache(maxsize=64)
def _find_gaps(key: _ByIdentity) -> Any:
    """The gaps of an instance, which all its bounds share; None if they cannot be computed."""
    try:
        return theory.gaps(key.instance)
    except (AttributeError, SuperarmError):
        return None


def _observes_batch(instance: Instance) -> bool:
    """Whether feedback shows exactly the arms of the batch, as the theorems assume."""
    return not partial(instance.environment) and not has_own_reward(instance.environment)


def _is_lower_bound_instance(instance: Instance) -> bool:
    """Whether this is the instance of the paper's lower bound, the only one it holds for."""
    problem = instance.problem
    shape = isinstance(problem.actions, Explicit) and isinstance(instance.environment, Comonotone)
    return shape and problem.actions.n_batches(problem.n_arms) == problem.n_arms - problem.k + 1
