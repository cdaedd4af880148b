"""What is written together: events that arrive while a commit runs are kept until its end."""

import asyncio
import threading
from pathlib import Path
from typing import Any

from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.runtime.admin import create
from superarm.service.runtime.ask import ask
from superarm.service.runtime.batcher import MAX_COMMIT_EVENTS, Batcher
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.runtime.gates import Gates
from superarm.service.schemas import AskBody
from superarm.service.storage.base import LogLine
from superarm.service.storage.sqlite import Sqlite


def test_events_wait_for_the_end_of_a_commit_unless_they_fill_one():
    submitted: list[list[Any]] = []
    writing = [True]

    async def live() -> None:
        batcher = Batcher(submitted.append, lambda key: 0, Gates(), lambda: writing[0])
        batcher.post("first")
        await asyncio.sleep(0)
        batcher.post("second")
        await asyncio.sleep(0)
        batcher.go_on()  # one commit has ended, and the next one runs already
        assert submitted == []
        for n in range(MAX_COMMIT_EVENTS - 2):
            batcher.post(n)
        assert [len(batch) for batch in submitted] == [MAX_COMMIT_EVENTS]
        batcher.post("last")
        await asyncio.sleep(0)
        writing[0] = False
        batcher.go_on()
        batcher.go_on()
        assert submitted[1:] == [["last"]]
        batcher.post("alone")
        await asyncio.sleep(0)
        assert submitted[2:] == [["alone"]]

    asyncio.run(live())


class SlowSqlite(Sqlite):
    """A store whose commits wait for ``free``, and that notes how many events each of them has."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.free, self.sizes = threading.Event(), list[int]()

    def commit(self, lines: list[LogLine]) -> list[int]:
        assert self.free.wait(60.0)
        self.sizes.append(len(lines))
        return super().commit(lines)


SPEC = ProblemSpec(arms=["a", "b", "c"], k=2, settings=Settings(policy=PolicySpec("bc_ucb"), window_s=None))


def test_decisions_of_several_turns_are_written_by_one_commit_and_are_those_of_one_by_one(tmp_path):
    async def decide(name: str, together: bool) -> tuple[list[Any], list[int]]:
        store = SlowSqlite(tmp_path / f"{name}.db")
        coordinator = Coordinator(store)
        await coordinator.start()
        store.free.set()
        await create(coordinator, "t", "p", SPEC, "", 10)
        if together:
            store.free.clear()
        tasks = []
        for n in range(9):
            tasks.append(asyncio.ensure_future(ask(coordinator, "t", "p", AskBody(id=f"d{n}"))))
            await (asyncio.sleep(0.001) if together else tasks[-1])  # a turn of its own for each
        store.free.set()
        made = await asyncio.gather(*tasks)
        sizes = list(store.sizes)
        await coordinator.stop()
        return [record.action for record, _ in made], sizes[1:]

    slates, sizes = asyncio.run(decide("together", True))
    assert (slates, [1] * 9) == asyncio.run(decide("singly", False))
    assert sizes == [1, 8]
