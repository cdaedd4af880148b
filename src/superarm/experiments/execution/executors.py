"""Where tasks are played on this machine: threads or processes."""

import functools
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Protocol

from superarm.core.errors import InvalidArgument, SuperarmError
from superarm.experiments.execution.cells import Cell, Task
from superarm.simulation import seeds
from superarm.simulation.lanes import side_by_side
from superarm.simulation.progress import Progress
from superarm.simulation.replicate import count_cores, default_threads
from superarm.simulation.runs import Runs, play

MAX_POOLS = 4
"""How many process pools are started before a worker that dies is taken for the tasks' fault."""

MANY_ROUNDS = 500_000
"""From so many rounds on, of all replications, it pays to start processes: starting one takes a second or two."""


class TaskProgress:
    """Counts rounds for the progress bar; a task that is restarted is not counted twice.

    ``stop`` is set when the tasks should end early.
    """

    def __init__(self, bar: Progress) -> None:
        self.stop = threading.Event()
        self._bar, self._lock, self._played = bar, threading.Lock(), dict[int, int]()

    def report(self, number: int, played: int) -> None:
        """Task ``number`` has played ``played`` rounds."""
        with self._lock:
            more = played - self._played.get(number, 0)
            if more > 0:
                self._played[number] = played
        if more > 0:
            self._bar.advance(more)


class Executor(Protocol):
    """Where tasks are played."""

    def capacity(self) -> int:
        """How many tasks can be played at once."""
        ...

    def perform(self, tasks: Sequence[Task], progress: TaskProgress) -> Iterator[tuple[Task, Runs]]:
        """Play all tasks; yield each with its runs when it is finished, in any order."""
        ...


def play_task(task: Task, stop: threading.Event, report: Callable[[int, int], None]) -> Runs:
    """Play a task; ``report`` is called with its number and with how many of its rounds have been played."""
    played, cell = 0, task.cell

    def advance(rounds: int) -> None:
        nonlocal played
        played += rounds
        report(task.number, played)

    own = [
        seed
        for one in task.cells
        for seed in seeds(one.seed, one.first_seed + task.last)[one.first_seed + task.first :]
    ]
    lanes = side_by_side([one.instance for one in task.cells], [task.last - task.first] * len(task.cells))
    rounds, kept = cell.recorded_rounds, cell.batch_rounds
    return play(lanes, cell.policy, own, rounds, stop, advance, task.fuse, kept)


def threads_for(cells: Sequence[Cell]) -> "Threads":
    """One thread per core if kernels do most of the work of every cell; otherwise one, since threads would wait."""
    wanted = [default_threads(cell.instance, {"": cell.policy}, cell.replications, True) for cell in cells]
    return Threads(min(wanted, default=1))


def processes_for(cells: Sequence[Cell], workers: int | None = None) -> "Threads | Processes":
    """Processes, if there is enough work for several of them; otherwise threads."""
    wanted = workers or count_cores()
    if wanted > 1 and sum(cell.rounds for cell in cells) >= MANY_ROUNDS:
        return Processes(wanted)
    return Threads(workers) if workers else threads_for(cells)


@dataclass(frozen=True)
class _Pool:
    """A number of workers on this machine, one per core by default."""

    workers: int = field(default_factory=count_cores)

    def __post_init__(self) -> None:
        if not isinstance(self.workers, int) or self.workers < 1:
            raise InvalidArgument("workers", f"{self.workers!r} is not a positive whole number", "give an int >= 1")

    def capacity(self) -> int:
        return self.workers


@dataclass(frozen=True)
class Threads(_Pool):
    """Threads of this process: they copy nothing, and use all cores while kernels run, which is most of the time on
    problems with many entries. On small problems threads wait for one another."""

    def perform(self, tasks: Sequence[Task], progress: TaskProgress) -> Iterator[tuple[Task, Runs]]:
        with ThreadPoolExecutor(self.workers) as pool:
            futures = {pool.submit(play_task, task, progress.stop, progress.report): task for task in tasks}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:  # after an error, Ctrl-C, or a caller that stops iterating
                progress.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Processes(_Pool):
    """Processes of this machine; tasks whose process dies are played again by another one."""

    def perform(self, tasks: Sequence[Task], progress: TaskProgress) -> Iterator[tuple[Task, Runs]]:
        left = {task.number: task for task in tasks}
        for _ in range(MAX_POOLS):
            try:
                for task, runs in _perform_in_pool(self.workers, list(left.values()), progress):
                    yield task, runs
                    del left[task.number]
                return
            except BrokenProcessPool:
                continue
        raise SuperarmError(
            f"a worker process died {MAX_POOLS} times and {len(left)} tasks are unfinished; check that memory suffices"
        )


def _perform_in_pool(workers: int, tasks: Sequence[Task], progress: TaskProgress) -> Iterator[tuple[Task, Runs]]:
    context = multiprocessing.get_context("spawn")
    reports: Any = context.Queue()
    stop = context.Event()
    listener = threading.Thread(target=_forward_reports, args=(reports, progress.report), daemon=True)
    listener.start()
    with ProcessPoolExecutor(workers, context, _start_worker, (reports, stop)) as pool:
        futures: dict[Future[Runs], Task] = {pool.submit(_play_in_worker, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                task, runs = futures[future], future.result()
                progress.report(task.number, task.rounds)  # reports are lost if the process is killed
                yield task, runs
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    reports.put(None)
    listener.join()
    reports.close()


def _forward_reports(reports: Any, report: Callable[[int, int], None]) -> None:
    for number, played in iter(reports.get, None):
        report(number, played)


_worker: dict[str, Any] = {}  # what this worker process was given when it started


def _start_worker(reports: Any, stop: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent process decides
    reports.cancel_join_thread()
    _worker.update(report=functools.partial(_put_report, reports), stop=stop)


def _put_report(reports: Any, number: int, played: int) -> None:
    reports.put((number, played))


def _play_in_worker(task: Task) -> Runs:
    return play_task(task, _worker["stop"], _worker["report"])
