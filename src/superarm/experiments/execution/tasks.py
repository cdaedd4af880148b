"""Tasks: some replications of one cell, with the same result on any thread, process or machine."""

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from superarm.core.arrays import Ints
from superarm.experiments.execution.cells import Cell
from superarm.experiments.execution.progress import TaskProgress
from superarm.policies import Policy
from superarm.simulation import Instance, seeds
from superarm.simulation.runs import FUSED_FROM, Runs, chunk_size, play

TASKS_PER_LANE = 4
"""Enough that no lane is idle for long at the end. Not more: replications that advance together share the costs of a
round."""

MAX_TASK_ENTRIES = 5e8
"""A task of several replications plays at most so many rounds times entries, some seconds to half a minute: what an
interruption may lose. One replication is never divided."""


@dataclass(frozen=True)
class Task:
    """Replications ``first`` to ``last - 1`` of a cell, which advance together; ``number`` is its place in the list.

    With ``fuse`` one kernel may play many rounds.
    """

    number: int
    cell: str
    instance: Instance
    policy: Policy
    seed: int
    first: int
    last: int
    recorded_rounds: Ints
    batch_rounds: Ints
    fuse: bool = True

    @property
    def rounds(self) -> int:
        """The rounds of all its replications together."""
        return int(self.recorded_rounds[-1]) * (self.last - self.first)


class Executor(Protocol):
    """Where tasks are played."""

    def lanes(self) -> int:
        """How many tasks can be played at once."""
        ...

    def perform(self, tasks: Sequence[Task], progress: TaskProgress) -> Iterator[tuple[Task, Runs]]:
        """Play all tasks; yield each with its runs when it is finished, in any order."""
        ...


def play_task(task: Task, stop: threading.Event, report: Callable[[int, int], None]) -> Runs:
    """Play a task; ``report`` is called with its number and with how many of its rounds have been played."""
    played = 0

    def advance(rounds: int) -> None:
        nonlocal played
        played += rounds
        report(task.number, played)

    children = seeds(task.seed, task.last)[task.first :]
    rounds, kept = task.recorded_rounds, task.batch_rounds
    return play(task.instance, task.policy, children, rounds, stop, advance, task.fuse, kept)


def divide(cells: Sequence[Cell], lanes: int) -> list[Task]:
    """Divide cells into tasks of about equal weight, heaviest cells first, the tasks of a cell next to each other."""
    weights = {cell.digest: float(cell.horizon * cell.replications * cell.instance.problem.n_entries) for cell in cells}
    share = min(MAX_TASK_ENTRIES, sum(weights.values()) / (TASKS_PER_LANE * lanes))
    tasks: list[Task] = []
    for cell in sorted(cells, key=lambda cell: -weights[cell.digest]):
        fewest = math.ceil(cell.replications / chunk_size(cell.instance, cell.replications, 1))
        blocks = min(cell.replications, max(fewest, math.ceil(weights[cell.digest] / share)))
        ends = [cell.replications * n // blocks for n in range(blocks + 1)]
        rounds = (cell.recorded_rounds, cell.batch_rounds)
        for first, last in itertools.pairwise(ends):
            tasks.append(Task(len(tasks), cell.digest, cell.instance, cell.policy, cell.seed, first, last, *rounds))
    fuse = sum(int(task.recorded_rounds[-1]) for task in tasks) >= FUSED_FROM
    return [replace(task, fuse=fuse) for task in tasks]


def leave_out(tasks: Sequence[Task], finished: Mapping[str, set[int]]) -> list[Task]:
    """The tasks without the replications that are ``finished``, which are given by the digest of their cell."""
    left: list[Task] = []
    for task in tasks:
        wanted = [r for r in range(task.first, task.last) if r not in finished.get(task.cell, ())]
        for _, group in itertools.groupby(enumerate(wanted), lambda pair: pair[1] - pair[0]):
            replications = [r for _, r in group]
            left.append(replace(task, number=len(left), first=replications[0], last=replications[-1] + 1))
    return left
