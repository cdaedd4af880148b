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


def seconds(code: str) -> tuple[float, float, float]:
    """Seconds until a process that runs ``code`` has done so, until it has ended, and of processor time."""
    # Python may keep what it makes of the sources, as it does unless told otherwise.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    spent, started = _children(), time.time()
    command = [sys.executable, "-c", f"{code}\nimport time; print(time.time())"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    ended = time.time()
    return float(done.stdout.split()[-1]) - started, ended - started, _children() - spent


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def main() -> None:
    for code in CASES.values():
        seconds(code)  # compiles, and fills caches
    taken = np.array([[seconds(code) for code in CASES.values()] for _ in range(TIMES)])
    print("seconds of a new process: to its result [least-most], until it has ended, of processor time")
    for name, (result, end, processor) in zip(CASES, taken.transpose(1, 2, 0), strict=True):
        middle = [np.median(result), np.median(end), np.median(processor)]
        print(f"{name:16s} {middle[0]:.2f} [{result.min():.2f}-{result.max():.2f}] {middle[1]:.2f} {middle[2]:.2f}")


if __name__ == "__main__":
    main()
