"""Feedback from browsers: for the decision of a signed id alone, from pages of named origins, and not too often."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest

from superarm.core.errors import SuperarmError
from superarm.service.application import application
from superarm.service.errors import RequestError
from superarm.service.http.auth import Signer, make_key
from superarm.service.http.service import ServiceLimits, check_beacon
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving

SECRET, OLD, FOREIGN = ("new" * 12), ("old" * 12), ("not" * 12)
SHOP = "https://shop.example"
PROBLEM = {"arms": ["a", "b", "c"], "items": ["x", "y"], "k": 2, "settings": {"policy": {"name": "bc_ucb"}}}
BEACON = "/v1/problems/p/beacon"


def b64(plain: bytes) -> str:
    return base64.urlsafe_b64encode(plain).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def forge(secret: str, tenant: str, problem: str, id: str, expires: float) -> str:
    """A signed id by the description in docs/guides/service.md, without the code of the service."""
    payload = b64(json.dumps([tenant, problem, id, int(expires)], separators=(",", ":")).encode())
    message = b"superarm decision 1\n" + payload.encode()
    return f"{payload}.{b64(hmac.new(secret.encode(), message, hashlib.sha256).digest())}"


def run(tmp_path, body, **limits: Any) -> Any:
    """Run ``body`` with a client of a service that has keys of two tenants; each has a problem p and a decision d."""

    async def inside() -> None:
        store = Sqlite(tmp_path / "log.db")
        keys = {}
        for tenant, scopes in (("one", "admin"), ("one", "decide"), ("two", "admin")):
            key, row = make_key(tenant, (scopes,))
            keys[tenant, scopes] = {"authorization": f"Bearer {key}"}
            store.put_key(row)
        given = {"beacon_secret": (SECRET, OLD), "beacon_origin": (SHOP,), **limits}
        async with serving(application(store, ServiceLimits(**given))) as http:
            signed = {}
            for tenant in ("one", "two"):
                head = keys[tenant, "admin"]
                (await http.put("/v1/problems/p", json=PROBLEM, headers=head)).raise_for_status()
                made = (await http.post("/v1/problems/p/decisions", json={"id": "d"}, headers=head)).json()
                signed[tenant] = made.get("signed_id")
            await body(http, keys, signed)

    asyncio.run(inside())


async def send(http, signed_id, feedback=None, path=BEACON, media="text/plain;charset=UTF-8", **headers):
    units = [{"arm": "a", "value": 1.0}] if feedback is None else feedback
    text = json.dumps({"signed_id": signed_id, "feedback": units})
    return await http.post(path, content=text, headers={"content-type": media, **headers})


async def read_pulls(http, key) -> dict[str, float]:
    return {row["arm"]: row["pulls"] for row in (await http.get("/v1/problems/p/arms", headers=key)).json()["arms"]}


async def slate(http, key) -> list[str]:
    return (await http.get("/v1/decisions/d", headers=key)).json()["arms"]


def test_a_browser_sends_feedback_once_for_its_own_decision(tmp_path):
    async def body(http, keys, signed):
        mine, theirs = keys["one", "admin"], keys["two", "admin"]
        first, second = await slate(http, mine)
        units = [{"arm": first, "item": "x", "value": 1.0}]
        reply = await send(http, signed["one"], units, origin=SHOP)
        assert reply.json() == {"applied": True, "late": False, "state": "open"}
        assert reply.headers["access-control-allow-origin"] == SHOP
        assert reply.headers["vary"] == "Origin"
        again = await send(http, signed["one"], units, media="application/json")
        assert (again.status_code, again.json()["applied"]) == (200, False)  # a replay changes nothing
        other = await send(http, signed["one"], [{"arm": first, "item": "x", "value": 0.0}])
        assert other.status_code == 409  # the first feedback remains
        assert (await send(http, signed["one"], [{"arm": "nobody", "value": 1.0}])).status_code == 422
        rest = [{"arm": first, "item": "y", "value": 0.0}, {"arm": second, "value": 0.0}]
        assert (await send(http, signed["one"], rest)).json()["state"] == "complete"
        pulls = await read_pulls(http, mine)
        assert pulls[first] == pulls[second] == 1
        assert sum((await read_pulls(http, theirs)).values()) == 0

    run(tmp_path, body)


def test_a_signed_id_opens_nothing_else(tmp_path):
    async def body(http, keys, signed):
        mine = keys["one", "admin"]
        (await http.put("/v1/problems/q", json=PROBLEM, headers=mine)).raise_for_status()
        assert (await send(http, signed["one"], path="/v1/problems/q/beacon")).status_code == 403
        bearer = {"authorization": f"Bearer {signed['one']}"}
        assert (await http.get("/v1/decisions/d", headers=bearer)).status_code == 401
        text = json.dumps({"signed_id": signed["one"], "feedback": [], "amend": True})
        assert (await http.post(BEACON, content=text, headers={"content-type": "text/plain"})).status_code == 422
        assert "signed_id" not in (await http.get("/v1/decisions/d", headers=mine)).json()
        asked = {"json": {"id": "e"}, "headers": keys["one", "decide"]}
        assert "signed_id" not in (await http.post("/v1/problems/p/decisions", **asked)).json()
        bulk = await http.post("/v1/problems/p/decisions/bulk", json={"decisions": [{"id": "f"}]}, headers=mine)
        assert (await send(http, bulk.json()["decisions"][0]["signed_id"], [])).status_code == 200

    run(tmp_path, body)


def test_forged_expired_and_other_tenants_ids_are_refused(tmp_path):
    async def body(http, keys, signed):
        later = time.time() + 1000
        payload, _, code = signed["one"].partition(".")
        tenant, problem, id, expires = json.loads(unb64(payload))
        assert (tenant, problem, id) == ("one", "p", "d")
        assert 86_000 < expires - time.time() <= 86_400
        swapped = b64(json.dumps(["two", problem, id, expires]).encode())
        longer = b64(json.dumps([tenant, problem, id, expires + 1]).encode())
        wrong = [
            forge(FOREIGN, "one", "p", "d", later),
            f"{swapped}.{code}",  # the decision of another tenant
            f"{longer}.{code}",
            f"{payload}.{signed['two'].partition('.')[2]}",
            payload,
            f"{payload}.",
            f"{payload}.{code[:-2]}",
            f"{payload}.{code}.{code}",
            "",
            "..",
            "\u20ac.\u20ac",
        ]
        for signed_id in wrong:
            reply = await send(http, signed_id)
            assert reply.status_code == 403, signed_id
            assert reply.json()["error"]["code"] == "forbidden"
        reply = await send(http, forge(SECRET, "one", "p", "d", time.time() - 1))
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "expired")
        assert (await send(http, forge(SECRET, "one", "p", "nobody", later))).status_code == 404
        assert sum((await read_pulls(http, keys["one", "admin"])).values()) == 0
        known = [{"arm": (await slate(http, keys["one", "admin"]))[0], "value": 1.0}]
        for secret in (OLD, SECRET):  # both are accepted, so that a secret can be replaced
            assert (await send(http, forge(secret, "one", "p", "d", later), known)).status_code == 200

    run(tmp_path, body)


def test_pages_of_other_origins_and_other_media_are_refused(tmp_path):
    async def body(http, keys, signed):
        for origin in ("https://evil.example", "null", "https://shop.example.evil.example"):
            reply = await send(http, signed["one"], origin=origin)
            assert reply.status_code == 403
            assert "access-control-allow-origin" not in reply.headers
        form = await send(http, signed["one"], media="application/x-www-form-urlencoded")
        assert form.status_code == 415
        ask = {
            "origin": SHOP,
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type",
        }
        allowed = await http.options(BEACON, headers=ask)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == SHOP
        assert "content-type" in allowed.headers["access-control-allow-headers"].lower()
        assert (await http.options(BEACON, headers={**ask, "origin": "https://evil.example"})).status_code == 400
        assert (await send(http, signed["one"], [{"arm": "x" * 70_000, "value": 1.0}])).status_code == 413
        described = (await http.get("/openapi.json")).json()["paths"]["/v1/problems/{name}/beacon"]["post"]
        assert described["security"] == []

    run(tmp_path, body)


def test_an_address_may_send_only_so_many(tmp_path):
    async def body(http, keys, signed):
        replies = [(await send(http, signed["one"], [])).status_code for _ in range(6)]
        assert replies == [200, 200, 429, 429, 429, 429]

    run(tmp_path, body, beacon_rate=1.0)


def test_without_a_secret_there_are_no_beacons(tmp_path):
    async def body(http, keys, signed):
        assert signed["one"] is None
        assert (await send(http, forge(SECRET, "one", "p", "d", time.time() + 60))).status_code == 404
        assert "/v1/problems/{name}/beacon" not in (await http.get("/openapi.json")).json()["paths"]

    run(tmp_path, body, beacon_secret=(), beacon_origin=())


def test_settings_that_make_no_sense_are_refused():
    for wrong, words in (
        ({"beacon_secret": ("short",)}, "shorter than 32"),
        ({"beacon_origin": (SHOP,)}, "needs --beacon-secret"),
        ({"beacon_secret": (SECRET,), "beacon_origin": ("https://shop.example/",)}, "without a path"),
        ({"beacon_secret": (SECRET,), "beacon_origin": ("*",)}, "give an origin"),
    ):
        with pytest.raises(SuperarmError, match=words):
            check_beacon(ServiceLimits(**wrong))
    check_beacon(ServiceLimits(beacon_secret=(SECRET,), beacon_origin=("http://localhost:3000", "http://[::1]:80")))


def test_a_signed_id_ends_on_time():
    signer = Signer([SECRET], 60)
    signed_id = signer.sign("t", "p", "d/ü", 1000.9)
    assert signer.read(signed_id, 1059.9) == ("t", "p", "d/ü", 1060)
    with pytest.raises(RequestError, match="expired"):
        signer.read(signed_id, 1060.0)
