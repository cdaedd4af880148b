"""The service in a simulated world: no seed finds a fault, each plays again exactly, and known defects are found."""

import asyncio
import os
import subprocess
import sys
from unittest import mock

import pytest

from superarm.decisions import Told
from superarm.service.domain.ledger import Ledger
from superarm.service.errors import unknown
from superarm.service.runtime import coordinator as coordinators
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.runtime.writer import Writer
from superarm.service.storage.postgres import SESSION_SECONDS, Postgres

from .simulated.clients import spec
from .simulated.trial import end, play
from .simulated.world import Worker, World

FIRST_SEED, LAST_SEED = 100, int(os.environ.get("SUPERARM_SEEDS", "300"))


def replay(seed: int, operations: int) -> str:
    return f"python -m tests.service.simulated --seed {seed} --operations {operations}"


@pytest.mark.parametrize("tenth", range(10))
def test_no_seed_finds_a_fault(tenth):
    for seed in range(10 * tenth, 10 * tenth + 10):
        result = play(seed, 40)
        assert result.faults == [], replay(seed, 40)


@pytest.mark.slow("simulated services")
@pytest.mark.parametrize("tenth", range(10))
def test_no_seed_of_many_finds_a_fault(tenth):
    for seed in range(FIRST_SEED + tenth, LAST_SEED, 10):
        result = play(seed, 200)
        assert result.faults == [], replay(seed, 200)


@pytest.mark.parametrize("seed", [4, 5])
def test_a_seed_plays_again_exactly(seed):
    one, other = play(seed, 60), play(seed, 60)
    assert (one.digest, one.log) == (other.digest, other.log)
    assert play(seed + 4, 60).digest != one.digest


@pytest.mark.slow("simulated services")
def test_the_command_plays_a_seed_again_in_another_process():
    command = [sys.executable, "-m", "tests.service.simulated", "--seed", "5", "--operations", "60"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert f"digest {play(5, 60).digest[:16]}" in ended.stdout


@pytest.mark.parametrize(("method", "right"), [("PUT", 201), ("GET", 404)])
def test_a_worker_that_was_stopped_does_not_say_that_a_deleted_problem_exists(method, right):
    """Seed 1137 found it: 200 for the creation, and then 404 for all that followed."""
    world = World(0, single=False)

    async def send(worker: Worker, method: str, body: object = None) -> int:
        while not worker.ready:
            await asyncio.sleep(0.1)
        return (await world.request(worker, method, "/v1/problems/p", body, lambda status, said: None))[0]

    async def live() -> list[int]:
        one, other = world.start_worker(), world.start_worker()
        statuses = [await send(one, "PUT", spec("bc_ucb"))]
        one.stopped = True
        await asyncio.sleep(2 * SESSION_SECONDS)
        statuses.append(await send(other, "DELETE"))
        again = asyncio.ensure_future(send(one, method, spec("bc_ucb")))
        await asyncio.sleep(SESSION_SECONDS)  # the request is there before the worker goes on
        one.resume()
        statuses.append(await again)
        await end(world)
        return statuses

    with world.ruling():
        assert world.loop.run(live()) in ([201, 200, right], [201, 200, 503])


REAL_COMMIT, REAL_APPLY, REAL_ADOPT = Writer.commit, Coordinator._apply, Ledger.adopt


async def answer_before_the_commit(self, lines):
    asyncio.get_running_loop().create_task(REAL_COMMIT(self, lines))
    return list(range(1_000_000, 1_000_000 + len(lines)))


def drop_feedback(self, one, name, seq):
    if not isinstance(one.entry.event, Told):
        REAL_APPLY(self, one, name, seq)


def apply_feedback_twice(self, key, before, after):
    REAL_ADOPT(self, key, before, after)
    state = self.problems.get((key[0], after.asked.problem))
    if state is not None and before is not None and after.closed != "erased":
        state.move(before, after)


def say_404_while_a_problem_moves(self, problem):
    return REAL_ABSENT(self, problem) if problem in self.ledger.broken else unknown("problem", problem[1])


REAL_ABSENT = Coordinator._absent


def fail_as_a_whole(self, problem, change):
    change()
    return True


def write_without_trying(state, event):
    pass


def write_without_the_lock(self, session, log):
    if (last := self._lost.pop(log, None)) is not None:
        session.held[log] = last


DEFECTS = [
    (Writer, "commit", answer_before_the_commit, "before it was written"),
    (Coordinator, "_apply", drop_feedback, "instead of"),
    (Ledger, "adopt", apply_feedback_twice, "instead of"),
    (Coordinator, "_absent", say_404_while_a_problem_moves, "answered with 404"),
    (Ledger, "attempt", fail_as_a_whole, "cannot be read"),
    (coordinators, "_rehearse", write_without_trying, "refused arms"),
]
FENCE = (Postgres, "_regain", write_without_the_lock, "another state")


def seeds_until(said: str, defect: tuple, operations: int) -> int:
    """How many seeds it takes until a fault is reported in which these words are."""
    owner, name, function, _ = defect
    found = list[str]()
    with mock.patch.object(owner, name, function):
        for seed in range(100):
            found += play(seed, operations).faults
            if any(said in fault for fault in found):
                return seed + 1
    pytest.fail(f"not found: {found[:5]}")


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect[2].__name__)
def test_a_defect_is_found(defect):
    """The service once had the false 404, and the two defects with events that cannot be applied."""
    assert seeds_until(defect[3], defect, 80) <= 20


@pytest.mark.slow("simulated services")
def test_a_worker_that_writes_without_its_lock_is_found():
    assert seeds_until(FENCE[3], FENCE, 200) <= 100
