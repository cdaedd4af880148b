"""How long a new process takes to its first result, when the composition was compiled by another one before."""

import os
import subprocess
import sys
import time

import numpy as np

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
CASES = {
    "python itself": "",
    "import numba": "import numba",
    "import superarm": "import superarm",
    "superarm --help": "from superarm.cli import main; main(['--help'], standalone_mode=False)",
    "first ask": ASK,
    "first simulate": FIRST,
}
TIMES = 7


def seconds(code: str) -> tuple[float, float]:
    """Seconds on the clock, and of processor time, of a process that runs ``code``."""
    # Python may keep what it makes of the sources, as it does unless told otherwise.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    spent, started = _children(), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - started, _children() - spent


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def main() -> None:
    for code in CASES.values():
        seconds(code)  # compiles, and fills caches
    taken = np.array([[seconds(code) for code in CASES.values()] for _ in range(TIMES)])
    for name, (clock, processor) in zip(CASES, taken.transpose(1, 2, 0), strict=True):
        spread = f"[{clock.min():.2f}-{clock.max():.2f}]"
        print(f"{name:16s} {np.median(clock):.2f} s {spread}, processor {np.median(processor):.2f} s", flush=True)


if __name__ == "__main__":
    main()
