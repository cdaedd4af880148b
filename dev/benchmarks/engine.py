"""The speed of the library beside an earlier commit and a C++ loop: ``make bench``.

Every row is a program that runs in a new process, by turns with the program of the earlier commit, whose tree comes out
of the repository's history. Times are processor time; a row prints the median over turns, the ratio to each contestant
and the target. ``python -m dev.benchmarks.engine [TEXT …]`` prints the rows whose label contains one of the texts,
``--without`` leaves the earlier commit out. Measure on an idle machine.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
EARLIER = "94bab84"
"""The last commit whose kernels were compiled for every composition of components."""
TURNS = 3


class Row(NamedTuple):
    """A measurement: programs that print seconds (or µs, ms) as their last line, ours and that of ``EARLIER``."""

    label: str
    unit: str
    new: str
    before: str = ""
    native: str = ""
    target: str = ""
    cold: bool = False


NEW = """
import time
import numpy as np
import superarm as sa
policies, actions = sa.policies, sa.actions
change = sa.Problem.changed
"""
OLD = """
import time
import numpy as np
import superarm as sa
policies, actions = sa, sa
change = sa.Problem._replace
"""

FIRST_ASK = """
agent = sa.Agent(sa.Problem(4, 3, sa.Coverage(), sa.Subsets(2)), sa.kl_ucb())
decision = agent.ask()
agent.tell(decision, np.ones((2, 3)))
print(time.process_time())
"""
FIRST_RUNS = """
instance = sa.instances.random_coverage(n_arms=40, n_items=20, k=5, high=0.15)
groups = actions.PartitionMatroid(np.repeat(np.arange(5), 8), np.ones(5, int))
matroid = sa.Instance(change(instance.problem, actions=groups), instance.environment)
laps = [0.0]
for world, name in ((instance, {first!r}), (instance, "cucb"), (matroid, {first!r})):
    sa.simulate(world, {{name: getattr(sa, name)()}}, 100, 1, progress=False)
    laps.append(time.process_time())
print(np.diff(laps)[{lap}])
"""
README = """
names = ("uniform", "cucb", "kl_ucb", "directional_kl_moss")
instance = sa.instances.random_coverage(30, 10, 3, high=0.3)
sa.simulate(instance, {n: getattr(sa, n)() for n in names}, 10_000, 10, progress=False)
print(time.process_time())
"""
SIMULATION = """
n_arms, n_items, k = {size}
p = np.random.default_rng(0).uniform(0.0, 0.2, (n_arms, n_items))
problem = sa.Problem(n_arms, n_items, sa.Coverage(), sa.Subsets(k))
world, policy = sa.Instance(problem, sa.environments.Bernoulli(p)), {policy}
for _ in range(2):
    run = dict(replications={replications}, threads=1, progress=False, target="oracle")
    results = sa.simulate(world, {{"it": policy}}, {horizon}, **run)
print(results.seconds["it"] * 1e6 / {horizon} / {replications})
"""
OWN_INDEX = """
class LogLog(sa.Index):
    def level(self, pulls, t, share):
        return 0.5 * np.log(np.log(t + 2.0) + 1.0) / pulls
    def score(self, mean, deviation, level, chance):
        return np.minimum(1.0, mean + np.sqrt(level))
"""
ASKING = """
n_arms, n_items, k = {size}
agent = sa.Agent(sa.Problem(n_arms, n_items, sa.Coverage(), sa.Subsets(k)), sa.bc_ucb(), seed=0)
outcome = np.zeros((k, n_items))
def play(n):
    started = time.process_time()
    for _ in range(n):
        agent.tell(agent.ask(), outcome)
    return (time.process_time() - started) * 1e6 / n
play(2_000)
print(play(4_000))
"""
STATE = """
n_arms, n_items, k, t, pulls = {size}
p = np.random.default_rng(0).uniform(0.0, 0.2, (n_arms, n_items))
total = np.random.default_rng(1).binomial(pulls, p).astype(float)
problem = sa.Problem(n_arms, n_items, sa.Coverage(), sa.Subsets(k))
"""
LATE = """
from superarm.core import streams
from superarm.simulation.engine import Run
from superarm.simulation.replicate import seeds
from superarm.simulation.runs import chunk_size
world, R = sa.Instance(problem, sa.environments.Bernoulli(p)), 20
keys, size, runs = streams.run_keys(seeds(2, R)), chunk_size(world, R, 1), []
for first in range(0, R, size):
    own = streams.RunKeys(*(np.ascontiguousarray(key[first : first + size]) for key in keys))
    run = Run(problem, world.environment, policy, own)
    run.t, run.tally.pulls[:] = t, float(pulls)
    run.tally.total[:] = run.tally.square[:] = problem.support.to_entries(total)
    run.tally.refresh()
    runs.append(run)
def play(n):
    started = time.process_time()
    for run in runs:
        run.advance(run.t + n)
    return (time.process_time() - started) * 1e6 / n / R
play({rounds})
print(np.median([play({rounds}) for _ in range(5)]))
"""
LATE_OLD = """
from benchmarks.rounds import State, superarm_timer
state = State(problem, sa.environments.Bernoulli(p), t, np.full(n_arms, float(pulls)), total.reshape(-1))
timer = superarm_timer(state, policy.fit(problem))
timer(20 * {rounds})
print(np.median([timer(20 * {rounds}) * 1e6 / (20 * {rounds}) for _ in range(5)]))
"""
LATE_NATIVE = """
from dev.benchmarks import native
counts, sums = np.full(n_arms, float(pulls)), total.reshape(-1).copy()
def play(n):
    started = time.process_time()
    native.run("bernstein", "coverage", k, p, problem.weights, counts, sums, t, n, 3.0)
    return (time.process_time() - started) * 1e6 / n
play({rounds})
print(np.median([play(20 * {rounds}) for _ in range(5)]))
"""
SPARSE = """
from scipy.sparse import csr_array
N, M, E, K, rng = 100_000, 1_000_000, 20, 20, np.random.default_rng(0)
if {kind!r} == "uniform":
    items = rng.integers(0, M, (N, E))
else:  # popular items have most arms
    ends = np.cumsum(1.0 / np.arange(1, M + 1))
    drawn = np.searchsorted(ends, rng.random((N, 4 * E)) * ends[-1])
    items = np.array([list(dict.fromkeys(row))[:E] for row in drawn.tolist()])
p = csr_array((np.ones(items.size), items.reshape(-1), np.arange(N + 1) * E), (N, M))
p.sum_duplicates()
p.data = rng.uniform(0.0, 0.2, p.nnz)
pulls, t = {pulls}, {pulls} * N // K
total = np.random.default_rng(1).binomial(pulls, p.data).astype(float)
problem = sa.Problem(N, M, sa.Coverage(), sa.Subsets(K), support=p)
"""
SPARSE_NEW = """
from superarm.core import streams
from superarm.simulation.engine import Run
from superarm.simulation.replicate import seeds
run = Run(problem, sa.environments.Bernoulli(p), policy, streams.run_keys(seeds(2, 1)))
run.t, run.tally.pulls[:] = t, float(pulls)
run.tally.total[:] = run.tally.square[:] = total
run.tally.refresh()
def play(n):
    started = time.process_time()
    run.advance(run.t + n)
    return (time.process_time() - started) * 1e3 / n
"""
SPARSE_OLD = """
from benchmarks.sparse import Player
from benchmarks.states import State
state = State(problem, sa.environments.Bernoulli(p.data), t, np.full(N, float(pulls)), total)
play = Player(state, policy.fit(problem)).play
"""
SPARSE_END = """
play(20)  # makes all bounds
print(np.median([play(60) for _ in range(3)]))
"""

SIZES = {
    "(20,10,3)": ((20, 10, 3, 20_000, 3_000), 500, 1.0),
    "(100,50,10)": ((100, 50, 10, 20_000, 2_000), 50, 0.91),
    "(1000,100,20)": ((1000, 100, 20, 40_000, 800), 5, 0.67),
}


def rows() -> list[Row]:
    """All rows of the table."""
    found = [Row("first ask + tell, 4 x 3", "s", NEW + FIRST_ASK, OLD + FIRST_ASK, target="0.5 s", cold=True)]
    for first, target in (("bc_ucb", "4.5 s"), ("kl_ucb", "6.5 s")):
        code = FIRST_RUNS.format(first=first, lap=0)
        found.append(Row(f"first simulate, {first}", "s", NEW + code, OLD + code, target=target, cold=True))
    for lap, label in ((1, "a further policy"), (2, "another action set")):
        code = FIRST_RUNS.format(first="kl_ucb", lap=lap)
        found.append(Row(label, "s", NEW + code, OLD + code, target="0.1 s", cold=True))
    found.append(Row("README's comparison, first run", "s", NEW + README, OLD + README, target="9 s", cold=True))
    for label, (size, n, target) in SIZES.items():
        begin = STATE.format(size=size) + "policy = sa.bc_ucb()\n"
        codes = [text.format(rounds=n) for text in (LATE, LATE_OLD, LATE_NATIVE)]
        programs = [head + begin + code for head, code in zip((NEW, OLD, NEW), codes, strict=True)]
        found.append(Row(f"rounds {label} BC-UCB", "µs", *programs, target=f"{target} of C++"))
    for name in ("kl_ucb", "cts", "directional_kl_moss"):
        code = STATE.format(size=SIZES["(100,50,10)"][0]) + f"policy = sa.{name}()\n"
        programs = [NEW + code + LATE.format(rounds=20), OLD + code + LATE_OLD.format(rounds=20)]
        found.append(Row(f"rounds (100,50,10) {name}", "µs", *programs, target="3 times the earlier"))
    for kind, pulls, name in (("uniform", 60, "bc_ucb"), ("uniform", 600, "bc_ucb"), ("zipf", 600, "bc_ucb")):
        code = SPARSE.format(kind=kind, pulls=pulls) + f"policy = sa.{name}()\n"
        programs = [NEW + code + SPARSE_NEW + SPARSE_END, OLD + code + SPARSE_OLD + SPARSE_END]
        found.append(Row(f"sparse {kind}, {pulls} pulls, {name}", "ms", *programs, target="3 times the earlier"))
    for size, target in (((4, 3, 2), "60 µs"), ((100, 50, 10), "80 µs")):
        code = ASKING.format(size=size)
        found.append(Row(f"Agent ask + tell {size}", "µs", NEW + code, OLD + code, target=target))
    own = {"size": (20, 10, 3), "policy": "sa.IndexPolicy(LogLog())", "replications": 50, "horizon": 1_000}
    found.append(
        Row("a user's index (20,10,3), R = 50", "µs", NEW + OWN_INDEX + SIMULATION.format(**own), target="3 µs")
    )
    return found


def tree(commit: str) -> Path:
    """The files of a commit, in a temporary directory."""
    home = Path(tempfile.gettempdir()) / f"superarm-{commit}"
    if not home.exists():
        home.mkdir()
        archive = subprocess.run(
            ["git", "archive", commit, "src", "benchmarks"], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x"], cwd=home, check=True, input=archive.stdout)
    return home


def measure(code: str, home: Path, cache: str) -> float:
    """What a program prints, run in a new process on the tree ``home``."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own = {"PYTHONPATH": f"{home / 'src'}{os.pathsep}{home}", "NUMBA_CACHE_DIR": cache, "XDG_CACHE_HOME": cache}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=kept | own,
        cwd=home,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.splitlines()[-1])


def take_turns(row: Row, before: bool) -> dict[str, list[float]]:
    """The times of all contestants of a row."""
    programs = {"new": (row.new, ROOT), "C++": (row.native, ROOT)}
    if before:
        programs["earlier"] = (row.before, tree(EARLIER))
    taken: dict[str, list[float]] = {name: [] for name, (code, _) in programs.items() if code}
    with tempfile.TemporaryDirectory() as warm:
        for turn in range(TURNS + 1):
            for name, times in taken.items():
                with tempfile.TemporaryDirectory() as empty:
                    seconds = measure(*programs[name], empty if row.cold else f"{warm}/{name}")
                if turn:  # the first one makes bytecode and, unless the row is cold, machine code
                    times.append(seconds)
    return taken


def main() -> None:
    texts = [text for text in sys.argv[1:] if not text.startswith("-")]
    for row in rows():
        if texts and not any(text in row.label for text in texts):
            continue
        taken = take_turns(row, "--without" not in sys.argv)
        ours = np.array(taken.pop("new"))
        cells = [f"{row.label:36s} {np.median(ours):8.3g} {row.unit:3s}"]
        for name, times in taken.items():
            cells.append(f"{np.median(ours / times):6.2f} of {name} ({np.median(times):.3g})")
        print("  ".join([*cells, f" target: {row.target}"]), flush=True)


if __name__ == "__main__":
    main()
