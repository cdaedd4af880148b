"""Settings change one by one; what is not named stays."""

import asyncio
from typing import Any

import httpx
import msgspec

from superarm.service.application import application
from superarm.service.domain.events import Changed
from superarm.service.domain.spec import Settings
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .memory_store import MemoryStore
from .running import Server

PATH = "/v1/problems/p/settings"
DEFAULTS = msgspec.to_builtins(Settings())
SETTINGS = {
    "policy": {"name": "bc_ucb", "parameters": {"rho": 1.5}},
    "explore": 0.25,
    "window_s": 60.0,
    "at_window_end": 0.5,
    "late": "learn",
    "max_pending": 50,
}


async def settings(http: httpx.AsyncClient, method: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = await http.request(method, PATH, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["settings"]


def test_what_is_left_out_stays(tmp_path):
    """There was no PATCH."""

    async def trial() -> None:
        async with serving(application(Sqlite(tmp_path / "log.db"))) as http:
            spec = {"arms": ["a", "b", "c"], "k": 2, "settings": SETTINGS}
            (await http.put("/v1/problems/p", json=spec)).raise_for_status()
            now = (await http.get("/v1/problems/p")).json()["settings"]
            for change in ({"explore": 0.1}, {"window_s": None}, {"mode": "logging_only"}, {"at_window_end": "ignore"}):
                now |= change
                assert await settings(http, "PATCH", change) == now
            assert await settings(http, "PATCH", {}) == now
            assert len((await http.get("/v1/problems/p/versions")).json()["versions"]) == 5
            numbers = {"policy": {"parameters": {"rho": 0.5}}}
            now["policy"] = {"name": "bc_ucb", "parameters": {"rho": 0.5}}
            assert await settings(http, "PATCH", numbers) == now
            now["policy"] = {"name": "cucb", "parameters": {}}  # the numbers were another policy's
            assert await settings(http, "PATCH", {"policy": {"name": "cucb"}}) == now

    asyncio.run(trial())


def test_wrong_changes_are_refused(tmp_path):
    async def trial() -> None:
        async with serving(application(Sqlite(tmp_path / "log.db"))) as http:
            (await http.put("/v1/problems/p", json={"arms": ["a", "b"], "settings": SETTINGS})).raise_for_status()
            wrong = [
                {"explore": 2},
                {"explore": None},
                {"policy": None},
                {"policy": {"parameters": {"x": 1}}},
                {"policy": {"name": "uniform", "parameters": {"rho": 1}}},
                {"k": 3},
            ]
            for body in wrong:
                assert (await http.patch(PATH, json=body)).status_code == 422, body
            assert (await http.patch("/v1/problems/q/settings", json={})).status_code == 404

    asyncio.run(trial())


def test_changes_made_at_once_are_all_kept_and_audited(tmp_path):
    store = Sqlite(tmp_path / "log.db")

    async def trial() -> dict[str, Any]:
        async with serving(application(store)) as http:
            (await http.put("/v1/problems/p", json={"arms": ["a", "b"], "settings": SETTINGS})).raise_for_status()
            changes = ({"explore": 0.1}, {"late": "ignore"}, {"max_pending": 7}, {"window_s": 5.0})
            await asyncio.gather(*(settings(http, "PATCH", change) for change in changes))
            return (await http.get("/v1/problems/p")).json()

    now = asyncio.run(trial())
    changed = {"explore": 0.1, "late": "ignore", "max_pending": 7, "window_s": 5.0}
    assert now["version"] == 5
    assert now["settings"] == {**DEFAULTS, **SETTINGS, **changed}
    store = Sqlite(tmp_path / "log.db")
    events = [read.entry.event for read in store.tail({})]
    store.close()
    assert [event.version for event in events if isinstance(event, Changed)] == [2, 3, 4, 5]


def test_the_client_changes_settings(tmp_path):
    import superarm as sa

    with Server(str(tmp_path / "log.db")) as server:
        service = sa.connect(server.url)
        agent = service.create("p", ["a", "b"], ["x"], 1, settings=SETTINGS)
        assert agent.change_settings(explore=0.1) == 2
        assert agent.change_settings(explore=0.1) == 2
        now = httpx.get(f"{server.url}/v1/problems/p").json()["settings"]
        assert now == {**DEFAULTS, **SETTINGS, "explore": 0.1}
        service.close()


def test_arms_are_paused_until_a_date():
    async def trial() -> None:
        async with serving(application(MemoryStore())) as http:
            (await http.put("/v1/problems/p", json={"arms": ["a", "b", "c"], "k": 2})).raise_for_status()
            pauses = {"paused_until": {"a": "2999-01-01T00:00:00Z", "b": "2001-01-01T00:00:00+02:00"}}
            assert (await settings(http, "PATCH", pauses))["paused_until"]["a"] == "2999-01-01T00:00:00Z"
            for _ in range(5):
                made = (await http.post("/v1/problems/p/decisions", json={})).json()
                assert sorted(made["arms"]) == ["b", "c"]
            assert (await http.post("/v1/problems/p/decisions", json={"pinned": ["a"]})).status_code == 422
            for wrong in ({"nobody": "2999-01-01T00:00:00Z"}, {"a": "2999-01-01T00:00:00"}, {"a": "soon"}):
                assert (await http.patch(PATH, json={"paused_until": wrong})).status_code == 422
            assert "paused_until" not in await settings(http, "PATCH", {"paused_until": None})
            slates = [(await http.post("/v1/problems/p/decisions", json={})).json()["arms"] for _ in range(20)]
            assert any("a" in slate for slate in slates)

    asyncio.run(trial())
