"""How long a new process takes to its first result: with machine code on disk, and with an empty cache.

The cold rows are measured with the sources of this checkout and with those of an old commit, by turns, each in a new
process with an empty cache directory; the bytecode of all modules is there, as after an installation with pip.
Wall-clock time depends on what else the machine does, so processor time and the number of compiled functions are
printed as well.
"""

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
OLD = "946dbf8"
"""The commit that the cold start was first measured at."""

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
WARM = {
    "python itself": "",
    "import numba": "import numba",
    "import superarm": "import superarm",
    "superarm --help": "from superarm.cli import main; main(['--help'], standalone_mode=False)",
    "first ask": ASK,
    "first simulate": FIRST,
}

CLOCK = """
import json, time
began = {began}
import numpy as np
import superarm as sa
from numba.core import event

class Counter(event.Listener):
    n = 0
    def on_start(self, started): Counter.n += 1
    def on_end(self, ended): pass

event.register("numba:compile", Counter())
laps = []
def lap():
    laps.append([time.time(), time.process_time(), Counter.n])
"""
FIRST_AGENT = """
problem = sa.Problem(n_arms=100, n_items=50, reward=sa.Coverage(), actions=sa.Subsets(10))
sa.Agent(problem, sa.kl_ucb(), seed=0).ask()
lap()
"""
SIMULATE = """
subsets = sa.instances.random_coverage(n_arms=40, n_items=20, k=5, high=0.15)
groups = sa.PartitionMatroid(np.repeat(np.arange(5), 8), np.ones(5, int))
matroid = sa.Instance(subsets.problem._replace(actions=groups), subsets.environment)
policies = {"KL-UCB": sa.kl_ucb(), "BC-UCB": sa.bc_ucb(), "CUCB": sa.cucb()}
for instance in subsets, matroid:
    for name, policy in policies.items():
        sa.simulate(instance, {name: policy}, horizon=100, replications=1, progress=False)
        lap()
"""
COLD = {
    "import to the first ask of an agent with 100 arms and 50 items": (FIRST_AGENT, [0]),
    "a new process to the first simulate of one policy": (SIMULATE, [0]),
    "every further policy on the same instance": (SIMULATE, [1, 2]),
    "the same policies on another action set": (SIMULATE, [3, 4, 5]),
}


def environment(**changes: str) -> dict[str, str]:
    """That of new processes: Python may keep what it makes of the sources, as it does unless told otherwise."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | changes


def seconds(code: str) -> tuple[float, float, float]:
    """Seconds until a process that runs ``code`` has done so, until it has ended, and of processor time."""
    spent, started = _children(), time.time()
    command = [sys.executable, "-c", f"{code}\nimport time; print(time.time())"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment())
    ended = time.time()
    return float(done.stdout.split()[-1]) - started, ended - started, _children() - spent


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def warm(times: int) -> None:
    """Print how long new processes take whose machine code is on disk."""
    for code in WARM.values():
        seconds(code)  # compiles, and fills caches
    taken = np.array([[seconds(code) for code in WARM.values()] for _ in range(times)])
    print(
        "seconds of a new process with a warm cache: to its result [least-most], until it has ended, of processor time"
    )
    for name, (result, end, processor) in zip(WARM, taken.transpose(1, 2, 0), strict=True):
        middle = [np.median(result), np.median(end), np.median(processor)]
        print(f"{name:16s} {middle[0]:.2f} [{result.min():.2f}-{result.max():.2f}] {middle[1]:.2f} {middle[2]:.2f}")


def laps(program: str, sources: Path) -> Any:
    """Wall-clock seconds, processor seconds and compiled functions of each lap of ``program``, (n_laps, 3)."""
    with tempfile.TemporaryDirectory() as cache:
        given = environment(PYTHONPATH=str(sources), NUMBA_CACHE_DIR=cache, NUMBA_DISABLE_JIT="0")
        code = CLOCK.format(began=time.time()) + program + "print(json.dumps([[began, 0.0, 0], *laps]))"
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=given)
    return np.diff(np.array(json.loads(done.stdout.splitlines()[-1])), axis=0)


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The sources of a commit, in a temporary worktree."""
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place) / "tree"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "-q", "--detach", tree, commit], check=True)
        try:
            yield tree / "src"
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)


def cold(old: str, turns: int) -> None:
    """Print how long new processes take that have to compile, now and with the sources of the commit ``old``."""
    with checkout(old) as before:
        trees = {old: before, "now": ROOT / "src"}
        seconds("import numba, superarm; superarm.Agent, numba.njit(lambda x: x)(1)")  # makes the bytecode of numba
        for sources in trees.values():
            compileall.compile_dir(sources, quiet=1)
        found: dict[tuple[str, str], list[Any]] = {}
        for _ in range(turns):
            for program in dict.fromkeys(program for program, _ in COLD.values()):
                for name, sources in trees.items():
                    found.setdefault((name, program), []).append(laps(program, sources))
    print(f"with an empty cache, {old} / now: seconds, of processor time, compiled functions; ratio of processor time")
    for row, (program, which) in COLD.items():
        was, now = (np.median([run[which].mean(axis=0) for run in found[name, program]], axis=0) for name in trees)
        print(
            f"{row:50s} {was[0]:5.1f} / {now[0]:4.1f} s  {was[1]:5.1f} / {now[1]:4.1f} s  "
            f"{was[2]:4.0f} / {now[2]:3.0f}  {was[1] / now[1]:4.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", default=OLD, help="the commit to compare with")
    parser.add_argument("--turns", type=int, default=1, help="how often each cold program runs")
    parser.add_argument("--warm-only", action="store_true", help="leave out the cold rows, which take minutes")
    parser.add_argument("--cold-only", action="store_true", help="leave out the warm rows")
    chosen = parser.parse_args()
    if not chosen.warm_only:
        cold(chosen.old, chosen.turns)
    if not chosen.cold_only:
        warm(times=7)


if __name__ == "__main__":
    main()
