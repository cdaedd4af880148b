"""The speed table of the array engine: beside it, in the same run and by turns, the old engine and the C++ loop.

Processor time; medians over turns, in brackets the middle half of the ratios within a turn. ``python -m
benchmarks.engine [TEXT …]`` prints the rows whose label contains one of the texts. Cold rows are new processes with an
empty cache directory, whose bytecode is there, as after an installation with pip.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from timeit import timeit
from typing import Any

import numpy as np

import superarm as old
from benchmarks import native, rounds, sparse
from benchmarks.states import State, jumped, parameters, played
from superarm import catalog
from superarm.actions import Subsets
from superarm.core import streams
from superarm.core.ops import load
from superarm.core.problem import Problem
from superarm.environments import Bernoulli
from superarm.indices import Index
from superarm.oracles import Greedy
from superarm.policies import IndexPolicy
from superarm.rewards import Coverage, Logistic
from superarm.simulation.engine import Run
from superarm.simulation.instances import Instance
from superarm.simulation.runs import chunk_size
from superarm.simulation.simulate import seeds, simulate


class LogLog(Index):
    """An index that a user may write."""

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        return 0.5 * np.log(np.log(t + 2.0) + 1.0) / pulls

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return np.minimum(1.0, mean + np.sqrt(level))


PAIRS = {
    "BC-UCB": (catalog.bc_ucb(), old.bc_ucb()),
    "KL-UCB": (catalog.kl_ucb(), old.kl_ucb()),
    "CTS": (catalog.cts(), old.cts()),
    "directional": (catalog.directional_kl_moss(), old.directional_kl_moss()),
    "own": (IndexPolicy(LogLog()), old.cucb()),
    "UCB-V": (catalog.ucb_v(), old.ucb_v()),
}

NEW = """
import sys, time
import numpy as np
from superarm import catalog
from superarm.actions import PartitionMatroid, Subsets
from superarm.core.problem import Problem
from superarm.core.tally import Feedback
from superarm.rewards import Coverage
laps = [0.0]
"""
LAB = """
from superarm.simulation.instances import Instance, random_coverage
from superarm.simulation.simulate import simulate
change = Problem.changed
"""
OLD = """
import time
import numpy as np
import superarm as catalog
from superarm import Instance, PartitionMatroid, Problem, simulate
random_coverage, change, laps = catalog.instances.random_coverage, Problem._replace, [0.0]
"""
DECISION = """
problem, policy = Problem(4, 3, Coverage(), Subsets(2)), catalog.kl_ucb()
tally = policy.new_tally(problem, 1)
memory = policy.prepare(problem, tally)
for t in range(1, 9):
    batch = policy.choose(problem, problem.view(tally, t), memory)
    policy.learn(problem, tally, memory, Feedback(t, batch, np.ones((1, 2, 3))))
laps.append(time.process_time())
assert "numba" not in sys.modules
"""
FIRST = """
instance = random_coverage(n_arms=40, n_items=20, k=5, high=0.15)
groups = PartitionMatroid(np.repeat(np.arange(5), 8), np.ones(5, int))
matroid = Instance(change(instance.problem, actions=groups), instance.environment)
for world, name in ((instance, FIRST), (instance, "cucb"), (matroid, FIRST)):
    simulate(world, {name: getattr(catalog, name)()}, 100, 1, progress=False)
    laps.append(time.process_time())
"""
README = """
names = ("uniform", "cucb", "kl_ucb", "directional_kl_moss")
print(simulate(random_coverage(30, 10, 3, high=0.3), {n: getattr(catalog, n)() for n in names}, 10_000, 10))
laps.append(time.process_time())
"""


def laps(code: str) -> Any:
    """Seconds of processor time between the laps of a program in a new process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        given = kept | {"NUMBA_CACHE_DIR": cache, "XDG_CACHE_HOME": cache}
        done = subprocess.run(
            [sys.executable, "-c", code + "print(*laps)"], check=True, capture_output=True, text=True, env=given
        )
    return np.diff([float(word) for word in done.stdout.splitlines()[-1].split()])


def report(label: str, unit: str, taken: dict[str, Any], target: str = "") -> None:
    """Print a row: medians, and the ratio of every other time to that of the new engine."""
    ours = np.asarray(taken["new"])
    cells = [f"{label:44s} {np.median(ours):9.3g} {unit}"]
    for name, times in taken.items():
        if name != "new":
            low, middle, high = np.percentile(ours / times, [25, 50, 75])
            cells.append(f"{name} {np.median(times):8.3g}, new/{name} {middle:5.2f} [{low:.2f}-{high:.2f}]")
    print("  ".join([*cells, f"target {target}" if target else ""]), flush=True)


def cold(label: str, new: str, before: str | None, which: int, target: str, turns: int = 2) -> None:
    """A row of new processes; the lap ``which`` of both programs."""
    taken: dict[str, list[float]] = {"new": []} | ({"old": []} if before else {})
    laps(new)  # makes the bytecode
    for _ in range(turns):
        for name, program in zip(taken, (new, before), strict=False):
            taken[name].append(laps(str(program))[which])
    report(label, "s", {name: np.array(times) for name, times in taken.items()}, target)


def runs(state: State, policy: Any, replications: int, support: Any = None) -> Iterator[Run]:
    """The state as replications of the new engine, in chunks as ``simulate`` has them."""
    n_arms, n_items, k = state.problem.n_arms, state.problem.n_items, state.problem.k
    problem = Problem(n_arms, n_items, Coverage(), Subsets(k), support=support)
    instance = Instance(problem, Bernoulli(state.environment.p))
    size, keys = chunk_size(instance, replications, 1), streams.run_keys(seeds(2, replications))
    for first in range(0, replications, size):
        own = streams.RunKeys(*(np.ascontiguousarray(key[first : first + size]) for key in keys))
        run = Run(problem, instance.environment, policy, own)
        run.t, run.tally.pulls[:] = state.t, state.pulls
        run.tally.total[:] = run.tally.square[:] = problem.support.to_entries(state.total)
        run.tally.refresh()
        yield run


def timer(state: State, policy: Any, replications: int, support: Any = None) -> Callable[[int], float]:
    """Seconds of processor time of the new engine for n rounds on from ``state``, per replication."""
    begun = list(runs(state, policy, replications, support))

    def time_rounds(n: int) -> float:
        started = time.thread_time()
        for run in begun:
            run.advance(run.t + n)
        return (time.thread_time() - started) / replications

    return time_rounds


def late(label: str, size: str, name: str, target: str) -> None:
    """Rounds of 20 replications on from a late state; for BC-UCB beside the C++ loop."""
    n_arms, n_items, k, t = rounds.SIZES[size]
    problem, p = old.Problem(n_arms, n_items, old.Coverage(), old.Subsets(k)), parameters("iid", n_arms, n_items)
    state = played(problem, p, t) if name == "BC-UCB" else jumped(problem, p, t, 2_000)
    new, before = PAIRS[name]
    timers = {"new": timer(state, new, 20), "old": rounds.superarm_timer(state, before.fit(problem))}
    if name == "BC-UCB" and native.available():
        timers["C++"] = rounds.native_timer(state)
    report(label, "µs", rounds.compare(timers, seconds=0.005, samples=5, most=500), target)


def early(label: str, name: str, horizon: int, size: tuple[int, ...], replications: int, target: str) -> None:
    """The first rounds of whole simulations, in µs per round and replication."""
    n_arms, n_items, k = size
    p, (new, before), each = parameters("iid", n_arms, n_items), PAIRS[name], 1e6 / horizon / replications
    here = Instance(Problem(n_arms, n_items, Coverage(), Subsets(k)), Bernoulli(p))
    problem = old.Problem(n_arms, n_items, old.Coverage(), old.Subsets(k))
    there, run = (
        old.Instance(problem, old.environments.Bernoulli(p)),
        {"horizon": horizon, "replications": replications},
    )
    asked: dict[str, Any] = run | {"threads": 1, "progress": False, "target": "oracle"}
    taken: dict[str, list[float]] = {"new": [], "old": []}
    for turn in range(3):  # the first one compiles
        both = simulate(here, {name: new}, **asked), old.simulate(there, {name: before}, **asked)
        for engine, results in zip(taken, both, strict=True):
            taken[engine] += [results.seconds[name] * each] if turn else []
    report(label, "µs", {engine: np.array(times) for engine, times in taken.items()}, target)


def sparse_rounds(label: str, kind: str, pulls: int, name: str) -> None:
    """Rounds on 10⁵ arms and 10⁶ items, beside the old engine."""
    p = sparse.support(kind)
    begun, (new, before) = sparse.state(p, pulls), PAIRS[name]
    player, ours = sparse.Player(begun, before.fit(begun.problem)), timer(begun, new, 1, p)
    player.play(20), ours(5)  # makes all bounds
    turns = np.array([(ours(40) / 0.04, player.play(40)) for _ in range(3)])
    report(label, "ms", {"new": turns[:, 0], "old": turns[:, 1]}, "at most 3")


def logistic(label: str) -> None:
    """Greedy for ``Logistic`` at known parameters."""
    n_arms, n_items, k, _ = rounds.SIZES["(1000,100,20)"]
    p = parameters("iid", n_arms, n_items)
    problem = Problem(n_arms, n_items, Logistic(), Subsets(k))
    given, view = problem.entries(p), problem.view()
    before = old.Problem(n_arms, n_items, old.Logistic(), old.Subsets(k))

    ours, theirs = lambda: Greedy().maximize(problem, given, view), lambda: old.solve(before, p, old.Greedy())
    turns = 1e3 * np.array(
        [[timeit(work, timer=time.thread_time, number=1) for work in (ours, theirs)] for _ in range(8)]
    )
    report(label, "ms", {"new": turns[1:, 0], "old": turns[1:, 1]})


def table() -> dict[str, Callable[[str], None]]:
    """The rows by their labels."""
    (bc, bc_), (kl, kl_) = (
        [f"FIRST = {n!r}\n" + head + FIRST for head in (NEW + LAB, OLD)] for n in ("bc_ucb", "kl_ucb")
    )
    rows: dict[str, Callable[[str], None]] = {
        "cold: first decision, 4 x 3, without numba": lambda n: cold(n, NEW + DECISION, None, 0, "0.5 s"),
        "cold: first ask of an Agent": lambda n: print(f"{n:44s} (no Agent yet)"),
        "cold: first run, BC-UCB": lambda n: cold(n, bc, bc_, 0, "4.5 s"),
        "cold: first run, KL-UCB": lambda n: cold(n, kl, kl_, 0, "6.5 s"),
        "cold: a further policy": lambda n: cold(n, kl, None, 1, "0.1 s"),
        "cold: another action set": lambda n: cold(n, kl, None, 2, "0.1 s"),
        "cold: README's comparison, no figure": lambda n: cold(n, NEW + LAB + README, OLD + README, 0, "9 s"),
        "user's index in NumPy (20,10,3) R=50": lambda n: early(n, "own", 1_000, (20, 10, 3), 50, "3 µs (old: CUCB)"),
        "Python round (20,10,3) R=1": lambda n: early(n, "UCB-V", 4_000, (20, 10, 3), 1, "40 µs"),
        "greedy, Logistic (1000,100,20)": logistic,
    }
    for size, target in zip(rounds.SIZES, (1.0, 0.91, 0.67), strict=True):
        rows[f"late {size} BC-UCB"] = partial(late, size=size, name="BC-UCB", target=f"new/C++ at most {target}")
    for name in ("BC-UCB", "KL-UCB", "CTS", "directional"):
        given: dict[str, Any] = {"horizon": 600, "size": (100, 50, 10), "replications": 20, "target": "at most 3"}
        rows[f"early (100,50,10) {name}"] = partial(early, name=name, **given)
    for name in ("KL-UCB", "CTS"):
        rows[f"late (100,50,10) {name}"] = partial(late, size="(100,50,10)", name=name, target="at most 3")
    worlds = (("uniform", 60), ("uniform", 600), ("zipf", 600))
    for kind, pulls, name in [(*world, "BC-UCB") for world in worlds] + [("uniform", 60, "KL-UCB")]:
        rows[f"sparse {kind}, {pulls} pulls, {name}"] = partial(sparse_rounds, kind=kind, pulls=pulls, name=name)
    return rows


if __name__ == "__main__":
    load()
    for label, row in table().items():
        if len(sys.argv) == 1 or any(text in label for text in sys.argv[1:]):
            row(label)
