"""The events of a decision after it was made. ``at`` is wall-clock milliseconds, for people: nothing depends on it."""

from msgspec import Struct

ALL, UNSEEN, UNKNOWN = -1, -1.0, -2.0
"""The item that means all items; the value of what was not observed, and that of what may still be observed."""

Unit = tuple[int, int, float]
"""Arm, item (or ``ALL``), value (or ``UNSEEN``). In a sparse problem the item is its place among those of the arm."""

Part = tuple[tuple[int, ...], float, int]
"""Arms of a decision in increasing order, what they did together, and of how many trials that is the mean."""


class Event(Struct, frozen=True, tag=str.lower, omit_defaults=True, gc=False):
    """One line of the log."""

    at: int


class Told(Event, frozen=True):
    """Feedback of a decision; ``amend`` replaces what was told, ``learn=False`` is late and only logged.

    ``others`` are the arms outside of the slate that it is about, each with how many items it has. ``rows`` are whole
    rows of arms, as they are after it, one value per item; a value there may be ``UNKNOWN``: it stays pending. After
    the ``last`` feedback nothing is pending. ``totals`` are those of the decision or of parts of it, where only totals
    are told.
    """

    units: list[Unit]
    amend: bool = False
    late: bool = False
    learn: bool = True
    others: tuple[tuple[int, int], ...] = ()
    rows: tuple[tuple[int, tuple[float, ...]], ...] = ()
    last: bool = False
    totals: tuple[Part, ...] = ()


class Activated(Event, frozen=True):
    """A decision was shown: as asked for, or as ``shown``, whose arms have ``widths`` items."""

    shown: tuple[int, ...] | None = None
    widths: tuple[int, ...] | None = None


class Expired(Event, frozen=True):
    """The window of a decision ended: what was pending counts as ``fill``, or not at all."""

    fill: float | None = None


class Erased(Event, frozen=True):
    """A decision was erased: it counts no longer, and a compaction removes its events."""
