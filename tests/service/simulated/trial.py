"""One seed: clients and faults until all operations are answered, then peace, and the comparison with the book."""

import asyncio
import gc
import logging
import random
from typing import Any, NamedTuple
from unittest import mock

from superarm.service.domain import components
from superarm.service.storage import postgres
from superarm.service.storage.snapshot import check_log, encode_counters

from .book import TENANT, Book, Operation, Stories
from .clients import PROBLEMS, WINDOW_SECONDS, Careless, Client, Owner
from .database import Database
from .faults import Faults
from .file import FileStore
from .world import World


class Result(NamedTuple):
    """What became of a seed: the faults that were found, a digest of all that happened, and all that happened."""

    seed: int
    faults: list[str]
    digest: str
    log: list[str]
    answers: dict[str, int]


def play(seed: int, operations: int = 200, *, single: bool | None = None) -> Result:
    """Play a seed: with one worker on a file (``single``), or with several on PostgreSQL; by default, the seed says."""
    single = seed % 4 == 0 if single is None else single
    world = World(seed, single=single)
    book = Book(world.data, world.trace)
    careless = {"careless": Careless}
    logging.disable(logging.CRITICAL)
    gc.disable()  # it would end tasks at times of its own
    try:
        with world.ruling(), mock.patch.dict(components.POLICIES, careless):
            world.loop.run(_play(world, book, operations, 1 if single else world.rng.randint(2, 3)))
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()
    return Result(seed, book.faults, world.digest(), world.log, book.n_answers)


async def _play(world: World, book: Book, operations: int, n_workers: int) -> None:
    rng = world.rng
    world.workers = [world.start_worker() for _ in range(n_workers)]
    faults = Faults(world, random.Random(rng.random()))
    n_clients = rng.randint(2, 8)
    clients = [Client(world, book, f"c{n}", random.Random(rng.random())) for n in range(n_clients)]
    owner = Owner(world, book, "own", random.Random(rng.random()))
    for name, policy in PROBLEMS.items():
        await clients[0].create(name, policy)
    befall = asyncio.ensure_future(faults.run())
    share = operations // (n_clients + 1)
    await asyncio.gather(*(client.run(share) for client in (*clients, owner)))
    befall.cancel()
    faults.heal()
    await _compare(world, book, clients[0])
    await end(world)


async def _compare(world: World, book: Book, client: Client) -> None:
    """When all is quiet: the log against the book, and what workers say and hold against the log."""
    await _read_arms(book, client)  # so that every problem has an owner, who ends its windows
    await asyncio.sleep(1.5 * WINDOW_SECONDS)
    rows = await _read_arms(book, client)
    try:
        stories = Stories(world.data.lines())
        book.audit(stories)
        for name, found in rows.items():
            book.compare(stories, name, found)
        _compare_states(world, book)
    except Exception as error:
        book.fault(f"the log cannot be read: {error!r}")


async def _read_arms(book: Book, client: Client) -> dict[str, Any]:
    """What the service says of the arms of every problem that is not closed."""
    rows = dict[str, Any]()
    for name in PROBLEMS:
        answer = await client.send(Operation("arms", "GET", name, "/arms", None, (200,)))
        if answer is not None and answer[0] == 200:
            rows[name] = answer[1]["arms"]
        elif name not in client.closed:
            book.fault(f"{name} is not served again")
    return rows


def _compare_states(world: World, book: Book) -> None:
    """The state in each worker against the fold of the log, bit for bit."""
    store: Any = postgres.Postgres("audit", serving=False) if isinstance(world.data, Database) else None
    report, ledger, _ = check_log(store or FileStore(world.data, "audit"))
    poisoned = (TENANT, "careless") in ledger.broken
    for fault in report.faults:
        if not fault.endswith("is damaged, or of another version") and not (poisoned and "'careless'" in fault):
            book.fault(fault)
    for worker in world.workers:
        coordinator = worker.app.service.coordinator
        if worker.failed or worker.life.done():
            book.fault(f"worker {worker.name} has failed: {coordinator.condition.reason}")
        for key, state in coordinator.ledger.problems.items():
            held = coordinator.store.shards is None or coordinator.store.shards.holds(key)
            if held and encode_counters(*key, state) != encode_counters(*key, ledger.problems[key]):
                book.fault(f"worker {worker.name} holds another state of {key} than the log gives")


async def end(world: World) -> None:
    """Cancel what still runs, so that nothing is left for the next seed."""
    own = asyncio.current_task()
    tasks = [task for part in list(world.loop.tasks.values()) for task in part if task is not own and not task.done()]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=5.0)
