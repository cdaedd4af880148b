"""What an index says of itself beyond the protocol, with one accessor for each: see ``IndexHooks``."""

from superarm.indices.base import Index


def monotone(index: Index) -> bool:
    """Whether scores grow with the level, and levels with t and not with pulls; False unless the index says so."""
    return bool(getattr(index, "monotone", False))


def unclipped(index: Index) -> bool:
    """Whether scores may lie above 1; False unless the index says so."""
    return bool(getattr(index, "unclipped", False))


def caveat(index: Index) -> str:
    """What the index assumes that may not hold; empty unless the index says so."""
    return str(getattr(index, "caveat", ""))
