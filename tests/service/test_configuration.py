"""Settings of the service: flags, environment, file, in this order."""

import ssl
import subprocess

import httpx
import pytest
from click.testing import CliRunner

from superarm.cli import main
from superarm.service import server

from .running import Server, invoke


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
