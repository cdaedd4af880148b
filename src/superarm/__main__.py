"""``python -m superarm``: the command line."""

from superarm.cli import main

if __name__ == "__main__":
    main(prog_name="superarm")
