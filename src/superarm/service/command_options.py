"""Options that several commands of the service have, and how they open its database."""

import contextlib
from collections.abc import Iterator
from typing import Any

import click

DB = click.option(
    "--db",
    envvar="SUPERARM_DB",
    default="superarm.db",
    show_default=True,
    show_envvar=True,
    help="A SQLite file, or postgresql://user@host/database.",
)


IMPORT = click.option(
    "--import",
    "imports",
    multiple=True,
    metavar="MODULE",
    help="A Python module that adds policies or rewards of your own; may be given several times.",
)


@contextlib.contextmanager
def open_for_reading(db: str) -> Iterator[Any]:
    """The store of a command that may run beside a service."""
    from superarm.service.server import open_reader

    store = open_reader(db)
    try:
        yield store
    finally:
        store.close()
