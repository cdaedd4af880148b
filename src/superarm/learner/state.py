"""Learners and tallies as plain dicts that JSON can hold, and back."""

from typing import Any

import numpy as np

from superarm.context.observations import ContextTally
from superarm.describe import build, describe
from superarm.learner.learner import Learner
from superarm.learner.rounds import CountedRounds
from superarm.policies import KeptRows, PolicyState
from superarm.tally import Tally


def tally_to_plain(tally: Tally) -> dict[str, Any]:
    """A tally as plain data; moments are left out if there are none."""
    left_out = () if tally.moments.size else ("reference", "moments", "products")
    return {field: describe(values) for field, values in tally._asdict().items() if field not in left_out}


def tally_from_plain(plain: dict[str, Any]) -> Tally:
    """The tally that ``tally_to_plain`` described."""
    fields = {field: build(values) for field, values in plain.items()}
    sums = [fields.pop(field) for field in ("precision", "response") if field in fields]
    made: Any = ContextTally(*Tally(**fields), *sums) if sums else Tally(**fields)
    return made  # type: ignore[no-any-return]


def policy_state_to_plain(held: PolicyState | None) -> dict[str, Any] | None:
    """What a policy keeps beside the tally, as plain data."""
    if held is None:
        return None
    plain: dict[str, Any] = {"newest": held.newest, "blocks": [tally_to_plain(block) for block in held.blocks]}
    return plain | ({} if held.kept is None else {"kept": [describe(part) for part in held.kept]})


def policy_state_from_plain(plain: dict[str, Any] | None) -> PolicyState | None:
    """What ``policy_state_to_plain`` described."""
    if plain is None:
        return None
    kept = KeptRows(*(build(part) for part in plain["kept"])) if "kept" in plain else None
    return PolicyState(plain["newest"], [tally_from_plain(block) for block in plain["blocks"]], kept)


def learner_to_plain(learner: Learner) -> dict[str, Any]:
    """A learner as plain data, but for its pending pulls, which follow from the decisions that are pending."""
    plain = {
        "problem": describe(learner.problem),
        "policy": describe(learner.policy),
        "tally": tally_to_plain(learner.tally),
        "kept": policy_state_to_plain(learner.state),
        "asked": learner.asked,
        "arms": learner.arms.to_plain(),
        "items": learner.items.to_plain(),
        "retired": np.flatnonzero(learner.retired).tolist(),
    }
    if learner.retired_items:
        plain["retired_items"] = sorted(learner.retired_items)
    if learner.contexts is not None:
        plain["contexts"] = learner.contexts.to_plain()
    if learner.version:
        plain["roundings"] = [describe(rounding) for rounding in learner.roundings]
        plain["counted_rounds"] = list(learner.counted_rounds)
    if learner.moments_since:
        plain["moments_since"] = learner.moments_since
    return plain


def learner_from_plain(plain: dict[str, Any]) -> Learner:
    """The learner that ``learner_to_plain`` described, without pending pulls."""
    learner = Learner(build(plain["problem"]), build(plain["policy"]), plain["arms"], plain["items"])
    learner.retired[plain["retired"]] = True
    learner.retired_items = set(plain.get("retired_items", ()))
    if "roundings" in plain:
        learner.roundings = [build(rounding) for rounding in plain["roundings"]]
        learner.counted_rounds = CountedRounds(*plain["counted_rounds"])
    learner.moments_since = plain.get("moments_since", 0)
    if learner.contexts is not None:
        learner.contexts.from_plain(plain["contexts"])
    counts = np.zeros(len(learner.pending))
    learner.restore(
        tally_from_plain(plain["tally"]), counts, plain["asked"], policy_state_from_plain(plain.get("kept"))
    )
    return learner
