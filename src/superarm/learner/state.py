"""Tallies, and what policies keep beside them, as plain dicts that JSON can hold, and back."""

from typing import Any

from superarm.describe import build, describe
from superarm.policies import Kept
from superarm.tally import Tally


def tally_to_plain(tally: Tally) -> dict[str, Any]:
    """A tally as plain data."""
    return {field: describe(values) for field, values in tally._asdict().items()}


def tally_from_plain(plain: dict[str, Any]) -> Tally:
    """The tally that ``tally_to_plain`` described."""
    return Tally(**{field: build(values) for field, values in plain.items()})


def kept_to_plain(held: Kept | None) -> dict[str, Any] | None:
    """What a policy keeps as plain data."""
    return None if held is None else {"newest": held.newest, "blocks": [tally_to_plain(block) for block in held.blocks]}


def kept_from_plain(plain: dict[str, Any] | None) -> Kept | None:
    """What ``kept_to_plain`` described."""
    return None if plain is None else Kept(plain["newest"], [tally_from_plain(block) for block in plain["blocks"]])
