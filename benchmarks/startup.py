"""How long a new process takes to its first result, when the composition was compiled by another one before."""

import subprocess
import sys
import time

import numpy as np

EMPTY = "import superarm"
FIRST = """
import superarm as sa
instance = sa.instances.random_coverage(20, 10, 3, seed=0)
sa.simulate(instance, {"BC-UCB": sa.bc_ucb()}, horizon=100, replications=1, seed=0, target="oracle")
"""
ASK = """
import superarm as sa
agent = sa.Agent(sa.Problem(20, 10, sa.Coverage(), sa.Subsets(3)), sa.bc_ucb(), seed=0)
agent.ask()
"""
HELP = "from superarm.cli import main; main(['--help'], standalone_mode=False)"


def seconds(code: str) -> float:
    """Wall seconds of a process that runs ``code``."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    cases = {
        "python itself": "",
        "import superarm": EMPTY,
        "superarm --help": HELP,
        "first ask": ASK,
        "first simulate": FIRST,
    }
    for code in cases.values():
        seconds(code)  # compiles, and fills caches
    for name, code in cases.items():
        taken = [seconds(code) for _ in range(5)]
        print(f"{name:16s} {np.median(taken):.2f} s [{min(taken):.2f}-{max(taken):.2f}]", flush=True)


if __name__ == "__main__":
    main()
