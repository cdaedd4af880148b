"""Decisions out of the log by time, arm, unit, state and group.

The newest decision comes first. A page is read from an index of the database, a bounded number of decisions at a time,
whatever the length of the log.
"""

import base64
import binascii
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from superarm.service.domain.decision import DecisionRecord, advance_record, open_record
from superarm.service.domain.ledger import LogEntry
from superarm.service.storage.base import DecisionSpan, Store

MAX_EXAMINED = 1_000
"""How many decisions one request for a page examines."""

MAX_PAGE_VALUES = 200_000
"""A page ends after so many values, whatever its limit."""

END_OF_TIME = 2**62
"""Later than every time in milliseconds."""


class DecisionFilter(NamedTuple):
    """Which decisions are wanted; None for all. ``arm`` is a number, ``unit`` the digest that the log holds."""

    born: int = 0
    arm: int | None = None
    unit: str | None = None
    state: str | None = None
    group: str | None = None

    def accepts(self, record: DecisionRecord) -> bool:
        """Whether a decision is wanted."""
        asked = record.asked
        return (
            asked.born == self.born
            and record.closed != "erased"
            and self.arm in (None, *record.action)
            and self.unit in (None, asked.unit)
            and self.state in (None, record.state)
            and self.group in (None, asked.group)
        )


class DecisionPage(NamedTuple):
    """Decisions, newest first, and the cursor with which the next page begins; None after the last one."""

    records: list[DecisionRecord]
    cursor: str | None


def find_page(store: Store, span: DecisionSpan, wanted: DecisionFilter, limit: int) -> DecisionPage:
    """At most ``limit`` decisions. A page may have fewer, and even none, although another one follows."""
    everything = wanted == DecisionFilter(wanted.born)
    n_examined = limit if everything else MAX_EXAMINED
    records: list[DecisionRecord] = []
    n, last, n_values = 0, None, 0
    for record in read_decisions(store, span._replace(limit=n_examined)):
        n, last = n + 1, record
        if wanted.accepts(record):
            records.append(record)
            n_values += sum(len(row) for row in record.rows if row is not None)
            if len(records) == limit or n_values >= MAX_PAGE_VALUES:
                return DecisionPage(records, encode_cursor(record))
    return DecisionPage(records, encode_cursor(last) if last is not None and n == n_examined else None)


def read_decisions(store: Store, span: DecisionSpan) -> Iterator[DecisionRecord]:
    """The decisions of a span, newest first, as they are now."""
    for _, entries in groupby(store.find_decisions(span), lambda entry: entry.stream):
        yield fold_stream(entries)


def fold_stream(entries: Iterator[LogEntry]) -> DecisionRecord:
    """The decision that its events come to."""
    record = open_record(next(entries).event)
    for entry in entries:
        record = advance_record(record, entry.event)
    return record


def encode_cursor(record: DecisionRecord) -> str:
    """The place of a decision in the order of pages, as text for a URL."""
    return base64.urlsafe_b64encode(f"{record.asked.at}/{record.asked.id}".encode()).decode().rstrip("=")


def decode_cursor(text: str) -> tuple[int, str] | None:
    """The time and the id in a cursor; None if it is no cursor.

    >>> decode_cursor("MTIvZA")
    (12, 'd')
    >>> decode_cursor("12/d") is None
    True
    """
    try:
        padded = f"{text}{'=' * (-len(text) % 4)}"
        at, slash, id = base64.b64decode(padded, b"-_", validate=True).decode().partition("/")
        return (int(at), id) if slash and at.isascii() and at.isdigit() and len(at) < 19 and "\0" not in id else None
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
