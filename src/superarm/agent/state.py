"""Learners, tallies and decisions as plain dicts that JSON can hold, and back.

Arrays on disk are flat, arm after arm, whatever their layout in memory; segments stand one after the other. Version 1
was written by the compiled engine: it has other names of components, which ``core.describe`` translates, and sums that
are not kept any longer.
"""

from typing import Any

import numpy as np

from superarm.agent.decisions import Decision, DecisionEntry, Decisions
from superarm.agent.growth import own_parts
from superarm.agent.learner import Learner
from superarm.core.arrays import Floats
from superarm.core.describe import build, describe
from superarm.core.moments import Moments
from superarm.core.support import AnySupport, Dense
from superarm.core.tally import Tally

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
    if learner.contexts is not None:
        plain["contexts"] = contexts_to_plain(learner)
    return plain


def contexts_to_plain(learner: Learner) -> dict[str, Any]:
    """The contexts of a learner, with the sums of every frame."""
    plain: dict[str, Any] = learner.contexts.to_plain()
    if "frames" in plain:
        by_frame = sorted(getattr(learner.tally.moments, "by_frame", {}).items())
        plain["frames"]["sums"] = [[version, describe(a[0]), describe(b[0])] for version, (a, b) in by_frame]
    return plain


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
        restore_contexts(learner, plain["contexts"], tally)
    learner.restore(tally, plain["asked"], held_from_plain(plain.get("kept"), learner.tally))
    return learner


def restore_contexts(learner: Learner, plain: dict[str, Any], tally: Tally) -> None:
    """Take on contexts, with the sums of every frame into ``tally``."""
    learner.contexts.from_plain(plain)
    sums, frames = tally.moments, learner.contexts.frames
    if sums is not None and "frames" in plain:
        sums.present, sums.maps = frames.frame.version, frames.user_maps()
        sums.by_frame = {version: (build(a)[None], build(b)[None]) for version, a, b in plain["frames"]["sums"]}


def tally_to_plain(tally: Tally) -> dict[str, Any]:
    """A tally as plain data; ``missed`` and moments are left out if there are none."""
    return {name: describe(part) for name, part in tally_to_arrays(tally).items()}


def tally_to_arrays(tally: Tally) -> dict[str, Floats]:
    """The sums of a tally, flat, but for the matrices of a regression."""
    support, moments = tally.support, tally.moments
    arrays = {"pulls": tally.pulls, "total": _flat(support, tally.total), "square": _flat(support, tally.square)}
    if tally.missed.any():
        arrays["missed"] = _flat(support, tally.missed)
    if isinstance(moments, Moments):
        arrays |= {"reference": moments.reference, "moments": moments.values, "products": moments.products}
    elif moments is not None:
        arrays |= {"precision": moments.precision[0], "response": moments.response[0]}
    regression = ("precision", "response")
    return {name: part if name in regression else part.reshape(-1) for name, part in arrays.items()}


def tally_from_plain(plain: dict[str, Any], like: Tally) -> Tally:
    """The tally that ``tally_to_plain`` described; ``like`` is one of the same problem and policy."""
    return tally_from_arrays({name: build(values) for name, values in plain.items()}, like)


def tally_from_arrays(stored: dict[str, Any], like: Tally) -> Tally:
    """The tally with these sums; ``like`` is one of the same problem and policy."""
    support, tally = like.support, like.like()
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
        for name in ("precision", "response"):
            own = getattr(tally.moments, name)
            own[0] = stored[name].reshape(own.shape[1:])
    return tally


def held_to_plain(held: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a policy keeps beside the tally, as plain data."""
    if held is None:
        return None
    blocks = {"blocks": [tally_to_plain(block) for block in held["blocks"]]} if "blocks" in own_parts(held) else {}
    return {name: describe(value) for name, value in held.items() if name not in blocks} | blocks


def held_from_plain(plain: dict[str, Any] | None, like: Tally) -> dict[str, Any] | None:
    """What ``held_to_plain`` described, or what version 1 wrote: a list of arrays for what logistic policies keep."""
    if plain is None:
        return None
    tallies = {"blocks"} & own_parts(plain)
    held = {name: build(value) for name, value in plain.items() if name not in tallies}
    if tallies and plain["blocks"]:
        held["blocks"] = [tally_from_plain(block, like) for block in plain["blocks"]]
    if isinstance(plain.get("kept"), list):
        names = ("rows", "bounds", "maps", "point", "marks")
        return dict(zip(names, (build(part) for part in plain["kept"]), strict=True))
    return held


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


def _flat(support: AnySupport, entries: Floats) -> Floats:
    """Entries of all replications, arm after arm."""
    return entries.swapaxes(1, 2) if isinstance(support, Dense) else entries


def _entries(support: AnySupport, flat: Floats) -> Floats:
    """The inverse of ``_flat``, of a flat array."""
    if isinstance(support, Dense):
        return flat.reshape(-1, support.n_arms, support.n_items).swapaxes(1, 2)
    return flat.reshape(-1, support.size)


def _moments(support: AnySupport, stored: dict[str, Any]) -> Moments:
    moments = Moments(support, stored["reference"], 1, stored["products"].size > 0)
    moments.fill(stored["moments"].reshape(moments.values.shape), stored["products"].reshape(moments.products.shape))
    moments.refresh()
    return moments
