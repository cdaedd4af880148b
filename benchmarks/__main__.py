"""Everything that is measured about speed, one after the other, and the rounds' ratios as a figure: ``make bench``.

Half an hour on two idle cores. Each part can be run by itself: ``python -m benchmarks.rounds`` and so on.
"""

import runpy
import sys

PARTS = (
    "rounds",
    "rounds --others",
    "rounds --recommended",
    "sparse",
    "scale",
    "peers",
    "top_k",
    "threads",
    "startup",
    "lanes",
    "grid",
    "influence",
    "context",
    "context_peers",
    "scaling",
)


def main() -> None:
    for part in PARTS:
        print(f"\n== {part}", flush=True)
        name, *arguments = part.split()
        sys.argv = [name, *arguments]
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
