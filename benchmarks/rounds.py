"""Rounds a second of whole simulations: superarm against a fused C++ loop and literal NumPy, interleaved."""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import superarm as sa
from benchmarks import literal, native
from benchmarks.states import State, begin_run, jumped, parameters, played
from superarm.simulation.engine import advance, begin

SIZES = {
    "(20,10,3)": (20, 10, 3, 20_000),
    "(100,50,10)": (100, 50, 10, 20_000),
    "(1000,100,20)": (1000, 100, 20, 40_000),
}
CLIPPED = "(1000,100,20) clipped"
Timer = Callable[[int], float]


def superarm_timer(state: State, policy: Any, restart: bool = False) -> Timer:
    """Seconds of CPU time for n rounds of ``policy`` from ``state`` on; with ``restart``, from there every time."""
    run = begin_run(state, policy)
    at = [state.t]

    def timer(n: int) -> float:
        nonlocal run
        if restart:
            run, at[0] = begin_run(state, policy), state.t
            advance(state.problem, state.environment, policy, run, np.array([at[0], at[0] + 1]), np.zeros(1))
            at[0] += 1
        legs = np.array([at[0], at[0] + n])
        started = time.thread_time()
        advance(state.problem, state.environment, policy, run, legs, np.zeros(1))
        at[0] += n
        return time.thread_time() - started

    return timer


def native_timer(state: State, index: str = "bernstein", reward: str = "coverage", rho: float = 3.0) -> Timer:
    """The same for the C++ loop."""
    p = np.ascontiguousarray(state.environment.p)
    pulls, total, at = state.pulls.copy(), state.total.copy(), [state.t]

    def timer(n: int) -> float:
        started = time.thread_time()
        native.run(index, reward, state.problem.k, p, state.problem.weights, pulls, total, at[0], n, rho)
        at[0] += n
        return time.thread_time() - started

    return timer


def literal_timer(state: State) -> Timer:
    """The same for NumPy."""
    p = np.ascontiguousarray(state.environment.p)
    pulls, total, at = state.pulls.copy(), state.total.copy().reshape(p.shape), [state.t]

    def timer(n: int) -> float:
        started = time.thread_time()
        literal.run(state.problem.k, p, state.problem.weights, pulls, total, at[0], n)
        at[0] += n
        return time.thread_time() - started

    return timer


def _enough(timer: Timer, seconds: float) -> int:
    n = 1
    timer(n)
    while timer(n) < seconds / 4:
        n *= 2
    return 4 * n


def compare(timers: dict[str, Timer], seconds: float = 0.05, samples: int = 9, most: int = 10**9) -> dict[str, Any]:
    """Microseconds a round, (samples,) each: contestants take turns, with rounds enough for ``seconds`` a turn."""
    lengths = {name: min(most, _enough(timer, seconds)) for name, timer in timers.items()}
    taken: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(samples):
        for name, timer in timers.items():
            taken[name].append(timer(lengths[name]) / lengths[name] * 1e6)
    return {name: np.array(values) for name, values in taken.items()}


def row(label: str, taken: dict[str, Any]) -> str:
    """A line of the table: medians, and ratios to superarm with the middle half of their spread."""
    ours = taken["superarm"]
    cells = [f"{label:28s}", f"{np.median(ours):10.2f} µs"]
    for name, times in taken.items():
        if name != "superarm":
            low, middle, high = np.percentile(times / ours, [25, 50, 75])
            cells.append(f"{name} {np.median(times):9.1f} µs  {middle:7.2f}x [{low:.2f}-{high:.2f}]")
    return "  ".join(cells)


def contestants(state: State, restart: bool = False) -> dict[str, Timer]:
    """superarm's BC-UCB and those it is compared with."""
    timers = {"superarm": superarm_timer(state, sa.bc_ucb().fit(state.problem), restart)}
    if native.available():
        timers["C++"] = native_timer(state)
    return timers | {"NumPy": literal_timer(state)}


def dense(kind: str, only: str = "") -> None:
    """BC-UCB on coverage at three sizes, and in the clipped phase; rows whose label contains ``only``."""
    for label, (n_arms, n_items, k, t) in SIZES.items():
        problem = sa.Problem(n_arms, n_items, sa.Coverage(), sa.Subsets(k))
        p = parameters(kind, n_arms, n_items)
        if only in label:
            print(row(f"{label} {kind}", compare(contestants(played(problem, p, t)))), flush=True)
    if only in CLIPPED:
        print(row(f"{CLIPPED} {kind}", compare(contestants(played(problem, p, 1_500), True), most=500)), flush=True)


def others(only: str = "") -> None:
    """Other indices and rewards, each against a C++ loop of its own; rows whose label contains ``only``."""
    n_arms, n_items, k = 100, 50, 10
    p = parameters("iid", n_arms, n_items)
    cases = [
        ("hoeffding", "coverage", sa.cucb(), sa.Coverage(), 3.0),
        ("kl", "coverage", sa.kl_ucb(3.0, 0.0), sa.Coverage(), 3.0),
        ("beta", "coverage", sa.cts(), sa.Coverage(), 0.0),
        ("ziggurat", "coverage", sa.cts(), sa.Coverage(), 0.0),
        ("bernstein", "logistic", sa.bc_ucb(), sa.Logistic(), 3.0),
        ("bernstein", "linear", sa.bc_ucb(), sa.Linear(), 3.0),
    ]
    for index, reward, policy, worth, rho in cases:
        if only not in f"{index} {reward}":
            continue
        problem = sa.Problem(n_arms, n_items, worth, sa.Subsets(k))
        state = jumped(problem, p, 20_000, 2_000)
        ours = superarm_timer(state, policy.fit(problem))
        timers = {"superarm": ours, "C++": native_timer(state, index, reward, rho)}
        print(row(f"(100,50,10) {index} {reward}", compare(timers)), flush=True)


def own_timer(problem: sa.Problem, p: Any, policy: Any, t: int) -> Timer:
    """Seconds of CPU time for n rounds of ``policy`` after it has played ``t`` rounds by itself."""
    environment, fitted, at = sa.environments.Bernoulli(p), policy.fit(problem), [t]
    run = begin(problem, environment, fitted, np.random.SeedSequence(1))
    advance(problem, environment, fitted, run, np.array([0, t]), np.zeros(1))

    def timer(n: int) -> float:
        started = time.thread_time()
        advance(problem, environment, fitted, run, np.array([at[0], at[0] + n]), np.zeros(1))
        at[0] += n
        return time.thread_time() - started

    return timer


def recommended(only: str = "", t: int = 4_000) -> None:
    """Policies that the documentation recommends on (1000,100,20): how many rounds of BC-UCB one of theirs takes.

    ``only`` those whose name contains that.
    """
    n_arms, n_items, k, _ = SIZES["(1000,100,20)"]
    problem = sa.Problem(n_arms, n_items, sa.Coverage(), sa.Subsets(k))
    p = parameters("iid", n_arms, n_items)
    policies = {"KL-UCB": sa.kl_ucb(), "KL-MOSS": sa.kl_moss(), "directional KL-MOSS": sa.directional_kl_moss()}
    timers = {name: own_timer(problem, p, policy, t) for name, policy in policies.items() if only in name}
    taken = compare(timers | {"BC-UCB": own_timer(problem, p, sa.bc_ucb(), t)}, most=200)
    for name in timers:
        low, middle, high = np.percentile(taken[name] / taken["BC-UCB"], [25, 50, 75])
        print(
            f"(1000,100,20) {name:22s} {np.median(taken[name]):8.1f} µs  "
            f"BC-UCB {np.median(taken['BC-UCB']):8.1f} µs  {middle:5.2f} of its rounds [{low:.2f}-{high:.2f}]",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="iid", choices=["iid", "clustered", "strong"])
    parser.add_argument("--others", action="store_true", help="other indices and rewards instead")
    parser.add_argument("--recommended", action="store_true", help="KL-UCB, KL-MOSS and the directional policy instead")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose label contains this text")
    arguments = parser.parse_args()
    if arguments.recommended:
        recommended(arguments.only)
    elif arguments.others:
        others(arguments.only)
    else:
        dense(arguments.kind, arguments.only)


if __name__ == "__main__":
    main()
