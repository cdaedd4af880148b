"""Settings of the service: flags, environment, file, in this order, and what the log says of them."""

import json
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
    done, (db, listening, limits, imports, described, key) = started(
        "--port", "3003", environment=environment, file=FILE
    )
    assert done.exit_code == 0, done.output
    assert (db, listening["port"], listening["host"]) == ("environment.db", 3003, "127.0.0.1")
    assert (limits.rate, limits.max_body, limits.access_log) == (6.0, 4096, True)
    assert (imports, key) == (("one", "two"), None)
    sources = {name: described[name]["from"] for name in ("port", "db", "max-body", "host")}
    assert sources == {"port": "flag", "db": "environment", "max-body": "file", "host": "default"}


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


def test_secrets_are_not_shown(started):
    address = "postgresql://shop:s3cret@db.example/shop?password=s3cret&connect_timeout=3"
    environment = {"SUPERARM_DB": address, "SUPERARM_SERVE_SSL_KEYFILE_PASSWORD": "s3cret"}
    _, call = started(environment=environment)
    assert (call[0], call[1]["ssl_keyfile_password"]) == (address, "s3cret")
    assert "s3cret" not in json.dumps(call[4])
    assert call[4]["db"]["value"] == "postgresql://shop:***@db.example/shop?password=***&connect_timeout=3"


@pytest.mark.needs("openssl")
def test_https_with_a_certificate_and_the_configuration_in_the_log(tmp_path):
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
        first = json.loads(running.log.read_text().splitlines()[0])
    assert "Secure" in cookie
    assert first["message"] == "configuration"
    assert first["settings"]["port"] == {"value": running.port, "from": "flag"}
    assert first["settings"]["ssl-keyfile-password"] == {"value": "***", "from": "flag"}
    assert first["settings"]["host"] == {"value": "127.0.0.1", "from": "default"}


def test_a_key_without_a_certificate_is_refused(tmp_path):
    (tmp_path / "key.pem").write_text("")
    done = invoke("serve", "--db", str(tmp_path / "x.db"), "--ssl-keyfile", str(tmp_path / "key.pem"))
    assert done.exit_code == 2
    assert "a key without a certificate" in done.stderr
