"""Action sets: which batches may be played, as masks over all arms at once."""

from superarm.next.actions.base import Actions
from superarm.next.actions.subsets import Subsets

__all__ = ["Actions", "Subsets"]
