"""Starting the service: which store, which address, structured logs."""

import asyncio
import contextlib
import errno
import gc
import importlib
import json
import logging
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from superarm.core.errors import SuperarmError
from superarm.service.application import MAX_HEADER_BYTES, application
from superarm.service.http.service import ServiceLimits, read_key
from superarm.service.storage.base import KeyRow, Store
from superarm.service.storage.sqlite import Sqlite

log = logging.getLogger("superarm.server")

LAST_ANSWERS_SECONDS = 0.5
"""How long a process that has failed goes on, so that requests are still answered, with 503."""

PATIENCE_SECONDS = 2.0
"""A start that takes longer goes on while requests are answered with 503, and ``/health`` says what it waits for."""


def open_store(db: str, *, serving: bool = True, wait: bool = False) -> Store:
    """The store at a path or an address; with ``serving``, for a process that writes events.

    With ``wait``, a PostgreSQL that cannot be reached now is reached when the store is first used.
    """
    if db.startswith(("postgresql://", "postgres://")):
        from superarm.service.storage.postgres import Postgres

        return Postgres(db, serving=serving, wait=wait)
    if "://" in db:
        raise SuperarmError(f"--db {db}: give a file, or postgresql://…")
    return Sqlite(Path(db), lock=serving)


def _leave() -> None:
    """End this process: its state is no longer what the log says. Everything that was acknowledged is in the log."""
    asyncio.get_running_loop().call_later(LAST_ANSWERS_SECONDS, os._exit, 1)


def import_components(modules: Sequence[str]) -> None:
    """Import the modules with which an operator adds policies and rewards; also from the working directory."""
    if modules and "" not in sys.path:
        sys.path.insert(0, "")
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise SuperarmError(f"--import {module}: {error}") from None


def serve(
    db: str,
    listening: dict[str, Any],
    limits: ServiceLimits,
    imports: Sequence[str],
    admin_key: str | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; everything that was acknowledged is in the log.

    ``listening`` are options of uvicorn.
    """
    import uvicorn

    if listening["ssl_keyfile"] and not listening["ssl_certfile"]:
        raise SuperarmError("--ssl-keyfile: a key without a certificate; give --ssl-certfile, too")
    host, port = listening["host"], listening["port"]
    key = read_key(admin_key, "default", ("admin", "metrics"), "given at the start") if admin_key else None
    import_components(imports)
    new = "://" not in db and not Path(db).exists()
    with _bind(host, port) as address:
        store = open_store(db, wait=True)
        configure_logging()
        if new:
            log.warning("%s did not exist: this is a new database, without problems and decisions", Path(db).resolve())
        app = application(store, limits, _leave, PATIENCE_SECONDS, lambda store: prepare(store, host, key))
        config = uvicorn.Config(
            app,
            **listening,
            log_config=None,
            timeout_graceful_shutdown=30,
            http="h11",  # whose limit on the size of headers can be set
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            ws="none",
        )
        server = uvicorn.Server(config)
        gc.collect()
        gc.freeze()  # what is here stays: collections need not walk through it
        gc.set_threshold(50_000)  # and come less often: a request leaves little that only they can free
        with contextlib.suppress(SystemExit):  # uvicorn's way to say that the start failed
            server.run([address])
    if not server.started:
        raise SuperarmError(f"the service could not start: {(app.service.failure or 'its last log line says why')}")


def _bind(host: str, port: int) -> socket.socket:
    """What listens at an address."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise SuperarmError(f"--host {host}, --port {port}: {error.strerror}") from None
        used = f"--port {port}: {host}:{port} is used by another process"
        raise SuperarmError(f"{used}; stop it, or give another --port") from None


def prepare(store: Store, host: str, key: KeyRow | None) -> None:
    """Add the operator's key, if there is one, and refuse to serve others than loopback without keys."""
    known = {row.id: row for row in store.key_rows()}
    if key is not None and key.id not in known:
        store.put_key(key)
    elif key is not None and (known[key.id].digest != key.digest or known[key.id].revoked is not None):
        raise SuperarmError(f"--admin-key: key {key.id} is revoked or another one; make a new one by superarm keys new")
    if host not in ("127.0.0.1", "localhost", "::1") and not known and key is None:
        raise SuperarmError(f"--host {host}: without keys only loopback is served; run superarm keys create first")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"at": self.formatTime(record), "level": record.levelname.lower(), "from": record.name}
        line["message"] = record.getMessage()
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging() -> None:
    """Log to stderr, one JSON object per line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
