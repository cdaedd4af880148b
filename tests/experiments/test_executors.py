import contextlib
import multiprocessing
import threading
import time

import pytest

import superarm as sa
from superarm.errors import InvalidArgument
from superarm.experiments import Processes, Threads, run
from superarm.experiments.executors import _place
from superarm.experiments.tasks import divide
from superarm.experiments.watch import Watch


class Counted:
    """A progress bar that only counts."""

    def __init__(self):
        self.rounds, self.words = 0, []

    def advance(self, n):
        self.rounds += n

    def say(self, text):
        self.words.append(text)


def test_one_thread_and_many_give_the_same_bits(study, experiment, tmp_path):
    for executor in (Threads(2), Threads(5)):
        found = run(experiment, tmp_path / repr(executor), executor, progress=False)
        assert found.digest == study.digest, executor


def test_progress_counts_every_round(experiment):
    shown = Counted()
    tasks = divide(experiment.cells(), 2)
    done = [task.number for task, _ in Threads(2).perform(tasks, Watch(shown))]
    assert sorted(done) == list(range(len(tasks)))
    assert shown.rounds == 6 * 4 * 300
    assert "compiling 1 of 3" in shown.words


def test_processes_of_which_one_is_killed_give_the_same_bits(experiment, tmp_path, monkeypatch):
    shown = Counted()
    monkeypatch.setattr("superarm.experiments.runner.bar", lambda *_: contextlib.nullcontext(shown))
    long = sa.experiments.Experiment(**{**_fields(experiment), "horizon": 12_000})
    expected = run(long, tmp_path / "threads", Threads(2), progress=False)

    def kill():
        deadline = time.time() + 300
        while time.time() < deadline and len(list((tmp_path / "processes").glob("cells/*.parquet"))) < 1:
            time.sleep(0.02)
        worker = multiprocessing.active_children()[0]
        killed.append(worker.pid)
        worker.kill()

    killed = []
    killer = threading.Thread(target=kill)
    killer.start()
    shown.rounds = 0
    found = run(long, tmp_path / "processes", Processes(2))
    killer.join()
    assert killed
    assert shown.rounds == 6 * 4 * 12_000  # what was played twice is counted once
    assert found.digest == expected.digest


def _fields(experiment):
    return {name: getattr(experiment, name) for name in experiment.__dataclass_fields__}


def test_a_caller_that_has_seen_enough_leaves_no_threads_behind(experiment):
    before = threading.active_count()
    results = Threads(2).perform(divide(experiment.cells(), 2), Watch(Counted()))
    next(results)
    results.close()
    assert threading.active_count() <= before


def test_no_workers_are_refused():
    for kind in (Threads, Processes):
        with pytest.raises(InvalidArgument, match="workers"):
            kind(0)


def test_the_parent_is_no_worker():
    assert not _place
