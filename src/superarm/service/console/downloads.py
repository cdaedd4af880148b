"""The downloads of the console: tables of one problem as CSV."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

from superarm.service.console import exports
from superarm.service.console.numbers import weighty_items
from superarm.service.console.problem_pages import ProblemPages
from superarm.service.errors import unknown
from superarm.service.http.auth import Principal, permit
from superarm.service.http.service import Service

MAX_EXPORTED_DECISIONS = 1_000


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
        if not coordinator.ownership.use((who.tenant, problem)):
            await coordinator.ownership.enter((who.tenant, problem), creates=False)
        learner = await coordinator.learner(who.tenant, problem)
        if name == "arms.csv":
            return self._arms(learner)
        if name == "rewards.csv":
            learner.history.flush(learner.problem)
            return _whole(exports.rewards_csv(learner, weighty_items(learner)))
        if name == "decisions.csv":
            reply = await self._pages.search(who, problem, asked, MAX_EXPORTED_DECISIONS)
            return _whole(exports.decisions_csv(reply.decisions))
        raise unknown("export", name[:100])

    async def _arms(self, learner: Any) -> AsyncIterator[bytes]:
        for part in exports.arm_parts(learner):
            yield await asyncio.to_thread(exports.arms_csv, learner, learner.overall(), part)


async def _whole(table: bytes) -> AsyncIterator[bytes]:
    yield table
