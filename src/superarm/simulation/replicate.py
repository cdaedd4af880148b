"""``simulate``: every policy in every replication; replications advance together, as parts of whole arrays."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Floats, Ints, count, without_fraction
from superarm.core.errors import InvalidArgument
from superarm.policies import Policy
from superarm.policies.base import require_outcomes
from superarm.simulation.instances import Instance, InstanceFamily
from superarm.simulation.lanes import are_alike, side_by_side
from superarm.simulation.progress import progress_bar
from superarm.simulation.regret import Choice, Target, average, choose_reference, default_kind, regret
from superarm.simulation.regret import target as regret_target
from superarm.simulation.results import Results
from superarm.simulation.runs import FUSED_FROM, Runs, chunk_size, join_runs, play

KEPT_ROUNDS = 2_000_000
"""After so many rounds of all policies some replications are finished: what Ctrl-C loses at most."""

FEW_REPLICATIONS = 5
"""No fewer replications advance together only for the sake of Ctrl-C: rounds of few replications take longer."""

BUSY_FROM = 20_000
"""From so many entries of a chunk on most of a round is spent in kernels, and threads do not wait for one another."""


Part = tuple[str, int, int]
"""The name of a policy, the first of its replications that advance together, and how many they are."""


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
    instance: Instance | InstanceFamily,
    policies: Mapping[str, Policy[Any]],
    horizon: int,
    replications: int | None = None,
    seed: streams.Seed = 0,
    target: Choice = "default",
    rounds: Any = None,
    threads: int | None = None,
    progress: bool = True,
) -> Results:
    """Play every policy on the instance, or on every instance of a family, and measure its regret.

    Parameters
    ----------
    instance, policies
        The problem with its environment, or ``instances.family(…)``, and the policies by the names that tables and
        figures show.
    horizon, replications, seed
        Rounds per run, runs per policy and instance (20; 1 for a family), and the root of all randomness: an int, a
        ``SeedSequence``, a ``Generator``,
        from which the root is drawn, or None for another one each time. In one replication all policies see the same
        environment: an arm played in the same round has the same outcome.
    target
        What regret is measured against: ``optimal``, ``oracle`` (what the default oracle finds at the true parameters)
        or ``approximation`` (the paper's: the share of the optimum that the policies' oracle guarantees). Where a
        bounded search does not find the optimum, the best batch found takes its place, and ``print(results)`` says how
        much larger the optimum can be. By default ``optimal`` if the optimum is exact: if the default oracle is, or
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
    if not isinstance(given, Instance | InstanceFamily):
        remedy = "give Instance(problem, environment), or one of superarm.instances"
        raise InvalidArgument("instance", f"{instance!r} is not an instance", remedy)
    draws = list(instance) if isinstance(instance, InstanceFamily) else [instance]
    horizon = count(without_fraction(horizon), "horizon", 1)
    each = 20 if isinstance(instance, Instance) else 1
    each = each if replications is None else count(without_fraction(replications), "replications", 1)
    at = _check(draws, policies, horizon, rounds)
    beside = each * len(draws) if are_alike(draws) else each  # so many replications may advance together
    blocks = -(-each * len(draws) // beside)
    fuse = horizon * blocks * -(-beside // chunk_size(draws[0], beside, 1)) >= FUSED_FROM
    given = default_threads(draws[0], policies, beside, fuse) if threads is None else threads
    threads = count(given, "threads", 1)
    children, stop = seeds(seed, each * len(draws)), threading.Event()
    with progress_bar(len(policies) * len(children) * horizon, progress) as shown:
        shown.say("preparing")
        targets = _targets(draws, policies, target, horizon)
        shown.say("")
        most = max(FEW_REPLICATIONS, KEPT_ROUNDS // (horizon * len(policies)))
        size = min(most, chunk_size(draws[0], beside, threads))
        parts = [
            (name, block * beside + first, min(size, beside - first))
            for block in range(blocks)
            for first in range(0, beside, size)
            for name in policies
        ]

        def play_part(part: Part) -> Runs:
            name, first, n = part
            rows = np.arange(first, first + n) // each
            numbers, sizes = np.unique(rows, return_counts=True)
            lanes = side_by_side([draws[draw] for draw in numbers], sizes.tolist())
            return play(lanes, policies[name], children[first : first + n], at, stop, shown.advance, fuse)

        found = _on_threads(play_part, parts, threads, stop)
    return _collect(found, at, targets, each if isinstance(instance, InstanceFamily) else 0, len(children))


def _targets(
    draws: Sequence[Instance], policies: Mapping[str, Policy[Any]], choice: Choice, horizon: int
) -> dict[str, list[Target]]:
    """What the regret of each policy is measured against, on every instance of a family the same kind of target."""
    kind = default_kind(draws[0], horizon) if choice == "default" else choice
    one = next(iter(policies.values()))
    if kind == "approximation":
        one = choose_reference(draws[0].problem, policies)
    targets = [regret_target(instance, one, kind, horizon) for instance in draws]
    return dict.fromkeys(policies, targets)


def default_threads(instance: Instance, policies: Mapping[str, Policy[Any]], replications: int, fuse: bool) -> int:
    """One thread per core if kernels do most of the work; they leave Python to others."""
    busy = chunk_size(instance, replications, 1) * instance.problem.n_entries >= BUSY_FROM
    one_call = all(policy.fused(instance.problem, instance.environment) is not None for policy in policies.values())
    return count_cores() if busy or (fuse and one_call) else 1


def count_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _on_threads(
    play_part: Callable[[Part], Runs], parts: list[Part], threads: int, stop: threading.Event
) -> dict[Part, Runs]:
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
    played: Mapping[Part, Runs], at: Ints, targets: Mapping[str, list[Target]], each: int, total: int
) -> Results:
    """The results of the replications that every policy has finished; of a family, those of whole instances.

    ``each`` is the number of replications of an instance of a family, 0 if there is one instance.
    """
    spans = dict.fromkeys((first, n) for _, first, n in played)
    finished = [span for span in spans if all((name, *span) in played for name in targets)]
    rows = np.concatenate([first + np.arange(n) for first, n in finished]) if finished else np.zeros(0, np.int64)
    draw = rows // each if each else np.zeros_like(rows)
    whole = np.bincount(draw)[draw] == each if each else np.full(len(rows), True)
    if not whole.any():
        raise KeyboardInterrupt("no replication was finished by every policy")
    regrets, pulls, seconds = dict[str, Floats](), dict[str, Floats](), dict[str, float]()
    for name, own in targets.items():
        runs = join_runs([played[name, *span] for span in finished])
        pairs = zip(draw, runs.earned, strict=True)
        regrets[name] = np.array([regret(own[d], at, earned) for d, earned in pairs])[whole]
        pulls[name], seconds[name] = runs.pulls[whole], float(runs.seconds.sum())
    averaged = {name: average(own) for name, own in targets.items()}
    found = Results(at, regrets, pulls, averaged, seconds, complete=int(whole.sum()) == total)
    return found.over_instances(each) if each else found


def _check(draws: Sequence[Instance], policies: Any, horizon: int, rounds: Any) -> Ints:
    """The checkpoints; refuse policies that are none or do not fit the problem."""
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidArgument("policies", "not a mapping of names to policies", 'give e.g. {"BC-UCB": bc_ucb()}')
    for name, policy in policies.items():
        if not isinstance(policy, Policy):
            remedy = "give e.g. bc_ucb(), with the parentheses"
            raise InvalidArgument("policies", f"{name!r}: {policy!r} is not a policy", remedy)
        for instance in draws:
            require_outcomes(policy, instance.problem)
            policy.validate(instance.problem)
    at = checkpoints(horizon) if rounds is None else np.asarray(rounds, np.int64)
    right = at.ndim == 1 and at.size and at[0] >= 1 and at[-1] <= horizon and (np.diff(at) > 0).all()
    if not right:
        raise InvalidArgument("rounds", "not increasing rounds", f"give increasing numbers from 1 to {horizon}")
    return np.concatenate([at, [horizon][: int(at[-1] < horizon)]]).astype(np.int64)
