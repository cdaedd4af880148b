import dataclasses

import superarm as sa
from superarm.experiments.execution.cells import Cell, NamedInstance, list_cells
from superarm.experiments.spec.build import Case


def _cell(**changes):
    instance = sa.instances.random_coverage(n_arms=6, n_items=2, k=2)
    fields = {
        "source": NamedInstance(Case("random"), instance),
        "policy_case": Case("CUCB"),
        "policy": sa.cucb(),
        "horizon": 100,
        "replications": 3,
        "seed": 0,
        "target": "oracle",
        "checkpoints": 10,
    }
    return Cell(**(fields | changes))


def test_everything_that_decides_a_number_changes_the_digest():
    other = NamedInstance(Case("random"), sa.instances.random_coverage(n_arms=6, n_items=2, k=2, seed=1))
    changes = [
        {"source": other},
        {"policy": sa.cucb(2.9)},
        {"horizon": 101},
        {"replications": 4},
        {"seed": 1},
        {"target": "optimal"},
        {"checkpoints": 11},
    ]
    digests = {_cell(**change).digest for change in changes} | {_cell().digest}
    assert len(digests) == len(changes) + 1


def test_a_new_name_does_not_change_the_digest():
    renamed = dataclasses.replace(
        _cell(), policy_case=Case("mine", {"rho": 3}), source=NamedInstance(Case("w"), _cell().instance)
    )
    assert renamed.digest == _cell().digest


def test_the_version_enters_the_digest(monkeypatch):
    before = _cell().digest
    monkeypatch.setattr(sa, "__version__", "0.0.0")
    assert _cell().digest != before


def test_the_grid_is_instances_times_policies(experiment):
    assert [cell.label for cell in list_cells(experiment)][:4] == [
        "CUCB on random (k=2)",
        "BC-UCB on random (k=2)",
        "uniform on random (k=2)",
        "CUCB on random (k=3)",
    ]


def test_a_swept_policy_is_several_policies():
    made = sa.Experiment(
        name="x",
        instances={"r": {"generator": "random_coverage"}},
        policies={"BC-UCB": {"policy": "bc_ucb", "rho": {"sweep": [0.5, 3.0]}}},
    )
    assert [(cell.policy_case.label, cell.policy.index.rho) for cell in made.cells()] == [
        ("BC-UCB (rho=0.5)", 0.5),
        ("BC-UCB (rho=3)", 3.0),
    ]
