"""The command line. Heavy imports are inside the commands, so that ``--help`` answers at once."""

import io
import sys
from typing import Any

import click

from superarm import __version__
from superarm.core.errors import MissingExtra, SuperarmError
from superarm.experiments.commands import bounds, compare, report, reproduce, run
from superarm.offline.commands import evaluate
from superarm.service.commands import COMMANDS

USER_ERROR = 2
"""The exit code for errors that the user can correct; click uses it for wrong options, too."""


EXTRAS = {
    "lab": ("jinja2", "matplotlib", "pyarrow", "tqdm"),
    "cluster": ("dask", "distributed"),
    "data": ("networkx", "pooch"),
    "gym": ("gymnasium",),
    "service": ("prometheus_client", "starlette", "uvicorn"),
    "postgres": ("psycopg",),
    "mcp": ("mcp",),
    "warehouse": ("duckdb",),
}
"""The packages that each extra installs, as they are imported."""


class Refused(click.ClickException):
    """An error that the user can correct: ``Error:`` and one sentence on stderr."""

    exit_code = USER_ERROR


class Commands(click.Group):
    """All commands, with one convention for errors, so that no command handles them itself."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error that superarm raises on purpose, or a file that cannot be used, is one sentence."""
        replace_unknown_characters()
        try:
            return super().invoke(ctx)
        except SuperarmError as error:
            raise Refused(str(error)) from None
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            for extra, packages in EXTRAS.items():
                if package in packages:
                    raise Refused(str(MissingExtra(package, extra))) from None
            raise
        except OSError as error:
            if error.filename is None:
                raise
            raise Refused(f"{error.filename}: {error.strerror}") from None


def replace_unknown_characters() -> None:
    """Print a question mark for a character that the output's encoding lacks, as that of a pipe on Windows may."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 a check found a fault, 2 an error that you can correct, 130 interrupted.",
)
@click.version_option(__version__, prog_name="superarm")
def main() -> None:
    """Combinatorial semi-bandits with nonlinear rewards."""


for command in (run, reproduce, report, compare, bounds, evaluate, *COMMANDS):
    main.add_command(command)
