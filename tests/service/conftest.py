import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import certifi
import httpx
import pytest

from superarm.service.storage.base import Store
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.sqlite import Sqlite

from .database import Database, fresh
from .forking import Forked
from .running import Server

FIRST_CERTIFICATE = Path(certifi.where()).read_text().partition("-----END")[0] + "-----END CERTIFICATE-----\n"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs PostgreSQL is part of the second tier."""
    for item in items:
        given = getattr(item, "callspec", None)
        needs = {*getattr(item, "fixturenames", ()), *map(str, given.params.values() if given is not None else ())}
        if Path(__file__).parent in item.path.parents and needs & {"postgres", "postgres_server"}:
            item.add_marker(pytest.mark.slow("PostgreSQL"))


@pytest.fixture(scope="session", autouse=True)
def few_certificates() -> Iterator[None]:
    """Let httpx trust one authority: it reads all of them for every client, and tests call loopback without TLS."""
    before = os.environ.get("SSL_CERT_FILE")
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(FIRST_CERTIFICATE)
        file.flush()
        os.environ["SSL_CERT_FILE"] = file.name
        yield
    os.environ.pop("SSL_CERT_FILE")
    if before is not None:
        os.environ["SSL_CERT_FILE"] = before


@pytest.fixture(scope="session", autouse=True)
def forked_services() -> Iterator[None]:
    """Fork services from a process that has imported them."""
    before, Server.fork = Server.fork, Forked
    yield
    Server.fork = staticmethod(before)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Database]:
    """A PostgreSQL server; a test that kills it has to start it again."""
    server = Database(fsync=False)
    yield server
    server.close()


@pytest.fixture(scope="session")
def postgres(postgres_server: Database) -> str:
    return postgres_server.address


@pytest.fixture(params=["sqlite", "postgres"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Store]:
    """Opens the same database again and again: for a service (the default), or for reading."""
    if request.param == "sqlite":
        return lambda reading=False: Sqlite(tmp_path / "log.db", lock=not reading)
    url = fresh(request.getfixturevalue("postgres"), f"reopened_{request.param}")
    return lambda reading=False: Postgres(url, serving=not reading)


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service on each of the stores, shared by a module: tests take problems and tenants of their own."""
    if request.param == "sqlite":
        db = str(tmp_path_factory.mktemp("service") / "log.db")
    else:
        db = fresh(request.getfixturevalue("postgres"), "contract")
    with Server(db) as server:
        yield server


@pytest.fixture
def http(served: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=30.0) as client:
        yield client


@pytest.fixture
def sqlite_file(tmp_path: Path) -> str:
    return str(tmp_path / "log.db")
