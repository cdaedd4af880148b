"""What a second thread is worth: replications in 1 and 2 threads, beside what the machine gives two C++ loops."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import superarm as sa
from benchmarks import native
from benchmarks.states import jumped, parameters

N_ARMS, N_ITEMS, K = 100, 50, 10
REPLICATIONS, HORIZON, ROUNDS = 8, 20_000, 40_000


def simulated(threads: int) -> float:
    """Wall seconds of eight replications."""
    instance = sa.Instance(
        sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K)),
        sa.environments.Bernoulli(parameters("iid", N_ARMS, N_ITEMS)),
    )
    started = time.perf_counter()
    sa.simulate(
        instance, {"BC-UCB": sa.bc_ucb()}, horizon=HORIZON, replications=REPLICATIONS, seed=0, threads=threads,
        target="oracle", progress=False,
    )  # fmt: skip
    return time.perf_counter() - started


def in_cpp(threads: int) -> float:
    """Wall seconds of eight C++ loops, which share nothing."""
    p = parameters("iid", N_ARMS, N_ITEMS)
    state = jumped(sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K)), p, 20_000, 2_000)
    states = [(state.pulls.copy(), state.total.copy()) for _ in range(REPLICATIONS)]
    weights = np.ones(N_ITEMS)
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(
            pool.map(
                lambda s: native.run("bernstein", "coverage", K, p, weights, s[0], s[1], state.t, ROUNDS // 4, 3.0),
                states,
            )
        )
    return time.perf_counter() - started


def _speedup(seconds: Callable[[int], float], samples: int = 5) -> tuple[float, float, float]:
    seconds(1)
    ratios = [seconds(1) / seconds(2) for _ in range(samples)]
    low, middle, high = np.percentile(ratios, [25, 50, 75])
    return float(middle), float(low), float(high)


def main() -> None:
    contestants = {"superarm": simulated} | ({"C++ (the machine's limit)": in_cpp} if native.available() else {})
    for name, seconds in contestants.items():
        middle, low, high = _speedup(seconds)
        print(f"2 threads / 1 thread, (100,50,10), {name}: {middle:.2f}x [{low:.2f}-{high:.2f}]", flush=True)


if __name__ == "__main__":
    main()
