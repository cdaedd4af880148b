"""Decisions of several PostgreSQL workers, chosen again from what each of them saw, before and after a reshard."""

import asyncio
from collections import Counter
from contextlib import closing

import pytest

from superarm.service.application import application
from superarm.service.storage.base import recall_decision
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.replay import replay
from superarm.service.storage.postgres import Postgres

from .database import fresh
from .inprocess import serving
from .running import invoke

SPEC = {"arms": list("abcdef"), "items": ["x", "y"], "k": 2}


async def decide(workers, name, first, n):
    """Decisions at several workers at the same time, each told at the next worker."""

    async def one(t):
        ask, tell = workers[t % len(workers)], workers[(t + 1) % len(workers)]
        reply = await ask.post(f"/v1/problems/{name}/decisions", json={"id": f"{name}-{t}"})
        assert reply.status_code == 201, reply.text
        rows = [[(t + j) % 3 / 2, (t + j) % 2] for j in range(2)]
        told = await tell.post(f"/v1/problems/{name}/decisions/{name}-{t}/feedback", json={"outcome": rows})
        assert told.status_code == 200, told.text

    for t in range(first, first + n, 4):
        await asyncio.gather(*(one(t + i) for i in range(4)))


@pytest.fixture(scope="module", params=["kl_ucb", "cts"])
def url(request, postgres):
    """A log of two workers and two problems."""
    url = fresh(postgres, f"replayed_{request.param}")

    async def live():
        async with serving(application(Postgres(url))) as one, serving(application(Postgres(url))) as two:
            for name in ("p", "q"):
                spec = {**SPEC, "settings": {"policy": {"name": request.param}, "window_s": None}}
                assert (await one.put(f"/v1/problems/{name}", json=spec)).status_code == 201
            await asyncio.gather(decide([one, two], "p", 0, 8), decide([two, one], "q", 0, 8))
            for worker, change in ((one, {"retire": ["a"]}), (two, {"add": ["a"]})):
                assert (await worker.post("/v1/problems/p/arms", json=change)).status_code == 200
                await decide([one, two], "p", 8 if worker is one else 16, 8)
            for worker in (one, two):
                rows = (await worker.get("/v1/problems/p/arms")).json()["arms"]
                assert not any(row["retired"] for row in rows)

    asyncio.run(live())
    return url


def replayed(url):
    """How often a decision gave the logged slate again, and by which worker they were."""
    with closing(Postgres(url, serving=False)) as store:
        same = Counter(one.same for one in replay(store, None, None, 4))
        workers = {worker for read in store.tail({}) for worker in [read.worker]}
        assert recall_decision(store, ("default", "p-0")).asked.seen
        return same, workers


def test_decisions_of_several_workers_are_chosen_again_also_after_a_reshard(url):
    assert replayed(url) == ({True: 32}, {"w0", "w1"})
    done = invoke("reshard", "--db", url)
    assert "events moved" in done.output, done.output
    assert replayed(url) == ({True: 32}, {"p/default/p", "p/default/q"})

    async def more():
        async with serving(application(Postgres(url))) as http:
            await decide([http], "p", 24, 8)

    asyncio.run(more())
    assert replayed(url)[0] == {True: 40}
    with closing(Postgres(url, serving=False)) as store:  # as if an earlier version had moved the events
        store._write_connection().execute("DROP TABLE superarm_moved")
    assert replayed(url)[0] == {True: 8, None: 32}
