"""A database written by version 0.1.0 (tests/fixtures/v0) is read: the same counters, the same further slates."""

import gzip
import json
from pathlib import Path

import httpx
import psycopg
import pytest

from superarm.service.storage.postgres_tables import TABLES
from tests.stored_runs import Api, next_slates, seen_of

from .database import fresh
from .running import Server, invoke

STORED = Path(__file__).parents[1] / "fixtures" / "v0"


def stored(name):
    return json.loads(gzip.decompress((STORED / name).read_bytes()))


def restore_sqlite(path):
    path.write_bytes(gzip.decompress((STORED / "service.db.gz").read_bytes()))
    return str(path)


def restore_postgres(url):
    """Create the tables that 0.1.0 had, and fill them with its rows; the service brings them up to date."""
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE superarm_version (version integer NOT NULL)")
        connection.execute("INSERT INTO superarm_version VALUES (1)")
        connection.execute(TABLES)
        tables = stored("postgres.json.gz")
        assert tables.pop("version") == [[1]]
        for table, rows in tables.items():
            for row in rows:
                values = [
                    bytes.fromhex(value) if table == "snapshots" and n == 2 else value for n, value in enumerate(row)
                ]
                places = ", ".join(["%s"] * len(row))
                connection.execute(f"INSERT INTO superarm_{table} OVERRIDING SYSTEM VALUE VALUES ({places})", values)
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    """A store as 0.1.0 left it when it was killed, and what is expected of it."""
    if request.param == "sqlite":
        return restore_sqlite(tmp_path / "log.db"), stored("service.json.gz")
    url = restore_postgres(fresh(request.getfixturevalue("postgres"), "stored"))
    moved = invoke("reshard", "--db", url)
    assert "events moved to logs of their problems" in moved.output, moved.output
    return url, stored("service_postgres.json.gz")


OTHERS = ("shop/moss", "shop/cts", "press/greedy")
"""Problems that go on with other slates: of a policy that is no longer there, and of policies that draw at random."""


def certain(found):
    """What was found of problems whose policies choose without chance."""
    return {name: one for name, one in found.items() if name not in OTHERS}


def test_a_database_is_sound_and_continues_with_the_same_slates(database):
    db, expected = database
    verified = invoke("verify", "--db", db)
    assert verified.exit_code == 0, verified.output
    keys = expected["keys"]
    with Server(db) as server, httpx.Client(base_url=server.url, timeout=60.0) as http:
        api = Api(http, keys)
        made = [(key.split("/")[0], one["problem"], one["id"]) for key, one in expected["seen"]["decisions"].items()]
        seen = seen_of(api, expected["problems"], made)
        assert seen["problems"] == expected["seen"]["problems"]
        assert seen["decisions"] == expected["seen"]["decisions"]
        assert certain(next_slates(api, expected["ask"])) == certain(expected["next"])
        after = seen_of(api, expected["ask"], [])["problems"]
        assert certain(after) == certain(expected["after"]["problems"])
        for key, status in (("revoked", 401), ("reader", 403)):
            answer = http.put(
                "/v1/problems/new", headers={"Authorization": f"Bearer {keys[key]}"}, json={"arms": ["a"]}
            )
            assert answer.status_code == status
    assert invoke("verify", "--db", db).exit_code == 0


def test_an_old_database_can_be_compacted(database, tmp_path):
    db, expected = database
    if "://" in db:
        assert invoke("reshard", "--db", db).exit_code == 0
    done = invoke("compact", "--db", db, "--older-than", "0")
    assert "decisions removed" in done.output, done.output
    verified = invoke("verify", "--db", db)
    assert verified.exit_code == 0, verified.output
    with Server(db) as server, httpx.Client(base_url=server.url, timeout=60.0) as http:
        api = Api(http, expected["keys"])
        assert seen_of(api, expected["problems"], [])["problems"] == expected["seen"]["problems"]
        assert certain(next_slates(api, expected["ask"])) == certain(expected["next"])
