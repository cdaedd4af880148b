from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from .database import Database, fresh
from .running import Server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Database]:
    """A PostgreSQL server; a test that kills it has to start it again."""
    server = Database()
    yield server
    server.close()


@pytest.fixture(scope="session")
def postgres(postgres_server: Database) -> str:
    return postgres_server.address


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
