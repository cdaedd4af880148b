"""``python -m dev.earnings``."""

from dev.earnings.commands import main

main()
