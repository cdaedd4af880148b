"""Starting the service: which store, which address, structured logs."""

import asyncio
import contextlib
import importlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from superarm.core.errors import SuperarmError
from superarm.service.application import MAX_HEADER_BYTES, application
from superarm.service.http.auth import Keyring, read_key
from superarm.service.http.query import REQUEST_ID
from superarm.service.http.service import ServiceLimits
from superarm.service.storage.base import AddressRefused, KeyRow, Store, StoreUnavailable
from superarm.service.storage.sqlite import Sqlite

log = logging.getLogger("superarm.server")

LAST_ANSWERS_SECONDS = 0.5
"""How long a process that has failed goes on, so that requests are still answered, with 503."""

UVICORN_DID_NOT_START = 3
"""Uvicorn's exit code when an application failed at its start."""


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


def check_file(db: str, create: bool) -> bool:
    """Whether a SQLite file does not exist yet. Its directory must, so that a mistyped path is noticed.

    With ``create``, the directory is created.
    """
    path = Path(db)
    if "://" in db or path.exists():
        return False
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not path.parent.is_dir():
        remedy = "give the path of your database, or --create for a new one"
        raise SuperarmError(f"--db {db}: there is no directory {path.parent}; {remedy}")
    return True


def open_reader(db: str) -> Any:
    """The store, for a command that may run beside a service."""
    if "://" not in db and not Path(db).exists():
        raise SuperarmError(f"--db {db}: there is no such file")
    return open_store(db, serving=False)


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


class Listening(NamedTuple):
    """Where the service listens, and with what certificate.

    Parameters
    ----------
    host, port
        The address.
    forwarded_allow_ips
        The proxies whose forwarded headers are believed, separated by commas; ``*`` for all.
    ssl_certfile, ssl_keyfile, ssl_keyfile_password
        The certificate and its private key; plain HTTP without them.
    max_connections
        The number of connections at the same time.
    """

    host: str
    port: int
    forwarded_allow_ips: str
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_keyfile_password: str | None
    max_connections: int


def serve(
    db: str,
    listening: Listening,
    limits: ServiceLimits,
    imports: Sequence[str] = (),
    configuration: dict[str, Any] | None = None,
    preparation: "Preparation | None" = None,
    new: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT; everything that was acknowledged is in the log.

    ``configuration`` is what the first line of the log says of the settings, and ``preparation`` what is still to be
    done to the store. ``new`` says that the database did not exist before, which the second line says.
    """
    import uvicorn

    if listening.ssl_keyfile and not listening.ssl_certfile:
        raise SuperarmError("--ssl-keyfile: a key without a certificate; give --ssl-certfile, too")
    import_components(imports)
    configure_logging()
    if configuration is not None:
        log.info("configuration", extra={"fields": {"settings": configuration}})
    if new:
        log.warning("%s did not exist: this is a new database, without problems and decisions", Path(db).resolve())
    store = open_store(db, wait=True)
    prepare = preparation.apply_once if preparation is not None else lambda store: None
    app = application(store, limits, on_failed=_leave, patience=PATIENCE_SECONDS, prepare=prepare)
    config = uvicorn.Config(
        app,
        **{name: value for name, value in listening._asdict().items() if name != "max_connections"},
        limit_concurrency=listening.max_connections,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=30,
        http="h11",  # whose limit on the size of headers can be set
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        ws="none",
    )
    with _explain_failure(listening):
        server = _make_server(config, app.end_streams)
        server.run()
        if not server.started:
            raise SystemExit(UVICORN_DID_NOT_START)


def _make_server(config: Any, leave: Callable[[], None]) -> Any:
    """A uvicorn server that calls ``leave`` when it is told to stop."""
    import uvicorn

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            leave()
            super().handle_exit(sig, frame)

    return Server(config)


class _FirstError(logging.Handler):
    """Remembers the first error that is logged: uvicorn logs why it ends, and then that it ends."""

    said = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.said = self.said or record.getMessage()


@contextlib.contextmanager
def _explain_failure(listening: Listening) -> Iterator[None]:
    """Say why the service could not start."""
    first, logger = _FirstError(), logging.getLogger("uvicorn.error")
    logger.addHandler(first)
    try:
        yield
    except SystemExit as end:
        if "address already in use" in first.said:
            where = f"{listening.host}:{listening.port} is used by another process"
            raise SuperarmError(f"--port {listening.port}: {where}; stop it, or give another --port") from None
        if end.code == UVICORN_DID_NOT_START:
            why = first.said.strip().rpartition("\n")[2] or "its last log line says why"
            raise SuperarmError(f"the service could not start: {why}") from None
        raise
    finally:
        logger.removeHandler(first)


class Preparation(NamedTuple):
    """What is done to a store before it is served to ``host``: the operator's ``key`` is added, if there is one."""

    host: str
    key: KeyRow | None

    def apply_once(self, store: Store) -> None:
        """As ``apply``; a key that is known already may be revoked by now."""
        known = self.key is None or self.key.id in {row.id for row in store.key_rows()}
        (self._replace(key=None) if known else self).apply(store)

    def apply(self, store: Store) -> None:
        """Add the key, and refuse to serve others than loopback without keys."""
        if self.key is not None:
            _ensure_key(store, self.key)
        keyring = Keyring(store)
        keyring.read()
        if self.host not in ("127.0.0.1", "localhost", "::1") and not keyring.required:
            raise SuperarmError(
                f"--host {self.host}: without keys only loopback is served; run superarm keys create first"
            )


def prepare_store(db: str, host: str, admin_key: str | None) -> Preparation | None:
    """Prepare the store. If PostgreSQL is away, what has to be done is returned, for the service that waits for it."""
    key = read_key(admin_key, "default", ("admin", "metrics"), "given at the start") if admin_key else None
    preparation = Preparation(host, key)
    try:
        store = open_store(db)  # also refuses a file that another process serves
    except AddressRefused:
        raise
    except StoreUnavailable:
        if "://" not in db:
            raise
        return preparation
    try:
        preparation.apply(store)
    finally:
        store.close()
    return None


def _ensure_key(store: Store, row: KeyRow) -> None:
    known = next((known for known in store.key_rows() if known.id == row.id), None)
    if known is None:
        store.put_key(row)
    elif known.digest != row.digest or known.revoked is not None:
        raise SuperarmError(f"--admin-key: key {row.id} is revoked or another one; make a new one by superarm keys new")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"at": self.formatTime(record), "level": record.levelname.lower(), "from": record.name}
        line["message"] = record.getMessage()
        line.update(getattr(record, "fields", {}))
        if request := REQUEST_ID.get():
            line["request"] = request
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging() -> None:
    """Log to stderr, one JSON object per line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
