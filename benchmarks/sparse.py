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
from benchmarks.states import State, begin_run
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


class Player:
    """A policy that plays on from a state."""

    def __init__(self, begun: State, policy: Any) -> None:
        self._begun, self._policy, self._t = begun, policy, begun.t
        self.run = begin_run(begun, policy)

    def play(self, rounds: int) -> float:
        """Milliseconds a round."""
        started, ends = time.thread_time(), np.array([self._t, self._t + rounds])
        advance(self._begun.problem, self._begun.environment, self._policy, self.run, ends, np.zeros(1))
        self._t += rounds
        return (time.thread_time() - started) * 1e3 / rounds

    def looked_at(self) -> float:
        """Arms whose exact scores a round computes, on average over 20 rounds."""
        counts = []
        for _ in range(20):
            self.play(1)
            counts.append((self.run.memory.stamp == self.run.memory.calls[0]).sum())
        return float(np.mean(counts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="a turn")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    for kind in ("uniform", "zipf"):
        p = support(kind)
        for pulls in (60, 150, 600):
            begun = state(p, pulls)
            ours = Player(begun, sa.bc_ucb().fit(begun.problem))
            naive = Player(begun, sa.bc_ucb(oracle=sa.Greedy()).plain(begun.problem))
            ours.play(20)  # makes all bounds
            naive.play(1)
            turns = np.array([(ours.play(arguments.rounds), naive.play(1)) for _ in range(arguments.turns)])
            taken, plain = np.median(turns, axis=0)
            low, middle, high = np.percentile(turns[:, 1] / turns[:, 0], [25, 50, 75])
            print(
                f"{kind:8s} {pulls:4d} pulls  {taken:8.3f} ms  naive {plain:8.1f} ms  "
                f"{middle:6.0f}x [{low:.0f}-{high:.0f}]  {ours.looked_at():6.0f} arms looked at a round",
                flush=True,
            )


if __name__ == "__main__":
    main()
