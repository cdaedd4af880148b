"""Settings of ``superarm serve``: from flags, then the environment, then a TOML file, then the defaults."""

import re
import tomllib
from collections.abc import Callable
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
