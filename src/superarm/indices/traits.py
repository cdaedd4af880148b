"""Optional properties of indices, one accessor for each: see ``IndexHooks``."""

from superarm.indices.base import Index


def monotone(index: Index) -> bool:
    """Whether scores grow with the level, and levels with t and not with pulls; False by default."""
    return bool(getattr(index, "monotone", False))


def unclipped(index: Index) -> bool:
    """Whether scores may exceed 1; False by default."""
    return bool(getattr(index, "unclipped", False))


def inverts(index: Index) -> bool:
    """Whether a sampled score is an increasing function of one number of the stream; False by default."""
    return bool(getattr(index, "inverts", False))


def caveat(index: Index) -> str:
    """What the index assumes that may not hold; empty by default."""
    return str(getattr(index, "caveat", ""))
