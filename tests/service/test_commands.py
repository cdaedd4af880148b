"""The command line: verify, export, import, backup, against a service that runs."""

import csv
import json
import ssl
import subprocess
from pathlib import Path

import httpx
import numpy as np
import pyarrow
import pytest
from click.testing import CliRunner
from pyarrow import parquet

import superarm as sa
from superarm.cli import main
from superarm.core.errors import InvalidArgument
from superarm.service import server
from superarm.service.learn import read_past

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


# --- Settings of the service: flags, environment, file, in this order.


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Calls ``superarm serve`` with flags, environment and file; what the service would have been started with."""

    def start(*words, environment=None, file=None):
        calls = []
        monkeypatch.setattr(server, "serve", lambda *given: calls.append(given))
        if file is not None:
            (tmp_path / "superarm.toml").write_text(file)
            words = ("--config", str(tmp_path / "superarm.toml"), *words)
        done = CliRunner(env=environment).invoke(main, ["serve", *words])
        return done, (calls[0] if calls else None)

    return start


FILE = """
db = "file.db"
port = 1001
rate = 5.0
max-body = 4096
access-log = true
import = ["one", "two"]
"""


def test_flags_go_before_the_environment_and_the_environment_before_the_file(started):
    environment = {"SUPERARM_DB": "environment.db", "SUPERARM_SERVE_PORT": "2002", "SUPERARM_SERVE_RATE": "6"}
    done, (db, listening, limits, imports, key) = started("--port", "3003", environment=environment, file=FILE)
    assert done.exit_code == 0, done.output
    assert (db, listening["port"], listening["host"]) == ("environment.db", 3003, "127.0.0.1")
    assert (limits.rate, limits.max_body, listening["access_log"]) == (6.0, 4096, True)
    assert (imports, key) == (("one", "two"), None)


def test_the_file_may_be_named_by_the_environment(started, tmp_path):
    (tmp_path / "named.toml").write_text("port = 1234")
    _, call = started(environment={"SUPERARM_CONFIG": str(tmp_path / "named.toml")})
    assert call[1]["port"] == 1234


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("prot = 1", "there is no setting 'prot'; there are"),
        ("port = 'many'", "'many' is not a valid integer"),
        ("port = [1]", "port is a table or a list"),
        ("port = ", "is not TOML"),
        ("port = " + "[" * 5_000, "is not TOML"),
        ("config = 'other.toml'", "there is no setting 'config'"),
        ("root-path = 'bandits'", "give a path such as /bandits"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(started, file, words):
    done, call = started(file=file)
    assert done.exit_code == 2
    assert call is None
    assert words in " ".join(done.stderr.split())


@pytest.mark.needs("openssl")
def test_https_with_a_certificate(tmp_path):
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    words = ["-newkey", "rsa:2048", "-passout", "pass:s3cret", "-days", "1", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(["openssl", "req", "-x509", *words, *names], check=True, capture_output=True)
    options = ("--ssl-certfile", certificate, "--ssl-keyfile", key, "--ssl-keyfile-password", "s3cret")
    trusting = ssl.create_default_context(cafile=certificate)
    with Server(str(tmp_path / "log.db"), *options, wait=False) as running:
        running.url = running.url.replace("http:", "https:")
        running.ready(verify=trusting)
        with httpx.Client(base_url=running.url, verify=trusting) as http:
            assert http.get("/v1/problems").json() == {"problems": []}
            cookie = http.post("/login", data={"key": "any"}).headers["set-cookie"]
    assert "Secure" in cookie


def test_a_key_without_a_certificate_is_refused(tmp_path):
    (tmp_path / "key.pem").write_text("")
    done = invoke("serve", "--db", str(tmp_path / "x.db"), "--ssl-keyfile", str(tmp_path / "key.pem"))
    assert done.exit_code == 2
    assert "a key without a certificate" in done.stderr


# --- Past outcomes imported into a running service: the start that an agent has from the same log.


MEANS = np.array([[0.1, 0.2], [0.6, 0.1], [0.2, 0.5], [0.3, 0.3]])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A log of 300 rounds of somebody else's service, as lines of JSON."""
    rng, file = np.random.default_rng(0), tmp_path_factory.mktemp("import") / "past.jsonl"
    with file.open("w") as out:
        for t in range(300):
            for place, arm in enumerate(rng.permutation(4)[:2]):
                for item in range(2):
                    row = {"slate_id": f"v{t}", "t": t, "position": place + 1, "arm": f"ad-{arm}", "item": "xy"[item]}
                    out.write(json.dumps({**row, "reward": float(rng.random() < MEANS[arm, item])}) + "\n")
    return file


def test_a_running_service_learns_from_a_log_what_an_agent_does(source, sqlite_file):
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
    log = sa.offline.Log.read(source, reward=sa.Coverage())
    with Server(sqlite_file) as server:
        service = sa.connect(server.url)
        remote = service.create("ads", list(log.arms), ["x", "y"], 2, settings={"policy": {"name": "kl_ucb"}})
        first = remote.ask(id="before")  # decisions go on while the log is imported
        done = invoke("import", str(source), "--problem", "ads", "--url", server.url)
        assert (done.exit_code, done.stdout) == (0, "600 pulls given to ads\n"), done.output
        assert invoke("import", str(source), "--problem", "ads", "--url", server.url).exit_code == 0  # counts once
        remote.tell(first, [[0, 0], [0, 0]])
        agent = sa.Agent(problem, sa.kl_ucb(), tally=log.tally, arms=log.arms, items=log.items)
        own = agent.ask(eligible=first.arms)
        assert sorted(own.arms) == sorted(first.arms)
        agent.tell(own, [[0, 0], [0, 0]])
        assert [row["pulls"] for row in remote.statistics()] == agent.learner.tally.pulls[0].tolist()
        assert [row["mean"] for row in remote.statistics()] == agent.estimates()[0].tolist()
        assert remote.ask().arms == agent.ask().arms
        assert invoke("verify", "--db", server.db).exit_code == 0
        service.close()


def test_rows_that_were_not_shown_or_seen_are_left_out(tmp_path):
    lines = ["decision,arm,item,click,state,problem"]
    lines += ["d1,a,x,1,complete,p", "d1,a,y,,complete,p", "d2,b,x,0.5,complete,p", "d2,b,y,0,complete,p"]
    lines += ["d3,a,x,1,deferred,p", "d4,'=a,,1,complete,p", "d5,c,x,1,complete,q"]
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines))
    one = 1 << 24
    assert sorted(read_past(file, ["x", "y"], "p", False)) == [
        ["", "=a", "x", 1, 1, one, one],
        ["", "=a", "y", 1, 1, one, one],
        ["", "a", "x", 1, 1, one, one],
        ["", "a", "y", 1, 0, 0, 0],
        ["", "b", "x", 1, 1, one // 2, one // 4],
        ["", "b", "y", 1, 1, 0, 0],
    ]
    with pytest.raises(InvalidArgument, match="name: None fits 2 problems of the file; give one of p, q"):
        read_past(file, ["x", "y"], None, False)
    with pytest.raises(InvalidArgument, match="fits 0 problems"):
        read_past(file, ["x", "y"], "r", False)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("arm\na\n", "DuckDB cannot read it: .*click"),
        ("arm,click\na,2\n", "arm 'a' has outcomes from 2 to 2; give outcomes in"),
        ("arm,click\na,many\n", "DuckDB cannot read it: .*many"),
        ('{"arm": "a"\n', "DuckDB cannot read it"),
    ],
)
def test_tables_that_cannot_be_imported_say_why(tmp_path, text, wrong):
    file = tmp_path / ("log.jsonl" if text[0] in "[{" else "log.csv")
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=wrong):
        read_past(file, ["value"], None, False)


def test_a_table_without_ids_has_a_decision_in_each_row(tmp_path):
    file = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.table({"arm": ["a"] * 6, "click": [1.0] * 6}), file)
    with Server(str(tmp_path / "log.db")) as server:
        httpx.put(f"{server.url}/v1/problems/p", json={"arms": ["a", "b"], "k": 1}).raise_for_status()
        done = invoke("import", str(file), "--problem", "p", "--url", server.url)
    assert (done.exit_code, done.stdout) == (0, "6 pulls given to p\n"), done.output


def test_past_outcomes_of_segments_are_imported_as_an_agent_takes_them(tmp_path, sqlite_file):
    context = {"features": {"categorical": {"country": ["NO", "SE"]}}}
    rng, file = np.random.default_rng(1), tmp_path / "past.csv"
    arms, countries = rng.integers(0, 3, 300), rng.choice(["NO", "SE"], 300)
    clicks = (rng.random(300) < np.where((arms == 0) == (countries == "NO"), 0.7, 0.1)).astype(int)
    rows = [f"v{n},{n},1,{'abc'[arms[n]]},{clicks[n]},country={countries[n]}" for n in range(300)]
    file.write_text("\n".join(["slate_id,t,position,arm,click,group", *rows]))
    own = sa.Context(sa.Features(categorical={"country": ["NO", "SE"]}))
    problem = sa.Problem(3, 1, sa.Coverage(), sa.Subsets(1), context=own)
    past = problem.past(arms, clicks[:, None].astype(float), contexts=[{"country": one} for one in countries])
    agent = sa.Agent(problem, sa.kl_ucb(), tally=past)
    with Server(sqlite_file) as server:
        service = sa.connect(server.url)
        policy = {"policy": {"name": "kl_ucb"}}
        remote = service.create("ads", ["a", "b", "c"], ["x"], 1, context=context, settings=policy)
        words = ("import", str(file), "--problem", "ads", "--url", server.url)
        refused = invoke(*words)
        assert (refused.exit_code, "segment: unknown ''" in refused.output) == (2, True), refused.output
        assert invoke(*words, "--segments").output == "300 pulls given to ads\n"
        assert invoke(*words, "--segments").exit_code == 0  # counts once
        assert remote.add_sums([("SE", "a", "x", 1, 1, 1 << 24, 1 << 24)], "more") is True
        agent.warm_start(problem.past([0], [[1.0]], contexts=[{"country": "SE"}]))
        for country in ("NO", "SE"):
            asked = agent.ask(context={"country": country}).action.tolist()
            assert remote.ask(context={"country": country}).arms == tuple("abc"[j] for j in asked)
        with pytest.raises(sa.SuperarmError, match="unknown 'country=DK'"):
            remote.add_sums([("country=DK", "a", "x", 1, 1, 0, 0)], "wrong")
        assert invoke("verify", "--db", server.db).exit_code == 0
        service.close()


def test_the_key_is_taken_from_the_environment(source, sqlite_file, monkeypatch):
    key = invoke("keys", "new").stdout.strip()
    with Server(sqlite_file, "--admin-key", key) as server:
        service = sa.connect(server.url, key)
        service.create("ads", [f"ad-{n}" for n in range(4)], ["x", "y"], 2)
        service.close()
        words = ("import", str(source), "--problem", "ads", "--url", server.url)
        assert invoke(*words).exit_code == 2
        monkeypatch.setenv("SUPERARM_KEY", key)
        assert invoke(*words).output == "600 pulls given to ads\n"
    assert "SUPERARM_KEY" in invoke("import", "--help").output
