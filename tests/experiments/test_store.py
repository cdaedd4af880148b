import numpy as np
import pyarrow.parquet as pq
import pytest

from superarm.experiments import store
from superarm.experiments.execution.cells import list_cells


def test_a_cell_is_read_back_to_the_bit(study, experiment, tmp_path):
    cell = list_cells(experiment)[0]
    first = store.read_cell(study.directory, cell.digest)
    store.write_cell(tmp_path, cell, first)
    second = store.read_cell(tmp_path, cell.digest)
    assert second.digest == first.digest
    for field in ("rounds", "regret", "pulls", "batch_rounds", "batches", "seconds"):
        assert np.array_equal(getattr(first, field), getattr(second, field))


def test_a_row_is_a_replication_that_other_tools_can_read(study, experiment):
    table = pq.read_table(store.cell_file(study.directory, list_cells(experiment)[0].digest))
    assert table.column("replication").to_pylist() == [0, 1, 2, 3]
    row = table.to_pylist()[2]
    assert len(row["round"]) == len(row["regret"])
    assert row["round"][-1] == experiment.horizon
    assert len(row["pulls"]) == 8


def test_batches_fit_the_pulls(study, experiment):
    record = study.records["random (k=3)", "CUCB"]
    assert record.batch_rounds[0] == 1
    assert record.batch_rounds[-1] == experiment.horizon
    assert record.pulls.sum(axis=1).tolist() == [3.0 * experiment.horizon] * 4
    assert all(len(set(batch)) == 3 and batch.min() >= 0 for batch in record.batches.reshape(-1, 3))


def test_the_digest_tells_any_change_of_a_number(study):
    record = study.records["random (k=2)", "CUCB"]
    changed = record.regret.copy()
    changed[1, 3] = np.nextafter(changed[1, 3], np.inf)
    assert store.CellResults(**(vars(record) | {"regret": changed})).digest != record.digest


def test_a_damaged_file_is_not_a_cell(study, experiment, tmp_path):
    cell = list_cells(experiment)[0]
    store.write_cell(tmp_path, cell, store.read_cell(study.directory, cell.digest))
    assert store.has_cell(tmp_path, cell.digest)
    path = store.cell_file(tmp_path, cell.digest)
    path.write_bytes(path.read_bytes()[:-20])
    assert not store.has_cell(tmp_path, cell.digest)


def test_a_write_that_fails_leaves_nothing_behind(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")

    def fail(partial):
        partial.write_text("half of it")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.write_atomically(path, fail)
    assert [(f.name, f.read_text()) for f in tmp_path.iterdir()] == [("file", "before")]


def test_the_instance_is_kept_whole(study, experiment):
    source = list_cells(experiment)[0].source
    kept = store.read_instance(study.directory, source.digest)
    assert np.array_equal(kept.p, source.instance.p)
    assert kept.problem.k == 2
