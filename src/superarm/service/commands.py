"""The commands of the service. Heavy imports stand inside, so that ``--help`` answers at once."""

import click

_DB = click.option(
    "--db", default="superarm.db", show_default=True, help="A SQLite file, or postgresql://user@host/database."
)


@click.command()
@_DB
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need keys.")
@click.option("--port", default=8000, show_default=True, help="Port to listen on.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes (PostgreSQL).")
@click.option("--rate", type=click.FloatRange(min=0.1), default=None, help="Requests a second and key; no limit.")
@click.option("--max-body", type=click.IntRange(min=1024), default=8 * 1024 * 1024, show_default=True, help="Bytes.")
def serve(db: str, host: str, port: int, workers: int, rate: float | None, max_body: int) -> None:
    """Serve decisions over HTTP; nothing that was acknowledged is lost."""
    from superarm.errors import SuperarmError
    from superarm.service.app import Limits
    from superarm.service.serve import serve as run

    try:
        run(db, host, port, workers, Limits(body_bytes=max_body, per_second=rate))
    except SuperarmError as error:
        raise click.ClickException(str(error)) from None


COMMANDS = [serve]
