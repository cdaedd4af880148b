"""A person is erased: the counters are those of a log in which the person never was."""

import asyncio
import json
import random

import pytest

from superarm.service.application import application
from superarm.service.http.service import ServiceLimits
from superarm.service.storage.snapshot import compact, encode_counters, restore_ledger, verify
from superarm.service.storage.sqlite import Sqlite
from superarm.service.storage.tables import rows

from .inprocess import serving
from .replaying import fold
from .running import DECISIONS, NDJSON

SETTINGS = {
    "plain": {"policy": {"name": "cucb"}, "at_window_end": 0.5, "late": "learn"},
    "window": {"policy": {"name": "kl_ucb", "window": 20}},
    "random": {"policy": {"name": "cts"}, "explore": 0.2},
    "control": {"policy": {"name": "bc_ucb"}, "control": 0.3, "control_slate": "uniform"},
}
ASK = "/v1/problems/p/decisions"


async def use(http, settings, n=60, seed=0) -> set[str]:
    """Decisions of four units with feedback of all kinds; the ids of those of unit 1."""
    draw, ids = random.Random(seed), set()
    spec = {"arms": ["a", "b", "c", "d"], "items": ["x", "y"], "k": 2, "settings": settings, "seed": 1}
    (await http.put("/v1/problems/p", json=spec)).raise_for_status()
    for i in range(n):
        unit, id = f"unit-{draw.randrange(4)}", f"d{i}"
        if unit == "unit-1":
            ids.add(id)
        body = {"id": id, "unit": unit, "deferred": draw.random() < 0.1}
        slate = (await http.post(ASK, json=body)).json()["arms"]
        for again in range(draw.randrange(3)):
            feedback = [{"arm": arm, "item": item, "value": round(draw.random(), 2)} for arm in slate for item in "xy"]
            some = feedback if draw.random() < 0.6 else draw.sample(feedback, 2)
            reply = await http.post(f"{ASK}/{id}/feedback", json={"feedback": some, "amend": again > 0})
            assert reply.status_code == 200, reply.text
        if draw.random() < 0.05:
            await http.post(f"{ASK}/{id}/activate", json={"shown": []})
        if i == 30:
            await http.post("/v1/problems/p/arms", json={"add": ["e"]})
            await http.post("/v1/problems/p/items", json={"add": ["z"]})
    return ids


def counters_without(store, ids):
    """The counters of the problem, from the events of the log that do not belong to these decisions."""
    kept = [read.entry for read in store.tail({}) if read.entry.stream.removeprefix("p/") not in ids]
    ledger = fold(kept, None)
    return ledger.problems["default", "p"], ledger


@pytest.mark.parametrize("kind", SETTINGS)
def test_counters_are_those_of_a_log_without_the_person(tmp_path, kind):
    store = Sqlite(tmp_path / "log.db")

    async def live() -> set[str]:
        async with serving(application(store, ServiceLimits(snapshot_every=25))) as http:
            ids = await use(http, SETTINGS[kind])
            erased = (await http.post("/v1/problems/p/erasures", json={"unit": "unit-1"})).json()
            assert erased == {"problem": "p", "erased": len(ids)}
            again = (await http.post("/v1/problems/p/erasures", json={"unit": "unit-1"})).json()
            assert again["erased"] == 0
            for id in sorted(ids)[:3]:
                assert (await http.post(f"{DECISIONS}/{id}/feedback", json={"feedback": []})).status_code == 404
                assert (await http.post(ASK, json={"id": id})).status_code == 409
            assert {(await http.get(f"{ASK}/{id}")).status_code for id in ids} == {404}
            audit = (await http.get("/v1/audit")).json()["entries"]
            assert [(one["what"], one["details"]) for one in audit if one["what"] == "erasure"] == [
                ("erasure", {"decisions": len(ids)})
            ]
            return ids

    ids = asyncio.run(live())
    reader = Sqlite(tmp_path / "log.db", lock=False)
    assert verify(reader).faults == []
    want, without = counters_without(reader, ids)
    have = restore_ledger(reader)[0]
    learner = have.problems["default", "p"]
    expected, found = encode_counters("", "", want), encode_counters("", "", learner)
    assert found.memory == expected.memory
    assert found.pending == expected.pending
    assert have.pending.keys() == without.pending.keys()
    assert have.n_pending == without.n_pending
    history, plain = learner.history, want.history
    for one in (history, plain):
        one.flush(want.problem)
    for name in ("slots", "explored", "complete", "expired"):
        assert getattr(history, name) == getattr(plain, name), name
    assert {row["decision"] for row in rows(reader)}.isdisjoint(ids)
    reader.close()


def test_one_decision_is_erased(tmp_path):
    async def live() -> None:
        async with serving(application(Sqlite(tmp_path / "log.db"))) as http:
            await use(http, SETTINGS["plain"], 5)
            before = (await http.get("/v1/problems/p")).json()["pending"]
            slate = (await http.post(ASK, json={"id": "once"})).json()["arms"]
            assert (await http.get("/v1/problems/p")).json()["pending"] == before + 1
            assert (await http.delete(f"{ASK}/once")).json() == {"problem": "p", "erased": 1}
            assert (await http.delete(f"{ASK}/once")).status_code == 404
            assert (await http.delete("/v1/problems/other/decisions/d1")).status_code == 404
            assert (await http.get("/v1/problems/p")).json()["pending"] == before
            line = json.dumps({"decision": "once", "feedback": [{"arm": slate[0], "value": 1.0}]})
            bulk = await http.post("/v1/problems/p/feedback/bulk", content=line, headers=NDJSON)
            assert bulk.json()["error"]["code"] == "unknown"

    asyncio.run(live())


def test_nothing_of_an_erased_person_is_left_after_compaction(reopen, tmp_path):
    """Also if the last events of the log are theirs; and events after the compaction are counted."""

    async def live() -> tuple[set[str], list]:
        async with serving(application(reopen(), ServiceLimits(snapshot_every=20))) as http:
            ids = await use(http, SETTINGS["plain"], 40)
            (await http.post("/v1/problems/p/erasures", json={"unit": "unit-1"})).raise_for_status()
            return ids, (await http.get("/v1/problems/p/arms")).json()["arms"]

    ids, arms = asyncio.run(live())
    store = reopen(reading=True)
    assert compact(store, 0) == len(ids)
    assert verify(store).faults == []
    assert not any(read.entry.stream.removeprefix("p/") in ids for read in store.tail({}))
    store.close()
    if isinstance(store, Sqlite):
        assert not any(f'"id":"{id}"'.encode() in (tmp_path / "log.db").read_bytes() for id in ids)

    async def again() -> None:
        async with serving(application(reopen())) as http:
            assert (await http.get("/v1/problems/p/arms")).json()["arms"] == arms
            for n in range(5):
                assert (await http.post(ASK, json={"id": f"after-{n}"})).status_code == 201

    asyncio.run(again())
    store = reopen(reading=True)
    assert verify(store).faults == []
    pending = restore_ledger(store)[0].pending
    assert {("default", f"p/after-{n}") for n in range(5)} <= pending.keys()
    store.close()
