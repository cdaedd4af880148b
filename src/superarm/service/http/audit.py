"""The audit: changes of problems and keys, out of the log."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from superarm.service.domain.events import Armed, Changed, Compacted, Created, ErasureRequested, Itemed, Learnt, Warmed
from superarm.service.storage.base import Store

MAX_NAMES = 100
"""Of a change with more names, only so many are shown."""


class AuditEntry(Struct, frozen=True):
    """One change.

    Parameters
    ----------
    at
        When, in milliseconds since 1970.
    what
        What was changed.
    problem
        Of which problem; null for keys.
    by
        The id of the key that did it.
    details
        What it changed.
    """

    at: int
    what: str
    problem: str | None
    by: str
    details: dict[str, Any]


class AuditReply(Struct, frozen=True):
    """A page of changes, newest first.

    Parameters
    ----------
    entries
        The changes.
    total
        How many there are.
    """

    entries: list[AuditEntry]
    total: int


def read_audit(store: Store, tenant: str, problem: str | None) -> list[AuditEntry]:
    """All changes of a tenant, newest first; with ``problem``, only those of this problem."""
    found = [*(_key_changes(store, tenant) if problem is None else ()), *_changes(store, tenant, problem)]
    found.reverse()
    found.sort(key=lambda entry: entry.at, reverse=True)  # of one millisecond, the later one stays first
    return found


def _changes(store: Store, tenant: str, problem: str | None) -> Iterator[AuditEntry]:
    for read in store.tail({}, problems=True):
        entry = read.entry
        if isinstance(entry.event, Compacted) and not entry.event.n:
            continue  # it only ends a log
        if entry.tenant == tenant and problem in (None, entry.stream):
            what, details = _describe(entry.event)
            yield AuditEntry(entry.event.at, what, entry.stream, getattr(entry.event, "by", ""), details)


def _describe(event: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(event, Created):
        settings = msgspec.to_builtins(event.spec.settings)
        return "created", {"n_arms": len(event.spec.arms), "n_items": len(event.spec.item_names), "settings": settings}
    if isinstance(event, Changed):
        return "settings", {"version": event.version, "settings": msgspec.to_builtins(event.settings)}
    if isinstance(event, (Armed, Itemed)):
        numbers = {"n_added": len(event.add), "n_retired": len(event.retire)}
        shown = {"added": event.add[:MAX_NAMES], "retired_numbers": event.retire[:MAX_NAMES]}
        if isinstance(event, Armed) and event.restore:
            numbers["n_restored"], shown["restored_numbers"] = len(event.restore), event.restore[:MAX_NAMES]
        return ("arms" if isinstance(event, Armed) else "items"), numbers | shown
    details: dict[str, Any] = {}
    if isinstance(event, Learnt):
        details = {"version": event.version, "classes": len(event.shares), "of": event.of}
    if isinstance(event, (Compacted, ErasureRequested)):
        details = {"decisions": event.n}
    if isinstance(event, Warmed):
        return "outcomes", {"id": event.id, "n_rows": len(event.arms)}
    return str(event.__struct_config__.tag), details  # "deleted", for instance


def _key_changes(store: Store, tenant: str) -> Iterator[AuditEntry]:
    for row in store.key_rows():
        if row.tenant == tenant:
            details = {"key": row.id, "scopes": row.scopes.split(","), "note": row.note}
            yield AuditEntry(row.created, "key created", None, "", details)
            if row.revoked is not None:
                yield AuditEntry(row.revoked, "key revoked", None, "", {"key": row.id})
