"""The commands of the service. Heavy imports are inside of the functions, so that ``--help`` answers at once."""

import contextlib
import logging
import signal
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from superarm.core.errors import SuperarmError
from superarm.service.learn import learn
from superarm.service.mcp import mcp

LOG = "A SQLite file, or postgresql://user@host/database."
_DB: Any = {"envvar": "SUPERARM_DB", "default": "superarm.db"}
DB = click.option("--db", help=LOG, show_default=True, show_envvar=True, **_DB)


def _import(context: click.Context, parameter: click.Parameter, modules: tuple[str, ...]) -> None:
    if modules:
        from superarm.service.server import import_components

        import_components(modules)


MODULES = "A module (for experiments also a .py file) with components of your own; may be given several times."
_MODULES: Any = {"multiple": True, "metavar": "MODULE"}
IMPORT = click.option("--import", help=MODULES, callback=_import, expose_value=False, **_MODULES)


@contextlib.contextmanager
def open_for_reading(db: str) -> Iterator[Any]:
    """The store of a command that may run beside a service, which says on stderr how far it has come."""
    from superarm.service.server import open_store

    logging.basicConfig(level=logging.INFO, format="%(message)s")

    if "://" not in db and not Path(db).exists():
        raise SuperarmError(f"--db {db}: there is no such file")
    with contextlib.closing(open_store(db, serving=False)) as store:
        yield store


@click.command()
@DB
@click.option("--older-than", type=click.FloatRange(0.0), default=30.0, show_default=True, help="Days without change.")
@IMPORT
def compact(db: str, older_than: float) -> None:
    """Remove old and erased decisions from the log; no service may run. Export them before, if you want to keep them.

    The log then begins with a snapshot that was verified; counters, settings and pending decisions stay as they are.
    """
    import time

    from superarm.service.storage.snapshot import compact as run

    with open_for_reading(db) as store:
        n = run(store, int((time.time() - 86_400 * older_than) * 1000))
        n_events = sum(1 for _ in store.tail({}))
    click.echo(f"{n} decisions removed; {n_events} events stay in the log")


@click.command()
@DB
@click.option("--repair", is_flag=True, help="Rebuild snapshots from the log; no service may run.")
@click.option("--accept-loss", is_flag=True, help="Serve a log although its end is missing; no service may run.")
@IMPORT
def verify(db: str, repair: bool, accept_loss: bool) -> None:
    """Check the log, that nothing of it is missing, and that the counters follow from it, bit for bit."""
    from superarm.service.storage.snapshot import repair as rebuild
    from superarm.service.storage.snapshot import verify as check

    with open_for_reading(db) as store:
        if accept_loss and (lost := store.lost_tail()):
            store.accept_loss()
            click.echo(f"accepted: {lost}")
        if repair:
            click.echo(f"replaced all snapshots by one of all {rebuild(store)} events")
        report = check(store)
    found = f"{report.events} events, {report.problems} problems, {report.open} open decisions"
    click.echo(f"{found}, {report.snapshots} snapshots")
    for fault in report.faults:
        click.echo(f"FAULT {fault}", err=True)
    if report.faults:
        click.echo("snapshots are rebuilt by superarm verify --repair; a damaged log, by restoring a backup", err=True)
        raise SystemExit(1)
    click.echo("sound: the counters are those that the log adds up to")


@click.command()
@DB
@IMPORT
def doctor(db: str) -> None:
    """Say in ten lines what is right or wrong; a service may run. The status is 1 if something is wrong."""
    from superarm.service.storage.doctor import examine

    with open_for_reading(db) as store, store.read_transaction():
        findings = examine(store)
    for one in findings:
        click.echo(f"{one.level:9}{one.check:11}{one.said}")
    raise SystemExit(any(one.wrong for one in findings))


@click.command()
@DB
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--tenant", default=None, help="Only the decisions of this tenant.")
@click.option("--problem", default=None, help="Only the decisions of this problem.")
@IMPORT
def export(db: str, target: Path, tenant: str | None, problem: str | None) -> None:
    """Write decisions, propensities and outcomes to TARGET, .parquet or .csv, with Open Bandit's field names."""
    from superarm.service.storage.tables import describe_problems, rows
    from superarm.service.storage.tables import export as write

    with open_for_reading(db) as store, store.read_transaction():
        n = write(rows(store, tenant, problem), target, describe_problems(store, tenant, problem))
    click.echo(f"{n} rows in {target}")


@click.command()
@click.argument("problem")
@click.option("--url", default="http://127.0.0.1:8000", show_default=True, help="The running service.")
@click.option("--key", envvar="SUPERARM_KEY", show_envvar=True, help="A key with the scope read.")
def lift(problem: str, url: str, key: str | None) -> None:
    """Say what superarm gained against the control share of PROBLEM, and how many more decisions decide."""
    from superarm.service.client import connect, quote_name

    with contextlib.closing(connect(url, key, retry_for=5.0)) as service:
        told = service.problem(problem).lift()
        warnings = service.call("GET", f"/v1/problems/{quote_name(problem)}")["warnings"]
    click.echo(f"{told['verdict']}: {told['said']}")
    for warning in warnings:
        click.echo(f"warning: {warning}")


@click.command("import")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--problem", required=True, help="The problem that is to learn from it.")
@click.option("--only", default=None, metavar="NAME", help="The problem to take from SOURCE, if it has several.")
@click.option("--segments", is_flag=True, help="The column group names segments of the context, as exports do.")
@click.option("--url", default="http://127.0.0.1:8000", show_default=True, help="The running service.")
@click.option("--key", envvar="SUPERARM_KEY", show_envvar=True, help="A key with the scopes read and feedback.")
def import_(source: Path, problem: str, only: str | None, segments: bool, url: str, key: str | None) -> None:
    """Give past outcomes in SOURCE, .parquet, .csv or .jsonl with columns arm, item and click, to a running service.

    They are added up first, and given as sums. Importing the same file again changes nothing.
    """
    from superarm.service.client import connect
    from superarm.service.learn import read_past

    with contextlib.closing(connect(url, key, retry_for=5.0)) as service:
        remote = service.problem(problem)
        rows = read_past(source, remote.items, only, segments)
        remote.add_sums(rows, source.stem)
    n = sum({tuple(row[:2]): row[3] for row in rows}.values())
    click.echo(f"{n} pulls given to {problem}")


@click.command()
@DB
@click.argument("target", type=click.Path(path_type=Path))
def backup(db: str, target: Path) -> None:
    """Copy a SQLite log to TARGET, consistently, while it is served."""
    with open_for_reading(db) as store:
        if target.exists():
            raise SuperarmError(f"{target} exists; give a new name")
        store.backup(target)
    click.echo(f"copied to {target}; check it with: superarm verify --db {target}")


@click.group()
def keys() -> None:
    """Create, list and revoke keys, which have a tenant and scopes."""


_SCOPES: Any = {"multiple": True, "default": ("decide", "feedback", "read"), "show_default": True}
_SCOPES["type"] = click.Choice(["decide", "feedback", "read", "admin", "metrics"])


@keys.command("create")
@DB
@click.option("--tenant", default="default", show_default=True, help="Whose problems and decisions it reaches.")
@click.option("--scope", "scopes", help="What it may do; may be repeated.", **_SCOPES)
@click.option("--note", default="", help="A note for people, shown by list.")
def create_key(db: str, tenant: str, scopes: tuple[str, ...], note: str) -> None:
    """Create a key and show it, once."""
    from superarm.service.http.service import make_key
    from superarm.service.server import open_store

    if "://" not in db and not Path(db).exists():
        click.echo(f"{Path(db).resolve()} did not exist: this is a new database", err=True)
    with contextlib.closing(open_store(db, serving=False)) as store:
        key, row = make_key(tenant, scopes, note)
        store.put_key(row)
    click.echo(key)


@keys.command("new")
def new_key() -> None:
    """Show a new key without storing it, for --admin-key of superarm serve."""
    from superarm.service.http.service import make_key

    click.echo(make_key("default", ("admin",))[0])


@keys.command("list")
@DB
def list_keys(db: str) -> None:
    """Show all keys, without their secrets."""
    with open_for_reading(db) as store:
        for row in store.key_rows():
            state = "revoked" if row.revoked else "valid"
            click.echo(f"{row.id}  {state:8}{row.tenant:20}  {row.scopes}  {row.note}")


@keys.command("revoke")
@DB
@click.argument("id")
def revoke_key(db: str, id: str) -> None:
    """Make a key invalid, within a second, by the id that superarm keys list shows."""
    import time

    with open_for_reading(db) as store:
        row = next((row for row in store.key_rows() if row.id == id), None)
        if row is None:
            raise SuperarmError(f"no key {id!r}; see superarm keys list")
        store.put_key(row._replace(revoked=int(time.time() * 1000)))
    click.echo(f"revoked {id}")


PREFIX = "SUPERARM_SERVE"
"""The names of the environment begin with it. ``SUPERARM_PORT`` would not do: Kubernetes sets it for a service that is
called superarm, to the address of that service."""

LISTENING = ("host", "port", "access_log", "forwarded_allow_ips", "ssl_certfile", "ssl_keyfile", "ssl_keyfile_password")
"""Settings that are options of uvicorn."""

_FILE: Any = {"type": click.Path(exists=True, dir_okay=False)}


def _whole(least: int, default: int) -> Any:
    return {"type": click.IntRange(min=least), "default": default}


SETTINGS: tuple[tuple[str, str, Any], ...] = (
    ("db", LOG, _DB),
    ("host", "Address to listen on; others need keys.", {"default": "127.0.0.1"}),
    ("port", "Port to listen on.", {"type": click.IntRange(0, 65535), "default": 8000}),
    ("root-path", "The path under which a proxy publishes the service, such as /bandits.", {"default": ""}),
    ("forwarded-allow-ips", "Addresses of proxies whose X-Forwarded-For is believed.", {"default": "127.0.0.1"}),
    ("ssl-certfile", "Serve HTTPS with this certificate (PEM, with its chain).", _FILE),
    ("ssl-keyfile", "The private key of the certificate, if it is not in the same file.", _FILE),
    ("ssl-keyfile-password", "The password of the private key; better given by the environment.", {}),
    ("access-log", "Write a line to the log for every request.", {"is_flag": True}),
    ("admin-key", "A key with the scopes admin and metrics that is created if it is not known; see keys new.", {}),
    ("rate", "Requests per second and key; no limit by default.", {"type": click.FloatRange(min=0.1)}),
    ("max-problems", "Problems that a tenant may have.", _whole(1, 1_000)),
    ("max-body", "The largest request body, in bytes.", _whole(1024, 8 * 1024 * 1024)),
    ("max-connections", "Connections at the same time; further ones are answered with 503.", _whole(1, 10_000)),
    ("snapshot-every", "Events between two snapshots; fewer make a start after a crash quicker.", _whole(1, 50_000)),
    ("import", MODULES, _MODULES),
)


def read_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Take the settings of a TOML file as defaults; a name that there is not is an error."""
    if path is None:
        return
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise click.BadParameter(f"{path} is not TOML: {error}") from None
    known = {name: more for name, _, more in SETTINGS}
    for name, value in given.items():
        if name not in known:
            raise click.BadParameter(f"{path}: there is no setting {name!r}; there are {', '.join(sorted(known))}")
        if isinstance(value, dict) or (isinstance(value, list) and not known[name].get("multiple")):
            raise click.BadParameter(f"{path}: {name} is a table or a list; give one value")
    context.default_map = {name.replace("-", "_"): value for name, value in given.items()}


def _with_settings(command: Any) -> Any:
    """A command that takes all settings."""
    for name, words, more in reversed(SETTINGS):
        command = click.option(f"--{name}", help=words, show_envvar=True, **more)(command)
    return command


_CONFIG: Any = {"type": click.Path(exists=True, dir_okay=False, path_type=Path), "callback": read_file}
_CONFIG |= {"envvar": "SUPERARM_CONFIG", "show_envvar": True, "is_eager": True, "expose_value": False}


@click.command(context_settings={"auto_envvar_prefix": PREFIX, "show_default": True})
@click.option("--config", help="A TOML file with settings, by the names of the flags.", **_CONFIG)
@_with_settings
@click.option("--demo", is_flag=True, help="Simulated readers of a magazine; in a temporary file unless --db is given.")
@click.pass_context
def serve(context: click.Context, /, demo: bool, **given: Any) -> None:
    """Serve decisions over HTTP. Nothing that was acknowledged is lost.

    Every option can be given by the environment and in a TOML file (--config), too; flags go before the environment,
    and the environment before the file.
    """
    if demo and (given["host"] not in ("127.0.0.1", "localhost") or given["ssl_certfile"] or not given["port"]):
        raise click.UsageError("--demo: simulated visitors come by plain HTTP to 127.0.0.1 and a port that you choose")
    from superarm.service.http.service import ServiceLimits, check_root_path
    from superarm.service.server import serve as run

    db, admin_key, imports = (given.pop(name) for name in ("db", "admin_key", "import"))
    listening = {name: given.pop(name) for name in LISTENING} | {"limit_concurrency": given.pop("max_connections")}
    given["root_path"] = check_root_path(given["root_path"])
    limits = ServiceLimits(compiled=not demo, **given)  # a demo need not wait until kernels are compiled
    with contextlib.ExitStack() as stack:
        if demo:
            db = stack.enter_context(_demo(context, db, listening["port"]))
        run(db, listening, limits, imports, admin_key)


@contextlib.contextmanager
def _demo(context: click.Context, db: str, port: int) -> Iterator[str]:
    """Visitors of the service, and the database that it uses: a temporary one if none was given."""
    from superarm.service.demo import visit_in_background

    given = context.get_parameter_source("db") is not click.core.ParameterSource.DEFAULT
    url = f"http://127.0.0.1:{port}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # as an exception, so that the directory goes away
    with tempfile.TemporaryDirectory(prefix="superarm-demo-") as directory:
        click.echo(f"The console is at {url}/; Ctrl-C ends the demo.", err=True)
        with visit_in_background(url, seed=0):
            yield db if given else str(Path(directory) / "demo.db")


COMMANDS = [serve, learn, lift, verify, doctor, export, import_, backup, compact, keys, mcp]
