"""Which problems this process serves: all of its log, or only those that it owns.

With sharding, a proxy sends the requests for a problem to one worker. The worker acquires the problem at the first
request, reads its log, and keeps it until its session in the database ends or until another worker asks for it while
no requests come here any more.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from superarm.service.domain.compilation import compile_kernels
from superarm.service.domain.ledger import Key, Ledger
from superarm.service.errors import RequestError, overloaded
from superarm.service.runtime.applying import Applier
from superarm.service.runtime.condition import Condition
from superarm.service.runtime.writer import Writer
from superarm.service.storage.base import Position, Shards, StoreUnavailable
from superarm.service.storage.snapshot import StateCopy, encode_state, restore_ledger

log = logging.getLogger("superarm.ownership")

POLL_SECONDS = 0.5
"""How often a worker looks for claims of others, which also tells the database that it lives."""

IDLE_SECONDS = 2.0
"""A problem without a request for so long is released to a worker that asks for it."""

WAIT_SECONDS = 5.0
"""How long a request waits for its problem to be released by another worker."""

RETRY_SECONDS = 0.1

Result = TypeVar("Result")


class Ownership(Protocol):
    """Which problems this process serves."""

    def use(self, problem: Key) -> bool:
        """Note a request for a problem; False if it has to be acquired first."""
        ...

    async def enter(self, problem: Key, *, creates: bool) -> None:
        """Acquire a problem for a request that names it, or raise ``RequestError`` (503)."""
        ...

    async def need(self, problem: Key) -> None:
        """Acquire a problem that a request did not name, or raise ``RequestError`` (421) if it is served elsewhere."""
        ...

    async def names(self, tenant: str) -> list[str]:
        """The names of all problems of a tenant."""
        ...

    async def run(self) -> None:
        """What has to be done as long as the process runs."""
        ...

    async def save_all(self) -> None:
        """Save the state of single problems, before the process ends."""
        ...


class AllProblems:
    """Every problem of the log is served."""

    def __init__(self, applier: Applier) -> None:
        self._applier = applier

    def use(self, problem: Key) -> bool:
        return True

    async def enter(self, problem: Key, *, creates: bool) -> None:
        return

    async def need(self, problem: Key) -> None:
        return

    async def names(self, tenant: str) -> list[str]:
        return sorted(name for owner, name in self._applier.ledger.problems if owner == tenant)

    async def run(self) -> None:
        return

    async def save_all(self) -> None:
        return


class OwnedProblems:
    """The problems that this worker has acquired; all changes of ownership run in the writer's thread."""

    def __init__(self, shards: Shards, applier: Applier, condition: Condition, snapshot_every: int) -> None:
        self._shards, self._applier, self._condition = shards, applier, condition
        self._snapshot_every = snapshot_every
        self.writer: Writer
        self._used: dict[Key, float] = {}
        self._acquiring: dict[Key, asyncio.Task[bool]] = {}
        self._leaving: set[Key] = set()
        self._saved: dict[Key, int] = {}

    def use(self, problem: Key) -> bool:
        self._used[problem] = asyncio.get_running_loop().time()
        return self._is_mine(problem)

    def _is_mine(self, problem: Key) -> bool:
        known = problem in self._applier.ledger.problems
        return known and problem not in self._leaving and self._shards.holds(problem)

    async def enter(self, problem: Key, *, creates: bool) -> None:
        if "\0" in problem[1] or len(problem[1]) > 256:
            return  # no problem has such a name: the request is refused by its own rules
        loop = asyncio.get_running_loop()
        end = loop.time() + WAIT_SECONDS
        while not await self._acquire(problem, creates):
            if loop.time() > end:
                raise overloaded(f"problem {problem[1]!r} is served by another worker; try again", 1)
            await self._in_writer(lambda: self._shards.claim(problem))
            await asyncio.sleep(RETRY_SECONDS)

    async def need(self, problem: Key) -> None:
        if not self._is_mine(problem) and not await self._acquire(problem, creates=False):
            path = f"/v1/problems/{problem[1]}/decisions/…"
            said = f"problem {problem[1]!r} is served by another worker; send it by {path}, through the proxy"
            raise RequestError(421, "misdirected", said)

    async def names(self, tenant: str) -> list[str]:
        return await asyncio.to_thread(self._shards.problem_names, tenant)

    async def _acquire(self, problem: Key, creates: bool) -> bool:
        """Whether the problem is ours: one attempt, which all requests that come meanwhile share."""
        if problem in self._leaving:
            return False
        task = self._acquiring.get(problem)
        if task is None:
            task = self._acquiring[problem] = asyncio.ensure_future(self._try_to_acquire(problem, creates))
            task.add_done_callback(lambda _: self._acquiring.pop(problem, None))
        try:
            return await asyncio.shield(task)
        except StoreUnavailable as error:
            self._condition.report("write", f"the log cannot be written: {error}")
            if problem in self._applier.ledger.problems:
                return True  # what is known can be read; nothing will be written
            raise

    async def _try_to_acquire(self, problem: Key, creates: bool) -> bool:
        last = await self._in_writer(lambda: self._shards.acquire(problem))
        await self._applier.finish()
        if last is None:
            self._forget(problem)
            return False
        if last == 0 and not creates:
            await self._in_writer(lambda: self._shards.release(problem))  # there is no such problem
        elif self._applier.position.get(self._shards.log_name(problem)) != last:
            self._forget(problem)
            await self._load(problem)
        elif not self._shards.admit(problem):
            raise StoreUnavailable(f"the session ended while problem {problem[1]!r} was acquired")
        return True

    async def _load(self, problem: Key) -> None:
        """Read the state of a problem from its snapshot and its log: nothing is written there meanwhile."""

        def restore() -> tuple[Ledger, Position, int]:
            restored = restore_ledger(self._shards.problem_log(problem))
            for learner in restored[0].problems.values():
                compile_kernels(learner.as_created(learner.settings))
            return restored

        ledger, position, n_read = await asyncio.to_thread(restore)
        if not self._shards.admit(problem):
            raise StoreUnavailable(f"the session ended while problem {problem[1]!r} was read")
        name = self._shards.log_name(problem)
        self._saved[problem] = position.get(name, 0) - n_read
        self._applier.include(ledger, position)
        log.info("serving problem %r of %r: %s events read", problem[1], problem[0], n_read)

    def _forget(self, problem: Key) -> None:
        """Drop what is in memory of a problem."""
        self._applier.exclude(problem, self._shards.log_name(problem))
        self._saved.pop(problem, None)

    async def run(self) -> None:
        """Save snapshots that are due, and release what others ask for; a silent worker would lose everything."""
        while True:
            try:
                now = asyncio.get_running_loop().time()
                for problem in await self._in_writer(self._shards.claims):
                    if now - self._used.get(problem, 0.0) > IDLE_SECONDS:
                        await self._release(problem)
                for problem in self._due():
                    await self._save(problem)
                for problem in [key for key in self._applier.ledger.problems if not self._is_mine(key)]:
                    await self._acquire(problem, creates=False)
            except StoreUnavailable as error:
                self._condition.report("write", f"the log cannot be written: {error}")
            await asyncio.sleep(POLL_SECONDS)

    def _due(self) -> list[Key]:
        position, name = self._applier.position, self._shards.log_name
        return [
            problem
            for problem, saved in self._saved.items()
            if position.get(name(problem), 0) - saved >= self._snapshot_every
        ]

    async def _save(self, problem: Key) -> None:
        copied: StateCopy | None = await self._applier.copy_problem(problem, self._shards.log_name(problem))
        if copied is not None:
            saved = await asyncio.to_thread(encode_state, copied)
            await self._in_writer(lambda: self._shards.save_problem(problem, saved))
            self._saved[problem] = max(copied.position.values())

    async def save_all(self) -> None:
        """Save a snapshot of every problem that has changed since its last."""
        for problem, saved in list(self._saved.items()):
            if self._applier.position.get(self._shards.log_name(problem), 0) > saved and self._shards.holds(problem):
                await self._save(problem)

    async def _release(self, problem: Key) -> None:
        """Let another worker have a problem, when everything of it that is being written has been written."""
        self._leaving.add(problem)
        try:
            await self._save(problem)
            await self._in_writer(lambda: self._shards.release(problem))
            await self._applier.finish()
            self._forget(problem)
            log.info("released problem %r of %r to another worker", problem[1], problem[0])
        finally:
            self._leaving.discard(problem)

    async def _in_writer(self, job: Callable[[], Result]) -> Result:
        """The result of a job in the writer's thread, after everything that was submitted before."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def resolve(set_it: Callable[[Any], None], value: Any) -> None:
            if not done.done():
                set_it(value)

        def run() -> None:
            try:
                result = job()
            except Exception as error:
                loop.call_soon_threadsafe(resolve, done.set_exception, error)
            else:
                loop.call_soon_threadsafe(resolve, done.set_result, result)

        self.writer.run(run)
        value: Result = await done
        return value
