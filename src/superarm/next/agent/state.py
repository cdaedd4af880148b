"""Learners, tallies and decisions as plain dicts that JSON can hold, and back.

Arrays on disk are flat, arm after arm, whatever their layout in memory; segments stand one after the other. Version 1
was written by the compiled engine: it has other names of components, which ``core.describe`` translates, and sums that
are not kept any longer.
"""

from typing import Any

import numpy as np

from superarm.arrays import Floats
from superarm.next.agent.decisions import Decision, DecisionEntry, Decisions
from superarm.next.agent.learner import Learner
from superarm.next.core.describe import build, describe
from superarm.next.core.moments import INTERVALS, Moments
from superarm.next.core.support import AnySupport, Dense
from superarm.next.core.tally import Tally

STATE_VERSION = 2


def learner_to_plain(learner: Learner) -> dict[str, Any]:
    """A learner as plain data, but for its pending pulls, which follow from the decisions that are pending."""
    plain: dict[str, Any] = {
        "problem": describe(learner.problem),
        "policy": describe(learner.declared),
        "tally": tally_to_plain(learner.tally),
        "kept": held_to_plain(learner.held),
        "asked": learner.asked,
        "arms": learner.arms.to_plain(),
        "items": learner.items.to_plain(),
        "retired": np.flatnonzero(learner.retired).tolist(),
        "retired_items": sorted(learner.retired_items),
        "roundings": list(learner.roundings),
        "counted_rounds": [learner.first, learner.since],
        "moments_since": learner.moments_since,
    }
    return plain if learner.contexts is None else plain | {"contexts": learner.contexts.to_plain(learner.tally)}


def learner_from_plain(plain: dict[str, Any]) -> Learner:
    """The learner that ``learner_to_plain`` described, without pending pulls."""
    learner = Learner(build(plain["problem"]), build(plain["policy"]), plain["arms"], plain["items"])
    learner.retired[plain["retired"]] = True
    learner.retired_items = set(plain.get("retired_items", ()))
    if "roundings" in plain:
        learner.roundings = [build(rounding) for rounding in plain["roundings"]]
        learner.first, learner.since = plain["counted_rounds"]
    learner.moments_since = plain.get("moments_since", 0)
    tally = tally_from_plain(plain["tally"], learner.tally)
    if learner.contexts is not None:
        learner.contexts.from_plain(plain["contexts"], tally)
    learner.restore(tally, plain["asked"], held_from_plain(plain.get("kept"), learner.tally))
    return learner


def tally_to_plain(tally: Tally) -> dict[str, Any]:
    """A tally as plain data; ``missed`` and moments are left out if there are none."""
    support, moments = tally.support, tally.moments
    plain = {"pulls": tally.pulls, "total": _flat(support, tally.total), "square": _flat(support, tally.square)}
    if tally.missed.any():
        plain["missed"] = _flat(support, tally.missed)
    if isinstance(moments, Moments):
        sums = np.stack([moments.pulls, moments.average, moments.average_square], -1)[0]
        rows = (_rows(support, entries[0]) for entries in (moments.total, moments.square))
        plain["moments"] = np.concatenate([sums, moments.intervals[0], *rows], axis=1)
        plain |= {"reference": moments.reference, "products": moments.products}
    elif moments is not None:
        plain |= {"precision": moments.precision[0], "response": moments.response[0]}
    regression = ("precision", "response")
    return {name: describe(part if name in regression else part.reshape(-1)) for name, part in plain.items()}


def tally_from_plain(plain: dict[str, Any], like: Tally) -> Tally:
    """The tally that ``tally_to_plain`` described; ``like`` is one of the same problem and policy."""
    support, tally = like.support, like.like()
    stored = {name: build(values) for name, values in plain.items()}
    missed = stored.get("missed", np.zeros(0))
    tally.pulls[...] = stored["pulls"].reshape(tally.pulls.shape)
    tally.total[...], tally.square[...] = (_entries(support, stored[name]) for name in ("total", "square"))
    if missed.any():
        tally.allow_missing()
        tally.missed[...] = _entries(support, missed)
    tally.refresh()
    if stored.get("moments", missed[:0]).size:
        tally.moments = _moments(support, stored)
    elif "precision" in stored:
        tally.moments.precision[0], tally.moments.response[0] = stored["precision"], stored["response"]
    return tally


def held_to_plain(held: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a policy keeps beside the tally, as plain data."""
    if held is None:
        return None
    blocks = {"blocks": [tally_to_plain(block) for block in held["blocks"]]} if "blocks" in held else {}
    return {name: describe(value) for name, value in held.items() if name != "blocks"} | blocks


def held_from_plain(plain: dict[str, Any] | None, like: Tally) -> dict[str, Any] | None:
    """What ``held_to_plain`` described, or what version 1 wrote: a list of arrays for what logistic policies keep."""
    if plain is None:
        return None
    held = {name: build(value) for name, value in plain.items() if name not in ("blocks", "kept")}
    if plain.get("blocks"):
        held["blocks"] = [tally_from_plain(block, like) for block in plain["blocks"]]
    if "kept" in plain:
        names = ("rows", "bounds", "maps", "point", "marks")
        return dict(zip(names, (build(part) for part in plain["kept"]), strict=True))
    return held


def decisions_to_plain(decisions: Decisions, learner: Learner) -> dict[str, Any]:
    """All decisions as plain data."""
    return {
        "remember": decisions.remember,
        "open": [_decision_to_plain(entry, learner) for entry in decisions.pending.values()],
        "told": [[digest, _decision_to_plain(entry, learner)] for digest, entry in decisions.told.values()],
    }


def decisions_from_plain(plain: dict[str, Any], learner: Learner) -> Decisions:
    """The decisions that ``decisions_to_plain`` described."""
    decisions = Decisions(plain["remember"])
    decisions.pending = {one["id"]: _decision_from_plain(one, learner) for one in plain["open"]}
    decisions.told = {one["id"]: (digest, _decision_from_plain(one, learner)) for digest, one in plain["told"]}
    return decisions


def _decision_to_plain(entry: DecisionEntry, learner: Learner) -> dict[str, Any]:
    made, version = entry.decision, entry.version
    plain = {"id": made.id, "t": made.t, "action": made.action.tolist(), "n_items": entry.n_items, "version": version}
    if entry.context is None:
        return plain
    return plain | {"context": learner.contexts.decision_to_plain(learner.problem, entry), "words": entry.words}


def _decision_from_plain(plain: dict[str, Any], learner: Learner) -> DecisionEntry:
    action = np.array(plain["action"], np.int64)
    action.flags.writeable = False
    decision = Decision(plain["id"], plain["t"], action, tuple(learner.arms.all[j] for j in plain["action"]))
    context, n_items = None, plain["n_items"]
    if "context" in plain:
        context = learner.contexts.decision_from_plain(learner.problem, plain["context"], action, n_items)
    return DecisionEntry(decision, n_items, plain.get("version", 0), context, plain.get("words"))


def _flat(support: AnySupport, entries: Floats) -> Floats:
    """Entries of all replications, arm after arm."""
    return entries.swapaxes(1, 2) if isinstance(support, Dense) else entries


def _entries(support: AnySupport, flat: Floats) -> Floats:
    """The inverse of ``_flat``, of a flat array."""
    if isinstance(support, Dense):
        return flat.reshape(-1, support.n_arms, support.n_items).swapaxes(1, 2)
    return flat.reshape(-1, support.size)


def _rows(support: AnySupport, entries: Floats) -> Floats:
    """Entries of one replication as rows (n_arms, widest), padded with 0."""
    return support.rows(entries[None], np.arange(support.n_arms)[None])[0]


def _moments(support: AnySupport, stored: dict[str, Any]) -> Moments:
    moments = Moments(support, stored["reference"], 1, stored["products"].size > 0)
    table = stored["moments"].reshape(support.n_arms, -1)
    moments.pulls[0], moments.average[0], moments.average_square[0] = table[:, :3].T
    moments.intervals[0] = table[:, 3 : 4 + INTERVALS]
    for entries, first in ((moments.total, 4 + INTERVALS), (moments.square, 4 + INTERVALS + support.widest)):
        rows = table[:, first : first + support.widest]
        entries[0] = rows.T if isinstance(support, Dense) else rows[support.row_entries >= 0]
    moments.products[0] = stored["products"].reshape(support.n_arms, -1)
    moments.refresh()
    return moments
