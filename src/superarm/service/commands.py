"""The commands of the service. Heavy imports are inside of the functions, so that ``--help`` answers at once."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from superarm.core.errors import SuperarmError
from superarm.service.mcp import mcp
from superarm.service.serve_command import serve

_DB: Any = {"envvar": "SUPERARM_DB", "default": "superarm.db", "show_default": True, "show_envvar": True}
DB = click.option("--db", help="A SQLite file, or postgresql://user@host/database.", **_DB)


def _import(context: click.Context, parameter: click.Parameter, modules: tuple[str, ...]) -> None:
    if modules:
        from superarm.service.server import import_components

        import_components(modules)


_MODULES: Any = {"multiple": True, "metavar": "MODULE", "callback": _import, "expose_value": False}
_MODULES["help"] = "A module (for experiments also a .py file) with components of your own; may be given several times."
IMPORT = click.option("--import", **_MODULES)


@contextlib.contextmanager
def open_for_reading(db: str) -> Iterator[Any]:
    """The store of a command that may run beside a service."""
    from superarm.service.server import open_store

    if "://" not in db and not Path(db).exists():
        raise SuperarmError(f"--db {db}: there is no such file")
    with contextlib.closing(open_store(db, serving=False)) as store:
        yield store


@click.command()
@DB
@click.option(
    "--older-than", type=click.FloatRange(0.0), default=30.0, show_default=True, help="In days without a change."
)
@IMPORT
def compact(db: str, older_than: float) -> None:
    """Remove old and erased decisions from the log; no service may run. Export them before, if you want to keep them.

    The log then begins with a snapshot that was verified; counters, settings and pending decisions stay as they are.
    """
    import time

    from superarm.service.storage.compaction import compact as run

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
def reshard(db: str) -> None:
    """Give every problem of a PostgreSQL log that earlier versions wrote a log of its own; no service may run.

    No event is changed or lost.
    """
    if "://" not in db:
        raise SuperarmError("--db: only logs in PostgreSQL were written by several workers")
    with open_for_reading(db) as store:
        click.echo(f"{store.reshard()} events moved to logs of their problems")


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


@click.command("import")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--problem", required=True, help="The problem that is to learn from it.")
@click.option("--only", default=None, metavar="NAME", help="The problem to take from SOURCE, if it has several.")
@click.option("--url", default="http://127.0.0.1:8000", show_default=True, help="The running service.")
@click.option("--key", envvar="SUPERARM_KEY", show_envvar=True, help="A key with the scopes read and feedback.")
def import_(source: Path, problem: str, only: str | None, url: str, key: str | None) -> None:
    """Give past outcomes in SOURCE, .parquet, .csv or .jsonl with columns arm, item and click, to a running service.

    Importing the same file again changes nothing.
    """
    from superarm.service.client import connect
    from superarm.service.storage.tables import read_pulls

    with contextlib.closing(connect(url, key, retry_for=5.0)) as service:
        n = service.problem(problem).warm_start(read_pulls(source, only), source.stem)
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
    from superarm.service.http.auth import make_key
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
    from superarm.service.http.auth import make_key

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


COMMANDS = [serve, verify, reshard, export, import_, backup, compact, keys, mcp]
