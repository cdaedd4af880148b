"""The command line: verify, export, import, backup, against a service that runs."""

import csv
from pathlib import Path

import httpx
import pytest

import superarm as sa

from .running import Server, invoke


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A service with decisions in every state, and a name that a spreadsheet would run."""
    home = tmp_path_factory.mktemp("commands")
    with Server(str(home / "log.db")) as server:
        service = sa.connect(server.url)
        settings = {"policy": {"name": "bc_ucb"}, "explore": 0.5, "window_s": None}
        agent = service.create("ads", ["=cmd()", "b", "c"], ["x", "y"], 2, settings=settings)
        for n in range(6):
            decision = agent.ask(id=f"d{n}")
            if n % 2:
                agent.tell(decision, [[1, 0], [0.5, 1]], [[True, True], [True, False]])
        yield server, home, agent
        service.close()


def test_verify_a_log_that_is_served(used):
    server, home, _ = used
    done = invoke("verify", "--db", server.db)
    assert done.exit_code == 0, done.stderr
    assert "10 events, 1 problems, 3 open decisions" in done.stdout
    assert "sound" in done.stdout
    missing = invoke("verify", "--db", str(home / "nothing.db"))
    assert missing.exit_code == 2
    assert "no such file" in missing.stderr


def test_a_backup_is_the_same_log(used):
    server, home, _ = used
    done = invoke("backup", "--db", server.db, str(home / "copy.db"))
    assert done.exit_code == 0, done.stderr
    again = invoke("verify", "--db", str(home / "copy.db"))
    assert "10 events" in again.stdout
    assert invoke("backup", "--db", server.db, str(home / "copy.db")).exit_code == 2


def test_export_and_import_give_the_same_statistics(used):
    server, home, agent = used
    for name in ("log.csv", "log.parquet"):
        done = invoke("export", "--db", server.db, str(home / name))
        assert "24 rows" in done.stdout, done.stderr
    with (home / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert all(row["arm"] != "=cmd()" for row in rows)
    assert {"timestamp", "item_id", "position", "click", "propensity_score"} <= set(rows[0])
    assert all(0.0 < float(row["propensity_score"]) <= 1.0 for row in rows)
    assert sum(row["click"] == "" for row in rows) == 15  # pending, and what was not seen
    log = sa.offline.Log.read(home / "log.parquet")  # the file says what a slate is worth
    assert log.arms == ("=cmd()", "b", "c")
    assert log.problem.k == 2
    assert log.n_rounds == 6
    assert not log.deterministic.any()
    assert log.tally.pulls[0].tolist() == [row["pulls"] for row in agent.statistics()]
    same = sa.offline.Log.read(home / "log.csv", problem=log.problem)
    assert same.tally.total.tolist() == log.tally.total.tolist()
    assert same.rows.prefix.tolist() == log.rows.prefix.tolist()
    statistics = agent.statistics()
    for source in ("log.csv", "log.parquet"):
        problem = Path(source).suffix[1:]
        body = {"arms": ["=cmd()", "b", "c"], "items": ["x", "y"], "k": 2}
        httpx.put(f"{server.url}/v1/problems/{problem}", json=body, timeout=60.0).raise_for_status()
        for _ in range(2):  # the second time changes nothing
            done = invoke("import", str(home / source), "--problem", problem, "--url", server.url)
            assert done.exit_code == 0, done.stderr
        found = httpx.get(f"{server.url}/v1/problems/{problem}/arms", timeout=60.0).json()["arms"]
        assert [row["mean"] for row in found] == [row["mean"] for row in statistics]
        assert [row["pulls"] for row in found] == [row["pulls"] for row in statistics]
    assert invoke("export", "--db", server.db, str(home / "log.txt")).exit_code == 2
