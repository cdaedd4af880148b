"""Starting the service: which store, which address, which logs."""

import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from superarm.errors import SuperarmError
from superarm.service.application import ServiceApp, application
from superarm.service.http.auth import Keyring
from superarm.service.http.service import ServiceLimits
from superarm.service.storage.base import Store
from superarm.service.storage.sqlite import Sqlite

SETTINGS = "SUPERARM_SERVE"
"""How a worker process learns what ``superarm serve`` was told: a JSON object in the environment."""

UVICORN_DID_NOT_START = 3
"""Uvicorn's exit code when an application failed at its start."""


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


def worker() -> ServiceApp:
    """The application of one worker process, as ``serve`` described it."""
    told = json.loads(os.environ[SETTINGS])
    logs()
    app = application(store_of(told["db"]), ServiceLimits(**told["limits"]), _tune_collector)
    _on_stop(app.end_streams)
    return app


def _tune_collector() -> None:
    """Look for garbage rarely, and not among what was there at the start.

    Requests make no cycles to speak of: looking for them often would take a sixth of a decision's time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _on_stop(leave: Callable[[], None]) -> None:
    """Call ``leave`` when the process is told to stop, before the server's own handlers, which are in place by now."""
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)

        def handle(n: int, frame: Any, before: Any = before) -> None:
            leave()
            if callable(before):
                before(n, frame)

        signal.signal(number, handle)


def serve(db: str, host: str, port: int, workers: int, limits: ServiceLimits) -> None:
    """Serve until a signal says stop; what is acknowledged by then is in the log."""
    import uvicorn

    if workers > 1 and "://" not in db:
        raise SuperarmError("--workers: SQLite takes one process; give --db postgresql://… for more")
    _check_address(db, host)
    os.environ[SETTINGS] = json.dumps({"db": db, "limits": limits._asdict()})
    logs()
    try:
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
    except SystemExit as end:
        if end.code == UVICORN_DID_NOT_START:
            raise SuperarmError("the service could not start; its last log line says why") from None
        raise


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
