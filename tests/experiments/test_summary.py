import math

import numpy as np
import pytest

import superarm as sa
from superarm.experiments.analysis import summary
from superarm.experiments.analysis.study import Study
from superarm.experiments.report import tables
from superarm.experiments.spec.build import Case
from superarm.experiments.store import CellResults

from .conftest import HORIZON

ROUNDS = np.array([1, 10, 100])
FINALS = {  # by k and policy: the regret of three replications
    (2, "A"): [10.0, 12.0, 14.0],
    (2, "B"): [11.0, 13.5, 14.5],
    (4, "A"): [20.0, 24.0, 28.0],
    (4, "B"): [11.0, 13.5, 14.5],
}


def record(final):
    final = np.array(final)
    regret = final[:, None] * np.array([0.0, 0.5, 1.0])
    return CellResults(
        rounds=ROUNDS,
        regret=regret,
        pulls=np.array([[60.0, 40.0, 100.0]] * 3),
        batch_rounds=np.array([1, 100]),
        batches=np.array([[[0, 1], [0, 2]]] * 3),
        seconds=np.array([0.1, 0.2, 0.3]),
        metadata={"instance": "none", "policy": {}, "target": {"kind": "optimal", "value": 1.0, "r_max": None}},
    )


@pytest.fixture(scope="module")
def made(experiment):
    instances = {f"w (k={k})": Case("w", {"k": k}) for k in (4, 2)}
    records = {(f"w (k={k})", policy): record(final) for (k, policy), final in FINALS.items()}
    return Study(None, experiment, {}, instances, {"A": Case("A"), "B": Case("B")}, records)


def test_final_regret_by_hand(made):
    row = next(
        row for row in summary.summarise_final_regret(made) if (row["instance"], row["policy"]) == ("w (k=2)", "A")
    )
    assert row["regret"] == 12.0
    assert row["median"] == 12.0
    assert row["q10"] == pytest.approx(10.4)
    assert row["us_per_round"] == pytest.approx(1e6 * 0.6 / 300)
    assert row["ci_high"] - row["regret"] == pytest.approx(4.302653 * 2.0 / math.sqrt(3.0), rel=1e-6)


def test_ranking_takes_differences_within_replications(made):
    first, second = summary.rank_policies(made, "w (k=2)")
    assert (first.policy, second.policy) == ("A", "B")
    assert first.behind is None
    assert second.behind.value == pytest.approx(1.0)  # of 1, 1.5 and 0.5: far narrower than the spread of either
    assert second.behind.error < 0.5 * second.regret.error
    assert second.p == pytest.approx(second.behind.p)
    assert [ranked.policy for ranked in summary.rank_policies(made, "w (k=4)")] == ["B", "A"]


def test_overall_is_the_mean_rank(made):
    assert sorted(summary.mean_ranks(made)) == [("A", 1.5, 1), ("B", 1.5, 1)]


def test_lines_along_a_sweep_are_sorted_and_have_slopes(made):
    slopes = {line.name: line for line in summary.trace_sweeps(made)}
    assert slopes["A"].x == (2, 4)
    assert slopes["A"].slope.value == pytest.approx(1.0)
    assert slopes["B"].slope.value == pytest.approx(0.0)
    assert slopes["A"].group == "w"
    assert slopes["A"].axis == "k"


def test_a_sweep_of_a_policy_is_a_line_too(made):
    policies = {"A (rho=1)": Case("A", {"rho": 1.0}), "A (rho=2)": Case("A", {"rho": 2.0})}
    records = {("w", label): record([2.0 * case.axes["rho"]] * 3) for label, case in policies.items()}
    study = Study(None, made.experiment, {}, {"w": Case("w")}, policies, records)
    (line,) = summary.trace_sweeps(study)
    assert (line.axis, line.group, line.name) == ("A: rho", "w", "A")
    assert line.slope.value == pytest.approx(1.0)


def test_words_on_an_axis_have_no_slope(made):
    instances = {f"w (file={name})": Case("w", {"file": name}) for name in ("b", "a")}
    records = {(label, "A"): record([1.0, 2.0, 3.0]) for label in instances}
    (line,) = summary.trace_sweeps(Study(None, made.experiment, {}, instances, {"A": Case("A")}, records))
    assert line.x == ("b", "a")
    assert line.slope is None


def test_shares_of_rounds(made):
    assert summary.pull_shares(made, "w (k=2)").tolist() == [[0.6, 0.4, 1.0], [0.6, 0.4, 1.0]]


def test_coverage_is_what_each_item_had(study):
    label, policy = "random (k=2)", "uniform"
    instance, kept = study.instance(label), study.records[label, policy]
    p = instance.p.reshape(8, 3)
    found = summary.item_coverage(study, label)[list(study.records_for(label)).index(policy)]
    expected = np.mean([1.0 - np.prod(1.0 - p[batch], axis=0) for batch in kept.batches[:, 5]], axis=0)
    assert found[:, 5] == pytest.approx(expected)


def test_the_arrow_table_is_tidy(study):
    table = study.table()
    assert table.column_names == ["instance", "policy", "instance.k", "replication", "round", "regret"]
    assert len(table) == 6 * 4 * len(study.records["random (k=2)", "CUCB"].rounds)
    last = table.filter(
        (sa_field("round") == HORIZON) & (sa_field("policy") == "CUCB") & (sa_field("instance.k") == 3.0)
    )
    assert last.column("regret").to_pylist() == study.final_regret("random (k=3)", "CUCB").tolist()
    assert study.summary().column("policy").to_pylist()[:3] == ["CUCB", "BC-UCB", "uniform"]


def sa_field(name):
    import pyarrow.compute as pc

    return pc.field(name)


def test_axes_of_numbers_and_words_fit_into_one_table(study):
    instances = {"a (x=1)": Case("a", {"x": 1}), "b (x=u, y=2)": Case("b", {"x": "u", "y": 2})}
    records = {(label, "A"): record([1.0, 2.0, 3.0]) for label in instances}
    made = Study(None, study.experiment, {}, instances, {"A": Case("A")}, records)
    assert set(made.table().column("instance.x").to_pylist()) == {"1", "u"}
    assert set(made.table().column("instance.y").to_pylist()) == {None, 2.0}


def test_a_study_prints_its_ranking_and_claims(study):
    shown = str(study)
    assert f"random (k=2): regret after {HORIZON} rounds" in shown
    assert "holds: learning helps" in shown


def test_a_caveat_of_several_policies_is_printed_once(study, monkeypatch):
    told = [("A", "", "it assumes much"), ("B", "", ""), ("C", "", "it assumes much"), ("D", "", "it is slow")]
    monkeypatch.setattr(tables, "describe_policies", lambda study: told)
    caveats = [line.strip() for line in tables.format_study(study) if "caveat" in line]
    assert caveats == ["caveat of A, C: it assumes much", "caveat of D: it is slow"]


def test_a_study_was_made_by_this_version(study):
    assert sa.__version__ == study.manifest["versions"]["superarm"]
