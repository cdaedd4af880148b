"""The handlers that read the log: decisions, the history of an arm, the audit; and those that take things out of it."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Armed, Changed, Compacted, Created, ErasureRequested, Itemed, Warmed
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import digest_unit
from superarm.service.errors import invalid
from superarm.service.http.handlers import Answer, Call
from superarm.service.http.query import LIMIT, parse_integer, parse_limit, text, whole
from superarm.service.runtime import admin
from superarm.service.runtime import feedback as erasing
from superarm.service.storage.base import DecisionSpan, Store
from superarm.service.storage.search import (
    END_OF_TIME,
    DecisionFilter,
    HistoryInterval,
    arm_history,
    decode_cursor,
    find_page,
)

State = Literal["open", "deferred", "complete", "expired", "unshown"]
Compared = Literal["policy", "control"]
HISTORY_QUERY = (text("since"), text("until"), text("arm"), whole("points", 1, 1_000, 30))
FOUND_QUERY = (
    *HISTORY_QUERY[:3],
    text("unit"),
    text("state", get_args(State)),
    text("group", get_args(Compared)),
    text("cursor"),
    LIMIT,
)


class ListedDecision(Struct, frozen=True, omit_defaults=True):
    """A decision in a list.

    Parameters
    ----------
    id
        Its id.
    at
        When it was made, in milliseconds since 1970.
    t
        The round that it was made for.
    version
        The version of the settings under which it was made.
    state
        ``open``, ``deferred``, ``complete``, ``expired`` or ``unshown``.
    arms
        The slate that was shown.
    values
        One row per arm, one value per item; null where nothing is known.
    group
        ``policy`` or ``control``, if it is part of their comparison.
    fallback
        Whether the guardrail let the control slate be shown.
    unit
        A digest of whom it was for.
    """

    id: str
    at: int
    t: int
    version: int
    state: str
    arms: list[str]
    values: list[list[float | None] | None]
    group: str = ""
    fallback: bool = False
    unit: str = ""


class DecisionPageReply(Struct, frozen=True):
    """Decisions, newest first. A page may be short, or empty, before the last.

    Parameters
    ----------
    decisions
        The decisions.
    cursor
        Where the next page begins; null after the last.
    """

    decisions: list[ListedDecision]
    cursor: str | None


class HistoryReply(Struct, frozen=True):
    """The history of an arm.

    Parameters
    ----------
    arm
        The arm; null for all arms together.
    intervals
        Intervals of equal length, oldest first.
    """

    arm: str | None
    intervals: list[HistoryInterval]


async def get_decisions(call: Call) -> Answer:
    """Decisions, newest first, by time, arm, unit, state and group; cursor goes on where the last page ended."""
    return 200, await find_decisions(call)


async def find_decisions(call: Call) -> DecisionPageReply:
    """The decisions that a query asks for, newest first."""
    learner = await call.coordinator.find(call.who.tenant, call.path["name"])
    limit = parse_limit(call.query)
    wanted = DecisionFilter(
        learner.born,
        _arm(call.query, learner),
        digest_unit(learner, call.query["unit"]) if "unit" in call.query else None,
        _choice(call.query, "state", get_args(State)),
        _choice(call.query, "group", get_args(Compared)),
    )
    span, names = _span(call), learner.arms.all

    def find() -> DecisionPageReply:
        page = find_page(call.coordinator.store, span, wanted, limit)
        return DecisionPageReply([_found(record, names) for record in page.records], page.cursor)

    return await asyncio.to_thread(find)


async def get_history(call: Call) -> Answer:
    """How often an arm was shown and what came of it, over time; without arm, all arms together."""
    learner = await call.coordinator.find(call.who.tenant, call.path["name"])
    arm, n_points = _arm(call.query, learner), parse_integer(call.query, "points", 30, 1_000, 1)
    points = await asyncio.to_thread(arm_history, call.coordinator.store, _span(call), learner.born, arm, n_points)
    return 200, HistoryReply(call.query.get("arm"), points)


def _span(call: Call) -> DecisionSpan:
    before = (_time(call.query, "until", END_OF_TIME), "")
    if "cursor" in call.query:
        cursor = decode_cursor(call.query["cursor"])
        if cursor is None:
            raise invalid("cursor", "not one that was given out", "repeat the query without it")
        before = min(before, cursor)
    return DecisionSpan(call.who.tenant, call.path["name"], _time(call.query, "since", 0), before, 0)


def _time(query: dict[str, str], name: str, default: int) -> int:
    """A time of the query in milliseconds; a date or a time without an offset is meant as UTC."""
    text = query.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    try:
        given = datetime.fromisoformat(text.replace(" ", "+"))  # a plus sign in a URL is read as a space
        given = given.replace(tzinfo=given.tzinfo or UTC)
        return max(0, math.ceil(given.timestamp() * 1000))
    except (ValueError, OverflowError):
        remedy = "give milliseconds since 1970, or a time such as 2026-10-31T12:00:00Z"
        raise invalid(name, f"{text[:40]!r}", remedy) from None


def _arm(query: dict[str, str], learner: ProblemState) -> int | None:
    if "arm" not in query:
        return None
    arm = learner.arms.number(query["arm"])
    if arm is None:
        raise invalid("arm", f"unknown {query['arm'][:100]!r}", "name an arm of the problem, which may be retired")
    return arm


def _choice(query: dict[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    text = query.get(name)
    if text is not None and text not in choices:
        raise invalid(name, f"{text[:40]!r}", f"choose one of {', '.join(choices)}")
    return text


def _found(record: DecisionRecord, names: Sequence[str]) -> ListedDecision:
    asked = record.asked
    values = [None if row is None else [x if x >= 0.0 else None for x in row] for row in record.rows]
    return ListedDecision(
        asked.id,
        asked.at,
        asked.t,
        asked.version,
        record.state,
        [names[j] for j in record.action],
        values,
        asked.group,
        asked.fallback,
        asked.unit,
    )


class DeletedReply(Struct, frozen=True):
    """What was deleted.

    Parameters
    ----------
    problem
        The name of the problem.
    """

    problem: str


async def delete_problem(call: Call) -> Answer:
    """Delete a problem with its decisions. Its name may be used again, for another problem."""
    await admin.delete(call.coordinator, call.who.tenant, call.path["name"], call.who.key)
    return 200, DeletedReply(call.path["name"])


class ErasedReply(Struct, frozen=True):
    """How many decisions were erased.

    Parameters
    ----------
    problem
        Their problem.
    erased
        How many decisions were erased.
    """

    problem: str
    erased: int


async def erase_decision(call: Call) -> Answer:
    """Erase a decision: it counts no longer, as if it had never been made."""
    problem = await erasing.erase_decision(call.coordinator, call.who.tenant, call.path["id"], call.who.key)
    return 200, ErasedReply(problem, 1)


async def erase_unit(call: Call) -> Answer:
    """Erase all decisions of a unit: they count no longer, as if they had never been made."""
    name, unit = call.path["name"], call.body.unit
    n = await erasing.erase_unit(call.coordinator, call.who.tenant, name, unit, call.who.key)
    return 200, ErasedReply(name, n)


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
    return sorted(reversed(found), key=lambda entry: entry.at, reverse=True)  # of one millisecond, the later first


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
        return "created", {"n_arms": len(event.spec.arms), "n_items": len(event.spec.items), "settings": settings}
    if isinstance(event, Changed):
        return "settings", {"version": event.version, "settings": msgspec.to_builtins(event.settings)}
    if isinstance(event, (Armed, Itemed)):
        numbers = {"n_added": len(event.add), "n_retired": len(event.retire)}
        shown = {"added": event.add[:MAX_NAMES], "retired_numbers": event.retire[:MAX_NAMES]}
        if isinstance(event, Armed) and event.restore:
            numbers["n_restored"], shown["restored_numbers"] = len(event.restore), event.restore[:MAX_NAMES]
        return ("arms" if isinstance(event, Armed) else "items"), numbers | shown
    if isinstance(event, Warmed):
        return "outcomes", {"id": event.id, "n_rows": len(event.arms)}
    if isinstance(event, (Compacted, ErasureRequested)):
        return str(event.__struct_config__.tag), {"decisions": event.n}
    return type(event).__name__.lower(), {}  # "deleted", for instance


def _key_changes(store: Store, tenant: str) -> Iterator[AuditEntry]:
    for row in store.key_rows():
        if row.tenant == tenant:
            details = {"key": row.id, "scopes": row.scopes.split(","), "note": row.note}
            yield AuditEntry(row.created, "key created", None, "", details)
            if row.revoked is not None:
                yield AuditEntry(row.revoked, "key revoked", None, "", {"key": row.id})


async def get_audit(call: Call) -> Answer:
    """Administrative changes, newest first; offset and limit select a page, problem one problem."""
    offset, limit = parse_integer(call.query, "offset", 0, 10**9), parse_limit(call.query)
    store, tenant = call.coordinator.store, call.who.tenant
    entries = await asyncio.to_thread(read_audit, store, tenant, call.query.get("problem"))
    return 200, AuditReply(entries[offset : offset + limit], len(entries))
