"""``superarm serve``: its settings from flags, the environment and a file. Heavy imports are inside of the function."""

import contextlib
import signal
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

PREFIX = "SUPERARM_SERVE"
"""The names of the environment begin with it. ``SUPERARM_PORT`` would not do: Kubernetes sets it for a service that is
called superarm, to the address of that service."""

LISTENING = ("host", "port", "access_log", "forwarded_allow_ips", "ssl_certfile", "ssl_keyfile", "ssl_keyfile_password")
"""Settings that are options of uvicorn."""

_FILE: Any = {"type": click.Path(exists=True, dir_okay=False)}


def _whole(least: int, default: int) -> Any:
    return {"type": click.IntRange(min=least), "default": default}


SETTINGS: tuple[tuple[str, str, Any], ...] = (
    ("db", "A SQLite file, or postgresql://user@host/database.", {"default": "superarm.db", "envvar": "SUPERARM_DB"}),
    ("host", "Address to listen on; others need keys.", {"default": "127.0.0.1"}),
    ("port", "Port to listen on.", {"type": click.IntRange(0, 65535), "default": 8000}),
    ("root-path", "The path under which a proxy publishes the service, such as /bandits.", {"default": ""}),
    (
        "forwarded-allow-ips",
        "Proxies whose X-Forwarded-For is believed: addresses, by commas.",
        {"default": "127.0.0.1"},
    ),
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
    (
        "import",
        "A module (for experiments also a .py file) with components of your own; may be given several times.",
        {"multiple": True, "metavar": "MODULE"},
    ),
)


def read_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Take the settings of a TOML file as defaults; a name that there is not is an error."""
    if path is None:
        return
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
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
@click.option(
    "--demo", is_flag=True, help="Simulated readers of a magazine; in a temporary file, unless --db is given."
)
@click.pass_context
def serve(context: click.Context, /, demo: bool, **given: Any) -> None:
    """Serve decisions over HTTP. Nothing that was acknowledged is lost.

    Every option can be given by the environment and in a TOML file (--config), too; flags go before the environment,
    and the environment before the file.
    """
    if demo:
        _check_demo(given)
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


def _check_demo(given: dict[str, Any]) -> None:
    """Refuse what simulated visitors cannot reach."""
    if given["host"] not in ("127.0.0.1", "localhost") or given["ssl_certfile"] or not given["port"]:
        raise click.UsageError("--demo: simulated visitors come by plain HTTP to 127.0.0.1 and a port that you choose")


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
