"""``simulate``: every policy times every replication, on threads; compiled code releases the interpreter lock."""

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from superarm._compiling import note_composition
from superarm.arrays import Ints, count, without_fraction
from superarm.errors import InvalidArgument
from superarm.policies import Policy
from superarm.policies.contextual import for_context
from superarm.policies.traits import require_policy
from superarm.simulation.instances import Instance
from superarm.simulation.progress import progress_bar
from superarm.simulation.regret import Choice, Target, regret
from superarm.simulation.regret import target as regret_target
from superarm.simulation.results import Results
from superarm.simulation.runs import Run, compile_run, play
from superarm.streams import Seed, child_seeds, seed_sequence


def seeds(seed: Seed, replications: int) -> list[np.random.SeedSequence]:
    """The seed of each replication; an ``Agent`` with that seed plays as the replication did.

    >>> [child.spawn_key for child in seeds(7, 2)]
    [(0,), (1,)]
    """
    return child_seeds(seed_sequence(seed), replications)


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
    seed: Seed = 0,
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
        How many runs to play at once; by default one per core. Results do not depend on it.
    progress
        Whether to show a progress bar on a terminal.

    Ctrl-C ends early and returns the replications that every policy has finished.

    Examples
    --------
    >>> import superarm as sa
    >>> instance = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
    >>> results = sa.simulate(instance, {"KL-UCB": sa.kl_ucb()}, horizon=200, replications=3, progress=False)
    >>> results.regret["KL-UCB"].shape == (3, len(results.rounds))
    True
    """
    _require_instance(instance)
    horizon = count(without_fraction(horizon), "horizon", 1)
    replications = count(without_fraction(replications), "replications", 1)
    threads = os.cpu_count() or 1 if threads is None else count(threads, "threads", 1)
    checkpoint_rounds = _check_arguments(policies, horizon, rounds)
    problem = instance.problem
    fitted = {name: for_context(policy, problem).fit(problem) for name, policy in policies.items()}
    targets: dict[str, Target] = {}
    tasks = [(name, r) for r in range(replications) for name in policies]
    children = seeds(seed, replications)
    stop = threading.Event()
    with progress_bar(len(tasks) * horizon, progress) as shown:
        for name, policy in fitted.items():
            shown.say(f"compiling {name}")
            note_composition(policy, problem, instance.environment)
            targets[name] = regret_target(instance, policy, target, horizon)
            compile_run(instance, policy)
        shown.say("")

        def one(task: tuple[str, int]) -> Run:
            return play(instance, fitted[task[0]], children[task[1]], checkpoint_rounds, stop, shown.advance)

        runs = _run_on_threads(one, tasks, threads, stop)
    return _collect_results(runs, checkpoint_rounds[1:], targets, replications)


def _require_instance(given: Any) -> None:
    if not isinstance(given, Instance):
        wrong = f"{given!r} is not an instance"
        raise InvalidArgument("instance", wrong, "give Instance(problem, environment), or one of superarm.instances")


def _check_arguments(policies: Mapping[str, Policy], horizon: int, rounds: Any) -> Ints:
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidArgument("policies", "not a mapping of names to policies", 'give e.g. {"BC-UCB": bc_ucb()}')
    for policy in policies.values():
        require_policy(policy, "policies")
    checkpoint_rounds = checkpoints(horizon) if rounds is None else np.asarray(rounds, np.int64)
    if (
        checkpoint_rounds.ndim != 1
        or not checkpoint_rounds.size
        or checkpoint_rounds[0] < 1
        or checkpoint_rounds[-1] > horizon
        or (np.diff(checkpoint_rounds) <= 0).any()
    ):
        raise InvalidArgument("rounds", "not increasing rounds", f"give increasing numbers from 1 to {horizon}")
    return np.concatenate([[0], checkpoint_rounds, [horizon][: int(checkpoint_rounds[-1] < horizon)]]).astype(np.int64)


def _run_on_threads(
    one: Callable[[tuple[str, int]], Run], tasks: list[tuple[str, int]], threads: int, stop: threading.Event
) -> dict[tuple[str, int], Run]:
    """Play all tasks; after Ctrl-C, return only those finished by then."""
    with ThreadPoolExecutor(threads) as pool:
        futures = {task: pool.submit(one, task) for task in tasks}
        try:
            for future in futures.values():
                future.result()
        except BaseException as error:
            stop.set()
            for future in futures.values():
                future.cancel()
            if not isinstance(error, KeyboardInterrupt):
                raise
    return {task: f.result() for task, f in futures.items() if not f.cancelled() and f.exception() is None}


def _collect_results(
    runs: Mapping[tuple[str, int], Run], rounds: Ints, targets: Mapping[str, Target], replications: int
) -> Results:
    done = {task for task, run in runs.items() if run.done}
    finished = [r for r in range(replications) if all((name, r) in done for name in targets)]
    if not finished:
        raise KeyboardInterrupt("no replication was finished by every policy")
    kept = {name: [runs[name, r] for r in finished] for name in targets}
    return Results(
        rounds=rounds,
        regret={
            name: np.array([regret(targets[name], rounds, run.earned) for run in played])
            for name, played in kept.items()
        },
        pulls={name: np.array([run.pulls for run in played]) for name, played in kept.items()},
        targets=targets,
        seconds={name: sum(run.seconds for run in played) for name, played in kept.items()},
        complete=len(finished) == replications,
    )
