"""The handlers that find decisions in the log, with their replies and the meaning of their queries."""

import asyncio
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, get_args

from msgspec import Struct

from superarm.service.domain.control import digest_unit
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import invalid
from superarm.service.http.handlers import Answer, Call
from superarm.service.http.query import LIMIT, parse_integer, parse_limit, text, whole
from superarm.service.storage.base import DecisionSpan
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
    """A decision in a list: ``at`` is milliseconds since 1970, ``unit`` a digest of whom it was for.

    ``values`` has one row per arm and one value per item; null where nothing is known.
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
    """Decisions, newest first. ``cursor`` goes on; null after the last page. A page may be short, or empty, before."""

    decisions: list[ListedDecision]
    cursor: str | None


class HistoryReply(Struct, frozen=True):
    """The history of an arm, oldest first; null for all arms together."""

    arm: str | None
    intervals: list[HistoryInterval]


async def get_decisions(call: Call) -> Answer:
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
