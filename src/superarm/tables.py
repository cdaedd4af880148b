"""Tables: slates that were chosen in advance, from which any program decides by one hash, without asking anybody.

A table is an immutable document of R slates for each segment. The row of a decision is a function of the table and of
the decision's id, the same in every language; ``tests/data/table-cases.json`` has ids with their rows.
"""

import hashlib
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense
from superarm.core.tally import GRID, Tally
from superarm.decisions.names import Given, names_for
from superarm.problem import Problem
from superarm.warehouse import segment_number

__all__ = ["Control", "Pattern", "Served", "StaleTable", "Table", "lifetime"]

MAX_ROWS = 2**16
"""So many rows times 32 bits of a hash are exact in the numbers of JavaScript."""

EVERYBODY = ""
"""The segment of problems without segments, and of visitors whose segment a table does not have."""


class StaleTable(UserWarning):
    """A table served more decisions than it should."""


class Served(NamedTuple):
    """A decision from a table: the names of the arms in their order, and where they come from.

    ``row`` is that of the segment's slates, or -1 for the control slate. An event that says (version, segment, row) and
    what was clicked is all that learning needs.
    """

    arms: tuple[str, ...]
    row: int
    segment: str
    version: int


class Pattern(NamedTuple):
    """How often a row of a table was shown with the same clicks: bit s of ``mask`` is the place s, from 0."""

    version: int
    segment: str
    row: int
    mask: int
    n: int


class Control(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who gets the control slate.

    Parameters
    ----------
    share
        The share of ids that get it.
    slates
        The slate by segment, or for everybody under "".
    """

    share: float = 0.0
    slates: dict[str, list[list[int]]] = {}


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Slates by segment, to decide from: ``Agent.publish()`` makes one, ``Table.load`` reads one.

    Parameters
    ----------
    problem
        What it is for.
    version
        Of two versions the larger number is newer, whichever arrived last.
    salt
        What is hashed before an id. It holds the version, so that an id gets another row in every version.
    arms
        The names of all arms; slates hold their numbers.
    k
        The size of the largest slate.
    slates
        The rows of each segment, and those of everybody else under "".
    by
        The features whose levels are the segments.
    control
        Who gets the control slate.
    lifetime
        How many decisions it should serve at most.
    expires
        Until when it may be used, as ISO 8601; null for no limit. Nothing here reads a clock.
    format
        The version of this format.
    digest
        The SHA-256 of the document with an empty `digest`.

    Examples
    --------
    >>> table = Table("shop", 7, "shop.7", ("tent", "stove", "mug"), 2, {"": [[0, 1], [2, 0]]})
    >>> table.decide("visit-1")
    Served(arms=('tent', 'stove'), row=0, segment='', version=7)
    >>> table.inclusion()[""]
    array([1. , 0.5, 0.5])
    """

    problem: str
    version: int
    salt: str
    arms: tuple[str, ...]
    k: int
    slates: dict[str, list[list[int]]]
    by: str = ""
    control: Control = Control()
    lifetime: int = 0
    expires: str | None = None
    format: int = 1
    digest: str = ""

    def decide(self, id: str, segment: str = EVERYBODY, eligible: Iterable[str] | None = None) -> Served:
        """The slate of a decision, whose ``id`` is a string of your own.

        With ``eligible`` arms it is the next row, in a circle, that holds no other arm, or else the control slate.
        """
        if not isinstance(id, str):
            raise InvalidArgument("id", f"{id!r} is not a string", "write it as one: languages write numbers unlike")
        own = segment if segment in self.slates else EVERYBODY
        rows = self.slates[own]
        word = hashlib.sha256(f"{self.salt}.{id}".encode()).digest()
        control = int.from_bytes(word[4:8], "big") < self.control.share * 2**32
        row = -1 if control else int.from_bytes(word[:4], "big") * len(rows) >> 32
        if eligible is not None:
            row = self._eligible_row(own, row, set(eligible))
        slate = rows[row] if row >= 0 else self._control_slate(own)
        return Served(tuple([self.arms[j] for j in slate]), row, own, self.version)

    def _eligible_row(self, segment: str, row: int, eligible: set[str]) -> int:
        """The first row from ``row`` on that holds eligible arms alone; -1 for the control slate."""
        rows = self.slates[segment]
        for n in range(row, row + len(rows)) if row >= 0 else ():
            if all(self.arms[j] in eligible for j in rows[n % len(rows)]):
                return n % len(rows)
        if not all(self.arms[j] in eligible for j in self._control_slate(segment, none=[])) or not self.control.slates:
            raise InvalidArgument("eligible", "no slate of the table holds only these", "publish one for these arms")
        return -1

    def _control_slate(self, segment: str, none: Any = None) -> list[int]:
        found = self.control.slates.get(segment) or self.control.slates.get(EVERYBODY) or [none]
        return found[0]

    def inclusion(self) -> dict[str, Floats]:
        """The chance of each arm to be in the slate, by segment: exact, since it is counted in the table."""
        found = {}
        for segment, rows in self.slates.items():
            share, counts = self.control.share, np.zeros(len(self.arms))
            for slate in rows:
                counts[slate] += (1.0 - share) / len(rows)
            if share:
                counts[self._control_slate(segment)] += share
            found[segment] = counts
        return found

    def tally(self, problem: Problem, patterns: Iterable[Any], arms: Given) -> Tally:
        """What became of decisions, for ``Agent.warm_start``: ``patterns`` are rows as ``Pattern`` has them.

        ``arms`` are the names of the problem's arms: arms and segments are found by their names, in any order, and
        those that the problem does not have are refused. What was shown and not clicked counts as 0. Decisions for
        visitors of no known segment are not learnt from. ``StaleTable`` is warned of if the table has served more than
        its ``lifetime``.
        """
        found = self.read(patterns)
        if (said := self.stale(sum(one.n for one in found))) is not None:
            warnings.warn(said, StaleTable, 2)
        if problem.n_items > 1:
            raise InvalidArgument("problem", f"it has {problem.n_items} items", "give sums: patterns name no item")
        columns = names_for(arms, problem.n_arms, "arms").numbers(self.arms)
        at = np.ix_(np.array([segment_number(problem, name) for name in self.segments]), columns)
        n_segments = 1 if problem.context is None else problem.context.n_segments
        counts = np.zeros((2, n_segments, problem.n_arms), np.int64)
        for there, here in zip(counts, self._counts(found), strict=True):
            np.add.at(there, at, here)
        return _tally_of(*counts)

    def count(self, patterns: list[Pattern]) -> Tally:
        """The tally of patterns of this table, whose arms and segments are those of the problem in their order."""
        return _tally_of(*self._counts(patterns))

    def _counts(self, patterns: list[Pattern]) -> tuple[Ints, Ints]:
        """How often each arm was shown in each segment, and clicked."""
        segments = self.segments
        pulls = np.zeros((len(segments), len(self.arms)), np.int64)
        clicks = np.zeros_like(pulls)
        for one in patterns:
            if one.segment in segments:
                slate, at = self.slate(one), segments.index(one.segment)
                pulls[at, slate] += one.n
                clicks[at, [j for place, j in enumerate(slate) if one.mask >> place & 1]] += one.n
        return pulls, clicks

    @property
    def segments(self) -> list[str]:
        """The segments, in the order of the problem's."""
        return [name for name in self.slates if name != EVERYBODY] or [EVERYBODY]

    def stale(self, decisions: int) -> str | None:
        """What is wrong if the table has served so many decisions; None if nothing is."""
        if not self.lifetime or decisions <= self.lifetime:
            return None
        said = f"version {self.version} served {decisions} decisions, and should have served {self.lifetime}"
        return f"{said}: publish more often, or it may earn less than the present list"

    def slate(self, pattern: Pattern) -> list[int]:
        """The numbers of the arms that a pattern is about."""
        return self._control_slate(pattern.segment) if pattern.row < 0 else self.slates[pattern.segment][pattern.row]

    def read(self, patterns: Iterable[Any]) -> list[Pattern]:
        """Patterns of this table; others are refused."""
        found = [Pattern(*one) for one in patterns]
        for one in found:
            if one.version != self.version:
                raise InvalidArgument("version", f"{one.version}", f"this table is version {self.version}", "patterns")
            if one.segment not in self.slates:
                raise InvalidArgument("segment", f"unknown {one.segment!r}", "name one of the table", "patterns")
            if not -bool(self.control.slates) <= one.row < len(self.slates[one.segment]):
                raise InvalidArgument("row", f"{one.row}", "give the number of a row of the segment", "patterns")
            if one.n < 0 or not 0 <= one.mask < 1 << len(self.slate(one)):
                wrong = f"row {one.row} has mask {one.mask}, n {one.n}"
                raise InvalidArgument("mask", wrong, "give a bit for each place, and a count", "patterns")
        return found

    def to_json(self) -> bytes:
        """The document: equal tables have equal bytes."""
        return msgspec.json.encode(self)

    def signed(self) -> "Table":
        """The table with its digest."""
        plain = msgspec.structs.replace(self, digest="")
        return msgspec.structs.replace(plain, digest=f"sha256:{hashlib.sha256(plain.to_json()).hexdigest()}")

    @classmethod
    def load(cls, source: str | Path | bytes, newer_than: "Table | None" = None) -> "Table":
        """Read a document, or the file that it is in.

        With ``newer_than`` one of another problem is refused, and of the two tables the newer one is returned: caches
        may deliver an older version later.
        """
        body = source if isinstance(source, bytes) else Path(source).read_bytes()
        try:
            table = msgspec.json.decode(body, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidArgument(
                "table", f"it cannot be read: {error}", "give a document of Agent.publish()"
            ) from None
        if table.format != 1 or table.digest != table.signed().digest:
            wrong = "its digest is another one" if table.format == 1 else f"format {table.format}"
            raise InvalidArgument("table", wrong, "fetch it again; it was cut or changed, or is of another version")
        if newer_than is None:
            return table
        if newer_than.problem != table.problem:
            raise InvalidArgument("table", f"it is of problem {table.problem!r}", f"give one of {newer_than.problem!r}")
        return max(newer_than, table, key=lambda one: one.version)


def _tally_of(pulls: Ints, clicks: Ints) -> Tally:
    seen, units = pulls[:, None], clicks[:, None] * int(GRID)
    made = Tally.of_sums(Dense(1, pulls.shape[1]), pulls, seen, units, units)
    made.ours = True
    return made


def lifetime(decisions: int) -> int:
    """How many decisions a table may serve that was published after so many: a tenth of them, and at least 10.

    A table that serves as many decisions as all before it learns too late, and can earn less than the present list.

    >>> [lifetime(decisions) for decisions in (0, 500, 20_000)]
    [10, 50, 2000]
    """
    return max(10, decisions // 10)
