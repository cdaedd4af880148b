"""What the hand-written vector instructions are worth: each against the best loop numba makes of Python."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import superarm as sa
from superarm._jit import kernel
from superarm._lanes import WIDTH, weighted_sums
from superarm.policies.fast.fixed_point import new_fixed_point, sum_numbers, write_numbers
from superarm.rewards import gain
from superarm.rewards.base import item_gain

N_ARMS, N_ITEMS, REPEATS = 1_024, 100, 200


@kernel
def _pass(z: Any, slopes: Any, start: Any, sums: Any, repeats: int) -> None:
    for _ in range(repeats):
        for tile in range(len(sums) // WIDTH):
            weighted_sums(z, tile * len(slopes) * WIDTH, slopes, start, tile * WIDTH, sums)


@kernel
def _fixed_pass(table: Any, slopes: Any, start: Any, sums: Any, top: Any, repeats: int) -> None:
    for _ in range(repeats):
        sum_numbers(table, slopes, start, sums, top)


@kernel
def _plain_pass(z: Any, slopes: Any, start: Any, sums: Any, repeats: int) -> None:
    for _ in range(repeats):
        for tile in range(len(sums) // WIDTH):
            first, at = tile * len(slopes) * WIDTH, tile * WIDTH
            for a in range(WIDTH):
                sums[at + a] = start[at + a]
            for i in range(len(slopes)):
                for a in range(WIDTH):
                    sums[at + a] += slopes[i] * z[first + i * WIDTH + a]


@kernel
def _gains(reward: Any, terms: Any, states: Any, q: Any, found: Any, repeats: int) -> None:
    for _ in range(repeats):
        for j in range(len(found)):
            found[j] = gain(reward, terms, states, q, j)


@kernel
def _plain_gains(reward: Any, terms: Any, states: Any, q: Any, found: Any, repeats: int) -> None:
    for _ in range(repeats):
        for j in range(len(found)):
            g = 0.0
            for i in range(len(states)):
                g += item_gain(reward, terms.weights[i], states[i], q[j * len(states) + i])
            found[j] = g


def _interleaved(ours: Callable[[], None], plain: Callable[[], None]) -> tuple[float, float]:
    """Median microseconds a pass over all arms of both, after one call to compile each."""
    taken: list[list[float]] = [[], []]
    for sample in range(10):
        for times, call in zip(taken, (ours, plain), strict=True):
            started = time.thread_time()
            call()
            if sample > 0:
                times.append((time.thread_time() - started) / REPEATS * 1e6)
    return float(np.median(taken[0])), float(np.median(taken[1]))


def main() -> None:
    rng = np.random.default_rng(0)
    z, slopes = rng.random(N_ARMS * N_ITEMS, np.float32), rng.random(N_ITEMS, np.float32)
    start, sums = np.zeros(N_ARMS, np.float32), np.zeros(N_ARMS, np.float32)
    pair = _interleaved(
        lambda: _pass(z, slopes, start, sums, REPEATS), lambda: _plain_pass(z, slopes, start, sums, REPEATS)
    )
    _tell("weighted_sums", *pair)
    table, top = new_fixed_point(N_ARMS, N_ITEMS), np.zeros(N_ARMS // WIDTH, np.float32)
    numbers, weights = z.astype(float), slopes.astype(float)
    for j in range(N_ARMS):
        write_numbers(table, j, numbers, j * N_ITEMS, N_ITEMS)
    pair = _interleaved(
        lambda: _fixed_pass(table, weights, start, sums, top, REPEATS), lambda: _pass(z, slopes, start, sums, REPEATS)
    )
    _tell("sum_numbers", *pair, "weighted_sums")
    q, states, found = rng.random(N_ARMS * N_ITEMS), rng.random(N_ITEMS), np.empty(N_ARMS)
    for reward in (sa.Coverage(), sa.Logistic()):
        problem = sa.Problem(N_ARMS, N_ITEMS, reward, sa.Subsets(5))
        parts = problem.reward, problem.terms, states, q, found, REPEATS
        pair = _interleaved(lambda p=parts: _gains(*p), lambda p=parts: _plain_gains(*p))  # type: ignore[misc]
        _tell(f"gain, {type(reward).__name__}", *pair)


def _tell(what: str, ours: float, plain: float, other: str = "plain loop") -> None:
    print(f"{what:16s} {N_ARMS} x {N_ITEMS}: {ours:7.1f} µs, {other} {plain:7.1f} µs, {plain / ours:.1f}x")


if __name__ == "__main__":
    main()
