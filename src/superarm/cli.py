"""The command line. Heavy imports stand inside the commands, so that ``--help`` answers at once."""

import click

from superarm import __version__
from superarm.experiments.commands import bounds, compare, report, run
from superarm.service.commands import COMMANDS


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="superarm")
def main() -> None:
    """Combinatorial semi-bandits with nonlinear rewards."""


for command in (run, report, compare, bounds, *COMMANDS):
    main.add_command(command)
