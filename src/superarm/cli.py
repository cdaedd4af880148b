"""The command line. Heavy imports stand inside the commands, so that ``--help`` answers at once."""

import click

from superarm import __version__
from superarm.experiments.commands import bounds, compare, report, run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="superarm")
def main() -> None:
    """Combinatorial semi-bandits with nonlinear rewards."""


for command in (run, report, compare, bounds):
    main.add_command(command)
