"""``superarm serve``: its settings from flags, the environment and a file. Heavy imports are inside of the function."""

import contextlib
import re
import signal
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

PREFIX = "SUPERARM_SERVE_"
"""The names of the environment begin with it. ``SUPERARM_PORT`` would not do: Kubernetes sets it for a service that is
called superarm, to the address of that service."""

SECRET_SETTINGS = ("ssl-keyfile-password", "admin-key", "beacon-secret")

_SOURCES = {
    click.core.ParameterSource.COMMANDLINE: "flag",
    click.core.ParameterSource.ENVIRONMENT: "environment",
    click.core.ParameterSource.DEFAULT_MAP: "file",
}


def setting(flag: str, *names: str, **attributes: Any) -> Callable[[Any], Any]:
    """An option that can also be set by the environment, and by a TOML file under the name of its flag."""
    words = name_of_setting(flag).upper().replace("-", "_")
    return click.option(flag, *names, envvar=attributes.pop("envvar", PREFIX + words), show_envvar=True, **attributes)


def name_of_setting(flag: str) -> str:
    """The name in a TOML file.

    >>> name_of_setting("--max-body")
    'max-body'
    """
    return flag.removeprefix("--")


def read_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Take the settings of a TOML file as defaults; a name that there is not is an error."""
    if path is None:
        return
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path} is not TOML: {error}") from None
    known = {name: option for name, option in _options(context).items() if option is not parameter}
    for name, value in given.items():
        if name not in known:
            raise click.BadParameter(f"{path}: there is no setting {name!r}; there are {', '.join(sorted(known))}")
        if isinstance(value, dict) or (isinstance(value, list) and not known[name].multiple):
            raise click.BadParameter(f"{path}: {name} is a table or a list; give one value")
    context.default_map = {str(known[name].name): value for name, value in given.items()}


CONFIG = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="SUPERARM_CONFIG",
    show_envvar=True,
    is_eager=True,
    expose_value=False,
    callback=read_file,
    help="A TOML file with settings, by the names of the flags. Flags and the environment go before it.",
)


def describe_settings(context: click.Context) -> dict[str, dict[str, Any]]:
    """Every setting with its value, secrets left out, and where it comes from."""
    described = {}
    for name, option in _options(context).items():
        if option.name in context.params:
            source = context.get_parameter_source(str(option.name))
            value = context.params[option.name]
            shown = "***" if name in SECRET_SETTINGS and value else hide_password(value)
            described[name] = {"value": shown, "from": _SOURCES.get(source or _DEFAULT, "default")}
    return described


_DEFAULT = click.core.ParameterSource.DEFAULT


def hide_password(value: Any) -> Any:
    """The value; in an address of a database, without the password.

    >>> hide_password("postgresql://me:s3cret@db/shop?password=s3cret")
    'postgresql://me:***@db/shop?password=***'
    """
    if not isinstance(value, str) or "://" not in value:
        return value if value is None or isinstance(value, (str, int, float)) else list(value)
    value = re.sub(r"(://[^:/?@]*):.*@", r"\1:***@", value)
    return re.sub(r"(password=)[^&]*", r"\1***", value, flags=re.IGNORECASE)


def _options(context: click.Context) -> dict[str, click.Option]:
    """The options of the command, by their names in a file."""
    options = (option for option in context.command.params if isinstance(option, click.Option))
    return {name_of_setting(option.opts[0]): option for option in options}


DEMO_SEED = 0

FILE = click.Path(exists=True, dir_okay=False)


@click.command()
@CONFIG
@setting(
    "--db",
    envvar="SUPERARM_DB",
    default="superarm.db",
    show_default=True,
    help="A SQLite file, or postgresql://user@host/database.",
)
@setting("--create", is_flag=True, help="Create the directory of the SQLite file, too, if there is none.")
@setting("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need keys.")
@setting("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port to listen on.")
@setting("--root-path", default="", help="The path under which a proxy publishes the service, such as /bandits.")
@setting(
    "--forwarded-allow-ips",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESSES",
    help="Proxies whose X-Forwarded-For and -Proto are believed: addresses and networks, by commas; * for all.",
)
@setting("--ssl-certfile", type=FILE, help="Serve HTTPS with this certificate (PEM, with its chain).")
@setting("--ssl-keyfile", type=FILE, help="The private key of the certificate, if it is not in the same file.")
@setting("--ssl-keyfile-password", help="The password of the private key; better given by the environment.")
@setting("--access-log", is_flag=True, help="Write a line to the log for every request.")
@setting("--otel", is_flag=True, help="Trace requests by OpenTelemetry, to where the variables OTEL_… say.")
@setting(
    "--admin-key",
    help="A key with the scopes admin and metrics that is created if it is not known; see superarm keys new.",
)
@setting(
    "--rate",
    "per_second",
    type=click.FloatRange(min=0.1),
    default=None,
    help="Requests per second and key; no limit by default.",
)
@setting(
    "--max-problems",
    "problems",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Problems that a tenant may have.",
)
@setting(
    "--max-body",
    "body_bytes",
    type=click.IntRange(min=1024),
    default=8 * 1024 * 1024,
    show_default=True,
    help="The largest request body, in bytes.",
)
@setting(
    "--snapshot-every",
    type=click.IntRange(min=1),
    default=50_000,
    show_default=True,
    help="Events between two snapshots of the counters; fewer make a start after a crash quicker.",
)
@setting(
    "--public-console",
    default="",
    metavar="TENANT",
    help="Let anybody look at the console of this tenant, without a key: estimates and counts, no single decisions.",
)
@setting(
    "--beacon-secret",
    "beacon_secrets",
    multiple=True,
    metavar="SECRET",
    help="Let browsers send feedback with ids signed by this secret of 32 characters or more; the newest one first.",
)
@setting(
    "--beacon-origin",
    "beacon_origins",
    multiple=True,
    metavar="ORIGIN",
    help="The origin of pages that may send feedback, such as https://shop.example; may be given several times.",
)
@setting(
    "--beacon-seconds",
    type=click.IntRange(min=1),
    default=86_400,
    show_default=True,
    help="How long a signed id is valid.",
)
@setting(
    "--beacon-rate",
    type=click.FloatRange(min=0.1),
    default=20.0,
    show_default=True,
    help="Beacons per second and address.",
)
@setting(
    "--retain-days",
    type=click.FloatRange(min=0.0),
    default=None,
    metavar="DAYS",
    help="Compact the log every hour: decisions leave it that ended, and did not change for so long. SQLite only.",
)
@setting("--archive", default="", metavar="DIRECTORY", help="The directory that gets the decisions that leave the log.")
@setting("--discard", is_flag=True, help="With --retain-days: keep no archive of the decisions that leave the log.")
@setting("--compat", type=click.Choice(["personalizer"]), default=None, help="Also answer Personalizer's calls.")
@setting("--ignore-features", is_flag=True, help="With --compat: ignore features instead of refusing them.")
@setting(
    "--import",
    "imports",
    multiple=True,
    metavar="MODULE",
    help="A Python module that adds policies or rewards of your own; may be given several times.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Let simulated readers of a magazine ask and click; in a temporary file, unless --db is given.",
)
@click.pass_context
def serve(
    context: click.Context, /, compat: str | None, imports: tuple[str, ...], root_path: str, **given: Any
) -> None:
    """Serve decisions over HTTP. Nothing that was acknowledged is lost.

    Every option can be given by the environment and in a TOML file (--config), too; flags go before the environment,
    and the environment before the file.
    """
    if given["demo"]:
        _prepare_demo(given)
    from superarm.service.http.service import ServiceLimits, check_beacon, check_retention, check_root_path
    from superarm.service.server import Listening, check_file, prepare_store
    from superarm.service.server import serve as run

    db, admin_key, demo, discard = (given.pop(name) for name in ("db", "admin_key", "demo", "discard"))
    create = given.pop("create")
    listening = Listening(**{name: given.pop(name) for name in Listening._fields})
    root = check_root_path(root_path)
    limits = ServiceLimits(compat=compat or "", root_path=root, **given)
    check_beacon(limits)
    check_retention(limits, discard, db)
    with contextlib.ExitStack() as stack:
        if demo:
            db = context.params["db"] = stack.enter_context(_demo(context, db, listening))
        new = check_file(db, create) and not demo
        preparation = prepare_store(db, listening.host, admin_key)
        run(db, listening, limits, imports, describe_settings(context), preparation, new)


def _prepare_demo(given: dict[str, Any]) -> None:
    """Refuse what simulated visitors cannot reach."""
    if given["host"] not in ("127.0.0.1", "localhost") or given["ssl_certfile"] or not given["port"]:
        raise click.UsageError("--demo: simulated visitors come by plain HTTP to 127.0.0.1 and a port that you choose")


@contextlib.contextmanager
def _demo(context: click.Context, db: str, listening: Any) -> Iterator[str]:
    """Visitors of the service, and the database that it uses: a temporary one if none was given."""
    from superarm.service.demo import visit_in_background

    given = context.get_parameter_source("db") is not click.core.ParameterSource.DEFAULT
    url = f"http://127.0.0.1:{listening.port}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # as an exception, so that the directory goes away
    with tempfile.TemporaryDirectory(prefix="superarm-demo-") as directory:
        click.echo(f"The console is at {url}/; Ctrl-C ends the demo.", err=True)
        with visit_in_background(url, DEMO_SEED):
            yield db if given else str(Path(directory) / "demo.db")
