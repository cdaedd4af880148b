"""Workers, each the real application on a store of its own, and the way to them; modules see a clock of this world."""

import asyncio
import contextlib
import contextvars
import hashlib
import json
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

from superarm.service import application as applications
from superarm.service.http import endpoint, service
from superarm.service.http.service import ServiceLimits
from superarm.service.runtime import admin, ask, condition, coordinator, feedback, writer
from superarm.service.storage import postgres

from .database import Database
from .file import Disk, FileStore
from .loop import WORKER, Callback, Loop, Queue, Thread

BEGAN = 1_700_000_000.0
"""The time of day at which every world begins, in seconds."""


class Lost(Exception):
    """A request was not answered; nobody knows what became of it."""


class Worker:
    """One process: ``stopped`` while it does nothing (SIGSTOP); ``waiting`` is what it will do when it goes on."""

    def __init__(self, world: "World", name: str) -> None:
        self.world, self.name = world, name
        self.stopped, self.dead, self.ready, self.failed = False, False, False, False
        self.waiting: list[Callback] = []
        self.replies: set[asyncio.Future[Any]] = set()
        self.context = contextvars.copy_context()
        self.context.run(WORKER.set, self)
        self.context.run(self._start)

    def _start(self) -> None:
        world = self.world
        store: Any = FileStore(world.data, self.name)
        if isinstance(world.data, Database):
            store = postgres.Postgres(self.name, wait=True)
        limits = ServiceLimits(snapshot_every=world.rng.randint(5, 40))
        self.app = applications.application(store, limits, on_failed=self._fail)
        self.life = world.loop.create_task(self._live())

    def _fail(self) -> None:
        self.failed = True

    async def _live(self) -> None:
        """The start of the application, as its server does it."""
        received, sent = asyncio.Queue[Any](), asyncio.Queue[Any]()
        life = asyncio.ensure_future(self.app({"type": "lifespan"}, received.get, sent.put))
        await received.put({"type": "lifespan.startup"})
        message = await sent.get()
        self.ready = message["type"] == "lifespan.startup.complete"
        self.failed = not self.ready
        await life

    def kill(self) -> None:
        """End it as kill -9 does: the store hears nothing more of it, and nobody gets its replies."""
        self.dead, self.stopped = True, False
        self.world.data.dead.add(self.name)
        if isinstance(self.world.data, Database):
            for session in [one for one in self.world.data.sessions if one.worker == self.name]:
                session.end()
        for reply in self.replies:
            if not reply.done():
                reply.set_exception(Lost())
        for task in self.world.loop.tasks.pop(self, []):
            task.cancel()
        self.world.loop.push_again(self.waiting)
        self.waiting = []

    def resume(self) -> None:
        """Let it go on after a stop."""
        self.stopped = False
        self.world.loop.push_again(self.waiting)
        self.waiting = []


class World:
    """All of it, from one seed; ``log`` is what happened, of which ``digest`` is a digest."""

    def __init__(self, seed: int, *, single: bool) -> None:
        self.rng = random.Random(seed)
        self.loop, self.log, self.step = Loop(random.Random(self.rng.random())), list[str](), 0.0
        kind = Disk if single else Database
        self.data: Any = kind(self.loop, random.Random(self.rng.random()), self.trace)
        self.workers: list[Worker] = []
        self._secrets = random.Random(self.rng.random())
        self._n_workers = 0

    def trace(self, *what: Any) -> None:
        """Note what happened."""
        self.log.append(f"{self.loop.now:.6f} {' '.join(map(str, what))}")

    def digest(self) -> str:
        """A digest of all that happened."""
        return hashlib.sha256("\n".join(self.log).encode()).hexdigest()

    def start_worker(self) -> Worker:
        """A new process."""
        self._n_workers += 1
        worker = Worker(self, f"w{self._n_workers}")
        self.trace("start", worker.name)
        return worker

    async def request(self, worker: Worker, method: str, path: str, body: Any, on_reply: Any) -> tuple[int, Any]:
        """The reply of a worker, or ``Lost``; ``on_reply`` hears it when the worker gives it, though it may be lost."""
        reply = self.loop.create_future()
        await asyncio.sleep(self.loop.pause())
        if worker.dead or not worker.ready:
            raise Lost
        worker.replies.add(reply)
        call = _Call(self, method, path, body, reply, on_reply)
        context = worker.context.copy()
        self.loop.create_task(call.run(worker.app), context=context)  # the loop keeps it
        try:
            async with asyncio.timeout(30.0):
                return await reply
        except TimeoutError:
            raise Lost from None
        finally:
            worker.replies.discard(reply)

    @contextlib.contextmanager
    def ruling(self) -> Iterator[None]:
        """Let the modules of the service see this world: its clock, its threads, its random numbers, its database."""
        clock = SimpleNamespace(
            monotonic=self.loop.time,
            perf_counter=self.loop.time,
            time=lambda: BEGAN + self.loop.now + self.step,
            time_ns=lambda: int((BEGAN + self.loop.now + self.step) * 1e9),
        )
        draw = self._secrets
        chance = SimpleNamespace(
            token_hex=lambda n: f"{draw.getrandbits(8 * n):0{2 * n}x}",
            token_urlsafe=lambda n: f"{draw.getrandbits(8 * n):0{2 * n}x}",
        )
        with contextlib.ExitStack() as patched:
            for module in (coordinator, condition, writer, endpoint, service):
                patched.enter_context(mock.patch.object(module, "time", clock))
            for module in (admin, ask, postgres):
                patched.enter_context(mock.patch.object(module, "secrets", chance))
            threads = _Threads(self.loop)
            patched.enter_context(mock.patch.object(writer, "queue", threads))
            patched.enter_context(mock.patch.object(writer, "threading", threads))
            patched.enter_context(mock.patch.object(applications, "document", return_value={}))
            patched.enter_context(mock.patch.object(feedback, "asyncio", _Patient()))
            if isinstance(self.data, Database):
                patched.enter_context(mock.patch.object(postgres, "connect", self.data.connect))
            yield


class _Threads:
    """``queue`` and ``threading`` of the writer, which makes a queue and then the thread that reads it."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def SimpleQueue(self) -> Queue:  # noqa: N802 - the name that it has
        self._made = Queue(self._loop)
        return self._made

    def Thread(self, target: Any, name: str, daemon: bool) -> Thread:  # noqa: N802 - the name that it has
        return Thread(self._loop, self._made, target)


class _Patient:
    """``asyncio`` for the ends of windows, which are looked for every half second: more often is half of all steps."""

    gather, to_thread = staticmethod(asyncio.gather), staticmethod(asyncio.to_thread)

    @staticmethod
    async def sleep(seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(max(0.5, seconds))


class _Call:
    """One request to an application, in ASGI: its body comes some time after its head."""

    def __init__(self, world: World, method: str, path: str, body: Any, reply: Any, on_reply: Any) -> None:
        self._world, self._method, self._path = world, method, path
        self._body, self._reply, self._on_reply = b"" if body is None else json.dumps(body).encode(), reply, on_reply
        self._status = 0

    async def run(self, app: Any) -> None:
        """Have it answered."""
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        headers.append((b"content-length", str(len(self._body)).encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self._method,
            "scheme": "http",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        await app(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        await asyncio.sleep(self._world.loop.pause())
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            return
        worker, said = WORKER.get(), json.loads(message["body"] or b"null")
        if worker.dead:
            return
        self._on_reply(self._status, said)
        world = self._world
        if world.loop.rng.random() < world.data.risk:
            world.trace("reply lost", self._path)
            self._give(Lost())
        else:
            world.loop.call_later(world.loop.pause(), self._give, (self._status, said))

    def _give(self, answer: Any) -> None:
        if self._reply.done():
            return
        if isinstance(answer, Lost):
            self._reply.set_exception(answer)
        else:
            self._reply.set_result(answer)
