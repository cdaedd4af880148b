import dataclasses
import json

import numpy as np
import pytest

import superarm as sa
from superarm.experiments import Experiment, Study, Threads, run, store
from superarm.experiments.execution.cells import divide, list_cells


def _times(directory):
    return {path.name: path.stat().st_mtime_ns for path in (directory / "cells").iterdir()}


@dataclasses.dataclass(frozen=True)
class Interrupted:
    """Threads that are interrupted after some tasks, as by Ctrl-C."""

    tasks: int

    def capacity(self):
        return 5

    def perform(self, tasks, progress):
        for n, done in enumerate(Threads(1).perform(tasks, progress), 1):
            yield done
            if n == self.tasks:
                raise KeyboardInterrupt


def test_a_cell_is_what_simulate_returns(study, experiment):
    instance = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
    policies = {"CUCB": sa.cucb(), "uniform": sa.uniform()}
    rounds = study.records["random (k=2)", "CUCB"].rounds
    results = sa.simulate(instance, policies, experiment.horizon, 4, seed=5, rounds=rounds, progress=False)
    for name in policies:
        record = study.records["random (k=2)", name]
        assert np.array_equal(record.regret, results.regret[name])
        assert np.array_equal(record.pulls, results.pulls[name])


def test_cells_of_an_instance_have_one_target(experiment, tmp_path):
    found = run(dataclasses.replace(experiment, target="approximation", claims=()), tmp_path, progress=False)
    for instance in found.instances:
        records = found.records_for(instance)
        assert len(records) > 1
        assert len({record.metadata["target"]["value"] for record in records.values()}) == 1
        assert all(record.metadata["target"]["value"] > 0.0 for record in records.values())


def test_what_is_there_is_not_run_again(study, experiment):
    before = _times(study.directory)
    again = run(experiment, study.directory, Threads(1), progress=False)
    assert _times(study.directory) == before
    assert again.digest == study.digest


@pytest.mark.usefixtures("blank_figures")
def test_where_and_when_a_cell_was_computed_is_kept_by_later_runs(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "now", lambda: "2026-01-01T10:00:00+00:00")
    first = run(experiment, tmp_path, Threads(1), progress=False)
    monkeypatch.setattr(store, "now", lambda: "2026-02-02T20:00:00+00:00")
    monkeypatch.setattr(store, "machine", lambda: {"system": "Plan 9", "cores": 7})
    monkeypatch.setattr(store, "versions", lambda: {"superarm": "99"})
    second = run(experiment, tmp_path, Threads(2), progress=False)
    assert second.provenance == first.provenance
    assert first.provenance["processor_seconds"] == pytest.approx(sum(r.seconds.sum() for r in first.records.values()))
    entries = json.loads((tmp_path / "manifest.json").read_text())["cells"]
    assert all(entry["computed"]["finished"].startswith("2026-01-01") for entry in entries)
    policies = {**experiment.policies, "CUCB": {"policy": "cucb", "rho": 1.0}}
    third = run(dataclasses.replace(experiment, policies=policies), tmp_path, Threads(1), progress=False)
    page = third.report().read_text(encoding="utf-8")
    assert "2026-01-01 10:00 UTC" in page
    assert "2026-02-02 20:00 UTC" in page
    assert f"{sa.__version__}; 99" in page or f"99; {sa.__version__}" in page
    assert "Plan 9, 7 cores" in page


def test_only_what_changed_is_run(study, experiment, tmp_path):
    run(experiment, tmp_path, Threads(1), progress=False)
    before = _times(tmp_path)
    policies = {**experiment.policies, "CUCB": {"policy": "cucb", "rho": 1.0}}
    changed = run(dataclasses.replace(experiment, policies=policies), tmp_path, Threads(1), progress=False)
    after = _times(tmp_path)
    assert len(after) == len(before) + 2  # the two cells of CUCB
    assert all(after[name] == time for name, time in before.items())
    same, other = ("random (k=2)", "BC-UCB"), ("random (k=2)", "CUCB")
    assert changed.records[same].digest == study.records[same].digest
    assert changed.records[other].digest != study.records[other].digest


def test_an_interrupted_run_continues_to_the_same_numbers(study, experiment, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(experiment, tmp_path, Interrupted(9), progress=False)
    before = _times(tmp_path)
    assert 0 < len(before) < 6
    part = Study.load(tmp_path)
    assert not part.complete
    assert part.manifest["finished"] is None
    whole = run(experiment, tmp_path, Threads(2), progress=False)
    assert whole.complete
    assert whole.digest == study.digest
    after = _times(tmp_path)
    assert all(after[name] == time for name, time in before.items())


def test_finished_replications_of_an_unfinished_cell_are_kept(study, experiment, tmp_path, monkeypatch):
    played = []
    perform = Threads.perform

    def recording(self, tasks, progress):
        played.extend((task.cell.digest, r) for task in tasks for r in range(task.first, task.last))
        return perform(self, tasks, progress)

    monkeypatch.setattr(Threads, "perform", recording)
    with pytest.raises(KeyboardInterrupt):
        run(experiment, tmp_path, Interrupted(2), progress=False)  # four tasks per cell, of one replication each
    assert not (tmp_path / "cells").exists()
    (cell,) = (tmp_path / "parts").iterdir()
    assert sorted(path.name for path in cell.iterdir()) == ["0.npz", "1.npz"]
    (cell / "1.npz").write_bytes(b"cut off")
    everything = set(played)
    played.clear()
    whole = run(experiment, tmp_path, Threads(2), progress=False)
    assert everything - set(played) == {(cell.name, 0)}
    assert whole.digest == study.digest
    assert not (tmp_path / "parts").exists()


def test_the_manifest_tells_what_was_run(study, experiment):
    manifest = json.loads((study.directory / "manifest.json").read_text())
    assert manifest["spec"] == experiment.digest
    assert manifest["versions"]["superarm"] == sa.__version__
    assert manifest["seeds"] == {"root": 5, "spawn_keys": [[0], [1], [2], [3]]}
    assert manifest["machine"]["cores"] >= 1
    assert [entry["digest"] for entry in manifest["cells"]] == [cell.digest for cell in list_cells(experiment)]
    for entry in manifest["cells"]:
        assert store.read_cell(study.directory, entry["digest"]).digest == entry["results"]


def test_the_spec_is_kept(study, experiment):
    assert Study.load(study.directory).experiment.digest == experiment.digest


def test_tasks_cover_every_replication_once(experiment):
    grid = list_cells(experiment)
    for workers in (1, 2, 50):
        tasks = divide(grid, workers)
        for cell in grid:
            played = [r for task in tasks if task.cell == cell for r in range(task.first, task.last)]
            assert sorted(played) == [0, 1, 2, 3]
        assert [task.number for task in tasks] == list(range(len(tasks)))


def test_the_same_cell_under_two_names_runs_once(experiment, tmp_path):
    twice = Experiment(
        name="twice",
        instances={"random": {"generator": "random_coverage", "n_arms": 8, "n_items": 3, "k": 2}},
        policies={"a": sa.cucb(), "b": sa.cucb()},
        horizon=20,
        replications=2,
    )
    study = run(twice, tmp_path, Threads(1), progress=False)
    assert len(_times(tmp_path)) == 1
    assert set(study.records) == {("random", "a"), ("random", "b")}
