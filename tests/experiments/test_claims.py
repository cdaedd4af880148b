import dataclasses

import numpy as np
import pytest

from superarm.experiments.analysis.claims import judge_claims
from superarm.experiments.analysis.study import Study
from superarm.experiments.spec.build import Case
from superarm.experiments.store import CellResults

ROUNDS = np.array([1, 10, 100, 1000])


def _record(rate, spread=0.01):
    final = rate * (1.0 + spread * np.array([-1.0, 0.0, 1.0]))
    regret, target = final[:, None] * np.log(ROUNDS), {"target": {"kind": "optimal"}}
    return CellResults(ROUNDS, regret, np.ones((3, 2)), ROUNDS, np.zeros((3, 4, 1)), np.ones(3), target)


def _study(experiment, claims, a, b, spread=0.01):
    instances = {f"w (k={k})": Case("w", {"k": k}) for k in (2, 4)}
    records = {}
    for instance, case in instances.items():
        records[instance, "A"] = _record(a(case.axes["k"]), spread)
        records[instance, "B"] = _record(b(case.axes["k"]), spread)
    made = dataclasses.replace(experiment, claims=())
    object.__setattr__(made, "claims", tuple(claims))
    return Study(None, made, {}, instances, {"A": Case("A"), "B": Case("B")}, records)


@pytest.mark.parametrize(
    ("claim", "word", "number"),
    [
        ({"kind": "less", "policy": "A", "than": "B"}, "holds", -np.log(1000)),
        ({"kind": "less", "policy": "B", "than": "A"}, "fails", np.log(1000)),
        ({"kind": "less", "policy": "A", "than": "B", "factor": 0.5}, "undecided", 0.0),
        ({"kind": "best", "policy": "A", "rivals": ["A", "B"], "factor": 2.0}, "holds", -np.log(1000)),
        ({"kind": "best", "policy": "B", "rivals": ["A", "B"]}, "fails", np.log(1000)),
        ({"kind": "towards", "policy": "A", "than": "B", "rivals": "A", "instance": ["w"]}, "holds", -np.log(1000) / 2),
        ({"kind": "towards", "policy": "B", "than": "B", "rivals": "A", "share": 0.1}, "fails", np.log(1000) / 10),
        ({"kind": "growth", "policy": "A", "below": 1.5}, "holds", 1.0),
        ({"kind": "growth", "policy": "A", "above": 1.5}, "fails", 1.0),
        ({"kind": "growth", "policy": "A", "above": 1.0}, "undecided", 1.0),
        ({"kind": "reported", "policy": "A", "regret": 6.8, "error": 0.1}, "holds", np.log(1000) - 6.8),
        ({"kind": "reported", "policy": "A", "regret": 5.5, "error": 0.1}, "fails", np.log(1000) - 5.5),
    ],
)
def test_a_claim_is_decided_by_its_number(experiment, claim, word, number):
    judgements = judge_claims(_study(experiment, [claim], lambda k: 1.0, lambda k: 2.0))
    assert [v.instance for v in judgements] == ["w (k=2)", "w (k=4)"]
    for judgement in judgements:
        assert judgement.outcome == word
        assert judgement.estimate.value == pytest.approx(number, abs=1e-9)


@pytest.mark.parametrize(
    ("limit", "word"), [({"above": 0.5}, "holds"), ({"below": 0.5}, "fails"), ({"above": 1.5}, "fails")]
)
def test_a_slope_is_one_number_for_the_sweep(experiment, limit, word):
    claim = {"kind": "slope", "policy": "A", "against": "k", **limit}
    (judgement,) = judge_claims(_study(experiment, [claim], float, lambda k: 1.0))
    assert judgement.estimate.value == pytest.approx(1.0)
    assert judgement.outcome == word
    assert judgement.instance == "w"


def test_there_is_no_way_to_a_rival_that_is_no_better(experiment):
    claim = {"kind": "towards", "policy": "A", "than": "A", "rivals": ["B"]}
    judgements = judge_claims(_study(experiment, [claim], lambda k: 1.0, lambda k: 2.0))
    assert {judgement.measure for judgement in judgements} == {"no rival is better than A here"}
    assert {judgement.outcome for judgement in judgements} == {"undecided"}


def test_a_claim_about_one_instance_is_not_checked_on_others(experiment):
    claim = {"kind": "growth", "policy": "A", "below": 9.0, "instance": "other"}
    assert judge_claims(_study(experiment, [claim], lambda k: 1.0, lambda k: 1.0)) == []


def test_all_kinds_on_a_real_study(study):
    judgements = judge_claims(study)
    words = [judgement.outcome for judgement in judgements]
    assert words[:4] == ["holds", "holds", "holds", "fails"]  # learning helps, twice; the slope; growth above 1e9
    assert judgements[-1].text == "BC-UCB stays below Theorem 1 (BC-UCB)"
