"""What a remote agent sends and receives: decisions, explanations, arrays as JSON, checked rows of outcomes."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm.agent import Decision
from superarm.agent.explanations import ExplainedArm
from superarm.core.arrays import floats
from superarm.core.errors import InvalidArgument


@dataclass(frozen=True)
class RemoteDecision(Decision):
    """A decision of the service, with what it says beyond the slate.

    ``propensities`` are the chances of the arms, slot by slot; None where the policy itself is random. ``slots`` are
    the names of the slots that the arms are in, ``policy_arms`` the policy's slate where the answer is a baseline.
    ``state`` is the decision's state when it was asked for. ``inclusion`` is the chance of each arm to be in the slate;
    ``group`` is "policy" or "control" where the two are compared. ``signed_id`` is for a browser that sends feedback;
    None where the service takes no such feedback, or the decision was read later.
    """

    propensities: tuple[float, ...] | None = None
    slots: tuple[str, ...] | None = None
    policy_arms: tuple[str, ...] | None = None
    version: int = 1
    state: str = "open"
    inclusion: tuple[float, ...] | None = None
    group: str = ""
    signed_id: str | None = None


def read_decision(reply: Any) -> RemoteDecision:
    """The decision in an answer of the service."""
    action = np.array(reply["action"], np.int64)
    action.flags.writeable = False
    more: Any = {
        name: tuple(reply[name]) for name in ("propensities", "slots", "policy_arms", "inclusion") if name in reply
    }
    told = {"version": reply["version"], "state": reply["state"], "group": reply.get("group", "")}
    told["signed_id"] = reply.get("signed_id")
    return RemoteDecision(reply["id"], reply["t"], action, tuple(reply["arms"]), **more, **told)


def to_plain(value: Any) -> Any:
    """The same with lists in the place of arrays, and None in the place of NaN, which JSON does not have.

    >>> to_plain({"a": np.array([1.0, np.nan])})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {name: to_plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def read_explained_arm(reply: Any) -> ExplainedArm:
    """Why an arm was chosen, from an answer of the service."""
    effects = tuple((one["feature"], one["effect"]) for one in reply["features"])
    estimate, optimistic = (np.array(reply[name], float) for name in ("estimate", "optimistic"))
    return ExplainedArm(reply["arm"], estimate, optimistic, reply["gain"], reply["estimated_gain"], effects)


def check_row(row: Any, marks: Any) -> list[float | None]:
    """The values of a row; None where they may still come, 0 where nothing was or will be seen."""
    values = list(row)
    seen = [True] * len(values) if marks is None else [bool(mark) for mark in marks]
    if len(seen) != len(values):
        raise InvalidArgument("seen", f"{len(seen)} marks for {len(values)} values", "give it in the shape of outcome")
    known = [x if mark and x is not None else 0.0 for x, mark in zip(values, seen, strict=True)]
    checked = floats(known, "outcome", low=0.0, high=1.0).tolist()
    return [None if x is None and m else c for x, m, c in zip(values, seen, checked, strict=True)]
