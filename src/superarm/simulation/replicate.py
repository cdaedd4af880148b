"""Many runs at once: policies times replications, on threads over kernels that hold no lock."""

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from superarm.arrays import Ints, count
from superarm.errors import InvalidArgument
from superarm.policies import Policy
from superarm.simulation.instances import Instance
from superarm.simulation.progress import bar
from superarm.simulation.regret import Kind, Target, regret
from superarm.simulation.regret import target as regret_target
from superarm.simulation.results import Results
from superarm.simulation.runs import Run, play, warm


def seeds(seed: int, replications: int) -> list[np.random.SeedSequence]:
    """The seed of each replication; give one to ``Agent(seed=…)`` and it plays as that replication did.

    >>> [child.spawn_key for child in seeds(7, 2)]
    [(0,), (1,)]
    """
    return np.random.SeedSequence(seed).spawn(replications)


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
    seed: int = 0,
    target: Kind = "oracle",
    rounds: Any = None,
    threads: int | None = None,
    progress: bool = True,
) -> Results:
    """Play every policy on the instance, ``replications`` times, and measure its regret.

    Parameters
    ----------
    instance, policies
        The problem with its world, and the policies by the names they shall have in tables and figures.
    horizon, replications, seed
        Rounds a run, runs a policy, and the root of all randomness. In a replication all policies see the same
        world: an arm played in the same round answers the same.
    target
        What regret is measured against: ``oracle`` (default), ``approximation`` (the paper's) or ``optimal``.
    rounds
        Where to record regret: increasing rounds up to ``horizon``; by default 200 on a log scale.
    threads
        How many runs at once; all cores by default. Results do not depend on it.
    progress
        Whether to show a progress bar on a terminal.

    Ctrl-C ends the run early with the replications that were finished by every policy.

    Examples
    --------
    >>> import superarm as sa
    >>> instance = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
    >>> results = sa.simulate(instance, {"KL-UCB": sa.kl_ucb()}, horizon=200, replications=3, progress=False)
    >>> results.regret["KL-UCB"].shape == (3, len(results.rounds))
    True
    """
    marks = _validated(policies, horizon, replications, rounds, threads)
    fitted = {name: policy.fit(instance.problem) for name, policy in policies.items()}
    targets = {name: regret_target(instance, policy, target, horizon) for name, policy in fitted.items()}
    tasks = [(name, r) for r in range(replications) for name in policies]
    children = seeds(seed, replications)
    stop = threading.Event()
    with bar(len(tasks) * horizon, progress) as shown:
        for name, policy in fitted.items():
            shown.say(f"compiling {name}")
            warm(instance, policy)
        shown.say("")

        def one(task: tuple[str, int]) -> Run:
            return play(instance, fitted[task[0]], children[task[1]], marks, stop, shown.advance)

        runs = _on_threads(one, tasks, threads or os.cpu_count() or 1, stop)
    return _results(runs, marks[1:], targets, replications)


def _validated(policies: Mapping[str, Policy], horizon: int, replications: int, rounds: Any, threads: Any) -> Ints:
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidArgument("policies", "not a mapping of names to policies", 'give e.g. {"BC-UCB": bc_ucb()}')
    for name, policy in policies.items():
        if not callable(getattr(policy, "choose", None)) or isinstance(policy, type):
            raise InvalidArgument("policies", f"{name!r} is not a policy", "give e.g. bc_ucb(), with the parentheses")
    for argument, number in (("horizon", horizon), ("replications", replications), ("threads", threads or 1)):
        count(number, argument, 1)
    marks = checkpoints(horizon) if rounds is None else np.asarray(rounds, np.int64)
    if marks.ndim != 1 or not marks.size or marks[0] < 1 or marks[-1] > horizon or (np.diff(marks) <= 0).any():
        raise InvalidArgument("rounds", "not increasing rounds", f"give increasing numbers from 1 to {horizon}")
    return np.concatenate([[0], marks, [horizon][: int(marks[-1] < horizon)]]).astype(np.int64)


def _on_threads(
    one: Callable[[tuple[str, int]], Run], tasks: list[tuple[str, int]], threads: int, stop: threading.Event
) -> dict[tuple[str, int], Run]:
    """The runs of all tasks; after Ctrl-C, of those that were finished by then."""
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


def _results(
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
