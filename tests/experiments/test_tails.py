"""Quantiles and locked runs by hand."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import superarm as sa
from superarm.experiments.analysis.claims import judge_claims
from superarm.experiments.analysis.study import Study
from superarm.experiments.analysis.summary import (
    compare_over_instances,
    count_locked,
    single_values,
    summarise_ratios,
    summarise_tails,
)
from superarm.experiments.spec.build import Case
from superarm.experiments.store import CellResults
from superarm.simulation.statistics import share_with_interval

ONE = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1), weights=[1.0, 2.0])
P = [[0.5, 0.5], [0.4, 0.5], [0.1, 0.1]]


def record(regret):
    """A cell with the regret at rounds 1, 50 and 100."""
    return CellResults(
        rounds=np.array([1, 50, 100]),
        regret=np.array(regret, float),
        pulls=np.zeros((len(regret), 3)),
        batch_rounds=np.array([1]),
        batches=np.zeros((len(regret), 1, 1), int),
        seconds=np.zeros(len(regret)),
        metadata={},
    )


def test_a_run_is_locked_if_it_loses_the_gap_in_nearly_every_late_round():
    instance = sa.Instance(ONE, sa.environments.Bernoulli(P))
    assert single_values(instance) == pytest.approx([1.5, 1.4, 0.3])
    # The gap is 0.1: at least 0.9 * 0.1 * 50 = 4.5 in the last 50 rounds.
    assert count_locked(record([[0, 5, 10], [0, 5, 9.4], [0, 0, 60], [0, 1, 1]]), instance) == 2


def test_batches_of_several_arms_and_equal_arms_have_no_locked_runs():
    pairs = sa.Instance(replace(ONE, actions=sa.Subsets(2)), sa.environments.Bernoulli(P))
    equal = sa.Instance(ONE, sa.environments.Bernoulli([P[0], P[0], P[2]]))
    assert count_locked(record([[0, 5, 10]]), pairs) is None
    assert count_locked(record([[0, 5, 10]]), equal) is None


def study_of(regret, claims=(), target=0.0):
    """A study of two policies on the instances a and b, whose regret at the horizon is given."""
    problem = sa.Problem(3, 1, sa.Coverage(), sa.Subsets(2))
    instance = sa.Instance(problem, sa.environments.Bernoulli([[0.6], [0.5], [0.5]]))

    class OfNumbers(Study):
        def instance(self, label):
            return instance

    records = {}
    for (label, policy), values in regret.items():
        cell = record([[0.0, value / 2, value] for value in values])
        records[label, policy] = replace(cell, metadata={"target": {"kind": "optimal", "value": target}})
    experiment = SimpleNamespace(claims=claims)
    cases = {label: Case(label) for label in ("a", "b")}, {policy: Case(policy) for policy in ("new", "old")}
    return OfNumbers(Path(), experiment, {}, *cases, records)


REGRET = {("a", "new"): [2.0, 4.0], ("a", "old"): [6.0, 6.0], ("b", "new"): [8.0, 8.0], ("b", "old"): [2.0, 2.0]}


def test_ratios_over_instances_are_geometric_means():
    study = study_of(REGRET)
    found = compare_over_instances(study, "new", "old", ["a", "b"])
    assert found.mean.value == pytest.approx(np.sqrt(0.5 * 4.0))
    spread = np.std(np.log([0.5, 4.0]), ddof=1) / np.sqrt(2)
    assert np.log(found.mean.high) - np.log(found.mean.value) == pytest.approx(stats.t.ppf(0.975, 1) * spread)
    assert (found.largest, found.where, found.instances) == (pytest.approx(4.0), "b", 2)
    assert compare_over_instances(study_of(REGRET | {("a", "new"): [-1.0, 1.0]}), "new", "old", ["a"]) is None


def test_claims_about_ratios_and_locked_runs():
    claims = [
        {"kind": "geometric", "policy": "new", "than": "old", "below": 1e7, "text": "both"},
        {"kind": "geometric", "policy": "new", "than": "old", "below": 0.6, "instance": "a", "text": "one"},
        {"kind": "locked", "policy": "new", "share": 0.01},
    ]
    study = study_of(REGRET, claims)
    first, second, *locked = judge_claims(study)
    assert (first.outcome, first.instance) == ("holds", "2 instances")
    assert (second.outcome, second.estimate.value) == ("undecided", pytest.approx(0.5))  # one instance has no interval
    assert [judgement.measure for judgement in locked] == ["batches have several arms here"] * 2
    rows = summarise_ratios(study)
    assert [(row["claim"], row["policy"]) for row in rows] == [
        ("both", "new"),
        ("both", "old"),
        ("one", "new"),
        ("one", "old"),
    ]
    assert [row["ratio"] for row in rows[:2]] == pytest.approx([np.sqrt(2.0), 1.0])


def test_shares_of_locked_runs_hold_fail_or_stay_open():
    assert share_with_interval(0, 200).value == 0.0
    # Clopper and Pearson by the beta law
    assert share_with_interval(3, 50).low == pytest.approx(stats.beta.ppf(0.025, 3, 48))
    assert share_with_interval(3, 50).high == pytest.approx(stats.beta.ppf(0.975, 4, 47))


def test_regret_against_the_optimum_adds_what_the_target_lacks():
    assert summarise_tails(study_of(REGRET))[0]["optimal_low"] is None  # no claim that compares over instances
    claim = {"kind": "geometric", "policy": "new", "than": "old", "below": 1.0}
    rows = summarise_tails(study_of(REGRET, [claim], target=0.79))
    # The best pair has 1 - 0.4 * 0.5 = 0.8; 100 rounds.
    assert rows[0]["optimal_low"] == rows[0]["optimal_high"] == pytest.approx(3.0 + 100 * 0.01)
    assert (rows[0]["earlier"], rows[0]["q99"]) == pytest.approx((1.5, 3.98))
