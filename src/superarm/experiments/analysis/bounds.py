"""The bounds of ``superarm.theory`` as curves over the rounds, on the instances that they apply to."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.describe import build
from superarm.experiments import store
from superarm.experiments.store import CellResults
from superarm.oracles import Guarantee
from superarm.policies import Policy
from superarm.simulation import Instance, Results, Target
from superarm.simulation.regret import Bracket
from superarm.theory import Bound
from superarm.theory.theorems import KINDS, THEOREMS, Question, evaluate

if TYPE_CHECKING:
    from superarm.experiments.execution.cells import Cell


SHOWN = tuple(name for name in THEOREMS if name.startswith(tuple(KINDS)))
"""The bounds from above, those of the mean over a prior among them."""


def bound_curve(name: str, instance: Instance, rounds: Ints, policy: Policy[Any] | None) -> Floats | None:
    """What the theorem ``name`` says at each of ``rounds``; None if it is not about this policy on this instance.

    An upper bound is computed from the guarantee of the policy's own oracle, like the regret that it is compared with.
    """
    if policy is None:
        return None
    bound = evaluate(name, Question(instance, policy, np.asarray(rounds, float)))
    return bound.value if _is_usable(bound) else None


def _is_usable(bound: Bound) -> bool:
    """Whether it applies, and is finite."""
    return bound.applies and bool(np.isfinite(bound.value).all())


def rebuild_policy(record: CellResults) -> Policy[Any] | None:
    """The policy of a cell; None if it has a component of the user's own that is not imported here."""
    try:
        policy: Policy[Any] = build(record.metadata["policy"])
    except InvalidArgument:
        return None
    return policy


def bound_curves(
    instance: Instance, rounds: Ints, target: str, policies: Mapping[str, Policy[Any]]
) -> dict[str, Bound]:
    """Every bound from above that covers one of ``policies``, by a label that names the policy.

    The bounds are of regret against :math:`\\alpha\\beta\\,r_{\\max}`. With an exact oracle all targets are equal
    to it; with an approximate oracle the other targets are higher, and no bound is shown for them.
    """
    found = dict[str, Bound]()
    for label, policy in policies.items():
        if target == "approximation" or policy.guarantee(instance.problem) == Guarantee(1.0, 1.0):
            case = Question(instance, policy, np.asarray(rounds, float))
            bounds = [evaluate(name, case) for name in SHOWN]
            found |= {f"{label}: {bound.label}": bound for bound in bounds if _is_usable(bound)}
    return found


def explain_no_bounds(instance: Instance, target: str, policies: Mapping[str, Policy[Any]]) -> str:
    """Why ``bound_curves`` finds nothing, as a sentence."""
    cases = [Question(instance, policy, np.ones(1)) for policy in policies.values()]
    covered = [case for case in cases if any(evaluate(name, case).applies for name in SHOWN)]
    if not covered:
        return "No theorem of superarm.theory covers one of these policies on this instance."
    if target != "approximation" and all(case.guarantee != Guarantee(1.0, 1.0) for case in covered):
        return (
            "The bounds are of regret against what the oracle guarantees, and the oracle is not exact here: "
            f'target = "approximation" shows them, target = "{target}" does not.'
        )
    return "The gaps that the bounds need are not known on this instance."


def read_results(directory: Path, cells: "Sequence[Cell]") -> Results | None:
    """The results of the cells of one instance in ``directory``, by policy; None unless it has them all."""
    if not all(store.has_cell(directory, cell.digest) for cell in cells):
        return None
    found = {cell.policy_case.label: store.read_cell(directory, cell.digest) for cell in cells}
    return Results(
        rounds=cells[0].recorded_rounds,
        regret={label: one.regret for label, one in found.items()},
        pulls={label: one.pulls for label, one in found.items()},
        targets={label: _read_target(one) for label, one in found.items()},
        seconds={label: float(one.seconds.sum()) for label, one in found.items()},
        complete=True,
    )


def _read_target(record: CellResults) -> Target:
    kind, value, r_max = (record.metadata["target"][key] for key in ("kind", "value", "r_max"))
    return Target(kind, value, Bracket(*r_max) if r_max else None)
