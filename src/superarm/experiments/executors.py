"""Where cells are played on this machine: threads or processes."""

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

from superarm.errors import InvalidArgument, SuperarmError
from superarm.experiments.tasks import Executor, Task, perform, ready
from superarm.experiments.watch import Watch
from superarm.simulation.runs import Run

__all__ = ["Executor", "Processes", "Threads"]

_ATTEMPTS = 4
"""How often a task is begun before a worker that dies with it is taken for the task's fault."""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check(workers: int) -> None:
    if not isinstance(workers, int) or workers < 1:
        raise InvalidArgument("workers", f"{workers!r} is not a positive whole number", "give an int >= 1")


@dataclass(frozen=True)
class Threads:
    """Threads of this process: kernels hold no lock, so this uses all cores and copies nothing."""

    workers: int = field(default_factory=_cores)

    def __post_init__(self) -> None:
        _check(self.workers)

    def lanes(self) -> int:
        return self.workers

    def perform(self, tasks: Sequence[Task], watch: Watch) -> Iterator[tuple[Task, list[Run]]]:
        ready(tasks, watch)
        with ThreadPoolExecutor(self.workers) as pool:
            futures = {pool.submit(perform, task, watch.stop, watch.told): task for task in tasks}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:  # after an error, Ctrl-C, or a caller that has seen enough
                watch.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Processes:
    """Processes of this machine; tasks whose process dies are played again by another."""

    workers: int = field(default_factory=_cores)

    def __post_init__(self) -> None:
        _check(self.workers)

    def lanes(self) -> int:
        return self.workers

    def perform(self, tasks: Sequence[Task], watch: Watch) -> Iterator[tuple[Task, list[Run]]]:
        ready(tasks, watch)
        left = {task.number: task for task in tasks}
        for _ in range(_ATTEMPTS):
            try:
                for task, runs in _in_pool(self.workers, list(left.values()), watch):
                    yield task, runs
                    del left[task.number]
                return
            except BrokenProcessPool:
                continue
        raise SuperarmError(f"a worker process died {_ATTEMPTS} times; {len(left)} tasks are left; is memory short?")


def _in_pool(workers: int, tasks: Sequence[Task], watch: Watch) -> Iterator[tuple[Task, list[Run]]]:
    context = multiprocessing.get_context("spawn")
    news: Any = context.Queue()
    stop = context.Event()
    listener = threading.Thread(target=_listen, args=(news, watch.told), daemon=True)
    listener.start()
    with ProcessPoolExecutor(workers, context, _begin, (news, stop)) as pool:
        futures: dict[Future[list[Run]], Task] = {pool.submit(_remote, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    news.put(None)
    listener.join()
    news.close()


def _listen(news: Any, told: Callable[[int, int], None]) -> None:
    for number, done in iter(news.get, None):
        told(number, done)


_place: dict[str, Any] = {}  # what this worker process was given when it began


def _begin(news: Any, stop: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    news.cancel_join_thread()
    _place.update(told=functools.partial(_tell, news), stop=stop)


def _tell(news: Any, number: int, done: int) -> None:
    news.put((number, done))


def _remote(task: Task) -> list[Run]:
    return perform(task, _place["stop"], _place["told"])
