"""Starting the service: which store, which address, which logs."""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from superarm.errors import SuperarmError
from superarm.service.http.app import Front, ServiceLimits, application
from superarm.service.http.auth import Keyring
from superarm.service.storage.base import Store
from superarm.service.storage.sqlite import Sqlite

SETTINGS = "SUPERARM_SERVE"
"""How a worker process learns what ``superarm serve`` was told: a JSON object in the environment."""


def store_of(db: str, *, serving: bool = True) -> Store:
    """The store behind a path or an address; one that is ``serving`` claims its place."""
    if db.startswith(("postgresql://", "postgres://")):
        from superarm.service.storage.postgres import Postgres

        return Postgres(db, slot=serving)
    if "://" in db:
        raise SuperarmError(f"--db {db}: give a file, or postgresql://…")
    return Sqlite(Path(db), lock=serving)


def reader_of(db: str) -> Any:
    """The store, beside a service that may be running on it."""
    if "://" not in db and not Path(db).exists():
        raise SuperarmError(f"--db {db}: there is no such file")
    return store_of(db, serving=False)


def worker() -> Front:
    """The application of one worker process, as ``serve`` described it."""
    told = json.loads(os.environ[SETTINGS])
    logs()
    return application(store_of(told["db"]), ServiceLimits(**told["limits"]))


def serve(db: str, host: str, port: int, workers: int, limits: ServiceLimits) -> None:
    """Serve until a signal says stop; what is acknowledged by then is in the log."""
    import uvicorn

    if workers > 1 and "://" not in db:
        raise SuperarmError("--workers: SQLite takes one process; give --db postgresql://… for more")
    _check_address(db, host)
    os.environ[SETTINGS] = json.dumps({"db": db, "limits": limits._asdict()})
    logs()
    uvicorn.run(
        "superarm.service.server:worker",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=30,
    )


def _check_address(db: str, host: str) -> None:
    store = store_of(db)  # also refuses a file that another process serves
    try:
        if host not in ("127.0.0.1", "localhost", "::1") and not Keyring(store).required:
            raise SuperarmError(f"--host {host}: without keys only loopback is served; run superarm keys create first")
    finally:
        store.close()


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"at": self.formatTime(record), "level": record.levelname.lower(), "from": record.name}
        line["message"] = record.getMessage()
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def logs() -> None:
    """Structured logs: a JSON object a line, on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
