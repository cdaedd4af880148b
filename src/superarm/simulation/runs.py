"""One run: one policy on one instance in one replication, played in strides so that it can be watched and stopped."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.policies import Policy
from superarm.simulation.engine import RunState, advance, begin
from superarm.simulation.instances import Instance

_BREATH = 0.2
"""Seconds that a run computes before it looks up: for the progress bar, and for Ctrl-C."""


@dataclass(frozen=True)
class Run:
    """What one run leaves behind.

    ``earned`` is the expected reward up to each mark; ``pulls`` (n_arms,) are those at the end; ``batches`` holds
    the batch of each round that was looked at, (n_looks, k), filled up with -1; ``seconds`` is processor time.
    """

    earned: Floats
    pulls: Floats
    batches: Ints
    seconds: float
    done: bool


def warm(instance: Instance, policy: Policy) -> None:
    """Compile the composition, or load it from the disk, by playing one round."""
    game = begin(instance.problem, instance.environment, policy, np.random.SeedSequence(0))
    advance(instance.problem, instance.environment, policy, game, np.array([0, 1]), np.zeros(1))


def play(
    instance: Instance,
    policy: Policy,
    seed: np.random.SeedSequence,
    marks: Ints,
    stop: threading.Event,
    advanced: Callable[[int], None],
    looks: Ints | None = None,
) -> Run:
    """Play to ``marks[-1]``, where ``marks[0]`` is 0; tell ``advanced`` how many rounds each stride had.

    ``looks`` are increasing rounds whose batch is kept: a stride ends there, and changes no bit.
    """
    started = time.thread_time()
    game = begin(instance.problem, instance.environment, policy, seed)
    wanted = np.zeros(0, np.int64) if looks is None else looks
    batches = np.full((len(wanted), instance.problem.k), -1, np.int64)
    halts = np.unique(np.concatenate([wanted - 1, wanted, marks[-1:]]))
    earned, at, stride = np.zeros(len(marks) - 1), 0, 1
    while at < marks[-1] and not stop.is_set():
        until = min(at + stride, int(halts[np.searchsorted(halts, at, side="right")]))
        spent = _stride(instance, policy, game, marks, at, until, earned)
        if until in wanted:
            batch = np.sort(game.last[game.last >= 0])
            batches[np.searchsorted(wanted, until), : len(batch)] = batch
        advanced(until - at)
        stride = max(1, min(4 * stride, int((until - at) * _BREATH / max(spent, 1e-9))))
        at = until
    return Run(earned, game.tally.pulls, batches, time.thread_time() - started, bool(at == marks[-1]))


def _stride(
    instance: Instance, policy: Policy, game: RunState, marks: Ints, at: int, until: int, earned: Floats
) -> float:
    """Play rounds ``at + 1`` to ``until``; fill in ``earned`` at the marks among them; the seconds it took.

    The clock on the wall is read here, since asking for processor time can cost as much as a hundred rounds.
    """
    first, last = (int(n) for n in np.searchsorted(marks, [at, until], side="right"))
    passed = marks[first:last]
    legs = np.unique(np.concatenate([[at], passed, [until]]))
    gained = np.zeros(len(legs) - 1)
    started = time.perf_counter()
    advance(instance.problem, instance.environment, policy, game, legs, gained)
    spent = time.perf_counter() - started
    earned[first - 1 : last - 1] = gained[: len(passed)]
    return spent
