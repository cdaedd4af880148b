"""``simulate``: every policy in every replication; replications advance together, as parts of whole arrays."""

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Ints, count, without_fraction
from superarm.core.errors import InvalidArgument
from superarm.policies import Policy
from superarm.simulation.instances import Instance
from superarm.simulation.progress import progress_bar
from superarm.simulation.regret import Choice, Target, regret
from superarm.simulation.regret import target as regret_target
from superarm.simulation.results import Results
from superarm.simulation.runs import FUSED_FROM, Runs, chunk_size, join_runs, play

KEPT_ROUNDS = 2_000_000
"""After so many rounds of all policies some replications are finished: what Ctrl-C loses at most."""

FEW_REPLICATIONS = 5
"""No fewer replications advance together only for the sake of Ctrl-C: rounds of few replications take longer."""

BUSY_FROM = 20_000
"""From so many entries of a chunk on most of a round is spent in kernels, and threads do not wait for one another."""


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
    horizon = count(without_fraction(horizon), "horizon", 1)
    replications = count(without_fraction(replications), "replications", 1)
    at = _check(instance, policies, horizon, rounds)
    fuse = horizon * -(-replications // chunk_size(instance, replications, 1)) >= FUSED_FROM
    given = default_threads(instance, policies, replications, fuse) if threads is None else threads
    threads = count(given, "threads", 1)
    children, stop = seeds(seed, replications), threading.Event()
    targets: dict[str, Target] = {}
    with progress_bar(len(policies) * replications * horizon, progress) as shown:
        for name, policy in policies.items():
            shown.say(f"preparing {name}")
            targets[name] = regret_target(instance, policy, target, horizon)
        shown.say("")
        most = max(FEW_REPLICATIONS, KEPT_ROUNDS // (horizon * len(policies)))
        size = min(most, chunk_size(instance, replications, threads))
        parts = [(name, first) for first in range(0, replications, size) for name in policies]

        def play_part(part: tuple[str, int]) -> Runs:
            own = children[part[1] : part[1] + size]
            return play(instance, policies[part[0]], own, at, stop, shown.advance, fuse)

        found = _on_threads(play_part, parts, threads, stop)
    return _collect(found, at, targets, replications)


def default_threads(instance: Instance, policies: Mapping[str, Policy], replications: int, fuse: bool) -> int:
    """One thread per core if kernels do most of the work; they leave Python to others."""
    busy = chunk_size(instance, replications, 1) * instance.problem.n_entries >= BUSY_FROM
    one_call = all(policy.fused(instance.problem, instance.environment) is not None for policy in policies.values())
    return count_cores() if busy or (fuse and one_call) else 1


def count_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _on_threads(
    play_part: Callable[[tuple[str, int]], Runs], parts: list[tuple[str, int]], threads: int, stop: threading.Event
) -> dict[tuple[str, int], Runs]:
    """Play all parts; after Ctrl-C those that are done by then stay."""
    with ThreadPoolExecutor(threads) as pool:
        futures = {part: pool.submit(play_part, part) for part in parts}
        try:
            for future in futures.values():
                future.result()
        except BaseException as error:
            stop.set()
            for future in futures.values():
                future.cancel()
            if not isinstance(error, KeyboardInterrupt):
                raise
    ended = {part: future for part, future in futures.items() if not future.cancelled() and not future.exception()}
    return {part: future.result() for part, future in ended.items() if future.result().done}


def _collect(
    played: Mapping[tuple[str, int], Runs], at: Ints, targets: Mapping[str, Target], replications: int
) -> Results:
    """The results of the replications that every policy has finished; ``played`` is by policy and first replication."""
    firsts = dict.fromkeys(first for _, first in played)
    finished = [first for first in firsts if all((name, first) in played for name in targets)]
    if not finished:
        raise KeyboardInterrupt("no replication was finished by every policy")
    runs = {name: join_runs([played[name, first] for first in finished]) for name in targets}
    return Results(
        rounds=at,
        regret={name: np.array([regret(targets[name], at, row) for row in own.earned]) for name, own in runs.items()},
        pulls={name: own.pulls for name, own in runs.items()},
        targets=targets,
        seconds={name: float(own.seconds.sum()) for name, own in runs.items()},
        complete=len(next(iter(runs.values()))) == replications,
    )


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
