"""The pages beside that of a problem: all problems, versions, an arm, decisions. None of them asks a policy."""

import asyncio
from typing import Any
from urllib.parse import parse_qsl

from superarm.service.console import notices, page
from superarm.service.console.arm import arm_page, history
from superarm.service.console.decisions import DECISIONS_PER_PAGE, FIELDS, decisions
from superarm.service.console.markup import Html
from superarm.service.console.problems import PROBLEMS_PER_PAGE, ShownProblem, problems
from superarm.service.console.times import time_range
from superarm.service.console.versions import read_changes, versions
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import RequestError, unknown
from superarm.service.http.auth import Principal, permit
from superarm.service.http.handlers import Call
from superarm.service.http.searching import DecisionPageReply, find_decisions, get_history
from superarm.service.http.service import Service

HISTORY_POINTS = 48
DAY_END = "T23:59:59.999Z"


def access_of(who: Principal) -> page.Access:
    """What the page says of who looks."""
    return page.Access(bool(who.key), "public" in who.scopes)


class ProblemPages:
    """Renders the pages; each method takes who asks and the query of the address."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def problems(self, who: Principal, query: bytes) -> bytes:
        """All problems of the tenant, side by side."""
        coordinator, access = self._service.coordinator, access_of(who)
        names, number = (
            await coordinator.ownership.names(who.tenant),
            dict(parse_qsl(query.decode("latin-1"))).get("page", "0"),
        )
        if not names:
            return notices.nothing_yet(access)
        here = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else 0
        shown = []
        for name in names[here * PROBLEMS_PER_PAGE : (here + 1) * PROBLEMS_PER_PAGE]:
            key = (who.tenant, name)
            learner = coordinator.ledger.problems.get(key)
            if learner is not None and not coordinator.is_locked(key):
                learner.history.flush(learner.problem)
            shown.append(ShownProblem(name, learner, coordinator.ledger.n_pending.get(key, 0)))
        top = page.header(names, "", access)
        return page.subpage("All problems", top, problems(shown, len(names), here, access.public))

    async def versions(self, who: Principal, query: bytes) -> bytes:
        """The versions of a problem's settings."""
        names, name, _, _ = await self.open_problem(who, query)
        changes = await asyncio.to_thread(read_changes, self._service.store, who.tenant, name)

        def read(state: ProblemState) -> Html:
            state.history.flush(state.problem)
            return versions(state, changes)

        shown = await self._service.coordinator.read(who.tenant, name, read)
        return page.subpage(f"Versions of {name}", page.header(names, name, access_of(who)), shown)

    async def arm(self, who: Principal, query: bytes) -> bytes:
        """One arm, and its history."""
        names, name, learner, asked = await self.open_problem(who, query)
        number = learner.arms.number(asked.get("arm", ""))
        if number is None:
            raise unknown("arm", asked.get("arm", "")[:100])
        times = time_range(asked.get("since", ""), asked.get("until", ""))
        wanted = {"arm": asked["arm"], "points": str(HISTORY_POINTS), **span_of(asked)}
        _, found = await get_history(self._call(who, name, wanted))
        sections = (
            history(name, asked["arm"], found.intervals, times),
            await self._service.coordinator.read(
                who.tenant, name, lambda state: arm_page(name, state, number, state.overall())
            ),
        )
        return page.subpage(f"{asked['arm']} in {name}", page.header(names, name, access_of(who)), *sections)

    async def decisions(self, who: Principal, query: bytes) -> bytes:
        """The search for decisions."""
        names, name, _, asked = await self.open_problem(who, query)
        found, cursor, wrong = list[Any](), None, ""
        try:
            reply = await self.search(who, name, asked, DECISIONS_PER_PAGE)
            found, cursor = reply.decisions, reply.cursor
        except RequestError as error:
            wrong = error.message
        top = page.header(names, name, access_of(who))
        return page.subpage(f"Decisions of {name}", top, decisions(name, asked, found, cursor, wrong))

    async def search(self, who: Principal, name: str, asked: dict[str, str], limit: int) -> DecisionPageReply:
        """A page of decisions, as ``GET …/decisions`` finds them."""
        given = {field: asked[field] for field in (*FIELDS, "cursor") if asked.get(field)}
        wanted = {**given, **span_of(asked), "limit": str(limit)}
        return await find_decisions(self._call(who, name, wanted))

    async def open_problem(self, who: Principal, query: bytes) -> tuple[list[str], str, ProblemState, dict[str, str]]:
        """The names of all problems, the one that the address asks for, and what else it asks for."""
        permit(who, "read")
        coordinator, asked = self._service.coordinator, dict(parse_qsl(query.decode("latin-1")))
        names = await coordinator.ownership.names(who.tenant)
        name = asked.get("problem") or (names[0] if names else "")
        if not name:
            raise RequestError(404, "unknown", "there is no problem yet")
        await coordinator.ownership.enter((who.tenant, name), creates=False)
        return names, name, await coordinator.find(who.tenant, name), asked

    def _call(self, who: Principal, name: str, query: dict[str, str]) -> Call:
        service = self._service
        return Call(service.coordinator, who, {"name": name}, query, None, service.limits.problems, service.rates)


def span_of(asked: dict[str, str]) -> dict[str, str]:
    """The dates of the address as times of the interface: up to the end of the last day."""
    times = time_range(asked.get("since", ""), asked.get("until", ""))
    until = {"until": f"{times.until}{DAY_END}"} if times.until else {}
    return ({"since": times.since} if times.since else {}) | until
