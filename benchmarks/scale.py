"""How a round grows with the number of arms, and what a warm ``Agent.ask`` costs at 10⁵ arms."""

import time
from typing import Any

import numpy as np

import superarm as sa
from benchmarks import literal
from benchmarks.rounds import compare, native_timer, superarm_timer
from benchmarks.states import jumped, parameters
from superarm.core.tally import Tally

N_ITEMS, K = 100, 20


def problem(n_arms: int) -> sa.Problem:
    """Coverage with 100 items and batches of 20."""
    return sa.Problem(n_arms, N_ITEMS, sa.Coverage(), sa.Subsets(K))


def growth() -> None:
    """Microseconds a round in the clipped phase and in exploration, superarm and C++."""
    for phase, pulls in (("clipped", 30), ("exploration", 800)):
        for n_arms in (1_000, 10_000, 100_000):
            state = jumped(problem(n_arms), parameters("iid", n_arms, N_ITEMS), pulls * n_arms // K, pulls)
            ours = superarm_timer(state, sa.bc_ucb().fit(state.problem), restart=phase == "clipped")
            taken = compare({"superarm": ours}, seconds=0.02, samples=5, most=500)
            theirs = compare({"C++": native_timer(state)}, seconds=0.02, samples=3, most=20)
            medians = np.median(taken["superarm"]), np.median(theirs["C++"])
            print(f"{phase:12s} {n_arms:7d} arms  {medians[0]:10.1f} µs  C++ {medians[1]:12.1f} µs", flush=True)


def asking(n_arms: int = 100_000, pulls: int = 800, asks: int = 15) -> None:
    """A warm ask, told at once, against a greedy pass of NumPy over the same parameters."""
    task, p = problem(n_arms), parameters("iid", n_arms, N_ITEMS)
    state = jumped(task, p, pulls * n_arms // K, pulls)
    agent = sa.Agent(task, sa.bc_ucb(), tally=Tally(state.pulls, state.total, state.total.copy(), np.zeros(0)))
    agent.learner.asked = state.t
    rng, taken, plain = np.random.default_rng(0), [], []
    q: Any = np.minimum(1.0, p + 0.2)
    for _ in range(asks):
        started = time.thread_time()
        decision = agent.ask()
        taken.append(time.thread_time() - started)
        agent.tell(decision, (rng.random((K, N_ITEMS)) < p[decision.action]).astype(float))
        started = time.thread_time()
        literal.greedy(q, task.weights, agent.tally.pulls, K)
        plain.append(time.thread_time() - started)
    ours, theirs = np.median(taken[3:]), np.median(plain[3:])
    print(
        f"warm ask, {n_arms} arms: {ours * 1e3:.1f} ms; NumPy greedy alone {theirs * 1e3:.1f} ms; {theirs / ours:.1f}x"
    )


if __name__ == "__main__":
    growth()
    asking()
