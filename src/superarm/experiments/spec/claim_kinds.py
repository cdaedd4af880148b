"""The kinds of claims that an experiment can make, and their keys."""

from collections.abc import Mapping, Sequence
from typing import Any

from superarm.core.errors import InvalidSpec
from superarm.experiments.spec.resolve import check_choice
from superarm.theory.bound import LABELS
from superarm.theory.theorems import THEOREMS

_COMMON_KEYS = ("kind", "text", "instance")
_REQUIRED_KEYS = {
    "less": ("policy", "than"),
    "towards": ("policy", "than", "rivals"),
    "best": ("policy", "rivals"),
    "slope": ("policy", "against"),
    "growth": ("policy",),
    "bound": ("policy", "bound"),
    "reported": ("policy", "regret", "error"),
    "geometric": ("policy", "than", "below"),
    "locked": ("policy", "share"),
}
_OPTIONAL_KEYS = {
    "less": ("factor",),
    "towards": ("share",),
    "best": ("factor",),
    "slope": ("above", "below"),
    "growth": ("above", "below"),
    "bound": (),
    "reported": (),
    "geometric": (),
    "locked": (),
}
BOUNDS = {name: LABELS[name] for name in THEOREMS if name not in ("graves_lai", "lower_bound_gap_free")}
"""The bounds that a claim can name and that the report shows, with their labels."""


def check_claims(
    claims: Sequence[Mapping[str, Any]], instances: Mapping[str, Any], policies: Mapping[str, Any]
) -> None:
    """Refuse a claim of an unknown kind, with unknown or missing keys, or about something not in the experiment."""
    for n, claim in enumerate(claims):
        path = ("claims", str(n))
        kind = check_choice(claim.get("kind"), _REQUIRED_KEYS, (*path, "kind"), "kind of claim")
        valid = {"policy": policies, "than": policies, "rivals": policies, "instance": instances, "bound": BOUNDS}
        for key, value in claim.items():
            check_choice(key, (*_COMMON_KEYS, *_REQUIRED_KEYS[kind], *_OPTIONAL_KEYS[kind]), (*path, key), "key")
            if key in valid:
                what = "policy" if valid[key] is policies else key
                for name in as_list(value):
                    check_choice(name, valid[key], (*path, key), what)
        for key in _REQUIRED_KEYS[kind]:
            if key not in claim:
                raise InvalidSpec(path, f"a claim of kind {kind!r} lacks {key!r}", f"add {key} = …")
        if kind in ("slope", "growth") and ("above" in claim) == ("below" in claim):
            raise InvalidSpec(path, "not exactly one of above and below", "give one limit: above = … or below = …")


def as_list(value: Any) -> list[Any]:
    """A list of names as it is, and a single name as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]
