"""Where cells are played on many machines: a Dask cluster."""

import contextlib
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import superarm
from superarm.errors import MissingExtra, SuperarmError
from superarm.experiments.tasks import Task, perform
from superarm.experiments.watch import Watch
from superarm.simulation import Instance
from superarm.simulation.runs import Run

_RETRIES = 3


@dataclass(frozen=True)
class Cluster:
    """A Dask scheduler, by its address ``tcp://host:port``; tasks whose worker dies go to another.

    ``wait`` is for how many seconds to look for the scheduler and its first worker.
    """

    address: str
    wait: float = 30.0

    def lanes(self) -> int:
        with self._client() as client:
            client.wait_for_workers(1, timeout=self.wait)
            return int(max(1, sum(client.nthreads().values())))

    def perform(self, tasks: Sequence[Task], watch: Watch) -> Iterator[tuple[Task, list[Run]]]:
        from distributed import as_completed

        topic = f"superarm-{uuid.uuid4().hex}"
        with self._client() as client:
            client.subscribe_topic(topic, lambda event: watch.told(*event[1]))
            _check_versions(client)
            held = _hold_instances(client, tasks)
            futures = {}
            for task in tasks:
                light = replace(task, instance=None)  # type: ignore[arg-type]
                future = client.submit(_remote, light, held[id(task.instance)], topic, pure=False, retries=_RETRIES)
                futures[future.key] = (future, task)
            try:
                for future, runs in as_completed(
                    [future for future, _ in futures.values()], loop=client.loop, with_results=True
                ):
                    task = futures.pop(future.key)[1]  # the cluster may forget what we have
                    watch.told(task.number, task.rounds)
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


def _check_versions(client: Any) -> None:
    """Other versions may give other bits, so they are refused rather than mixed."""
    for worker, version in client.run(_version).items():
        if version != superarm.__version__:
            raise SuperarmError(
                f"worker {worker} has superarm {version}, this is {superarm.__version__}; install the same"
            )


def _version() -> str:
    return superarm.__version__


def _hold_instances(client: Any, tasks: Sequence[Task]) -> dict[int, Any]:
    """Every instance sent once, as a task of its own: the scheduler can make it again if its holder dies."""
    instances = {id(task.instance): task.instance for task in tasks}
    return {
        number: client.submit(_hold, instance, key=f"superarm-instance-{uuid.uuid4().hex}")
        for number, instance in instances.items()
    }


def _hold(instance: Instance) -> Instance:
    return instance


def _remote(task: Task, instance: Instance, topic: str) -> list[Run]:
    from distributed import get_worker

    worker = get_worker()

    def told(number: int, done: int) -> None:
        worker.log_event(topic, (number, done))

    return perform(replace(task, instance=instance), threading.Event(), told)
