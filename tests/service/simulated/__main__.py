"""Play seeds: ``python -m tests.service.simulated --seed 7`` prints all that happens, ``--seeds 1000`` plays many."""

import argparse
import sys
import time

from .trial import play


def main() -> None:
    """Play what the command line asks for; the status is 1 if a fault was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.service.simulated", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from --seed on")
    parser.add_argument("--operations", type=int, default=200)
    options = parser.parse_args()
    began, failed = time.process_time(), 0
    for seed in range(options.seed, options.seed + options.seeds):
        result = play(seed, options.operations)
        if options.seeds == 1:
            print("\n".join(result.log))
        for fault in result.faults:
            print(f"seed {seed}: {fault}", flush=True)
        failed += bool(result.faults)
    seconds = time.process_time() - began
    print(f"{options.seeds} seeds in {seconds:.0f} s, {failed} with faults; digest {result.digest[:16]}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
