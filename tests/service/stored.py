"""A log with every kind of event, and what it means.

``python -m tests.service.stored`` writes both to fixtures/service.json.gz. Write it anew when the format of the log
changes before the first release; from then on, old files are kept and read.
"""

import asyncio
import gzip
import json
import random
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import httpx

from superarm.service.application import application
from superarm.service.storage.base import Store
from superarm.service.storage.snapshot import compact, restore_ledger
from superarm.service.storage.sqlite import Sqlite
from tests.recorded import FIXTURES

from .inprocess import serving

NAME = "service.json.gz"
PAGE = {
    "arms": list("abcde"),
    "items": ["x", "y"],
    "k": 2,
    "seed": 1,
    "settings": {"policy": {"name": "pooled_thompson"}, "explore": 0.1, "late": "learn"},
}
FEATURES = {"numeric": {"age": None}, "categorical": {"country": ["NO", "SE"]}}
MAIL = PAGE | {
    "context": {"features": FEATURES, "model": {"name": "logistic"}},
    "settings": {"policy": {"name": "logistic_ts"}},
}
FILMS = {"arms": [f"film {n}" for n in range(6)], "items": "learn", "k": 2, "seed": 3}
GUARDED = PAGE | {"settings": {"policy": {"name": "uniform"}, "control": 0.2, "guardrail": 0.3}}
SHOP = {
    "arms": list("abcd"),
    "k": 2,
    "seed": 2,
    "settings": {"policy": {"name": "cts"}, "serve": "table", "table_rows": 16},
}
AGES = (20, 40, 31)


class Api:
    """Requests to a service, all of which succeed."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http, self._draw = http, random.Random(1)

    async def send(self, method: str, path: str, **body: Any) -> Any:
        """The answer to a request."""
        given = body if method in ("POST", "PUT", "PATCH") else None
        reply = await self._http.request(method, f"/v1/problems/{path}", json=given)
        assert reply.is_success, (path, reply.text)
        return reply.json()

    async def decide(self, problem: str, n: int, first: int = 0, told: float = 0.8, **more: Any) -> None:
        """Decisions of a problem, most of which get feedback: of the first arms it is better."""
        for i in range(first, first + n):
            body = {"id": f"d{i}", "unit": f"visitor {i % 7}"} | more
            if problem == "mail":
                body["context"] = {"age": AGES[i % 3], "country": "NO" if i % 2 else "SE"}
            made = await self.send("POST", f"{problem}/decisions", **body)
            if self._draw.random() < told:
                items = 1 if problem == "films" else 2
                rows = [[float(self._draw.random() < 0.6 / (1 + arm)) for _ in range(items)] for arm in made["action"]]
                await self.send("POST", f"{problem}/decisions/d{i}/feedback", outcome=rows)


async def begin(api: Api) -> None:
    """What is compacted afterwards."""
    for name, spec in {"page": PAGE, "gone": PAGE}.items():
        await api.send("PUT", name, **spec)
        await api.decide(name, 8)
    await api.send("DELETE", "gone")


async def go_on(api: Api) -> None:
    """Every kind of event."""
    for name, spec in {
        "page": PAGE,
        "mail": MAIL,
        "films": FILMS,
        "guarded": GUARDED,
        "gone": PAGE,
        "shop": SHOP,
    }.items():
        await api.send("PUT", name, **spec)
    await api.decide("page", 12, 8)
    await api.decide("mail", 24)
    await api.decide("films", 30)
    await api.send("POST", "films/items/learn")
    await api.decide("films", 5, 30)
    await api.decide("guarded", 60, baseline=["a", "b"])
    await api.send("POST", "page/outcomes", id="past", arms=["a", "b"], outcomes=[[1.0, None], [0.0, 0.5]])
    await api.send("POST", "shop/sums", id="day", rows=[["", arm, "", 9, 9, 3 << 24, 3 << 24] for arm in "abc"])
    version = (await api.send("GET", "shop/table"))["version"]
    await api.send("POST", "shop/sums", id="hour", patterns=[[version, "", 3, 1, 7]])
    await api.send("POST", "page/arms", add=["f"], retire=["e"])
    await api.send("POST", "page/items", add=["z"], weights=[0.5])
    await api.send("POST", "page/decisions", id="shown", deferred=True)
    await api.send("POST", "page/decisions/shown/activate", shown=["b", "f"])
    await api.send("POST", "page/decisions/shown/feedback", feedback=[{"arm": "b", "item": "x", "value": 0.0}])
    again = [{"arm": "b", "item": "x", "value": 0.25}]
    await api.send("POST", "page/decisions/shown/feedback", feedback=again, amend=True)
    await api.send("PATCH", "page/settings", window_s=0.01, at_window_end=0.0)
    await api.send("POST", "page/decisions", id="late")
    while (await api.send("GET", "page/decisions/late"))["state"] != "expired":
        await asyncio.sleep(0.01)
    await api.send("PATCH", "page/settings", window_s=None, policy={"name": "kl_ucb"})
    await api.send("POST", "page/erasures", unit="visitor 3")
    await api.send("DELETE", "gone")


def make_log(path: Path) -> None:
    """Write the log, in part compacted, with a snapshot."""
    asyncio.run(_serve(path, begin))
    store = Sqlite(path)
    assert compact(store, 2**62)
    store.close()
    asyncio.run(_serve(path, go_on))


async def _serve(path: Path, use: Any) -> Any:
    async with serving(application(Sqlite(path))) as http:
        return await use(Api(http))


def counters(store: Store) -> dict[str, Any]:
    """What is known of each problem."""
    found = {}
    for (_, name), state in restore_ledger(store)[0].problems.items():
        tally, pending = state.overall()
        known = {"pulls": tally.pulls[0].tolist(), "means": tally.mean[0].tolist(), "pending": pending.tolist()}
        known |= {"decisions": state.decisions, "version": len(state.versions), "step": state.step}
        found[name] = known | {"arms": list(state.arms.all), "items": list(state.items.all)}
    return found


def next_slates(path: Path) -> dict[str, list[list[str]]]:
    """The slates of some more decisions of each problem."""

    async def ask(api: Api) -> dict[str, list[list[str]]]:
        context = {"mail": {"context": {"age": 35, "country": "NO"}}, "guarded": {"baseline": ["a", "b"]}}
        slates = {}
        for name in ("page", "mail", "films", "guarded", "shop"):
            bodies = [{"id": f"next {n}"} | context.get(name, {}) for n in range(6)]
            slates[name] = [(await api.send("POST", f"{name}/decisions", **body))["arms"] for body in bodies]
        return slates

    return asyncio.run(_serve(path, ask))


def dump(path: Path) -> str:
    """The database as a script."""
    with sqlite3.connect(path) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        script = "\n".join(connection.iterdump())
    connection.close()
    return f"{script}\nPRAGMA user_version = {version};\n"


def load(path: Path, script: str) -> None:
    """The database of a script."""
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()


def main() -> None:
    """Write the log and what it means."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.db"
        make_log(path)
        made = {"script": dump(path)}
        store = Sqlite(path, lock=False)
        made["counters"] = counters(store)
        store.close()
        made["next"] = next_slates(path)
    (FIXTURES / NAME).write_bytes(gzip.compress(json.dumps(made, sort_keys=True).encode(), mtime=0))


if __name__ == "__main__":
    main()
