"""Data written by version 0.1.0 (tests/fixtures/v0) are read, and continued with the same decisions.

What draws random numbers continues with other ones, and policies that were removed are refused by name. The database of
the service is checked in ``tests/service/test_stored_data.py``.
"""

import gzip
import hashlib
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import superarm as sa
from superarm.cli import main
from superarm.core.component import Component
from superarm.core.describe import build, describe
from superarm.core.errors import InvalidArgument
from superarm.experiments import Study
from tests.stored_runs import continue_agent, instances, numbers, simulate

STORED = Path(__file__).parent / "fixtures" / "v0"
REMOVED = ("JointPolicy", "Failing", "joint_kl_moss", "oracle failing")
SAMPLED = (
    *("BetaPosterior", "AnglePosterior", "EpsilonGreedy", "Uniform", "OneGaussian", "Spread", "StochasticGreedy"),
    *("cts", "angle_ts", "epsilon_greedy", "uniform", "ts_cascade", "oracle stochastic"),
)
"""What draws random numbers, by the names of components and of policies."""
OTHER_TIES = {
    ("coverage", "sliding_window kl_ucb"),
    ("logistic knapsack", "kl_ucb"),
    ("logistic knapsack", "least_played"),
    ("switching", "oracle exhaustive"),
    ("influence", "bcucb_t"),
    ("coverage", "escb_delta"),  # it forgot variances then
}
"""Simulations in which batches of the same optimistic value are told apart in another way, or a fault was repaired."""


def stored(name):
    return json.loads(gzip.decompress((STORED / name).read_bytes()))


AGENTS = stored("agents.json.gz")
DESCRIPTIONS = stored("descriptions.json.gz")


def has_any(words, case):
    return any(word in json.dumps(case) for word in words)


def test_the_stored_files_are_those_that_version_0_1_0_wrote():
    sums = dict(line.split()[::-1] for line in (STORED / "SHA256SUMS").read_text().splitlines())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in STORED.iterdir() if path.is_file()}
    del found["SHA256SUMS"]
    assert found == sums


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_component_is_read_and_described_again(name):
    described = DESCRIPTIONS[name]
    if has_any((*REMOVED, "IndependentCascade"), described):  # influence is read with the graph of its problem
        with pytest.raises(InvalidArgument):
            build(described)
        return
    made = build(described)
    assert build(json.loads(json.dumps(describe(made), allow_nan=False))) == made
    assert not isinstance(made, Component) or ":" not in describe(made)["type"]


def test_an_agent_continues_with_the_same_decisions():
    same = [name for name, case in AGENTS.items() if not has_any((*REMOVED, *SAMPLED), case["state"])]
    assert len(same) == 60
    for name in same:
        case = AGENTS[name]
        assert continue_agent(case["state"], case["widths"], case["eligible"]) == case["next"], name


@pytest.mark.parametrize("name", [name for name, case in AGENTS.items() if not has_any(REMOVED, case["state"])])
def test_an_agent_keeps_its_tally_and_continues_alike_when_it_is_saved_again(name):
    case = AGENTS[name]
    again = json.loads(json.dumps(sa.Agent.from_state(case["state"]).to_state(), allow_nan=False))
    for part in ("pulls", "total"):
        assert np.array_equal(build(again["tally"][part]), build(case["state"]["tally"][part]))
    both = [continue_agent(state, case["widths"], case["eligible"]) for state in (case["state"], again)]
    assert both[0] == both[1]


def test_scores_and_values_are_the_same():
    """To 1e-13, since logarithms of other machines may differ in the last bit."""
    expected = stored("numbers.json.gz")
    for name, values in numbers().items():
        assert values == pytest.approx(expected[name], rel=1e-13, abs=0.0), name


def test_simulations_make_the_same_decisions():
    compared = 0
    for name, instance, policies in instances():
        for policy, played in stored("trajectories.json.gz")[name].items():
            if has_any((*REMOVED, *SAMPLED), policy) or (name, policy) in OTHER_TIES:
                continue
            found = simulate(instance, {policy: policies[policy]})[policy]
            assert found["pulls"] == played["pulls"], (name, policy)
            assert found["regret"] == [pytest.approx(run, rel=1e-12, abs=1e-12) for run in played["regret"]]
            compared += 1
    assert compared == 55


@pytest.fixture
def results(tmp_path):
    """The results directory of 0.1.0."""
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


@pytest.mark.usefixtures("blank_figures")
def test_results_are_reported_and_compared(results):
    assert CliRunner().invoke(main, ["report", str(results)]).exit_code == 0
    assert (results / "report.html").exists()
    compared = CliRunner().invoke(main, ["compare", str(results), str(results)])
    assert compared.exit_code == 0, compared.output
    assert compared.output.count(stored("results.json.gz")["digest"]) == 2


@pytest.mark.usefixtures("blank_figures")
def test_a_run_in_a_directory_of_an_earlier_version_runs_every_cell_again(results):
    """Components are described anew, so that nothing of another version is taken for a result of this one."""
    before = {path.name for path in (results / "cells").iterdir()}
    done = CliRunner().invoke(main, ["run", str(results / "spec.toml"), "--out", str(results), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert f"{len(before)} cells; results go to" in done.stderr
    assert before < {path.name for path in (results / "cells").iterdir()}
    assert Study.load(results).complete
