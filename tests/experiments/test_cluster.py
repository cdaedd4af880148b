"""A real scheduler and real worker processes, one of which is killed in the middle."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from distributed import Client

from superarm.core.errors import SuperarmError
from superarm.experiments import Cluster, run
from superarm.experiments.execution.cluster import _check_versions

from .conftest import HORIZON
from .interference import ActAfterFirstTask, CountingBar
from .test_imports import MODULE


def _start(*arguments, path=""):
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ
        | {
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "5",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH", "")])),
        },
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dask")
    file = directory / "scheduler.json"
    scheduler = _start(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
    )
    deadline = time.time() + 300
    while not file.exists() and time.time() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    address = json.loads(file.read_text())["address"]
    common = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(directory))
    (directory / "mine_on_workers.py").write_text(MODULE)
    workers = [_start("dask_worker", address, *common, path=directory) for _ in range(2)]
    yield address, workers
    for process in [*workers, scheduler]:
        process.kill()
        process.wait()


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_loses_a_worker_gives_the_same_bits(cluster, study, experiment, tmp_path, monkeypatch):
    address, workers = cluster

    def kill_one():
        """Both are stopped first, so that no task is finished while one of them is killed."""
        for worker in workers:
            worker.send_signal(signal.SIGSTOP)
        with Client(address, set_as_default=False) as client:
            unfinished.append(sum(map(len, client.processing().values())))
        workers[0].send_signal(signal.SIGKILL)
        workers[1].send_signal(signal.SIGCONT)

    bar, unfinished = CountingBar(), []
    monkeypatch.setattr("superarm.experiments.execution.runner.progress_bar", lambda *_: contextlib.nullcontext(bar))
    found = run(experiment, tmp_path / "cluster", ActAfterFirstTask(Cluster(address), kill_one))
    assert unfinished[0] > 0
    assert workers[0].wait() == -signal.SIGKILL
    assert found.complete
    assert found.digest == study.digest
    assert bar.rounds == 6 * 4 * HORIZON  # what was played twice is counted once
    assert bar.reports > 6 * 4  # and progress was reported more often than at the end of tasks


def test_a_module_that_the_scheduler_lacks_is_named(cluster, experiment, tmp_path, monkeypatch):
    """The workers have it on their path, and so has this process."""
    (tmp_path / "mine_on_workers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    own = replace(experiment, imports=["mine_on_workers"], policies={"own": {"policy": "FirstArms"}}, claims=[])
    with pytest.raises(SuperarmError, match=r"^the scheduler cannot import mine_on_workers .* install it on the sched"):
        run(own, tmp_path / "out", Cluster(cluster[0]))


def test_where_no_scheduler_answers_the_address_is_named():
    with pytest.raises(SuperarmError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        Cluster("tcp://127.0.0.1:1", wait=0.5).capacity()


def test_other_versions_are_refused():
    class Old:
        def run(self, _):
            return {"tcp://w": "0.0.1"}

    with pytest.raises(SuperarmError, match=r"worker tcp://w has superarm 0\.0\.1"):
        _check_versions(Old())
