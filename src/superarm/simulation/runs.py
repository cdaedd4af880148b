"""One run: one policy on one instance in one replication.

A run is played in strides, so that a progress bar can move and Ctrl-C can stop it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.policies import Policy
from superarm.simulation.contextual import advance_run, begin_run
from superarm.simulation.engine import RunState
from superarm.simulation.instances import Instance

_STRIDE_SECONDS = 0.2
"""Seconds of computing between two updates of the progress bar; Ctrl-C takes effect at the same points."""


@dataclass(frozen=True)
class Run:
    """The result of one run.

    ``earned`` is the expected reward up to each checkpoint, ``pulls`` (n_arms,) the pulls at the end, ``batches``
    (n_batch_rounds, k) the batch of each round for which it was asked, padded with -1, and ``seconds`` processor time.
    ``done`` tells whether the run reached its last checkpoint.
    """

    earned: Floats
    pulls: Floats
    batches: Ints
    seconds: float
    done: bool


def compile_run(instance: Instance, policy: Policy) -> None:
    """Compile the loop for this instance and policy, or load it from the disk cache, by playing one round."""
    run = begin_run(instance, policy, np.random.SeedSequence(0))
    advance_run(instance, policy, run, np.array([0, 1]), np.zeros(1))


def play(
    instance: Instance,
    policy: Policy,
    seed: np.random.SeedSequence,
    checkpoint_rounds: Ints,
    stop: threading.Event,
    report: Callable[[int], None],
    batch_rounds: Ints | None = None,
) -> Run:
    """Play to the last of ``checkpoint_rounds``, whose first is 0; ``report`` is called with the rounds of each stride.

    ``batch_rounds`` are increasing rounds whose batch is recorded. Where strides end has no effect on the results.
    """
    started = time.thread_time()
    run = begin_run(instance, policy, seed)
    batch_rounds = np.zeros(0, np.int64) if batch_rounds is None else batch_rounds
    batches = np.full((len(batch_rounds), instance.problem.k), -1, np.int64)
    stride_ends = np.unique(np.concatenate([batch_rounds - 1, batch_rounds, checkpoint_rounds[-1:]]))
    earned, at, stride = np.zeros(len(checkpoint_rounds) - 1), 0, 1
    while at < checkpoint_rounds[-1] and not stop.is_set():
        until = min(at + stride, int(stride_ends[np.searchsorted(stride_ends, at, side="right")]))
        spent = _play_stride(instance, policy, run, checkpoint_rounds, at, until, earned)
        if until in batch_rounds:
            batch = np.sort(run.last[run.last >= 0])
            batches[np.searchsorted(batch_rounds, until), : len(batch)] = batch
        report(until - at)
        stride = max(1, min(4 * stride, int((until - at) * _STRIDE_SECONDS / max(spent, 1e-9))))
        at = until
    pulls = run.tally.pulls.reshape(-1, instance.problem.n_arms).sum(axis=0)  # over all segments
    return Run(earned, pulls, batches, time.thread_time() - started, bool(at == checkpoint_rounds[-1]))


def _play_stride(
    instance: Instance, policy: Policy, run: RunState, checkpoint_rounds: Ints, at: int, until: int, earned: Floats
) -> float:
    """Play rounds ``at + 1`` to ``until``, write ``earned`` at the checkpoints among them; return the seconds spent.

    Wall-clock time is measured, since reading the processor time can cost as much as a hundred rounds.
    """
    first, last = (int(n) for n in np.searchsorted(checkpoint_rounds, [at, until], side="right"))
    passed = checkpoint_rounds[first:last]
    bounds = np.unique(np.concatenate([[at], passed, [until]]))
    gained = np.zeros(len(bounds) - 1)
    started = time.perf_counter()
    advance_run(instance, policy, run, bounds, gained)
    spent = time.perf_counter() - started
    earned[first - 1 : last - 1] = gained[: len(passed)]
    return spent
