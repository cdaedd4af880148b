"""The bounds of ``superarm.theory`` as curves over the rounds, on the instances that they apply to."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from superarm import theory
from superarm.actions import Explicit
from superarm.core.arrays import Floats, Ints
from superarm.core.describe import build
from superarm.core.errors import InvalidArgument, SuperarmError
from superarm.environments import Bernoulli, Comonotone
from superarm.experiments.spec.experiment import BOUNDS
from superarm.experiments.store import CellResults
from superarm.oracles import Guarantee
from superarm.policies import Policy
from superarm.simulation import Instance
from superarm.theory.theorems import evaluate, guarantee_of, theorems_for, theorems_on


def bound_curve(name: str, instance: Instance, rounds: Ints, policy: Policy | None) -> Floats | None:
    """The bound ``theory.<name>`` at each of ``rounds``; None if it does not apply to this instance.

    An upper bound is computed from the guarantee of the policy's own oracle, like the regret that it is compared with.
    """
    if name in LOWER:
        return _lower_curve(name, instance, rounds)
    if policy is None or name not in theorems_on(instance):
        return None
    known = _find_gaps(_ByIdentity(instance), guarantee_of(policy, instance.problem).alpha)
    bound = None if known is None else evaluate(name, instance, np.asarray(rounds, float), known)
    return bound.value if bound is not None and np.isfinite(bound.value).all() else None


def rebuild_policy(record: CellResults) -> Policy | None:
    """The policy of a cell; None if it has a component of the user's own that is not imported here."""
    try:
        policy: Policy = build(record.metadata["policy"])
    except InvalidArgument:
        return None
    return policy


def _lower_curve(name: str, instance: Instance, rounds: Ints) -> Floats | None:
    if not theorems_on(instance) or instance.environment.partial or not LOWER[name](instance):
        return None
    try:
        return np.asarray(getattr(theory, name)(instance, np.asarray(rounds, float)), float)
    except SuperarmError:  # the bound does not apply here
        return None


def bound_curves(instance: Instance, rounds: Ints, target: str, policies: Mapping[str, Policy]) -> dict[str, Floats]:
    """Every bound that covers one of ``policies``, by its label, which names the policy for upper bounds.

    The upper bounds are of regret against :math:`\\alpha\\beta\\,r_{\\max}`. With an exact oracle all targets are equal
    to it; with an approximate oracle the other targets are higher, and no bound is shown for them.
    """
    found = dict[str, Floats | None]()
    for label, policy in policies.items():
        exact = guarantee_of(policy, instance.problem) == Guarantee(1.0, 1.0)
        if target == "approximation" or exact:
            for name in theorems_for(policy, instance):
                found[f"{label}: {BOUNDS[name]}"] = bound_curve(name, instance, rounds, policy)
        if exact:
            found |= {BOUNDS[name]: bound_curve(name, instance, rounds, policy) for name in LOWER}
    return {label: values for label, values in found.items() if values is not None}


def explain_no_bounds(instance: Instance, target: str, policies: Mapping[str, Policy]) -> str:
    """Why ``bound_curves`` finds nothing, as a sentence."""
    covered = [policy for policy in policies.values() if theorems_for(policy, instance)]
    if not covered:
        return "No theorem of superarm.theory covers one of these policies on this instance."
    exact = any(guarantee_of(policy, instance.problem) == Guarantee(1.0, 1.0) for policy in covered)
    if target != "approximation" and not exact:
        return (
            "The bounds are of regret against what the oracle guarantees, and the oracle is not exact here: "
            f'target = "approximation" shows them, target = "{target}" does not.'
        )
    return "The gaps that the bounds need are not known on this instance."


class _ByIdentity:
    """An instance as a dictionary key, compared by identity: arrays cannot be hashed."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance

    def __hash__(self) -> int:
        return id(self.instance)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.instance is self.instance


@functools.lru_cache(maxsize=64)
def _find_gaps(key: _ByIdentity, alpha: float) -> Any:
    """The gaps of an instance, which the bounds of several policies share; None if they cannot be computed."""
    try:
        return theory.gaps(key.instance, alpha=alpha)
    except (AttributeError, SuperarmError):
        return None


def _is_lower_bound_instance(instance: Instance) -> bool:
    """Whether this is the instance of the paper's lower bound, the only one it holds for."""
    return _has_single_choices(instance) and isinstance(instance.environment, Comonotone)


def _is_independent_instance(instance: Instance) -> bool:
    """Whether this is the same instance with independent items."""
    return _has_single_choices(instance) and isinstance(instance.environment, Bernoulli)


def _has_single_choices(instance: Instance) -> bool:
    problem = instance.problem
    return isinstance(problem.actions, Explicit) and (
        problem.actions.n_batches(problem.n_arms) == problem.n_arms - problem.k + 1
    )


LOWER = {"lower_bound": _is_lower_bound_instance, "lower_bound_independent": _is_independent_instance}
"""The lower bounds that reports show, and on which instances."""
