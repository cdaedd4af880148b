"""How a service is started: first keys, refusals before anything is created, and addresses behind a proxy."""

import asyncio
import gc
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

import superarm as sa
from superarm.service.application import application
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .running import Server, command, invoke

SPEC = {"arms": ["a", "b"], "k": 1, "settings": {"policy": {"name": "cucb"}}}


def test_a_new_key_is_stored_nowhere_until_the_service_is_started_with_it(tmp_path):
    db = str(tmp_path / "log.db")
    key, other = (invoke("keys", "new").stdout.strip() for _ in range(2))
    assert key != other
    assert list(tmp_path.iterdir()) == []
    with Server(db, "--admin-key", key) as server, httpx.Client(base_url=server.url, timeout=60.0) as http:
        assert http.get("/v1/problems").status_code == 401
        assert http.get("/v1/problems", headers={"authorization": f"Bearer {other}"}).status_code == 401
        http.headers["authorization"] = f"Bearer {key}"
        assert http.put("/v1/problems/p", json=SPEC).status_code == 201
        assert http.get("/metrics").status_code == 200
        assert key not in server.log.read_text()
    listed = invoke("keys", "list", "--db", db).stdout
    assert "admin,metrics" in listed
    assert key.rpartition("_")[2] not in listed
    id = listed.split()[0]
    assert invoke("keys", "revoke", "--db", db, id).exit_code == 0
    refused = command("serve", "--db", db, "--port", "0", "--admin-key", key)
    assert refused.returncode == 2
    assert "is revoked or another one" in refused.stderr
    assert "not one that superarm made" in invoke("serve", "--db", db, "--admin-key", "secret").output


def test_what_is_refused_creates_no_file(tmp_path):
    refused = invoke("serve", "--db", str(tmp_path / "log.db"), "--root-path", "no path")
    assert refused.exit_code == 2
    assert "give a path such as" in refused.output
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_path_of_the_database_is_noticed(tmp_path):
    """The directory and an empty database were created, and every problem was 404."""
    wrong = str(tmp_path / "typo" / "log.db")
    for words in (("serve",), ("keys", "create")):
        refused = invoke(*words, "--db", wrong)
        assert (refused.exit_code, "directory" in refused.output) == (2, True)
    assert list(tmp_path.iterdir()) == []
    said = f"{wrong} did not exist: this is a new database, without problems and decisions"
    Path(wrong).parent.mkdir()
    with Server(wrong) as server:
        assert server.line_with(said)
    with Server(wrong) as server:
        assert "did not exist" not in server.log.read_text()
    beside = str(tmp_path / "beside.db")
    created = invoke("keys", "create", "--db", beside)
    assert (created.exit_code, created.stdout.startswith("sa_")) == (0, True)
    assert f"{beside} did not exist: this is a new database" in created.stderr


def test_a_used_port_is_named_in_the_error(tmp_path):
    """It said that the last line of the log said why, and that was another line."""
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        done = command("serve", "--db", str(tmp_path / "log.db"), "--port", str(port))
    assert done.returncode == 2
    said = f"Error: --port {port}: 127.0.0.1:{port} is used by another process; stop it, or give another --port"
    assert done.stderr.splitlines()[-1] == said


@pytest.mark.parametrize(("believed", "address"), [("127.0.0.1", "203.0.113.7"), ("192.0.2.1", "127.0.0.1")])
def test_the_forwarded_address_is_that_of_the_client_if_the_proxy_is_believed(tmp_path, believed, address):
    """The access log shows the address by which wrong keys are counted, too."""
    with Server(str(tmp_path / "log.db"), "--access-log", "--forwarded-allow-ips", believed) as server:
        httpx.get(f"{server.url}/v1/problems", headers={"x-forwarded-for": "203.0.113.7"}, timeout=60.0)
        line = server.line_with("GET /v1/problems")
    assert line["message"].partition(":")[0] == address


def test_a_client_outlasts_a_creation_that_takes_longer_than_its_timeout():
    """The client waits for 30 seconds, and creating a problem could take longer. It asks again."""
    finish, asked = threading.Event(), list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            asked.append(self.path)
            if len(asked) < 3:
                finish.wait(60.0)
                return
            body = b'{"name": "p"}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    service = sa.connect(f"http://127.0.0.1:{server.server_port}", timeout=0.2)
    try:
        assert service.create("p", ["a", "b"], ["i"]).name == "p"
        assert asked == ["/v1/problems/p"] * 3
    finally:
        finish.set()
        service.close()
        server.shutdown()
        server.server_close()


# --- The service as one application of a process that has others.


def process() -> tuple:
    """What belongs to the process, and not to one of its applications."""
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    return gc.get_threshold(), gc.get_freeze_count(), gc.isenabled(), handlers


def test_an_application_changes_nothing_of_the_process(tmp_path):
    async def live() -> None:
        before = process()
        app = application(Sqlite(tmp_path / "log.db"))
        async with serving(app) as http:
            assert (await http.get("/health")).status_code == 200
            assert process() == before

    asyncio.run(live())
