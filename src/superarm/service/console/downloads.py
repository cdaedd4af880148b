"""The downloads of the console: tables of one problem as CSV."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from urllib.parse import parse_qsl

from superarm.service.console import exports
from superarm.service.console.numbers import weighty_items
from superarm.service.console.problem_pages import ProblemPages
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import unknown
from superarm.service.http.auth import Principal, permit
from superarm.service.http.searching import DecisionPageReply
from superarm.service.http.service import Service

MAX_EXPORTED_DECISIONS = 1_000

MAX_EXPORTED_PAGES = 100
"""How many pages of the search are read to find as many decisions."""


class Downloads:
    """Finds the table that an address names."""

    def __init__(self, service: Service, pages: ProblemPages) -> None:
        self._service, self._pages = service, pages

    async def open(self, name: str, who: Principal, query: bytes) -> AsyncIterator[bytes]:
        """The parts of a table, or ``RequestError``."""
        permit(who, "read")
        asked = dict(parse_qsl(query.decode("latin-1")))
        problem = asked.get("problem", "")
        coordinator = self._service.coordinator
        await coordinator.ownership.enter((who.tenant, problem), creates=False)
        learner = await coordinator.find(who.tenant, problem)
        if name == "arms.csv":
            return self._arms((who.tenant, problem), learner)
        if name == "rewards.csv":
            return _whole(await coordinator.read(who.tenant, problem, _rewards))
        if name == "decisions.csv":
            page = await self._pages.search(who, problem, asked, MAX_EXPORTED_DECISIONS)
            return self._decisions(who, problem, asked, page)
        raise unknown("export", name[:100])

    async def _arms(self, key: Key, learner: ProblemState) -> AsyncIterator[bytes]:
        for part in exports.arm_parts(learner):
            yield await self._service.coordinator.read(*key, partial(_arms, part))

    async def _decisions(
        self, who: Principal, problem: str, asked: dict[str, str], page: DecisionPageReply
    ) -> AsyncIterator[bytes]:
        """Page after page; the first one was read before, so that a query that makes no sense is refused."""
        n, left = 0, MAX_EXPORTED_DECISIONS
        while True:
            yield await asyncio.to_thread(exports.decisions_csv, page.decisions, first=n == 0)
            n, left = n + 1, left - len(page.decisions)
            if page.cursor is None or left == 0 or n == MAX_EXPORTED_PAGES:
                return
            page = await self._pages.search(who, problem, {**asked, "cursor": page.cursor}, left)


def _arms(part: tuple[int, int], state: ProblemState) -> bytes:
    return exports.arms_csv(state, state.overall(), part)


def _rewards(state: ProblemState) -> bytes:
    state.history.flush(state.problem)
    return exports.rewards_csv(state, weighty_items(state))


async def _whole(table: bytes) -> AsyncIterator[bytes]:
    yield table
