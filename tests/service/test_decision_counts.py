"""``decisions`` counts decisions that exist, not rounds: some rounds have two."""

import asyncio

from superarm.service.application import application
from superarm.service.domain.ledger import LogEntry
from superarm.service.storage.snapshot import compact, restore_ledger

from .inprocess import serving
from .replaying import fold
from .test_observability import read_metrics, value_of
from .test_outage import SPEC, Failing

ASK = "/v1/problems/p/decisions"
PROBLEM = ("default", "p")


async def shown(http) -> tuple[int, int]:
    """The number of decisions, as the problem and as its metric have it."""
    decisions = (await http.get("/v1/problems/p")).json()["decisions"]
    metrics = read_metrics((await http.get("/metrics")).text)
    return decisions, int(value_of(metrics, "superarm_problem_decisions_total", tenant="default", problem="p"))


def test_refused_decisions_do_not_count():
    """After an outage 4,029 decisions were shown, of 3,807."""
    store = Failing()

    async def live() -> None:
        async with serving(application(store)) as http:
            assert (await http.put("/v1/problems/p", json=SPEC)).status_code == 201
            assert (await http.post(ASK, json={})).status_code == 201
            store.down = True
            for _ in range(3):
                assert (await http.post(ASK, json={})).status_code == 503
            store.down = False
            assert (await http.post(ASK, json={})).status_code == 201
            assert await shown(http) == (2, 2)
            assert (await http.get("/v1/problems/p")).json()["t"] == 2

    asyncio.run(live())


def test_two_decisions_of_one_round_count_twice():
    """Two workers gave two decisions the same round: 169 were shown, of 170."""
    store = Failing()

    async def live() -> None:
        async with serving(application(store)) as http:
            await http.put("/v1/problems/p", json=SPEC)
            await http.post(ASK, json={"id": "one"})

    asyncio.run(live())
    entries = [read.entry for read in store.tail({})]
    asked = entries[-1]
    other = LogEntry(asked.tenant, "decision", "two", 0, asked.event)
    assert asked.event.t == 1
    assert fold([*entries, other]).problems[PROBLEM].decisions == 2


def test_the_count_outlives_restarts_and_compaction(reopen, tmp_path):
    async def use(steps) -> tuple[int, int]:
        async with serving(application(reopen())) as http:
            await steps(http)
            return await shown(http)

    async def begin(http) -> None:
        await http.put("/v1/problems/p", json=SPEC)
        for n in range(5):
            await http.post(ASK, json={"id": f"d{n}", "deferred": n == 4})
        arm = (await http.get(f"{ASK}/d0")).json()["arms"][0]
        assert (await http.post(f"{ASK}/d0/feedback", json={"feedback": [{"arm": arm, "value": 1}]})).status_code == 200
        assert (await http.post(f"{ASK}/d4/activate", json={"shown": []})).status_code == 200
        assert (await http.delete(f"{ASK}/d1")).status_code == 200

    async def nothing(http) -> None:
        pass

    async def ask(http) -> None:
        await http.post(ASK, json={"id": "last"})

    assert asyncio.run(use(begin)) == (4, 4)  # complete, unshown, and two pending ones; one was erased
    assert asyncio.run(use(ask)) == (5, 5)
    store = reopen(reading=True)
    assert restore_ledger(store)[0].problems[PROBLEM].decisions == 5
    compact(store, 2**62)
    store.close()
    assert asyncio.run(use(nothing)) == (5, 5)
