"""Where tasks are played on this machine: threads or processes."""

import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from superarm.core.errors import InvalidArgument, SuperarmError
from superarm.experiments.execution.progress import TaskProgress
from superarm.experiments.execution.tasks import Executor, Task, play_task
from superarm.simulation.runs import Runs

__all__ = ["Executor", "Processes", "Threads"]

MAX_POOLS = 4
"""How many process pools are started before a worker that dies is taken for the tasks' fault."""


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class _Pool:
    """A number of workers on this machine, one per core by default."""

    workers: int = field(default_factory=_count_cores)

    def __post_init__(self) -> None:
        if not isinstance(self.workers, int) or self.workers < 1:
            raise InvalidArgument("workers", f"{self.workers!r} is not a positive whole number", "give an int >= 1")

    def lanes(self) -> int:
        return self.workers


@dataclass(frozen=True)
class Threads(_Pool):
    """Threads of this process. Kernels release the interpreter's lock, so this uses all cores and copies nothing."""

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
