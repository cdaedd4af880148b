"""Clients: they ask, tell, read and change problems, repeat what was not answered, and send what must be refused."""

import asyncio
import random
from collections.abc import Awaitable
from typing import Any

from superarm import Policy
from superarm.policies import Memory
from superarm.service.runtime.ownership import LEASE_SECONDS

from .book import Book, Operation, Units
from .loop import WORKER
from .world import Lost, World

ARMS, VALUES = tuple(f"a{n}" for n in range(5)), (0.25, 0.5, 1.0)
POISON = 0.75
"""A value that the policy of the problem ``careless`` cannot learn."""
WINDOW_SECONDS = 8.0
MAX_TRIES = 60


class Fragile(Memory):
    """A memory of one's own that cannot take one value, and no new arm."""

    def note(self, feedback: Any, weight: Any) -> None:
        if (feedback.outcome == POISON).any():
            raise ZeroDivisionError("nothing was learnt")

    def grown(self, problem: Any, t: Any) -> Any:
        raise ZeroDivisionError("this policy knows its arms")


class Careless(Policy):
    """A policy of one's own that fails with what its memory cannot take."""

    remembers = Fragile

    def choose(self, problem: Any, view: Any, memory: Any) -> Any:
        return problem.actions.heaviest(view.tally.mean.sum(1) + 1.0 / (1.0 + view.counts), view)


def spec(policy: str) -> dict[str, Any]:
    """A problem; the end of a window has another meaning in each."""
    end = {"bc_ucb": "ignore", "kl_ucb": 0.0}.get(policy, 0.5)
    settings = {"policy": {"name": policy}, "window_s": WINDOW_SECONDS, "at_window_end": end, "max_pending": 100_000}
    return {"arms": list(ARMS), "items": ["x", "y"], "k": 2, "seed": 1, "settings": settings}


PROBLEMS = {"p": "bc_ucb", "q": "kl_ucb", "careless": "careless"}


class Client:
    """One client; it has decisions of its own, which nobody else uses."""

    def __init__(self, world: World, book: Book, name: str, rng: random.Random) -> None:
        self._world, self._book, self._name, self._rng = world, book, name, rng
        self._open: list[tuple[str, str]] = []  # decisions that nothing was told of
        self._done: dict[tuple[str, str], Units] = {}  # what was told in time
        self._n, self._home = 0, rng.randrange(9)
        self.closed: set[str] = set()

    async def send(self, one: Operation) -> Any:
        """Have an operation answered: the status and the reply; None if that did not happen in many tries."""
        self._book.send(one)
        for _ in range(MAX_TRIES):
            worker = self._pick(one.problem)
            try:
                said = await self._world.request(
                    worker, one.method, f"/v1/problems/{one.problem}{one.path}", one.body, self._hear(one)
                )
            except Lost:
                said = 503, {}
            if said[0] != 503:
                return said
            if "is closed" in str(said[1]):
                self.closed.add(one.problem)
                return None
            await asyncio.sleep(self._rng.expovariate(2.0))
        return None

    def _hear(self, one: Operation) -> Any:
        return lambda status, said: self._book.answer(one, status, said)

    def _pick(self, problem: str) -> Any:
        workers = self._world.workers
        usual = (len(problem) + self._home * (self._rng.random() < 0.5)) % len(workers)
        return workers[self._rng.randrange(len(workers)) if self._rng.random() < 0.1 else usual]

    async def create(self, problem: str, policy: str) -> None:
        """Create a problem."""
        await self.send(Operation("create", "PUT", problem, "", spec(policy), (200, 201)))

    async def run(self, operations: int) -> None:
        """Send so many operations, now fast, now slowly."""
        for _ in range(operations):
            await asyncio.sleep(self._rng.expovariate(self._rng.choice((0.3, 5.0, 50.0))))
            problems = [name for name in PROBLEMS if name not in self.closed]
            await self._one(self._rng.choice(problems))

    def _one(self, problem: str) -> Awaitable[Any]:
        rng = self._rng
        own = [key for key in self._open if key[0] == problem]
        done = [key for key in self._done if key[0] == problem]
        draw = rng.random()
        if draw < 0.35 and own:
            return self._tell(rng.choice(own))
        if draw < 0.5 and done:
            key = rng.choice(done)
            return rng.choice((self._repeat, self._contradict, self._amend, self._read, self._erase))(key)
        return self._change(problem) if draw > 0.92 else self._ask(problem)

    def _new(self) -> str:
        self._n += 1
        return f"{self._name}-{self._n}"

    async def _ask(self, problem: str) -> None:
        id, rng = self._new(), self._rng
        if rng.random() < 0.1:
            body = {"id": id, "eligible": ["nobody"]}
            await self.send(Operation("bad ask", "POST", problem, "/decisions", body, (422,), id))
            return
        one = Operation("ask", "POST", problem, "/decisions", {"id": id}, (200, 201), id)
        twins = [self.send(one)] * 1 + ([self.send(one)] if rng.random() < 0.1 else [])
        answers = await asyncio.gather(*twins)
        if all(answer is not None and answer[0] < 300 for answer in answers):
            self._open.append((problem, id))

    def _units(self, key: tuple[str, str]) -> Units:
        rng, arms = self._rng, self._book.asked[key]
        values = (*VALUES, POISON) if key[0] == "careless" and rng.random() < 0.3 else VALUES
        arms = arms if rng.random() < 0.8 else arms[:1]
        return tuple((arm, item, rng.choice(values)) for arm in arms for item in ("x", "y"))

    def _feedback(self, kind: str, key: tuple[str, str], units: Units, expected: tuple[int, ...]) -> Operation:
        body = {"feedback": [{"arm": arm, "item": item, "value": value} for arm, item, value in units]}
        body |= {"amend": True} if kind == "amend" else {}
        return Operation(kind, "POST", key[0], f"/decisions/{key[1]}/feedback", body, expected, key[1], units)

    async def _tell(self, key: tuple[str, str]) -> None:
        self._open.remove(key)
        units = self._units(key)
        if self._rng.random() < 0.1:
            wrong = ((*units[0][:2], 2.0), *units[1:])
            await self.send(self._feedback("bad tell", key, wrong, (422,)))
        answer = await self.send(self._feedback("tell", key, units, (200,)))
        if answer is not None and answer[0] == 200 and not answer[1]["late"]:
            self._done[key] = units

    async def _repeat(self, key: tuple[str, str]) -> None:
        await self.send(self._feedback("tell", key, self._done[key], (200,)))

    async def _contradict(self, key: tuple[str, str]) -> None:
        units = tuple((arm, item, 0.0) for arm, item, _ in self._done[key])
        await self.send(self._feedback("contradict", key, units, (409,)))

    async def _amend(self, key: tuple[str, str]) -> None:
        units = tuple((arm, item, 0.125) for arm, item, _ in self._done.pop(key))
        await self.send(self._feedback("amend", key, units, (200,)))

    async def _read(self, key: tuple[str, str]) -> None:
        await self.send(Operation("read", "GET", key[0], f"/decisions/{key[1]}", None, (200,), key[1]))

    async def _erase(self, key: tuple[str, str]) -> None:
        self._done.pop(key)
        await self.send(Operation("erase", "DELETE", key[0], f"/decisions/{key[1]}", None, (200,), key[1]))

    async def _change(self, problem: str) -> None:
        if self._rng.random() < 0.5:
            body = {"explore": self._rng.choice((0.0, 0.25))}
            await self.send(Operation("settings", "PATCH", problem, "/settings", body, (200,)))
            return
        fits = problem != "careless"
        kind, expected = ("add arm", (200,)) if fits else ("bad arm", (422,))
        await self.send(Operation(kind, "POST", problem, "/arms", {"add": [f"b{self._new()}"]}, expected))


class Owner(Client):
    """A client with a problem that it creates, uses and deletes again and again; nobody else knows it."""

    async def run(self, operations: int) -> None:
        for n in range(max(1, operations // 5)):
            await asyncio.sleep(self._rng.expovariate(0.5))
            await self.create(self._name, "bc_ucb")
            for id in (f"{n}-1", f"{n}-2"):
                await self.send(Operation("ask", "POST", self._name, "/decisions", {"id": id}, (200, 201), id))
            if await self.send(Operation("delete", "DELETE", self._name, "", None, (200, 404))) is None:
                return  # nobody knows whether it is there
            if self._rng.random() < 0.5:
                await asyncio.sleep(LEASE_SECONDS)
                await self.send(Operation("gone", "GET", self._name, "", None, (404,)))

    def _hear(self, one: Operation) -> Any:
        return lambda status, said: self._book.answer(one, 503 if status == 200 and _from_memory(one) else status, said)


def _from_memory(one: Operation) -> bool:
    """Whether a worker reads what it remembers, and says in ``/health`` that it cannot reach the database."""
    return one.kind == "gone" and bool(WORKER.get().app.service.coordinator.condition.fault)
