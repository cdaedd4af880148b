"""Problems that are deleted, and limits of single problems."""

import asyncio

from superarm.service.application import application
from superarm.service.http.service import ServiceLimits
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.snapshot import restore_ledger, verify
from superarm.service.storage.sqlite import Sqlite
from superarm.service.storage.tables import describe_problems, rows

from .database import fresh
from .inprocess import serving

SPEC = {"arms": ["a", "b", "c"], "items": ["x"], "k": 2, "settings": {"policy": {"name": "cucb"}}}
OTHER = {**SPEC, "arms": ["x", "y"], "k": 1}
ASK = "/v1/problems/p/decisions"


async def use_and_delete(http) -> None:
    (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
    (await http.put("/v1/problems/kept", json=SPEC)).raise_for_status()
    for n in range(4):
        slate = (await http.post(ASK, json={"id": f"d{n}"})).json()["arms"]
        if n % 2:
            feedback = [{"arm": arm, "value": 1.0} for arm in slate]
            (await http.post(f"{ASK}/d{n}/feedback", json={"feedback": feedback})).raise_for_status()
    (await http.post("/v1/problems/kept/decisions", json={"id": "other"})).raise_for_status()
    assert (await http.delete("/v1/problems/p")).json() == {"problem": "p", "erased": 4}


def test_a_deleted_problem_is_gone_and_its_name_is_free(reopen):
    async def live() -> None:
        async with serving(application(reopen(), ServiceLimits(snapshot_every=3))) as http:
            await use_and_delete(http)
            for path in ("/v1/problems/p", f"{ASK}/d1", "/v1/problems/p/arms"):
                assert (await http.get(path)).status_code == 404
            assert (await http.get("/v1/problems/p/decisions/d1")).status_code == 404
            late = await http.post("/v1/problems/p/decisions/d0/feedback", json={"feedback": []})
            assert late.status_code == 404
            assert (await http.delete("/v1/problems/p")).status_code == 404
            assert (await http.get("/v1/problems")).json() == {"problems": ["kept"]}
            (await http.put("/v1/problems/p", json=OTHER)).raise_for_status()
            new = (await http.get("/v1/problems/p")).json()
            assert (new["n_arms"], new["decisions"], new["pending"]) == (2, 0, 0)
            assert (await http.post(ASK, json={"id": "new"})).status_code == 201
            assert (await http.post(ASK, json={"id": "d0"})).status_code == 409  # ids are unique for a tenant
            assert (await http.get(f"{ASK}/new")).status_code == 200
            audit = (await http.get("/v1/audit?problem=p")).json()["entries"]
            assert [entry["what"] for entry in audit] == ["created", "deleted", "created"]

    asyncio.run(live())
    reader = reopen(reading=True)
    assert verify(reader).faults == []
    ledger = restore_ledger(reader)[0]
    assert {name: state.learner.asked for (_, name), state in ledger.problems.items()} == {"p": 1, "kept": 1}
    assert {row["decision"] for row in rows(reader)} == {"new", "other"}
    assert [one["arms"] for one in describe_problems(reader, problem="p")] == [["x", "y"]]
    reader.close()

    async def again() -> None:
        async with serving(application(reopen())) as http:
            assert (await http.get("/v1/problems/p")).json()["decisions"] == 1
            assert (await http.get(f"{ASK}/d1")).status_code == 404
            assert (await http.delete("/v1/problems/p")).status_code == 200
            assert (await http.get("/v1/problems")).json() == {"problems": ["kept"]}

    asyncio.run(again())
    reader = reopen(reading=True)
    assert verify(reader).faults == []
    reader.close()


def test_other_workers_notice_that_a_problem_was_deleted(postgres):
    """Also one that has asked meanwhile, before it knew: its decision counts nowhere."""
    url = fresh(postgres, "delete_noticed")

    async def live() -> None:
        async with serving(application(Postgres(url))) as one, serving(application(Postgres(url))) as two:
            (await one.put("/v1/problems/p", json=SPEC)).raise_for_status()
            assert (await two.post(ASK, json={"id": "d"})).status_code == 201
            assert (await one.delete("/v1/problems/p")).status_code == 200
            for n in range(200):
                status = (await two.post(ASK, json={"id": f"race-{n}"})).status_code
                assert status in (201, 404)
                if status == 404:
                    break
            assert status == 404
            assert (await two.put("/v1/problems/p", json=OTHER)).status_code == 201
            await asyncio.sleep(0.1)
            shown = [(await http.get("/v1/problems/p")).json() for http in (one, two)]
            assert shown[0] == shown[1]
            assert (shown[0]["n_arms"], shown[0]["decisions"]) == (2, 0)

    asyncio.run(live())
    reader = Postgres(url, serving=False)
    assert verify(reader).faults == []
    reader.close()


def test_a_problem_has_a_rate_of_its_own(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("superarm.service.runtime.condition.time.monotonic", lambda: now[0])

    async def live() -> None:
        async with serving(application(Sqlite(tmp_path / "log.db"))) as http:
            settings = {**SPEC["settings"], "max_per_second": 2.0}
            (await http.put("/v1/problems/p", json={**SPEC, "settings": settings})).raise_for_status()
            (await http.put("/v1/problems/free", json=SPEC)).raise_for_status()
            statuses = [(await http.post(ASK, json={"id": f"d{n}"})).status_code for n in range(6)]
            assert statuses == [201] * 4 + [429] * 2  # twice the rate at once
            refused = await http.post(ASK, json={})
            assert "max_per_second" in refused.text
            assert refused.headers["retry-after"] == "1"
            assert (await http.post(ASK, json={"id": "d0"})).status_code == 200  # no new decision
            assert (await http.post("/v1/problems/free/decisions", json={})).status_code == 201
            now[0] += 1.0
            bulk = (await http.post(f"{ASK}/bulk", json={"decisions": [{}] * 4})).json()["decisions"]
            assert [one.get("error", {}).get("code") for one in bulk] == [None, None, *["too_many_requests"] * 2]
            changed = await http.patch("/v1/problems/p/settings", json={"max_per_second": None})
            assert "max_per_second" not in changed.json()["settings"]
            assert (await http.post(ASK, json={})).status_code == 201

    asyncio.run(live())


def test_a_tenant_has_a_limit_of_problems(tmp_path):
    async def live() -> None:
        async with serving(application(Sqlite(tmp_path / "log.db"), ServiceLimits(max_problems=1))) as http:
            assert (await http.put("/v1/problems/p", json=SPEC)).status_code == 201
            assert (await http.put("/v1/problems/q", json=SPEC)).status_code == 429
            assert (await http.delete("/v1/problems/p")).status_code == 200
            assert (await http.put("/v1/problems/q", json=SPEC)).status_code == 201

    asyncio.run(live())
