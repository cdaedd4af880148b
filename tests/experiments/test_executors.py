import contextlib
import dataclasses
import multiprocessing
import os
import signal
import threading

import pytest

from superarm.core.errors import InvalidArgument
from superarm.experiments import Experiment, Processes, Threads, run
from superarm.experiments.execution import executors
from superarm.experiments.execution.cells import divide
from superarm.experiments.execution.executors import TaskProgress

from .conftest import HORIZON
from .interference import ActAfterFirstTask, CountingBar


def test_one_thread_and_many_give_the_same_bits(study, experiment, tmp_path):
    for executor in (Threads(2), Threads(5)):
        found = run(experiment, tmp_path / repr(executor), executor, progress=False)
        assert found.digest == study.digest, executor


def test_progress_counts_every_round(experiment):
    bar = CountingBar()
    tasks = divide(experiment.cells(), 2)
    done = [task.number for task, _ in Threads(2).perform(tasks, TaskProgress(bar))]
    assert sorted(done) == list(range(len(tasks)))
    assert bar.rounds == 6 * 4 * HORIZON


def test_a_restarted_task_is_not_counted_twice():
    bar = CountingBar()
    progress = TaskProgress(bar)
    for number, done in [(0, 10), (1, 5), (0, 4), (0, 12)]:
        progress.report(number, done)
    assert bar.rounds == 17


def test_processes_are_started_for_much_work_and_threads_where_kernels_do_most_of_it():
    def cells(n_arms, horizon):
        instances = {"random": {"generator": "random_coverage", "n_arms": n_arms, "n_items": 10, "k": 2}}
        policies = {"BC-UCB": {"policy": "bc_ucb"}, "CUCB": {"policy": "cucb"}}
        return Experiment("x", instances, policies, horizon=horizon, replications=20).cells()

    cores = Threads().workers
    assert executors.threads_for(cells(10, 100)) == Threads(1)
    assert executors.threads_for(cells(2000, 100)) == Threads(cores)
    assert executors.processes_for(cells(10, 100)) == Threads(1)
    assert executors.processes_for(cells(10, 100), workers=3) == Threads(3)
    assert executors.processes_for(cells(10, 50_000), workers=3) == Processes(3)
    assert executors.processes_for(cells(10, 50_000)).workers == cores


def test_processes_of_which_one_is_killed_give_the_same_bits(study, experiment, tmp_path, monkeypatch):
    bar = CountingBar()
    monkeypatch.setattr("superarm.experiments.execution.runner.progress_bar", lambda *_: contextlib.nullcontext(bar))
    pools, start_pool = [], executors._perform_in_pool

    def count_pools(workers, tasks, progress):
        pools.append(len(tasks))
        return start_pool(workers, tasks, progress)

    monkeypatch.setattr(executors, "_perform_in_pool", count_pools)

    def kill_workers():
        """All are stopped first, so that those that are left finish nothing while one is killed."""
        workers = [worker.pid for worker in multiprocessing.active_children()]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in workers:
                os.kill(pid, number)

    found = run(experiment, tmp_path, ActAfterFirstTask(Processes(2), kill_workers))
    assert pools[0] == 12
    assert 0 < pools[1] < 12  # a second pool played what was left
    assert bar.rounds == 6 * 4 * HORIZON  # what was played twice is counted once
    assert found.digest == study.digest


def test_workers_that_always_die_are_given_up(experiment, monkeypatch):
    def break_pool(workers, tasks, progress):
        raise executors.BrokenProcessPool
        yield

    monkeypatch.setattr(executors, "_perform_in_pool", break_pool)
    tasks = divide(experiment.cells(), 1)
    with pytest.raises(executors.SuperarmError, match=rf"died 4 times and {len(tasks)} tasks are unfinished"):
        list(Processes(1).perform(tasks, TaskProgress(CountingBar())))


def test_a_worker_process_reports_and_stops_as_its_parent_says(experiment, monkeypatch):
    """What a worker process is given when it starts is what its tasks use."""
    reports, stop = [], threading.Event()
    monkeypatch.setattr(executors, "_worker", {"report": lambda *report: reports.append(report), "stop": stop})
    task = dataclasses.replace(divide(experiment.cells(), 2)[0], number=7)
    assert executors._play_in_worker(task).done
    assert reports[-1] == (7, task.rounds)
    stop.set()
    assert not executors._play_in_worker(task).done


def test_a_caller_that_stops_iterating_leaves_no_threads_behind(experiment):
    before = threading.active_count()
    results = Threads(2).perform(divide(experiment.cells(), 2), TaskProgress(CountingBar()))
    next(results)
    results.close()
    assert threading.active_count() <= before


def test_no_workers_are_refused():
    for kind in (Threads, Processes):
        with pytest.raises(InvalidArgument, match="workers"):
            kind(0)
