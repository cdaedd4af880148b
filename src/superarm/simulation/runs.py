"""Runs: some replications of one policy on one instance, played to the end in strides."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Floats, Ints
from superarm.core.ops import load
from superarm.policies import Policy
from superarm.simulation.engine import Run
from superarm.simulation.instances import Instance

CHUNK_BYTES = 1 << 20
"""Replications advance together while their statistics fit so many bytes: the cache of a core."""

FUSED_FROM = 30_000
"""From so many rounds of chunks on it pays to compile the kernel that plays many rounds in one call: compiling takes 2
seconds, once, and every round in Python 25 µs or more."""

_STRIDE_SECONDS = 0.2
"""Seconds of computing between two updates of the progress bar; Ctrl-C takes effect at the same points."""

ARRAYS = ("earned", "pulls", "batches", "seconds")
"""The arrays of ``Runs``, one row per replication."""


@dataclass(frozen=True)
class Runs:
    """R replications of one policy.

    ``earned`` (R, n) is the expected reward up to each checkpoint, ``pulls`` (R, n_arms) the pulls at the end,
    ``batches`` (R, m, k) the batches of the rounds for which they were asked, padded with -1, ``seconds`` (R,)
    processor time, in equal shares. ``done`` tells whether the last checkpoint was reached.
    """

    earned: Floats
    pulls: Floats
    batches: Ints
    seconds: Floats
    done: bool

    def __len__(self) -> int:
        return len(self.earned)

    def divide(self, n: int) -> "list[Runs]":
        """``n`` parts of equal size, one after the other."""
        split = {name: np.split(getattr(self, name), n) for name in ARRAYS}
        return [Runs(**{name: parts[at] for name, parts in split.items()}, done=self.done) for at in range(n)]


def chunk_size(instance: Instance, replications: int, threads: int) -> int:
    """How many replications advance together: as many as fit the cache, and a share for every thread."""
    entry_bytes = 8 * 5 * instance.problem.n_entries
    return max(1, min(-(-replications // threads), CHUNK_BYTES // entry_bytes))


def play(
    instance: Instance,
    policy: Policy[Any],
    seeds: Sequence[np.random.SeedSequence],
    rounds: Ints,
    stop: threading.Event,
    report: Callable[[int], None],
    fuse: bool = True,
    batch_rounds: Ints | None = None,
) -> Runs:
    """Play one replication for each of ``seeds``, to the last of ``rounds``, which increase.

    ``report`` is called with the rounds of each stride, over all replications. With ``fuse``, one kernel may play many
    rounds. Batches are recorded in ``batch_rounds``. Where strides end has no effect on the results.
    """
    load()
    started, n = time.thread_time(), len(seeds)
    run = Run(instance.problem, instance.environment, policy, streams.run_keys(list(seeds)), fuse)
    kept = np.zeros(0, np.int64) if batch_rounds is None else batch_rounds
    earned, batches = np.zeros((n, len(rounds))), np.full((n, len(kept), instance.problem.k), -1)
    stride = 1
    for until in np.union1d(rounds, kept).tolist():
        while run.t < until and not stop.is_set():
            before, clock = run.t, time.perf_counter()
            run.advance(min(until, run.t + stride))
            spent = max(time.perf_counter() - clock, 1e-9)
            report((run.t - before) * n)
            stride = max(1, min(4 * stride, int((run.t - before) * _STRIDE_SECONDS / spent)))
        earned[:, rounds == until] = run.earned[:, None]
        batches[:, kept == until, : run.last.shape[1]] = sort_batches(run.last)[:, None]
    pulls = run.tally.pulls.reshape(n, -1, instance.problem.n_arms).sum(1)  # over all segments
    seconds = np.full(n, (time.thread_time() - started) / n)
    return Runs(earned, pulls, batches, seconds, run.t == rounds[-1])


def sort_batches(action: Ints) -> Ints:
    """Batches (R, K) with their arms in increasing order, and the padding of -1 at the end.

    >>> sort_batches(np.array([[5, 2, -1]]))
    array([[ 2,  5, -1]])
    """
    last = np.iinfo(np.int64).max
    ordered = np.sort(np.where(action < 0, last, action), axis=1)
    return np.where(ordered == last, -1, ordered)


def join_runs(parts: Sequence[Runs]) -> Runs:
    """The replications of all parts, one after the other."""
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS}
    return Runs(**joined, done=all(part.done for part in parts))
