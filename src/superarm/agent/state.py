"""Learners and decisions as plain dicts that JSON can hold, and back.

What a policy knows is stored as the arrays of its ``Memory``, under names that only the policy reads.
"""

from typing import Any

import numpy as np

from superarm.agent.decisions import Decision, DecisionEntry, Decisions
from superarm.agent.learner import Learner
from superarm.core.describe import build, describe

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
    return {
        "remember": decisions.remember,
        "open": [_decision_to_plain(entry) for entry in decisions.pending.values()],
        "told": [[digest, _decision_to_plain(entry)] for digest, entry in decisions.told.values()],
    }


def decisions_from_plain(plain: dict[str, Any], learner: Learner) -> Decisions:
    """The decisions that ``decisions_to_plain`` described."""
    decisions = Decisions(plain["remember"])
    decisions.pending = {one["id"]: _decision_from_plain(one, learner) for one in plain["open"]}
    decisions.told = {one["id"]: (digest, _decision_from_plain(one, learner)) for digest, one in plain["told"]}
    return decisions


def _decision_to_plain(entry: DecisionEntry) -> dict[str, Any]:
    made, version = entry.decision, entry.version
    plain = {"id": made.id, "t": made.t, "action": made.action.tolist(), "n_items": entry.n_items, "version": version}
    plain |= {} if entry.items is None else {"items": list(entry.items)}
    if entry.context is None:
        return plain
    return plain | {"context": entry.context.to_plain(), "words": entry.words}


def _decision_from_plain(plain: dict[str, Any], learner: Learner) -> DecisionEntry:
    action = np.array(plain["action"], np.int64)
    action.flags.writeable = False
    decision = Decision(plain["id"], plain["t"], action, tuple(learner.arms.all[j] for j in plain["action"]))
    context = None
    if "context" in plain:
        from superarm.contextual.history import DecisionContext

        context = DecisionContext.from_plain(plain["context"])
    items = tuple(plain["items"]) if "items" in plain else None
    return DecisionEntry(decision, plain["n_items"], plain.get("version", 0), context, plain.get("words"), items)
