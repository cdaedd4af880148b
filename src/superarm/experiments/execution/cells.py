"""Cells, one policy on one instance with all replications; and tasks, some replications of a cell.

A cell is identified by a digest of everything that determines its numbers. A task has the same result on any thread,
process or machine.
"""

import contextlib
import functools
import hashlib
import inspect
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import superarm
from superarm.core.arrays import Ints
from superarm.core.component import Component
from superarm.describe import describe
from superarm.experiments.spec.build import Case, build_cases
from superarm.experiments.store import digest_of
from superarm.policies import Policy
from superarm.simulation import Instance, checkpoints
from superarm.simulation.lanes import are_alike
from superarm.simulation.runs import FUSED_FROM, chunk_size

if TYPE_CHECKING:
    from superarm.experiments.spec.experiment import Experiment

STORED_BATCHES = 16
"""The number of rounds, evenly spaced on a log scale, whose batch is stored."""

TASKS_PER_WORKER = 4
"""Enough that no worker is idle for long at the end. Not more: replications that advance together share the costs of a
round."""

MAX_TASK_ENTRIES = 5e8
"""A task of several replications plays at most so many rounds times entries, some seconds to half a minute: what an
interruption may lose. One replication is never divided."""


@dataclass(frozen=True)
class NamedInstance:
    """An instance with the case of the spec that it was made from, and a digest of its numbers."""

    case: Case
    instance: Instance

    @functools.cached_property
    def digest(self) -> str:
        """A digest of the problem and the environment; the name does not enter."""
        instance = self.instance
        return digest_of({"problem": describe(instance.problem), "environment": describe(instance.environment)})


@dataclass(frozen=True)
class Cell:
    """One policy on one instance: the unit that is run, stored and found again."""

    source: NamedInstance
    policy_case: Case
    policy: Policy[Any]
    horizon: int
    replications: int
    seed: int
    target: Any
    checkpoints: int

    @property
    def instance(self) -> Instance:
        """The instance that the policy is run on."""
        return self.source.instance

    @property
    def label(self) -> str:
        """The labels of policy and instance."""
        draw = "" if self.source.case.draw is None else f", draw {self.source.case.draw + 1}"
        return f"{self.policy_case.label} on {self.source.case.label}{draw}"

    @property
    def first_seed(self) -> int:
        """The first of its seeds: runs of different instances of a family share no random numbers."""
        return (self.source.case.draw or 0) * self.replications

    @functools.cached_property
    def digest(self) -> str:
        """A digest of everything that determines the numbers; names do not enter, so that renaming runs nothing.

        Of components that are not superarm's own, the source file enters, too.
        """
        sources = digest_sources([self.policy, self.instance.problem, self.instance.environment])
        return digest_of(
            ({"sources": sources} if sources else {})
            | ({"first_seed": self.first_seed} if self.first_seed else {})
            | {
                "instance": self.source.digest,
                "policy": describe(self.policy),
                "horizon": self.horizon,
                "replications": self.replications,
                "seed": self.seed,
                "target": self.target,
                "checkpoints": self.checkpoints,
                "looks": STORED_BATCHES,
                "version": release_of(superarm.__version__),
            }
        )

    @property
    def rounds(self) -> int:
        """The rounds of all replications together."""
        return self.horizon * self.replications

    @property
    def recorded_rounds(self) -> Ints:
        """The rounds at which regret is recorded."""
        return checkpoints(self.horizon, self.checkpoints)

    @property
    def batch_rounds(self) -> Ints:
        """The rounds whose batch is stored."""
        return checkpoints(self.horizon, STORED_BATCHES)


def release_of(version: str) -> str:
    """The numbers of a version, without what is added between releases: a commit alone makes no other cell.

    >>> release_of("1.0.1.dev3"), release_of("0.1.0")
    ('1.0.1', '0.1.0')
    """
    return version[: next((n for n, c in enumerate(version) if not (c.isdigit() or c == ".")), len(version))].strip(".")


def digest_sources(things: Sequence[Any]) -> dict[str, str]:
    """A digest of the source file of every component in ``things`` that is not superarm's own, by class."""
    found = {}
    for cls in find_own_components(things):
        with contextlib.suppress(OSError, TypeError):  # a class of an interactive session has no file
            source = Path(inspect.getfile(cls)).read_bytes()
            found[f"{cls.__module__}:{cls.__qualname__}"] = hashlib.sha256(source).hexdigest()[:20]
    return found


def find_own_components(things: Sequence[Any]) -> list[type[Component]]:
    """The classes of all components in ``things`` that are not superarm's own but the user's, by name."""
    found = set[type[Component]]()
    waiting = list(things)
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, Component):
            waiting += thing.parameters().values()
            if type(thing).__module__.partition(".")[0] != "superarm":
                found.add(type(thing))
        elif isinstance(thing, tuple | list):
            waiting += thing
        elif isinstance(thing, dict):
            waiting += thing.values()
    return sorted(found, key=lambda cls: (cls.__module__, cls.__qualname__))


def list_cells(experiment: "Experiment") -> list[Cell]:
    """Every cell of an experiment, instance by instance. Generates the instances."""
    sources = [NamedInstance(case, instance) for case, instance in build_cases("instances", experiment.instances)]
    policies = build_cases("policies", experiment.policies)
    horizon, usual, rest = experiment.horizon, experiment.replications, (experiment.seed, experiment.target)
    return [
        Cell(source, case, policy, horizon, source.case.replications or usual, *rest, experiment.checkpoints)
        for source in sources
        for case, policy in policies
        if case.name in (source.case.policies or [case.name])
    ]


@dataclass(frozen=True)
class Task:
    """Replications ``first`` to ``last - 1`` of a cell, which advance together; ``number`` is its place in the list.

    With ``fuse`` one kernel may play many rounds. ``beside`` are other draws of the family, of which the same
    replications are played at once.
    """

    number: int
    cell: Cell
    first: int
    last: int
    fuse: bool = True
    beside: tuple[Cell, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All its cells."""
        return self.cell, *self.beside

    @property
    def rounds(self) -> int:
        """The rounds of all its replications together."""
        return self.cell.horizon * (self.last - self.first) * len(self.cells)


def divide(cells: Sequence[Cell], workers: int) -> list[Task]:
    """Divide cells into tasks of about equal weight, heaviest cells first, the tasks of a cell next to each other."""
    weights = {cell.digest: float(cell.rounds * cell.instance.problem.n_entries) for cell in cells}
    share = min(MAX_TASK_ENTRIES, sum(weights.values()) / (TASKS_PER_WORKER * workers))
    tasks: list[Task] = []
    for cell in sorted(cells, key=lambda cell: -weights[cell.digest]):
        fewest = math.ceil(cell.replications / chunk_size(cell.instance, cell.replications, 1))
        blocks = min(cell.replications, max(fewest, math.ceil(weights[cell.digest] / share)))
        ends = [cell.replications * n // blocks for n in range(blocks + 1)]
        tasks += [Task(len(tasks) + n, cell, ends[n], ends[n + 1]) for n in range(blocks)]
    fuse = sum(task.cell.horizon for task in tasks) >= FUSED_FROM
    return [replace(task, fuse=fuse) for task in tasks]


def leave_out(tasks: Sequence[Task], finished: Mapping[str, set[int]]) -> list[Task]:
    """The tasks without the replications that are ``finished``, which are given by the digest of their cell."""
    left: list[Task] = []
    for task in tasks:
        wanted = [r for r in range(task.first, task.last) if r not in finished.get(task.cell.digest, ())]
        for _, group in itertools.groupby(enumerate(wanted), lambda pair: pair[1] - pair[0]):
            replications = [r for _, r in group]
            left.append(replace(task, number=len(left), first=replications[0], last=replications[-1] + 1))
    return left


def join_draws(tasks: Sequence[Task], workers: int) -> list[Task]:
    """The tasks, of which those of the same replications of draws that are alike are one, up to a worker's share."""
    share = sum(map(_weigh, tasks)) / (TASKS_PER_WORKER * workers)
    joined: list[Task] = []
    open_tasks: dict[Any, int] = {}
    for task in tasks:
        case = task.cell.source.case
        key = (case.name, str(case.axes), task.cell.policy_case.label, task.first, task.last)
        at = open_tasks.get(key) if case.draw is not None else None
        if at is not None and _may_join(joined[at], task, share):
            joined[at] = replace(joined[at], beside=(*joined[at].beside, task.cell))
        else:
            open_tasks[key] = len(joined)
            joined.append(replace(task, number=len(joined)))
    return joined


def _weigh(task: Task) -> float:
    return float(task.rounds * task.cell.instance.problem.n_entries)


def _may_join(task: Task, other: Task, share: float) -> bool:
    lanes = (task.last - task.first) * (len(task.cells) + 1)
    fits = lanes <= chunk_size(task.cell.instance, lanes, 1) and _weigh(task) + _weigh(other) <= max(
        share, MAX_TASK_ENTRIES / 100
    )
    return fits and are_alike([task.cell.instance, other.cell.instance])
