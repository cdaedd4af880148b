"""What may cross the boundary of the service: origins, names, methods. In one process."""

import asyncio
import gzip
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from msgspec import structs

from superarm.service.application import application
from superarm.service.http.openapi import fill
from superarm.service.http.operations import OPERATIONS
from superarm.service.http.service import ServiceLimits, explain, make_key
from superarm.service.storage.base import Store
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.sqlite import Sqlite

from .database import fresh
from .inprocess import serving
from .running import NDJSON

SPEC = {"arms": ["a", "b"], "k": 1, "settings": {"policy": {"name": "bc_ucb"}}}


def during(
    store: Store, trial: Callable[[httpx.AsyncClient], Awaitable[Any]], limits: ServiceLimits | None = None
) -> Any:
    """What ``trial`` returns, with a client of a service on ``store``."""

    async def run() -> Any:
        async with serving(application(store, limits or ServiceLimits())) as http:
            return await trial(http)

    return asyncio.run(run())


def key(store: Store, *scopes: str) -> dict[str, str]:
    """A new key, as a header."""
    key, row = make_key("shop", scopes)
    store.put_key(row)
    return {"authorization": f"Bearer {key}"}


CHANGES = [(op.method, fill(op.path, name="p", id="d"), op.example) for op in OPERATIONS]


@pytest.mark.parametrize("origin", ["http://localhost:8199", "https://evil.example", "null", "http://127.0.0.1"])
def test_a_page_of_another_origin_changes_nothing_on_a_service_without_keys(tmp_path, origin):
    """Calls without a body were answered to pages of other origins."""

    async def trial(http: httpx.AsyncClient) -> None:
        (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
        (await http.patch("/v1/problems/p/settings", json={"explore": 0.2})).raise_for_status()
        before = (await http.get("/v1/problems/p")).json()
        for method, path, body in CHANGES:
            reply = await http.request(method, path, json=body, headers={"origin": origin})
            assert reply.status_code == 403, (method, path, reply.text)
            assert "origin" in reply.json()["error"]["message"]
        assert (await http.get("/v1/problems/p")).json() == before
        assert (await http.get("/v1/problems")).json() == {"problems": ["p"]}

    during(Sqlite(tmp_path / "log.db"), trial)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_embeds_nothing_of_a_service_without_keys(tmp_path, site):
    """A browser sends no origin with an image or a script, but says that another site asks for it."""

    async def trial(http: httpx.AsyncClient) -> None:
        (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
        embedded = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
        for path in ("/v1/problems", "/", "/export/arms.csv?problem=p", "/metrics"):
            assert (await http.get(path, headers=embedded)).status_code == 403, path
        for headers in ({**embedded, "sec-fetch-mode": "navigate"}, {**embedded, "sec-fetch-site": "same-origin"}):
            assert (await http.get("/", headers=headers)).status_code == 200

    during(Sqlite(tmp_path / "log.db"), trial)


def test_a_page_of_its_own_origin_and_a_program_are_served(tmp_path):
    async def trial(http: httpx.AsyncClient) -> None:
        (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
        own = {"origin": "http://localhost"}
        for headers in ({}, own):
            assert (await http.post("/v1/problems/p/versions/1/restore", headers=headers)).status_code == 200
            assert (await http.post("/v1/problems/p/decisions", json={}, headers=headers)).status_code == 201

    during(Sqlite(tmp_path / "log.db"), trial)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        return Sqlite(tmp_path / "log.db")
    return Postgres(fresh(request.getfixturevalue("postgres"), "boundaries"))


def test_a_nul_in_a_path_is_nothing_that_exists(store):
    """PostgreSQL refused such a path, and the answer was 500."""

    async def trial(http: httpx.AsyncClient) -> None:
        (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
        for operation in OPERATIONS:
            if "{" not in operation.path:
                continue
            path = fill(operation.path, name="p%00q", id="d%00e")
            reply = await http.request(operation.method, path, json=operation.example)
            creates = operation.method == "PUT" and operation.path.endswith("{name}")
            assert reply.status_code == (422 if creates else 404), (operation.path, reply.text)
        assert (await http.get("/v1/audit?problem=a%00b")).json() == {"entries": [], "total": 0}
        for page in ("/?problem=p&decision=a%00b", "/?problem=p&find=%00", "/?problem=p&try=%00"):
            assert (await http.get(page)).status_code == 200
        assert (await http.get("/?problem=a%00b")).status_code == 404
        lines = '{"decision": "a\\u0000b", "feedback": []}'
        bulk = await http.post("/v1/problems/p/feedback/bulk", content=lines, headers=NDJSON)
        assert bulk.status_code == 200

    during(store, trial)


@pytest.mark.parametrize("given", ["%E2%82%AC", "a%0D%0Ab", "a%3B%20Path%3D/v1", "%00", "%FF"])
@pytest.mark.parametrize("keyed", [False, True])
def test_any_key_at_the_login_gets_an_answer(tmp_path, given, keyed):
    """A key with other characters than ASCII was answered with 500."""
    store = Sqlite(tmp_path / "log.db")
    if keyed:
        key(store, "read")

    async def trial(http: httpx.AsyncClient) -> httpx.Response:
        form = {"content-type": "application/x-www-form-urlencoded"}
        return await http.post("/login", content=f"key={given}", headers=form)

    reply = during(store, trial)
    assert reply.status_code == (401 if keyed else 303)
    assert reply.headers.get("set-cookie", "superarm_key=;").startswith("superarm_key=;")


ODD = ["x\n", ".", "..", " ", "\u2003"]
PLAIN = {"arms": ["a", "b"], "items": ["x"], "k": 1, "settings": {"policy": {"name": "bc_ucb"}}}


def quoted(name: str) -> str:
    return "".join(f"%{byte:02X}" for byte in name.encode())


@pytest.mark.parametrize("name", ODD, ids=repr)
def test_new_names_that_a_path_or_a_reader_would_lose_are_refused(tmp_path, name):
    """Such names were accepted."""

    async def trial(http: httpx.AsyncClient) -> None:
        (await http.put("/v1/problems/p", json=PLAIN)).raise_for_status()
        refused = [
            await http.put(f"/v1/problems/{quoted(name)}", json=PLAIN),
            await http.put("/v1/problems/q", json={**PLAIN, "arms": ["a", name]}),
            await http.put("/v1/problems/q", json={**PLAIN, "items": [name]}),
            await http.post("/v1/problems/p/arms", json={"add": [name]}),
            await http.post("/v1/problems/p/items", json={"add": [name]}),
            await http.post("/v1/problems/p/decisions", json={"id": name}),
            await http.post("/v1/problems/p/outcomes", json={"id": name, "arms": ["a"], "outcomes": [[1.0]]}),
        ]
        for reply in refused:
            assert reply.status_code == 422, (reply.url, reply.text)
            assert repr(name) in reply.json()["error"]["message"]
        bulk = await http.post("/v1/problems/p/decisions/bulk", json={"decisions": [{"id": name}, {"id": "good"}]})
        assert [sorted(answer)[:1] for answer in bulk.json()["decisions"]] == [["error"], ["action"]]

    during(Sqlite(tmp_path / "log.db"), trial)


def test_the_methods_of_a_path_are_all_named(tmp_path):
    """405 named one method of several."""

    async def trial(http: httpx.AsyncClient) -> None:
        methods: dict[str, set[str]] = {}
        for path in {fill(operation.path, name="p", id="d") for operation in OPERATIONS}:
            fits = [op for op in OPERATIONS if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", op.path), path)]
            methods[path] = {operation.method for operation in fits}
        for path, known in methods.items():
            reply = await http.request("TRACE", path)
            assert reply.status_code == 405
            heads = {"HEAD"} if "GET" in known else set()
            assert set(reply.headers["allow"].split(", ")) == known | heads, path

    during(Sqlite(tmp_path / "log.db"), trial)


def test_an_unknown_choice_is_answered_with_those_there_are(tmp_path):
    """An unknown policy was refused without naming those there are."""

    async def trial(http: httpx.AsyncClient) -> list[str]:
        (await http.put("/v1/problems/p", json=PLAIN)).raise_for_status()
        calls = [
            ("PUT", "/v1/problems/q", {"arms": ["a"], "settings": {"policy": {"name": "ucb"}}}),
            ("PATCH", "/v1/problems/p/settings", {"policy": {"name": "ucb"}}),
            ("PATCH", "/v1/problems/p/settings", {"mode": "ucb"}),
            ("PUT", "/v1/problems/q", {"arms": ["a"], "reward": {"name": "ucb"}}),
        ]
        replies = [await http.request(method, path, json=body) for method, path, body in calls]
        assert [reply.status_code for reply in replies] == [422] * 4
        return [reply.json()["error"]["message"] for reply in replies]

    first, second, third, fourth = during(Sqlite(tmp_path / "log.db"), trial)
    assert first.startswith("settings.policy.name: unknown 'ucb'; give one of ")
    assert second.startswith("policy.name: unknown 'ucb'; give one of ")
    assert "bc_ucb, " in first
    assert third == "mode: unknown 'ucb'; give one of online, apprentice, logging_only"
    assert fourth.startswith("reward.name: unknown 'ucb'; give one of coverage, ")


def test_queries_are_as_strict_as_bodies(tmp_path):
    """Unknown parameters were ignored, and ``limit=0`` gave one decision."""

    async def trial(http: httpx.AsyncClient) -> None:
        (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
        (await http.post("/v1/problems/p/decisions", json={"id": "d"})).raise_for_status()
        for op in OPERATIONS:
            path = fill(op.path, name="p", id="d")
            for query in ("colour=red", "colour="):
                reply = await http.request(op.method, f"{path}?{query}", json=op.example)
                message = reply.json()["error"]["message"]
                assert (reply.status_code, message.startswith("'colour': unknown query parameter; ")) == (422, True)
                assert all(name in message for name in op.query.__struct_fields__)
            for field in structs.fields(op.query):
                assert (await http.get(path, params={field.name: ""})).status_code == 200
                if isinstance(field.default, int | float):
                    reply = await http.get(path, params={field.name: -1})
                    assert (reply.status_code, f"`$.{field.name}`" in reply.text) == (422, True)
                    assert (await http.get(path, params={field.name: field.default})).status_code == 200

    during(Sqlite(tmp_path / "log.db"), trial)


def test_a_parameter_with_two_values_and_half_a_character_are_refused(tmp_path):
    """The last of two values counted. (In JSON the last of two equal keys does, as nearly everywhere.)"""

    async def trial(http: httpx.AsyncClient) -> None:
        (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
        reply = await http.get("/v1/problems/p/arms?limit=1&limit=5")
        assert (reply.status_code, "'limit': several values; give one" in reply.text) == (422, True)
        assert (await http.get("/v1/problems/p/arms?limit=1&limit=1")).status_code == 200
        headers = {"content-type": "application/json"}
        for half in ('{"id": "\\ud800"}', '{"id": "a\\udc00b"}'):
            reply = await http.post("/v1/problems/p/decisions", content=half, headers=headers)
            assert (reply.status_code, reply.json()["error"]["code"]) == (400, "malformed")
        assert (await http.get("/v1/problems/%ED%A0%80")).status_code == 404

    during(Sqlite(tmp_path / "log.db"), trial)


def test_what_is_refused_is_not_repeated_at_length(tmp_path, monkeypatch):
    """The decoder's message holds the value of the request; patterns that were tried on it took the square of it."""
    long = {
        ("PATCH", "/settings"): {"late": " - at `$." * 30_000},
        ("POST", "/decisions"): {"` - at `$." * 10_000: 1},
        ("POST", "/arms"): {"retire": ["x" * 250] * 9, "support": {"y" * 100_000: []}},
        ("POST", "/feedback"): {"outcome": [["z" * 100_000]]},
    }

    async def trial(http: httpx.AsyncClient) -> None:
        (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
        for (method, path), body in long.items():
            reply = await http.request(method, f"/v1/problems/p{path}", json=body)
            assert 400 <= reply.status_code < 500, reply.text
            assert len(reply.text) < 2_000, (path, len(reply.text))

    during(Sqlite(tmp_path / "log.db"), trial)
    shown = "Invalid enum value '" + " - at `$." * 30_000 + "' - at `$.settings.late`"
    tried = list[int]()

    def fullmatch(pattern: str, text: str, flags: int) -> re.Match[str] | None:
        tried.append(len(text))
        return re.fullmatch(pattern, text, flags)

    monkeypatch.setattr("superarm.service.http.service.re", SimpleNamespace(fullmatch=fullmatch, DOTALL=re.DOTALL))
    assert explain(shown).startswith("settings.late: unknown ' - at"), "the place at its end is kept"
    assert max(tried) < 1_000, "it is cut before patterns are tried on it"


def test_a_bulk_of_very_many_empty_lines_is_refused_before_it_is_split(tmp_path):
    """8 MB of them took a second."""

    async def trial(http: httpx.AsyncClient) -> list[int]:
        (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
        bulk = "/v1/problems/p/feedback/bulk"
        bodies = [b"\n" * 20_001, b"\n" * 20_000, b"{}\n" * 10_001, b"\n\n{}\n\n" * 100]
        return [(await http.post(bulk, content=body, headers=NDJSON)).status_code for body in bodies]

    assert during(Sqlite(tmp_path / "log.db"), trial) == [413, 200, 413, 200]


AGE = {"features": {"numeric": {"age": [0, 100]}, "hashed": {"tags": 4}}, "model": {"name": "linear"}}
WIDE, OWN = ({"features": {"numeric": {"age": ends}}, "model": {"name": "linear"}} for ends in ([-1e308, 1e308], None))
NOTHING = {"support": {}, "context": {"features": {"categorical": {"c": ["n", "s"]}}, "model": {"name": "segments"}}}


@pytest.mark.parametrize(
    ("spec", "asked", "value", "status"),
    [
        ({"context": AGE}, {"context": {"age": 10**400}}, 1, {422}),
        ({"context": AGE}, {"context": {"age": -(10**400)}}, 1, {422}),
        ({"context": WIDE}, None, 1, {422}),
        ({"context": OWN}, {"context": {"age": 1e308}}, 1, {422}),
        ({"context": OWN}, {"context": {"age": 1e100}}, 1, {201}),
        ({"settings": {"max_per_second": 1e-320}}, {}, 1, {201, 429}),
        ({"weights": [5e-324]}, {}, 1, {201}),
        ({}, {}, 5e-324, {201}),
        ({"settings": {"policy": {"name": "pooled_thompson", "parameters": {"sharpness": 1e308}}}}, None, 1, {422}),
    ],
)
def test_numbers_at_the_end_of_their_range_get_an_answer(tmp_path, spec, asked, value, status):
    """Some were answered with 500, and one sharpness kept the worker busy without an end."""

    async def trial(http: httpx.AsyncClient) -> None:
        made = await http.put("/v1/problems/p", json={"arms": ["a", "b"], "k": 1, **spec})
        if asked is None:
            assert made.status_code in status, made.text
            return
        for n in range(3):
            reply = await http.post("/v1/problems/p/decisions", json={"id": f"d{n}", **asked})
            assert reply.status_code in status, reply.text
            if reply.status_code == 201:
                body = {"feedback": [{"arm": reply.json()["arms"][0], "value": value}]}
                (await http.post(f"/v1/problems/p/decisions/d{n}/feedback", json=body)).raise_for_status()
        for page in ("/?problem=p", "/export/arms.csv?problem=p", "/export/rewards.csv?problem=p"):
            assert (await http.get(page)).status_code == 200, page

    during(Sqlite(tmp_path / "log.db"), trial)


def test_a_problem_without_an_entry_has_decisions(tmp_path):
    """It was answered with 500 under the default policy, which has a tally for each segment."""

    async def trial(http: httpx.AsyncClient) -> None:
        settings = {"policy": {"name": "pooled_thompson"}}
        made = await http.put("/v1/problems/p", json={"arms": ["a"], "items": ["x"], "settings": settings, **NOTHING})
        assert made.status_code == 201, made.text
        assert (await http.post("/v1/problems/p/decisions", json={"context": {"c": "n"}})).status_code == 201

    during(Sqlite(tmp_path / "log.db"), trial)


SCALE = "an outcome is a number from 0 to 1; divide by the largest that can occur; weights scale the reward back"


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        (
            "PATCH",
            "/settings",
            {"control_slate": ["a", "zz"]},
            "settings.control_slate: unknown name 'zz'; known: a, b",
        ),
        (
            "PATCH",
            "/settings",
            {"control_slate": "foo"},
            "control_slate: unknown 'foo'; give baseline, uniform, or a list of arms",
        ),
        ("PATCH", "/settings", {"at_window_end": "zero"}, "at_window_end: unknown 'zero'; give ignore, or a number"),
        ("PATCH", "/settings", {"policy": {"name": "c2_ucb"}}, "settings.policy: c2_ucb needs a context; declare a"),
        ("POST", "/decisions", {"context": {"age": 3}}, "context: the problem was created without one; leave it out"),
        ("POST", "/decisions", {"pairs": {"a": [1]}}, "pairs: the problem was created without one; leave it out"),
        ("POST", "/decisions/d/feedback", {"feedback": [{"arm": "a", "value": 49.9}]}, f"feedback[0].value: {SCALE}"),
        ("POST", "/decisions/d/feedback", {"outcome": [[-1.0]]}, f"outcome[0][0]: {SCALE}"),
        ("POST", "/outcomes", {"id": "x", "arms": ["a"], "outcomes": [[2]]}, f"outcomes[0][0]: {SCALE}"),
        (
            "POST",
            "/feedback/bulk",
            {"decision": "d", "feedback": [{"arm": "a", "value": 2}]},
            f"feedback[0].value: {SCALE}",
        ),
    ],
)
def test_messages_name_the_field_and_the_remedy_to_an_http_caller(tmp_path, method, path, body, said):
    """They named another field, no values to choose from, or classes of Python."""

    async def trial(http: httpx.AsyncClient) -> None:
        (await http.put("/v1/problems/p", json=SPEC)).raise_for_status()
        (await http.post("/v1/problems/p/decisions", json={"id": "d"})).raise_for_status()
        reply = await http.request(method, f"/v1/problems/p{path}", json=body)
        assert reply.json()["error"]["message"].startswith(said), reply.text
        assert reply.status_code == (200 if path.endswith("bulk") else 422)

    during(Sqlite(tmp_path / "log.db"), trial)


def test_a_compressed_body_is_refused_in_these_words(tmp_path):
    async def trial(http: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        body = gzip.compress(json.dumps(SPEC).encode())
        refused = await http.put("/v1/problems/p", content=body, headers=headers)
        assert (refused.status_code, "'gzip'" in refused.json()["error"]["message"]) == (415, True)
        headers["content-encoding"] = "identity"
        assert (await http.put("/v1/problems/p", json=SPEC, headers=headers)).status_code == 201

    during(Sqlite(tmp_path / "log.db"), trial)
