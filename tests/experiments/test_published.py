"""Published means beside measured ones: Welch's test, Holm's method, and what a drawing can be misread by.

Rates are simulated with a fixed seed; a test of a rate fails falsely with probability below 1e-5.
"""

import math
import re

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import superarm as sa
from superarm.cli import main
from superarm.experiments import Experiment, Threads
from superarm.experiments.analysis.published import compare_published
from superarm.experiments.analysis.study import Study
from superarm.experiments.execution.cells import list_cells
from superarm.experiments.spec.build import Case
from superarm.experiments.spec.experiment import list_published
from superarm.experiments.store import CellResults

ROUNDS = np.array([1, 10, 100])


def _study(samples):
    """A study with one policy, whose final regrets on instance n are ``samples[n]``."""
    target = {"target": {"kind": "optimal"}}
    records = {}
    for n, final in enumerate(samples):
        regret = np.outer(final, [0.0, 0.5, 1.0])
        runs = len(final)
        none = np.zeros((runs, 3, 1))
        records[f"i{n}", "A"] = CellResults(ROUNDS, regret, np.ones((runs, 2)), ROUNDS, none, np.ones(runs), target)
    return Study(None, None, {}, {i: Case(i) for i, _ in records}, {"A": Case("A")}, records)


def _claims(numbers):
    return [{"kind": "reported", "policy": "A", "instance": f"i{n}", **one} for n, one in enumerate(numbers)]


def test_it_is_student_s_test_with_the_freedom_of_the_smaller_sample():
    rng = np.random.default_rng(1)
    here, there = rng.normal(100.0, 8.0, (6, 5)), rng.normal(103.0, 20.0, (6, 20))
    mean, deviation = there.mean(1), there.std(1, ddof=1)
    given = [{"regret": m, "deviation": d, "runs": 20} for m, d in zip(mean, deviation, strict=True)]
    given[3:] = [{"regret": one["regret"], "error": one["deviation"] / math.sqrt(20)} for one in given[3:]]
    cells = compare_published(_study(here), _claims(given))
    for n, cell in enumerate(cells):
        welch = stats.ttest_ind(here[n], there[n], equal_var=False).statistic
        assert cell.difference.value == pytest.approx(here[n].mean() - mean[n])
        assert cell.difference.p == pytest.approx(2 * stats.t.sf(abs(welch), 4), rel=1e-9)
        half = stats.t.ppf(0.975, 4) * (here[n].mean() - mean[n]) / welch
        assert cell.difference.error == pytest.approx(half)


def test_with_the_number_of_runs_alone_the_deviation_is_the_one_measured_here():
    here = np.random.default_rng(2).normal(50.0, 4.0, 7)
    (cell,) = compare_published(_study([here]), _claims([{"regret": 47.0, "runs": 30}]))
    t = (here.mean() - 47.0) / (here.std(ddof=1) * math.sqrt(1 / 7 + 1 / 30))
    assert cell.difference.p == pytest.approx(2 * stats.t.sf(abs(t), 6), rel=1e-9)


@pytest.mark.parametrize("kind", ["deviation", "error", "runs", "exact"])
def test_at_most_one_true_cell_in_twenty_is_called_different(kind):
    """3,000 cells that agree: at most .05 + 5 standard errors, where Welch's freedom has .085 with three runs."""
    rng, n, runs = np.random.default_rng(4), 3000, 3
    here, there = rng.normal(10.0, 2.0, (n, runs)), rng.normal(10.0, 2.0, (n, 20))
    mean, spread = there.mean(1), there.std(1, ddof=1)
    given = {
        "deviation": [{"regret": m, "deviation": s, "runs": 20} for m, s in zip(mean, spread, strict=True)],
        "error": [{"regret": m, "error": s / math.sqrt(20)} for m, s in zip(mean, spread, strict=True)],
        "runs": [{"regret": m, "runs": 20} for m in mean],
        "exact": [{"regret": 10.0, "reading": 0.0}] * n,
    }[kind]
    found = np.array([cell.difference.p < 0.05 for cell in compare_published(_study(here), _claims(given))])
    assert 0.01 < found.mean() < 0.05 + 5 * math.sqrt(0.05 * 0.95 / n)


def test_holm_counts_the_cells_of_the_table():
    """Ten cells of which two differ: p times ten, times nine, and so on, never falling."""
    rng = np.random.default_rng(3)
    here = rng.normal(0.0, 1.0, (10, 12)) + np.array([3.0, 1.3] + [0.0] * 8)[:, None]
    cells = compare_published(_study(here), _claims([{"regret": 0.0, "reading": 0.0}] * 10))
    order = sorted(cells, key=lambda cell: cell.difference.p)
    largest = 0.0
    for rank, cell in enumerate(order):
        largest = max(largest, min(1.0, cell.difference.p * (10 - rank)))
        assert cell.p == pytest.approx(largest)
        assert cell.agrees is (largest > 0.05)
    assert [cell.agrees for cell in cells[:2]] == [False, False]


def test_a_number_from_a_drawing_may_be_misread():
    here = np.array([9.9, 10.0, 10.1])
    near, far = compare_published(
        _study([here, here]), _claims([{"regret": 10.5, "reading": 0.6}, {"regret": 10.5, "reading": 0.1}])
    )
    assert near.agrees
    assert not far.agrees
    assert near.difference.error == pytest.approx(far.difference.error + 0.5)


def test_a_number_of_an_earlier_round():
    (cell,) = compare_published(
        _study([np.array([4.0, 6.0, 8.0])]), _claims([{"regret": 3.0, "reading": 1.0, "round": 10}])
    )
    assert cell.mean == pytest.approx(3.0)


def test_nothing_follows_from_a_single_run():
    (cell,) = compare_published(_study([np.array([4.0])]), _claims([{"regret": 3.0, "error": 1.0}]))
    assert cell.agrees is None


FILE = """
name = "mine"
horizon = 50
replications = 6
claims = [
  { kind = "reported", instance = "a", policy = "UCB", regret = 4.6, runs = 20 },
  { kind = "reported", instance = "b", policy = "UCB", regret = 900.0, error = 1.0 },
  { kind = "less", policy = "UCB", than = "TS" },
]
published = { paper = "A. Paper", place = "Table 9", read = "print", differs = "The horizon." }

[policies]
UCB = { policy = "cascade_ucb1" }
TS = { policy = "ts_cascade" }

[instances]
a = { generator = "cascade", n_arms = 4 }
b = { generator = "cascade", n_arms = 5 }
"""


def _reproduce(*arguments):
    return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


def test_the_command_shows_published_beside_measured_and_does_not_run_again(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text(FILE)
    arguments = (tmp_path / "mine.toml", "--out", tmp_path / "out", "--workers", 1)
    first = _reproduce(*arguments)
    assert first.exit_code == 0, first.output
    assert "mine: 1 of 2 agree; differs: UCB on b (A. Paper, Table 9)" in first.output
    page = (tmp_path / "out" / "reproduction.html").read_text()
    for words in ("A. Paper, Table 9, read in print. 1 of 2 numbers agree", "The horizon.", "<svg"):
        assert words in page
    rows = (tmp_path / "out" / "reproduction.csv").read_text().splitlines()
    assert [row.split(",")[:3] for row in rows[1:]] == [["mine", "a", "UCB"], ["mine", "b", "UCB"]]
    assert Study.load(tmp_path / "out" / "mine").policies.keys() == {"UCB"}, "TS has no published number"
    monkeypatch.setattr(Threads, "perform", None)
    assert "1 of 2 agree" in _reproduce(*arguments).output


def test_quick_is_each_policy_once(tmp_path):
    (tmp_path / "mine.toml").write_text(FILE.replace(', differs = "The horizon."', ""))
    output = _reproduce(tmp_path / "mine.toml", "--quick", "--out", tmp_path / "out", "--workers", 1).output
    assert "mine: 1 of 1 agree" in output
    assert (tmp_path / "out" / "reproduction.html").exists()
    study = Study.load(tmp_path / "out" / "mine")
    assert {labels: len(record.regret) for labels, record in study.records.items()} == {("a", "UCB"): 4}


def test_the_results_are_listed_and_a_file_without_numbers_is_refused(tmp_path):
    listed = _reproduce("--list").output.splitlines()
    assert [line.partition(":")[0] for line in listed] == list_published()
    refused = _reproduce("quickstart", "--out", tmp_path)
    assert refused.exit_code == 2
    assert "no claim of the kind reported" in refused.output


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"round": 60}, ""),
        ({"round": 61}, "round 61 is beyond the horizon of 60; give horizon = 61 or more, or an earlier round"),
        ({"round": 0}, "0 is not a whole number >= 1"),
        ({"runs": 2.5}, "2.5 is not a whole number >= 1"),
        ({"error": -6}, "claims.0.error: -6 is not a number >= 0; give a number >= 0"),
        ({"reading": math.inf}, "claims.0.reading: inf is not a number >= 0; give a number >= 0"),
        ({"deviation": -1.0, "runs": 5}, "claims.0.deviation: -1.0 is not a number >= 0; give a number >= 0"),
        ({"regret": "9"}, "claims.0.regret: '9' is not a number; give a number"),
    ],
)
def test_published_numbers_out_of_range_are_refused(change, says):
    exactness = {} if "deviation" in change else {"error": 0.0}
    claim = {"kind": "reported", "policy": "A", "regret": -3.0} | exactness | change
    if not says:
        Experiment(**SPEC | {"horizon": 60, "claims": [claim]})
        return
    with pytest.raises(sa.SuperarmError, match=re.escape(says)):
        Experiment(**SPEC | {"horizon": 60, "claims": [claim]})


SPEC = {
    "name": "x",
    "instances": {
        "both": {"generator": "cascade", "n_arms": 4},
        "one": {"generator": "cascade", "n_arms": 5, "policies": ["B"]},
    },
    "policies": {"A": {"policy": "cascade_ucb1"}, "B": {"policy": "ts_cascade"}},
    "horizon": 20,
    "replications": 2,
}


def test_an_instance_is_played_by_the_policies_that_it_names(tmp_path):
    experiment = Experiment(**SPEC)
    pairs = [("both", "A"), ("both", "B"), ("one", "B")]
    assert [(c.source.case.label, c.policy_case.label) for c in list_cells(experiment)] == pairs
    study = experiment.run(tmp_path, Threads(1), progress=False)
    assert study.complete
    assert list(study.records) == pairs
    assert "incomplete" not in str(study)
    study.report()
