"""Which problems this process serves: all of its log, or only those that it owns.

With PostgreSQL a proxy sends the requests for a problem to one worker. The worker acquires the problem at the first
request, reads its log, and keeps it until its session in the database ends or until another worker asks for it while
no requests come here any more.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from superarm.service.domain.ledger import Key
from superarm.service.errors import overloaded, unknown
from superarm.service.storage.base import StoreUnavailable
from superarm.service.storage.postgres_tables import log_name
from superarm.service.storage.snapshot import copy_state, pack_snapshot, restore_ledger

if TYPE_CHECKING:
    from superarm.service.runtime.coordinator import Coordinator
    from superarm.service.storage.postgres import Postgres

log = logging.getLogger("superarm.ownership")

POLL_SECONDS = 0.5
"""How often a worker looks for claims of others, which also tells the database that it lives."""

IDLE_SECONDS = 2.0
"""A problem without a request for so long is released to a worker that asks for it."""

WAIT_SECONDS = 5.0
"""How long a request waits for its problem to be released by another worker."""

LEASE_SECONDS = 2.0
"""After so long without an answer of the database, a worker asks it whether its session lives, before it reads."""

RETRY_SECONDS = 0.1


class AllProblems:
    """Every problem of the log is served."""

    def __init__(self, coordinator: "Coordinator") -> None:
        self._coordinator = coordinator

    async def enter(self, problem: Key, *, creates: bool) -> None:
        """Acquire a problem for a request that names it."""

    @contextlib.asynccontextmanager
    async def creating(self, problem: Key) -> AsyncIterator[None]:
        """Have a name while a problem is created under it."""
        yield

    async def confirm(self, problem: Key) -> None:
        """Make sure that a problem in memory is what the log says."""

    async def leave(self, problem: Key) -> None:
        """Give up the name of a problem that was deleted."""

    async def names(self, tenant: str) -> list[str]:
        """The names of all problems of a tenant."""
        ledger = self._coordinator.ledger
        return sorted(name for owner, name in ledger.problems | ledger.broken if owner == tenant)

    async def run(self) -> None:
        """What has to be done as long as the process runs."""

    @property
    def lag(self) -> int:
        """How many events follow the newest snapshot."""
        return self._coordinator.unsaved

    async def save_all(self) -> None:
        """Save the state, before the process ends."""
        if self._coordinator.unsaved:
            await self._coordinator.save_snapshot()


class OwnedProblems:
    """The problems that this worker has acquired; all changes of ownership run in the writer's thread."""

    def __init__(self, coordinator: "Coordinator", shards: "Postgres", snapshot_every: int) -> None:
        self._coordinator, self._shards, self._snapshot_every = coordinator, shards, snapshot_every
        self._used: dict[Key, float] = {}
        self._acquiring: dict[Key, asyncio.Task[bool]] = {}
        self._saved: dict[Key, int] = {}
        self._heard = -LEASE_SECONDS  # when the database was last asked something that it answered

    def _is_mine(self, problem: Key) -> bool:
        return problem in self._coordinator.ledger.problems and self._shards.holds(problem)

    async def enter(self, problem: Key, *, creates: bool) -> None:
        """Acquire a problem for a request that names it, or raise ``RequestError``: 404 if there is none, or 503.

        A request that ``creates`` a problem may find none: it acquires the name when its body was found to be right.
        """
        ledger = self._coordinator.ledger
        if problem in ledger.broken:
            return
        if problem not in ledger.problems and not await self._exists(problem):
            if creates:
                return
            raise unknown("problem", problem[1])
        self._used[problem] = asyncio.get_running_loop().time()
        if self._is_mine(problem) and asyncio.get_running_loop().time() - self._heard > LEASE_SECONDS:
            with contextlib.suppress(StoreUnavailable):  # then the problem is ours no longer
                await self._ask_for_claims()
        if not self._is_mine(problem):
            await self._own(problem)
            await self.leave(problem)  # it may have been deleted meanwhile

    async def _ask_for_claims(self) -> list[Key]:
        """The problems that other workers ask for; the answer also says that the session lives."""
        now = asyncio.get_running_loop().time()
        asked_for = await self._coordinator.writer.run(self._shards.claims)
        self._heard = now
        return asked_for

    async def _exists(self, problem: Key) -> bool:
        """Whether the log says that there is such a problem; nothing is acquired."""
        if "\0" in problem[1] or len(problem[1]) > 256:
            return False  # no problem has such a name
        return await asyncio.to_thread(self._shards.has_problem, problem)

    async def _own(self, problem: Key) -> None:
        """Acquire a problem, or 503 if another worker does not release it in time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + WAIT_SECONDS
        while not await self._acquire(problem):
            if loop.time() > end:
                raise overloaded(f"problem {problem[1]!r} is served by another worker; try again", 1)
            await self._coordinator.writer.run(lambda: self._shards.claim(problem))
            await asyncio.sleep(RETRY_SECONDS)

    @contextlib.asynccontextmanager
    async def creating(self, problem: Key) -> AsyncIterator[None]:
        """Have a name while a problem is created under it; it is released if the problem is not there afterwards."""
        self._used[problem] = asyncio.get_running_loop().time()
        await self._own(problem)
        try:
            yield
        finally:
            await self.leave(problem)

    async def confirm(self, problem: Key) -> None:
        """Make sure that a problem is still ours: a worker that was stopped does not know that its session ended."""
        await self._ask_for_claims()
        if not self._is_mine(problem):
            await self._own(problem)
            await self.leave(problem)

    async def leave(self, problem: Key) -> None:
        """Release a name that no problem has: its creation was refused, or it was deleted."""
        if problem in self._coordinator.ledger.problems:
            return
        async with self._coordinator.locks[problem]:
            if problem not in self._coordinator.ledger.problems:
                with contextlib.suppress(StoreUnavailable):  # whose session, with all locks, will end
                    await self._coordinator.writer.run(lambda: self._shards.release(problem))
                self._forget(problem)
                self._used.pop(problem, None)

    async def names(self, tenant: str) -> list[str]:
        """The names of all problems of a tenant."""
        return await asyncio.to_thread(self._shards.problem_names, tenant)

    async def _acquire(self, problem: Key) -> bool:
        """Whether the problem is ours: one attempt, which all requests that come meanwhile share."""
        task = self._acquiring.get(problem)
        if task is None:
            task = self._acquiring[problem] = asyncio.ensure_future(self._try_to_acquire(problem))
            task.add_done_callback(lambda _: self._acquiring.pop(problem, None))
        try:
            return await asyncio.shield(task)
        except StoreUnavailable as error:
            self._coordinator.note_writing(str(error))
            if problem in self._coordinator.ledger.problems:
                return True  # what is known can be read; nothing will be written
            raise

    async def _try_to_acquire(self, problem: Key) -> bool:
        coordinator, shards = self._coordinator, self._shards
        async with coordinator.locks[problem]:
            last = await coordinator.writer.run(lambda: shards.acquire(problem))
            if last is None:
                self._forget(problem)
                return False
            if coordinator.position.get(log_name(problem)) != last:
                self._forget(problem)
                await self._load(problem)
            elif not shards.admit(problem):
                raise StoreUnavailable(f"the session ended while problem {problem[1]!r} was acquired")
        return True

    async def _load(self, problem: Key) -> None:
        """Read the state of a problem from its snapshot and its log: nothing is written there meanwhile."""
        ledger, position, n_read = await asyncio.to_thread(restore_ledger, self._shards.problem_log(problem))
        await self._coordinator.rehearse(*(one.as_created(one.settings) for one in ledger.problems.values()))
        if not self._shards.admit(problem):
            raise StoreUnavailable(f"the session ended while problem {problem[1]!r} was read")
        self._saved[problem] = position.get(log_name(problem), 0) - n_read
        self._coordinator.include(ledger, position)
        log.info("serving problem %r of %r: %s events read", problem[1], problem[0], n_read)

    def _forget(self, problem: Key) -> None:
        """Drop what is in memory of a problem."""
        self._coordinator.forget(problem, log_name(problem))
        self._saved.pop(problem, None)

    async def run(self) -> None:
        """Save snapshots that are due, and release what others ask for; a silent worker would lose everything."""
        coordinator = self._coordinator
        while True:
            try:
                now = asyncio.get_running_loop().time()
                for problem in await self._ask_for_claims():
                    if now - self._used.get(problem, 0.0) > IDLE_SECONDS:
                        await self._release(problem)
                for problem in [key for key in self._saved if self._unsaved(key) >= self._snapshot_every]:
                    await self._save(problem)
                for problem in [key for key in coordinator.ledger.problems if not self._is_mine(key)]:
                    await self._acquire(problem)
                    await self.leave(problem)
            except StoreUnavailable as error:
                coordinator.note_writing(str(error))
            await asyncio.sleep(POLL_SECONDS)

    def _unsaved(self, problem: Key) -> int:
        return self._coordinator.position.get(log_name(problem), 0) - self._saved.get(problem, 0)

    @property
    def lag(self) -> int:
        """How many events follow the newest snapshot, of the problem with the most."""
        return max(map(self._unsaved, self._saved), default=0)

    async def _save(self, problem: Key) -> None:
        """Save a snapshot of a problem; others wait only while its state is copied."""
        coordinator, name = self._coordinator, log_name(problem)
        async with coordinator.locks[problem]:
            if not self._is_mine(problem):
                return
            position = {name: coordinator.position.get(name, 0)}
            state = await asyncio.to_thread(copy_state, coordinator.ledger, position, problem)
        saved = await asyncio.to_thread(pack_snapshot, state)
        await coordinator.writer.run(lambda: self._shards.save_problem(problem, saved))
        self._saved[problem] = position[name]

    async def save_all(self) -> None:
        """Save a snapshot of every problem that has changed since its last."""
        for problem in [key for key in self._saved if self._unsaved(key)]:
            await self._save(problem)

    async def _release(self, problem: Key) -> None:
        """Let another worker have a problem, when everything of it that is being written has been written."""
        await self._save(problem)
        async with self._coordinator.locks[problem]:
            await self._coordinator.writer.run(lambda: self._shards.release(problem))
            self._forget(problem)
            log.info("released problem %r of %r to another worker", problem[1], problem[0])
