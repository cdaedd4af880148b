"""Learners and decisions as plain dicts that JSON can hold, and back.

What a policy knows is stored as the arrays of its ``Memory``, under names that only the policy reads.
"""

from typing import Any

import msgspec
import numpy as np

from superarm.agent.decisions import Decision, Decisions, MadeDecision, Record
from superarm.agent.learner import Learner
from superarm.decisions import DecisionRecord
from superarm.describe import build, describe

STATE_VERSION = 3


def learner_to_plain(learner: Learner) -> dict[str, Any]:
    """A learner as plain data, but for its pending pulls, which follow from the decisions that are pending."""
    plain: dict[str, Any] = {
        "problem": describe(learner.problem),
        "policy": describe(learner.declared),
        "memory": {name: describe(part) for name, part in learner.memory.to_arrays().items()},
        "asked": learner.asked,
        "arms": learner.arms.to_plain(),
        "items": learner.items.to_plain(),
        "retired": np.flatnonzero(learner.retired).tolist(),
        "retired_items": sorted(learner.retired_items),
        "roundings": list(learner.roundings),
    }
    if learner.contexts is not None:
        plain["contexts"] = learner.contexts.to_plain()
    return plain


def learner_from_plain(plain: dict[str, Any]) -> Learner:
    """The learner that ``learner_to_plain`` described, without pending pulls."""
    learner = Learner(build(plain["problem"]), build(plain["policy"]), plain["arms"], plain["items"])
    learner.retired[plain["retired"]] = True
    learner.retired_items = set(plain["retired_items"])
    learner.roundings = list(plain["roundings"])
    if learner.contexts is not None:
        learner.contexts.from_plain(plain["contexts"])
    learner.restore({name: build(part) for name, part in plain["memory"].items()}, plain["asked"])
    return learner


def decisions_to_plain(decisions: Decisions) -> dict[str, Any]:
    """All decisions as plain data."""
    records = [*decisions.pending.values(), *decisions.told.values()]
    return {"remember": decisions.remember, "records": [_record_to_plain(record) for record in records]}


def decisions_from_plain(plain: dict[str, Any], learner: Learner) -> Decisions:
    """The decisions that ``decisions_to_plain`` described."""
    decisions = Decisions(plain["remember"])
    for one in plain["records"]:
        decisions.put(_record_from_plain(one, learner))
    return decisions


def _record_to_plain(record: Record) -> dict[str, Any]:
    made = record.asked
    plain = {"id": made.id, "t": made.t, "action": list(made.action), "n_items": made.n_items, "version": made.version}
    rest = {"widths": made.widths, "items": made.items, "silence": made.silence, "words": made.words}
    plain |= {name: value for name, value in rest.items() if value is not None}
    if made.context is not None:
        plain["context"] = made.context.to_plain()
    state = msgspec.to_builtins(msgspec.structs.replace(record, asked=None))
    left_out = {"asked", "action", "widths", *(name for name in ("totals", "aside") if not state[name])}
    return {"made": plain, "state": {name: state[name] for name in state if name not in left_out}}


def _record_from_plain(plain: dict[str, Any], learner: Learner) -> Record:
    given = plain["made"]
    action = np.array(given["action"], np.int64)
    action.flags.writeable = False
    decision = Decision(given["id"], given["t"], action, tuple(learner.arms.all[j] for j in given["action"]))
    context = None
    if "context" in given:
        from superarm.contextual.history import DecisionContext

        context = DecisionContext.from_plain(given["context"])
    widths, items = (None if given.get(name) is None else tuple(given[name]) for name in ("widths", "items"))
    made = MadeDecision(
        decision,
        tuple(given["action"]),
        given["n_items"],
        given["version"],
        widths,
        items,
        given.get("silence"),
        context,
        given.get("words"),
        learner.problem.reward.totals,
    )
    state = {"asked": None, "action": given["action"], "widths": widths, **plain["state"]}
    return msgspec.structs.replace(msgspec.convert(state, DecisionRecord[Any]), asked=made)
