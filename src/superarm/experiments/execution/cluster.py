"""Where tasks are played on many machines: a Dask cluster."""

import contextlib
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import superarm
from superarm.core.errors import MissingExtra, SuperarmError
from superarm.experiments.execution.cells import NamedInstance, Task, find_own_components
from superarm.experiments.execution.executors import TaskProgress, play_task
from superarm.simulation.runs import Runs

MAX_RETRIES = 3
"""How often the scheduler plays a task again that raised an error."""


@dataclass(frozen=True)
class Cluster:
    """The workers of a Dask scheduler; a task whose worker dies is played by another one.

    Parameters
    ----------
    address
        The scheduler's address, ``tcp://host:port``.
    wait
        For how many seconds to wait for the scheduler and its first worker.
    """

    address: str
    wait: float = 30.0

    def capacity(self) -> int:
        with self._client() as client:
            client.wait_for_workers(1, timeout=self.wait)
            return int(max(1, sum(client.nthreads().values())))

    def perform(self, tasks: Sequence[Task], progress: TaskProgress) -> Iterator[tuple[Task, Runs]]:
        from distributed import as_completed

        topic = f"superarm-{uuid.uuid4().hex}"
        with self._client() as client:
            client.subscribe_topic(topic, lambda event: progress.report(*event[1]))
            _check_modules(client, tasks)
            _check_versions(client)
            held = _hold_instances(client, tasks)
            futures = {}
            for task in tasks:
                light = replace(task, cell=replace(task.cell, source=None))  # type: ignore[arg-type]
                source = held[task.cell.source.digest]
                future = client.submit(_play_on_worker, light, source, topic, pure=False, retries=MAX_RETRIES)
                futures[future.key] = (future, task)
            try:
                for future, runs in as_completed(
                    [future for future, _ in futures.values()], loop=client.loop, with_results=True
                ):
                    task = futures.pop(future.key)[1]  # so that the cluster may free the result
                    progress.report(task.number, task.rounds)
                    yield task, runs
            finally:
                client.cancel([future for future, _ in futures.values()])

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            from distributed import Client
        except ImportError:
            raise MissingExtra("distributed", "cluster") from None
        try:
            client = Client(self.address, timeout=self.wait, set_as_default=False)
        except (OSError, ValueError) as error:
            raise SuperarmError(f"no Dask scheduler answers at {self.address}: {error}") from error
        with client:
            yield client


def _check_modules(client: Any, tasks: Sequence[Task]) -> None:
    """Refuse a scheduler or a worker that cannot import the modules of the tasks' components: both unpickle tasks."""
    things = [part for task in tasks for part in (task.cell.policy, task.cell.instance)]
    names = ["superarm", *sorted({cls.__module__ for cls in find_own_components(things)} - {"__main__"})]

    def find_missing() -> list[str]:  # a nested function is sent as code, so that it needs no module
        import importlib

        missing = []
        for name in names:
            try:
                importlib.import_module(name)
            except ImportError as error:
                missing.append(f"{name} ({error})")
        return missing

    found = {"the scheduler": client.run_on_scheduler(find_missing)}
    found |= {f"worker {worker}": missing for worker, missing in client.run(find_missing).items()}
    for where, missing in found.items():
        if missing:
            raise SuperarmError(
                f"{where} cannot import {', '.join(missing)}; install it on the scheduler and on every worker, or put "
                "its directory on their PYTHONPATH, and import it in the experiment by its name"
            )


def _check_versions(client: Any) -> None:
    """Refuse workers with another version of superarm: their results might differ in the last bit."""
    for worker, version in client.run(_version).items():
        if version != superarm.__version__:
            raise SuperarmError(
                f"worker {worker} has superarm {version}, this is {superarm.__version__}; install the same version"
            )


def _version() -> str:
    return superarm.__version__


def _hold_instances(client: Any, tasks: Sequence[Task]) -> dict[str, Any]:
    """Send every instance once, as a task of its own, which the scheduler repeats if the worker that holds it dies."""
    sources = {task.cell.source.digest: task.cell.source for task in tasks}
    return {
        digest: client.submit(_hold, source, key=f"superarm-instance-{uuid.uuid4().hex}")
        for digest, source in sources.items()
    }


def _hold(source: NamedInstance) -> NamedInstance:
    return source


def _play_on_worker(task: Task, source: NamedInstance, topic: str) -> Runs:
    from distributed import get_worker

    worker = get_worker()

    def report(number: int, played: int) -> None:
        worker.log_event(topic, (number, played))

    return play_task(replace(task, cell=replace(task.cell, source=source)), threading.Event(), report)
