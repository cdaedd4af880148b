"""A real scheduler and real worker processes, one of which is killed in the middle."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from superarm.errors import SuperarmError
from superarm.experiments import Cluster, Experiment, Threads, run
from superarm.experiments.cluster import _check_versions


def _start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "5"},
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    place = tmp_path_factory.mktemp("dask")
    file = place / "scheduler.json"
    scheduler = _start(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
    )
    deadline = time.time() + 300
    while not file.exists() and time.time() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    address = json.loads(file.read_text())["address"]
    common = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(place))
    workers = [_start("dask_worker", address, *common) for _ in range(2)]
    yield address, workers
    for process in [*workers, scheduler]:
        process.kill()
        process.wait()


class Counted:
    """A progress bar that only counts."""

    rounds = news = 0

    def advance(self, n):
        self.rounds, self.news = self.rounds + n, self.news + 1

    def say(self, text):
        pass


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_loses_a_worker_gives_the_same_bits(cluster, experiment, tmp_path, monkeypatch):
    address, workers = cluster
    fields = {field.name: getattr(experiment, field.name) for field in dataclasses.fields(experiment)}
    long = Experiment(**(fields | {"horizon": 12_000}))
    expected = run(long, tmp_path / "threads", Threads(2), progress=False)

    def kill():
        deadline = time.time() + 300
        while time.time() < deadline and not list((tmp_path / "cluster").glob("cells/*.parquet")):
            time.sleep(0.02)
        workers[0].send_signal(signal.SIGKILL)
        finished.append(len(list((tmp_path / "cluster").glob("cells/*.parquet"))))

    finished = []
    killer = threading.Thread(target=kill)
    killer.start()
    shown = Counted()
    monkeypatch.setattr("superarm.experiments.runner.bar", lambda *_: contextlib.nullcontext(shown))
    found = run(long, tmp_path / "cluster", Cluster(address))
    killer.join()
    assert 0 < finished[0] < 6  # it was in the middle
    assert workers[0].wait() == -signal.SIGKILL
    assert found.complete
    assert found.digest == expected.digest
    assert shown.rounds == 6 * 4 * 12_000  # what was played twice is counted once
    assert shown.news > 6 * 4  # and it was told more often than at the end of tasks


def test_where_no_scheduler_answers_the_address_is_named():
    with pytest.raises(SuperarmError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        Cluster("tcp://127.0.0.1:1", wait=0.5).lanes()


def test_other_versions_are_refused():
    class Old:
        def run(self, _):
            return {"tcp://w": "0.0.1"}

    with pytest.raises(SuperarmError, match=r"worker tcp://w has superarm 0\.0\.1"):
        _check_versions(Old())
