"""The command line. Heavy imports stand inside the commands, so that ``--help`` answers at once."""

from pathlib import Path

import click

from superarm import __version__
from superarm.service.commands import COMMANDS


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="superarm")
def main() -> None:
    """Combinatorial semi-bandits with nonlinear rewards."""


@main.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, help="Where to write.")
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all randomness.")
@click.option("--threads", type=click.IntRange(min=1), default=None, help="Runs at once; all cores by default.")
def demo(out: Path, seed: int, threads: int | None) -> None:
    """Watch BC-UCB and its rivals learn coverage: a table and a figure, in under three minutes."""
    from superarm.demo import run

    run(out, seed, threads, click.echo)


for command in COMMANDS:
    main.add_command(command)
