"""Certificates of convergence for the page: computed in the background, and kept until there is more to know."""

import asyncio
from typing import Any

from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.runtime.certifying import Certifier

WAIT_SECONDS = 1.0
"""The page waits so long for a certificate; after that it says that it is being computed."""
MAX_SHOWN_ENTRIES = 20_000
"""Of larger problems the page shows no certificate: ``GET …/certificate`` computes one."""


class Certificates:
    """The newest certificate of each problem."""

    def __init__(self, certifier: Certifier) -> None:
        self._certifier = certifier
        self._known: dict[Key, tuple[Any, Any]] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    async def find(self, key: Key, learner: ProblemState) -> Any:
        """The certificate, or why there is none; an older one, or None, while a new one is being computed."""
        if learner.problem.n_entries > MAX_SHOWN_ENTRIES:
            return "the problem is large; GET …/certificate computes one"
        state = (int(learner.tally.pulls.sum()), len(learner.versions), learner.step)
        known = self._known.get(key)
        if (known is None or known[0] != state) and key not in self._tasks:
            task = asyncio.create_task(self._compute(key, state))
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        if key in self._tasks:
            await asyncio.wait([self._tasks[key]], timeout=WAIT_SECONDS)
        known = self._known.get(key)
        return None if known is None else known[1]

    async def _compute(self, key: Key, state: Any) -> None:
        self._known[key] = (state, await self._certifier.certify(*key, None, 0.05))
