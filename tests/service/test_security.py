"""Keys, scopes, tenants, and bad input."""

import json
import time

import httpx
import pytest

from superarm.service.http.openapi import fill
from superarm.service.http.operations import OPERATIONS
from superarm.service.http.service import SCOPES, make_key
from superarm.service.server import open_store

from .running import Server, command, free_port, invoke


def create_key(db: str, tenant: str, *scopes: str) -> str:
    key, row = make_key(tenant, scopes)
    store = open_store(db, serving=False)
    store.put_key(row)
    store.close()
    return key


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    db = str(tmp_path_factory.mktemp("keyed") / "log.db")
    keys = {scope: create_key(db, "one", scope) for scope in SCOPES}
    keys["other"] = create_key(db, "two", "admin")
    with Server(db, "--host", "0.0.0.0", "--max-body", "20000") as server:
        http = httpx.Client(base_url=server.url, timeout=60.0)
        body = {"arms": ["a", "b", "c"], "items": ["x"], "k": 1}
        http.put("/v1/problems/p", json=body, headers=bearer(keys["admin"])).raise_for_status()
        http.post("/v1/problems/p/decisions", json={"id": "d"}, headers=bearer(keys["decide"])).raise_for_status()
        yield http, keys, db
        http.close()


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def await_status(http, headers: dict[str, str], status: int) -> None:
    """Wait until the service has read the keys again and answers with ``status``."""
    limit = time.monotonic() + 30.0
    while http.get("/v1/problems", headers=headers).status_code != status:
        assert time.monotonic() < limit
        time.sleep(0.2)  # many wrong keys in a short time would be refused for that


def call(http, operation, key: str | None, name: str = "p", id: str = "d") -> httpx.Response:
    path = fill(operation.path, name=name, id=id)
    headers = bearer(key) if key else {}
    if operation.body is bytes:
        headers |= {"content-type": "application/x-ndjson"}
        return http.request(operation.method, path, content=f'{{"decision":"{id}","feedback":[]}}', headers=headers)
    example = None if operation.body is None else operation.example
    return http.request(operation.method, path, json=example, headers=headers)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: f"{op.method} {op.path}")
def test_no_operation_without_its_scope(keyed, operation):
    http, keys, _ = keyed
    assert call(http, operation, None).status_code == 401
    assert call(http, operation, "sa_nobody_nothing").status_code == 401
    assert call(http, operation, keys["admin"][:-1] + "_").status_code == 401
    for scope in SCOPES:
        if scope not in (operation.scope, "admin"):
            assert call(http, operation, keys[scope]).status_code == 403


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: f"{op.method} {op.path}")
def test_nothing_leaks_across_tenants(keyed, operation):
    """Another tenant's things look exactly like things that are not there."""
    http, keys, _ = keyed
    if operation.method == "PUT" and operation.path.endswith("{name}"):
        return  # creates a problem of one's own: the next test
    theirs = call(http, operation, keys["other"])
    nobodys = call(http, operation, keys["other"], name="q", id="e")
    if "{" in operation.path:
        assert theirs.status_code == nobodys.status_code == 404
    said, same = theirs.text.replace('"p"', '"q"').replace("'p'", "'q'").replace("'d'", "'e'"), nobodys.text
    assert said == same
    assert "ad-1" not in said


def test_two_tenants_have_problems_and_decisions_of_the_same_name(keyed):
    http, keys, db = keyed
    third = bearer(create_key(db, "third", "admin"))
    await_status(http, third, 200)
    body = {"arms": ["z"], "items": ["x"], "k": 1}
    assert http.put("/v1/problems/p", json=body, headers=third).status_code == 201
    assert http.post("/v1/problems/p/decisions", json={"id": "d"}, headers=third).json()["arms"] == ["z"]
    assert http.get("/v1/problems/p/decisions/d", headers=bearer(keys["read"])).json()["arms"] != ["z"]


def test_a_revoked_key_is_refused(keyed):
    http, _, db = keyed
    created = invoke("keys", "create", "--db", db, "--tenant", "three", "--scope", "read")
    assert created.exit_code == 0, created.stderr
    key = created.stdout.strip()
    await_status(http, bearer(key), 200)
    assert invoke("keys", "revoke", "--db", db, key.split("_")[1]).exit_code == 0
    await_status(http, bearer(key), 401)
    listed = invoke("keys", "list", "--db", db).stdout
    assert "revoked" in listed
    assert key.split("_", 2)[2] not in listed


def test_secrets_are_not_in_the_database(keyed):
    _, keys, db = keyed
    from pathlib import Path

    data = b"".join(path.read_bytes() for path in Path(db).parent.glob("log.db*"))
    for key in keys.values():
        assert key.split("_", 2)[2].encode() not in data


def test_without_keys_only_loopback_may_be_bound(sqlite_file):
    refused = command("serve", "--db", sqlite_file, "--host", "0.0.0.0", "--port", str(free_port()))
    assert refused.returncode == 2
    assert "keys create" in refused.stderr


def test_a_foreign_page_cannot_reach_a_service_without_keys(served):
    with httpx.Client(base_url=served.url) as http:
        assert http.get("/v1/problems", headers={"host": "evil.example"}).status_code == 403
        plain = http.put("/v1/problems/p", content="{}", headers={"content-type": "text/plain"})
        assert plain.status_code == 415


DEEP = "[" * 100_000 + "]" * 100_000
BAD = [
    ("not json", 400),
    ("", 400),
    ('{"id": "x"', 400),
    ('{"k": NaN}', 400),
    ('{"k": Infinity}', 400),
    ('{"k": -Infinity}', 400),
    ('{"k": 1e999}', 422),
    ('{"k": 1' + "0" * 400 + "}", 422),
    ('{"k": "1"}', 422),
    ('{"k": true}', 422),
    ('{"k": 1.5}', 422),
    ('{"k": 0}', 422),
    ('{"unknown": 1}', 422),
    ('{"id": 5}', 422),
    ('{"id": ""}', 422),
    ('{"id": "a\\u0000b"}', 422),
    ('{"id": "\\ud800"}', 400),
    ('{"id": "' + "x" * 257 + '"}', 422),
    ('{"eligible": "a"}', 422),
    ('{"eligible": [["a"]]}', 422),
    ("null", 422),
    ("[]", 422),
    ('{"eligible": ' + DEEP[:8000] + DEEP[-8000:] + "}", 422),
    ('{"id": "' + "x" * 30_000 + '"}', 413),
]


@pytest.mark.parametrize(("body", "status"), BAD, ids=lambda value: str(value)[:24])
def test_bad_input_gets_a_useful_answer(keyed, body, status):
    http, keys, _ = keyed
    headers = bearer(keys["decide"]) | {"content-type": "application/json"}
    reply = http.post("/v1/problems/p/decisions", content=body, headers=headers)
    assert reply.status_code == status, reply.text
    said = json.loads(reply.text)["error"]
    assert said["code"]
    assert len(said["message"]) > 10


@pytest.mark.parametrize("value", ["NaN", "1e400", "-0.001", "1.0000001", '"1"', "true", "[1]", "{}"])
def test_bad_values_never_reach_a_counter(keyed, value):
    http, keys, _ = keyed
    headers = bearer(keys["feedback"]) | {"content-type": "application/json"}
    before = http.get("/v1/problems/p/arms", headers=bearer(keys["read"])).json()
    for body in (f'{{"feedback":[{{"arm":"a","value":{value}}}]}}', f'{{"outcome":[[{value}]]}}'):
        reply = http.post("/v1/problems/p/decisions/d/feedback", content=body, headers=headers)
        assert reply.status_code in (400, 422), reply.text
    assert http.get("/v1/problems/p/arms", headers=bearer(keys["read"])).json() == before


def test_unicode_names_work_everywhere(keyed):
    http, keys, _ = keyed
    admin = bearer(keys["admin"])
    name, arms, id = "Äpfel & 梨", ["🍎", "<script>", "=cmd()"], "naïve ?#%id"
    path = httpx.URL(f"{http.base_url}/").copy_with(path=f"/v1/problems/{name}")
    body = {"arms": arms, "k": 2, "settings": {"policy": {"name": "kl_ucb"}}}
    http.put(path, json=body, headers=admin).raise_for_status()
    decision = http.post(f"{path}/decisions", json={"id": id, "eligible": arms[:2]}, headers=admin).json()
    assert (decision["id"], decision["arms"]) == (id, arms[:2])
    from urllib.parse import quote

    told = {"feedback": [{"arm": arms[0], "value": 1}]}
    reply = http.post(f"{path}/decisions/{quote(id, safe='')}/feedback", json=told, headers=admin)
    assert reply.json()["applied"] is True


def test_rates_are_limited_by_key(sqlite_file):
    with Server(sqlite_file, "--rate", "5") as server, httpx.Client(base_url=server.url) as http:
        codes = [http.get("/v1/problems").status_code for _ in range(30)]
        assert codes[0] == 200
        assert 429 in codes


def test_wrong_routes_and_methods_are_explained(keyed):
    http, *_ = keyed
    assert http.get("/v2/anything").json()["error"]["code"] == "unknown"
    reply = http.patch("/v1/problems/p")
    assert (reply.status_code, reply.json()["error"]["code"]) == (405, "method")
