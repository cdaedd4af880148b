"""Data written by version 0.1.0 (tests/fixtures/v0) are read, and continued with the same decisions.

The database of the service is checked in ``tests/service/test_stored_data.py``.
"""

import gzip
import hashlib
import importlib
import json
import pkgutil
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from halley import kl_upper_by_halley

import superarm as sa
from superarm import describe as descriptions
from superarm._jit import component
from superarm.cli import main
from superarm.core.describe import build, describe
from superarm.experiments import Study
from superarm.indices import kl
from superarm.core.streams import run_streams
from tests.stored_runs import continue_agent, instances, numbers, simulate

STORED = Path(__file__).parent / "fixtures" / "v0"


def stored(name):
    return json.loads(gzip.decompress((STORED / name).read_bytes()))


AGENTS = stored("agents.json.gz")
DESCRIPTIONS = stored("descriptions.json.gz")
TRAJECTORIES = stored("trajectories.json.gz")
INSTANCES = {name: (instance, policies) for name, instance, policies in instances()}


def test_the_stored_files_are_those_that_version_0_1_0_wrote():
    sums = dict(line.split()[::-1] for line in (STORED / "SHA256SUMS").read_text().splitlines())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in STORED.iterdir() if path.is_file()}
    del found["SHA256SUMS"]
    assert found == sums


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_continues_with_the_same_decisions(name):
    case = AGENTS[name]
    assert continue_agent(case["state"], case["widths"], case["eligible"]) == case["next"]


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_saved_again_continues_with_the_same_decisions(name):
    case = AGENTS[name]
    again = json.loads(json.dumps(sa.Agent.from_state(case["state"]).to_state(), allow_nan=False))
    assert again["policy"] == case["state"]["policy"]
    assert again["problem"] == case["state"]["problem"]
    assert continue_agent(again, case["widths"], case["eligible"]) == case["next"]


def import_components():
    for module in pkgutil.walk_packages(sa.__path__, "superarm."):
        if module.name.split(".")[1] in {"indices", "rewards", "actions", "environments", "oracles", "policies"}:
            importlib.import_module(module.name)


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_component_has_the_same_description(name):
    import_components()
    described = DESCRIPTIONS[name]
    assert described["type"] == name
    assert describe(build(described)) == described


@component
class Renamed(NamedTuple):
    new: float = 1.0


def test_a_moved_class_keeps_its_stored_name_and_fields(monkeypatch):
    place = f"{__name__}:Renamed"
    monkeypatch.setitem(descriptions._STORED_NAMES, place, "superarm.before:Old")
    monkeypatch.setitem(descriptions._STORED_FIELDS, place, {"new": "old"})
    assert describe(Renamed(2.0)) == {"type": "superarm.before:Old", "old": 2.0}
    assert build({"type": "superarm.before:Old", "old": 2.0}) == Renamed(2.0)
    assert build({"type": place, "old": 2.0}) == Renamed(2.0)


def test_stored_names_are_unambiguous():
    import_components()
    places = set(descriptions._STORED_NAMES) | set(descriptions._STORED_FIELDS)
    assert places <= set(descriptions.components), "a table of describe.py names a class that does not exist"
    names = list(descriptions._STORED_NAMES.values())
    assert len(set(names)) == len(names)
    assert not set(names) & (set(descriptions.components) - set(descriptions._STORED_NAMES))


def test_scores_and_values_are_the_same():
    """To 1e-13, since logarithms and sines of other machines may differ in the last bit."""
    expected = stored("numbers.json.gz")
    found = numbers(run_streams(np.random.SeedSequence(3)).policy)
    assert set(found) == set(expected)
    for name, values in found.items():
        assert values == pytest.approx(expected[name], rel=1e-13, abs=0.0), name


@pytest.fixture
def kl_bound_of_0_1_0(monkeypatch):
    """The KL bound to the last bit as it was; today's differs in the last places, which decides ties differently."""

    def bounds(p, first, n, x, q):
        q[first : first + n] = [kl_upper_by_halley(float(mean), x) for mean in p[first : first + n]]

    monkeypatch.setattr(kl, "upper_confidence", kl_upper_by_halley)
    monkeypatch.setattr(kl, "upper_confidences", bounds)


@pytest.mark.usefixtures("kl_bound_of_0_1_0")
@pytest.mark.parametrize("name", TRAJECTORIES)
def test_simulations_make_the_same_decisions(name):
    found = simulate(*INSTANCES[name])
    assert list(found) == list(INSTANCES[name][1])
    for policy, played in TRAJECTORIES[name].items():
        assert found[policy]["pulls"] == played["pulls"], policy
        assert found[policy]["regret"] == [pytest.approx(run, rel=1e-12, abs=1e-12) for run in played["regret"]], policy


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The results directory of 0.1.0; the version is part of a cell's digest."""
    monkeypatch.setattr(sa, "__version__", "0.1.0")
    with tarfile.open(STORED / "results.tar.gz") as archive:
        if hasattr(tarfile, "data_filter"):  # the argument filter= of extractall came with Python 3.11.4
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(tmp_path / "results")
    return tmp_path / "results"


def test_results_are_read(results):
    expected = stored("results.json.gz")
    study = Study.load(results)
    assert study.complete
    assert study.digest == expected["digest"]
    for (world, policy), record in study.records.items():
        cell = expected["cells"].pop(f"{policy} on {world}")
        assert record.digest == cell["numbers"]
        assert record.regret[:, -1].tolist() == cell["final"]
        assert record.pulls.tolist() == cell["pulls"]
        assert study.instance(world).problem.n_arms == 8
    assert not expected["cells"]


def test_cells_have_the_same_digests(results):
    expected = stored("results.json.gz")
    cells = sa.experiments.load(results / "spec.toml").cells()
    assert sorted(cell.digest for cell in cells) == expected["files"]
    assert sorted({cell.source.digest for cell in cells}) == expected["instances"]


@pytest.mark.usefixtures("blank_figures")
def test_a_run_finds_its_cells_done_and_reports(results):
    """Nothing is run again; report and comparison give the numbers of 0.1.0."""
    before = {path: path.stat().st_mtime_ns for path in (results / "cells").iterdir()}
    command = ["run", str(results / "spec.toml"), "--out", str(results), "--workers", "1"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    n = len(before)
    assert f"{n} cells, {n} of them already done" in done.output
    assert {path: path.stat().st_mtime_ns for path in (results / "cells").iterdir()} == before
    assert (results / "report.html").exists()
    compared = CliRunner().invoke(main, ["compare", str(results), str(results)])
    assert compared.exit_code == 0, compared.output
    assert compared.output.count(stored("results.json.gz")["digest"]) == 2
