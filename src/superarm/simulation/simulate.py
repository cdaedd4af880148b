"""``simulate``: every policy in every replication; replications advance together, as parts of whole arrays."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Floats, Ints, count
from superarm.core.errors import InvalidArgument
from superarm.core.ops import load
from superarm.policies import Policy
from superarm.simulation.engine import Run
from superarm.simulation.instances import Instance
from superarm.simulation.progress import progress_bar
from superarm.simulation.regret import Choice, Target, regret
from superarm.simulation.regret import target as regret_target
from superarm.simulation.results import Results

CHUNK_BYTES = 1 << 20
"""Replications advance together while their statistics fit so many bytes: the cache of a core."""

FUSED_FROM = 30_000
"""From so many rounds of chunks on it pays to compile the kernel that plays many rounds in one call: compiling takes 2
seconds, once, and every round in Python 25 µs or more."""

BUSY_FROM = 20_000
"""From so many entries of a chunk on most of a round is spent in kernels, and threads do not wait for one another."""

_STRIDE_SECONDS = 0.2
"""Seconds of computing between two updates of the progress bar; Ctrl-C takes effect at the same points."""


@dataclass
class _Part:
    """Some replications of one policy: what they earned up to each checkpoint, and how far they came."""

    name: str
    replications: slice
    earned: Floats
    pulls: Floats
    seconds: float = 0.0
    done: bool = False


def seeds(seed: Any, replications: int) -> list[np.random.SeedSequence]:
    """The seed of each replication; an ``Agent`` with that seed plays as the replication did.

    >>> [child.spawn_key for child in seeds(7, 2)]
    [(0,), (1,)]
    """
    root = streams.seed_sequence(seed)
    return [
        np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, n), pool_size=root.pool_size)
        for n in range(replications)
    ]


def checkpoints(horizon: int, n: int = 200) -> Ints:
    """At most ``n`` rounds from 1 to ``horizon``, evenly spaced on a log scale.

    >>> checkpoints(1000, 4).tolist()
    [1, 10, 100, 1000]
    """
    return np.unique(np.rint(np.geomspace(1, horizon, min(n, horizon))).astype(np.int64))


def simulate(
    instance: Instance,
    policies: Mapping[str, Policy],
    horizon: int,
    replications: int = 20,
    seed: streams.Seed = 0,
    target: Choice = "default",
    rounds: Any = None,
    threads: int | None = None,
    progress: bool = True,
) -> Results:
    """Play every policy on the instance, ``replications`` times, and measure its regret.

    Parameters
    ----------
    instance, policies
        The problem with its environment, and the policies by the names that tables and figures show.
    horizon, replications, seed
        Rounds per run, runs per policy, and the root of all randomness: an int, a ``SeedSequence``, a ``Generator``,
        from which the root is drawn, or None for another one each time. In one replication all policies see the same
        environment: an arm played in the same round has the same outcome.
    target
        What regret is measured against: ``optimal``, ``oracle`` (what the default oracle finds at the true parameters)
        or ``approximation`` (the paper's). By default ``optimal`` if the optimum is exact: if the default oracle is, or
        at most 20,000 batches have to be evaluated. Otherwise ``oracle``, against which regret can be negative.
    rounds
        The checkpoints at which regret is recorded: increasing rounds up to ``horizon``; by default 200 on a log scale.
    threads
        How many parts of the work to do at once. By default one per core where kernels do most of the work, and one
        on small problems, where threads would wait for one another. Results do not depend on it.
    progress
        Whether to show a progress bar on a terminal.

    Ctrl-C ends early and returns the replications that every policy has finished.

    Examples
    --------
    >>> from superarm.indices import KL
    >>> from superarm.policies import IndexPolicy
    >>> from superarm.simulation.instances import random_coverage
    >>> instance = random_coverage(n_arms=8, n_items=3, k=2)
    >>> results = simulate(instance, {"KL-UCB": IndexPolicy(KL())}, horizon=200, replications=3, progress=False)
    >>> results.regret["KL-UCB"].shape == (3, len(results.rounds))
    True
    """
    given: Any = instance
    if not isinstance(given, Instance):
        remedy = "give Instance(problem, environment), or one of superarm.instances"
        raise InvalidArgument("instance", f"{instance!r} is not an instance", remedy)
    horizon, replications = _whole(horizon, "horizon"), _whole(replications, "replications")
    at = _check(instance, policies, horizon, rounds)
    fuse = horizon * -(-replications // chunk_size(instance, replications, 1)) >= FUSED_FROM
    given = default_threads(instance, policies, replications, fuse) if threads is None else threads
    threads = count(given, "threads", 1)
    keys, stop = streams.run_keys(seeds(seed, replications)), threading.Event()
    targets: dict[str, Target] = {}
    with progress_bar(len(policies) * replications * horizon, progress) as shown:
        for name, policy in policies.items():
            shown.say(f"preparing {name}")
            targets[name] = regret_target(instance, policy, target, horizon)
        load()
        shown.say("")
        size = chunk_size(instance, replications, threads)
        parts = [
            _Part(name, slice(first, min(first + size, replications)), np.empty(0), np.empty(0))
            for first in range(0, replications, size)
            for name in policies
        ]

        def play(part: _Part) -> None:
            own = streams.RunKeys(*(np.ascontiguousarray(key[part.replications]) for key in keys))
            run = Run(instance.problem, instance.environment, policies[part.name], own, fuse)
            _play(run, part, at, stop, shown.advance)

        _on_threads(play, parts, threads, stop)
    return _collect(parts, at, targets, replications)


def chunk_size(instance: Instance, replications: int, threads: int) -> int:
    """How many replications advance together: as many as fit the cache, and a share for every thread."""
    entry_bytes = 8 * 5 * instance.problem.n_entries
    return max(1, min(-(-replications // threads), CHUNK_BYTES // entry_bytes))


def default_threads(instance: Instance, policies: Mapping[str, Policy], replications: int, fuse: bool) -> int:
    """One thread per core if kernels do most of the work; they leave Python to others."""
    busy = chunk_size(instance, replications, 1) * instance.problem.n_entries >= BUSY_FROM
    one_call = all(policy.fused(instance.problem, instance.environment) is not None for policy in policies.values())
    return os.cpu_count() or 1 if busy or (fuse and one_call) else 1


def _play(run: Run, part: _Part, at: Ints, stop: threading.Event, report: Callable[[int], None]) -> None:
    """Play to the last checkpoint in strides, so that a progress bar can move and Ctrl-C can stop it."""
    started, n = time.thread_time(), len(run.earned)
    part.earned, stride = np.zeros((n, len(at))), 1
    for column, until in enumerate(at.tolist()):
        while run.t < until and not stop.is_set():
            before, clock = run.t, time.perf_counter()
            run.advance(min(until, run.t + stride))
            spent = max(time.perf_counter() - clock, 1e-9)
            report((run.t - before) * n)
            stride = max(1, min(4 * stride, int((run.t - before) * _STRIDE_SECONDS / spent)))
        part.earned[:, column] = run.earned
    segments = run.tally.pulls.reshape(n, -1, run.problem.n_arms)
    part.pulls, part.seconds, part.done = segments.sum(1), time.thread_time() - started, run.t == at[-1]


def _on_threads(play: Callable[[_Part], None], parts: list[_Part], threads: int, stop: threading.Event) -> None:
    """Play all parts; after Ctrl-C those that are done by then stay."""
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(play, part) for part in parts]
        try:
            for future in futures:
                future.result()
        except BaseException as error:
            stop.set()
            for future in futures:
                future.cancel()
            if not isinstance(error, KeyboardInterrupt):
                raise


def _collect(parts: list[_Part], at: Ints, targets: Mapping[str, Target], replications: int) -> Results:
    done = {name: np.zeros(replications, bool) for name in targets}
    for part in parts:
        done[part.name][part.replications] = part.done
    finished = np.logical_and.reduce(list(done.values()))
    if not finished.any():
        raise KeyboardInterrupt("no replication was finished by every policy")
    kept: dict[str, list[_Part]] = {name: [] for name in targets}
    for part in parts:
        if finished[part.replications].all():
            kept[part.name].append(part)
    earned = {name: np.concatenate([part.earned for part in own]) for name, own in kept.items()}
    return Results(
        rounds=at,
        regret={name: np.array([regret(targets[name], at, row) for row in rows]) for name, rows in earned.items()},
        pulls={name: np.concatenate([part.pulls for part in own]) for name, own in kept.items()},
        targets=targets,  # type: ignore[arg-type]
        seconds={name: sum(part.seconds for part in own) for name, own in kept.items()},
        complete=bool(finished.all()),
    )


def _whole(value: Any, name: str) -> int:
    """A positive whole number; 1e4 is one."""
    return count(int(value) if isinstance(value, float) and value.is_integer() else value, name, 1)


def _check(instance: Instance, policies: Any, horizon: int, rounds: Any) -> Ints:
    """The checkpoints; refuse policies that are none or do not fit the problem."""
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidArgument("policies", "not a mapping of names to policies", 'give e.g. {"BC-UCB": bc_ucb()}')
    for name, policy in policies.items():
        if not isinstance(policy, Policy):
            remedy = "give e.g. bc_ucb(), with the parentheses"
            raise InvalidArgument("policies", f"{name!r}: {policy!r} is not a policy", remedy)
        policy.validate(instance.problem)
    at = checkpoints(horizon) if rounds is None else np.asarray(rounds, np.int64)
    right = at.ndim == 1 and at.size and at[0] >= 1 and at[-1] <= horizon and (np.diff(at) > 0).all()
    if not right:
        raise InvalidArgument("rounds", "not increasing rounds", f"give increasing numbers from 1 to {horizon}")
    return np.concatenate([at, [horizon][: int(at[-1] < horizon)]]).astype(np.int64)
