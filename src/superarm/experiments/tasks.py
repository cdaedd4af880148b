"""Tasks: some replications of one cell, which any thread, process or machine plays to the same bits."""

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from superarm.arrays import Ints
from superarm.experiments.cells import Cell
from superarm.experiments.watch import Watch
from superarm.policies import Policy
from superarm.simulation import Instance, seeds
from superarm.simulation.runs import Run, play, warm

_SHARES = 16
"""Tasks a lane: enough that no lane is idle for long at the end, few enough that handing them out costs nothing."""


@dataclass(frozen=True)
class Task:
    """Replications ``first`` to ``last - 1`` of a cell; ``number`` is its place in the list of tasks."""

    number: int
    cell: str
    instance: Instance
    policy: Policy
    seed: int
    first: int
    last: int
    marks: Ints
    looks: Ints

    @property
    def rounds(self) -> int:
        return int(self.marks[-1]) * (self.last - self.first)


class Executor(Protocol):
    """Where tasks are played."""

    def lanes(self) -> int:
        """How many tasks can be played at once."""
        ...

    def perform(self, tasks: Sequence[Task], watch: Watch) -> Iterator[tuple[Task, list[Run]]]:
        """Play all tasks; hand each out when it is done, in any order."""
        ...


def perform(task: Task, stop: threading.Event, told: Callable[[int, int], None]) -> list[Run]:
    """Play a task; ``told`` hears its number and how many of its rounds are done."""
    done = 0

    def advanced(rounds: int) -> None:
        nonlocal done
        done += rounds
        told(task.number, done)

    children = seeds(task.seed, task.last)[task.first :]
    return [play(task.instance, task.policy, seed, task.marks, stop, advanced, task.looks) for seed in children]


def divide(cells: Sequence[Cell], lanes: int) -> list[Task]:
    """The cells in tasks of about equal weight, heaviest cells first, the tasks of a cell side by side."""
    weights = {
        cell.digest: float(cell.horizon * cell.replications * cell.world.instance.problem.n_entries) for cell in cells
    }
    share = sum(weights.values()) / (_SHARES * lanes)
    tasks: list[Task] = []
    for cell in sorted(cells, key=lambda cell: -weights[cell.digest]):
        blocks = min(cell.replications, max(1, math.ceil(weights[cell.digest] / share)))
        fitted = cell.policy.fit(cell.world.instance.problem)
        ends = [cell.replications * n // blocks for n in range(blocks + 1)]
        for first, last in itertools.pairwise(ends):
            task = Task(
                len(tasks), cell.digest, cell.world.instance, fitted, cell.seed, first, last, cell.marks, cell.looks
            )
            tasks.append(task)
    return tasks


def ready(tasks: Sequence[Task], watch: Watch) -> None:
    """Compile every composition once, here, before workers find it on the disk or wait for one another."""
    kinds: dict[Any, Task] = {}
    for task in tasks:
        problem, environment = task.instance.problem, task.instance.environment
        kinds.setdefault((kind(problem), kind(environment), kind(task.policy)), task)
    for n, task in enumerate(kinds.values(), 1):
        watch.say(f"compiling {n} of {len(kinds)}")
        warm(task.instance, task.policy)
    watch.say("")


def kind(thing: Any) -> Any:
    """What the compiler sees of a component: its class, and those of its fields; of an array its type and rank.

    >>> import superarm as sa
    >>> kind(sa.Subsets(2)) == kind(sa.Subsets(3)) != kind(sa.Explicit([[0, 1]]))
    True
    """
    if isinstance(thing, tuple):
        return type(thing), tuple(kind(field) for field in thing)
    if hasattr(thing, "dtype"):
        return str(thing.dtype), thing.ndim
    return type(thing)
