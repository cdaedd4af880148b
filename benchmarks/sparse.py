"""Rounds on 10⁵ arms × 10⁶ items with 20 entries an arm: carried bounds against a naive compiled round.

Items are drawn uniformly, or by Zipf's law, so that most arms share a few popular ones. Every arm has been played the
same number of times, so that BC-UCB is in its clipped phase (60), in between (150) or exploring (600). Besides times it
prints how many arms a round looks at, which no other job on the machine can change.
"""

import argparse
import time
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import superarm as sa
from benchmarks.states import State, game
from superarm.simulation.engine import advance

N_ARMS, N_ITEMS, ENTRIES, K = 100_000, 1_000_000, 20, 20


def support(kind: str, seed: int = 0) -> Any:
    """``ENTRIES`` distinct items an arm, as a sparse matrix of parameters."""
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        items = rng.integers(0, N_ITEMS, (N_ARMS, ENTRIES))
    else:
        ends = np.cumsum(1.0 / np.arange(1, N_ITEMS + 1))
        drawn = np.searchsorted(ends, rng.random((N_ARMS, 4 * ENTRIES)) * ends[-1])
        items = np.array([list(dict.fromkeys(row))[:ENTRIES] for row in drawn.tolist()])
    start = np.arange(N_ARMS + 1) * ENTRIES
    p = csr_array((np.ones(items.size), items.reshape(-1), start), (N_ARMS, N_ITEMS))
    p.sum_duplicates()
    p.data = rng.uniform(0.0, 0.2, p.nnz)
    return p


def state(p: Any, pulls: int) -> State:
    """Every arm played ``pulls`` times."""
    rng = np.random.default_rng(1)
    problem = sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K), support=p)
    total = rng.binomial(pulls, p.data).astype(float)
    environment = sa.environments.Bernoulli(p.data)
    return State(problem, environment, pulls * N_ARMS // K, np.full(N_ARMS, float(pulls)), total)


def measure(begun: State, policy: Any, rounds: int) -> tuple[float, float]:
    """Milliseconds a round, and arms looked at a round (all of them, where nothing is carried)."""
    run, t, looked = game(begun, policy), begun.t, []

    def play(n: int) -> float:
        nonlocal t
        started = time.thread_time()
        advance(begun.problem, begun.environment, policy, run, np.array([t, t + n]), np.zeros(1))
        t += n
        return time.thread_time() - started

    play(1 if rounds < 100 else 20)  # makes all bounds
    taken = play(rounds) / rounds
    while hasattr(run.memory, "stamp") and len(looked) < 20:
        play(1)
        looked.append(float((run.memory.stamp == run.memory.calls[0]).sum()))
    return taken * 1e3, float(np.mean(looked)) if looked else float(N_ARMS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--naive", type=int, default=3, help="rounds of the naive policy")
    arguments = parser.parse_args()
    for kind in ("uniform", "zipf"):
        p = support(kind)
        for pulls in (60, 150, 600):
            begun = state(p, pulls)
            ours, looked = measure(begun, sa.bc_ucb().fit(begun.problem), arguments.rounds)
            plain = sa.bc_ucb(oracle=sa.Greedy()).plain(begun.problem)
            naive, _ = measure(begun, plain, arguments.naive)
            print(
                f"{kind:8s} {pulls:4d} pulls  {ours:8.3f} ms  naive {naive:8.1f} ms  {naive / ours:8.1f}x"
                f"  {looked:8.0f} arms looked at a round",
                flush=True,
            )


if __name__ == "__main__":
    main()
