"""Influence on 15,000 nodes and about 100,000 edges of heavy-tailed degree, ten seeds: oracle, world and rounds."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import superarm as sa
from superarm.data import weighted_by_degree
from superarm.diffusion import IMM, IndependentCascade, Spread
from superarm.oracles import solve

N_NODES, PAIRS, K = 15_000, 50_000, 10


def timed(what: str, call: Callable[[], Any]) -> Any:
    """Print the processor time of ``call``, and return its answer."""
    started = time.process_time()
    answer = call()
    print(f"{what:44s} {time.process_time() - started:6.2f} s", flush=True)
    return answer


def graph() -> Any:
    """Pairs of nodes, one drawn by a heavy-tailed popularity."""
    rng = np.random.default_rng(0)
    popular = rng.pareto(1.5, N_NODES) + 1.0
    ends = np.column_stack([rng.choice(N_NODES, PAIRS, p=popular / popular.sum()), rng.integers(0, N_NODES, PAIRS)])
    return weighted_by_degree([(int(a), int(b)) for a, b in ends])


def main() -> None:
    p = graph()
    n = p.shape[0]
    problem = sa.Problem(n, n, Spread(), sa.Subsets(K), support=p)
    print(f"{n} nodes, {p.nnz} edges")
    solve(problem, p, IMM(0.5))  # compiles
    for epsilon in (0.5, 0.3, 0.1):
        timed(
            f"IMM({epsilon}), at the true parameters",
            lambda e=epsilon: solve(problem, p, IMM(e)),
        )
    timed("IMM(0.5), while every edge is unknown", lambda: solve(problem, (p > 0) * 1.0, IMM(0.5)))
    IndependentCascade(p, samples=10)
    world = timed("the world: 50,000 sets", lambda: IndependentCascade(p))
    seeds = solve(problem, p, IMM(0.5))
    problem.value(p, seeds[:1])
    timed("value of ten seeds, 200 worlds", lambda: problem.value(p, seeds))
    instance, policy = sa.Instance(problem, world), {"BCUCB-T": sa.policies.bcucb_t(oracle=IMM(0.5))}
    for rounds in (1, 20):  # the first compiles
        timed(f"bcucb_t, {rounds} rounds", lambda r=rounds: sa.simulate(instance, policy, r, 1, progress=False))


if __name__ == "__main__":
    main()
