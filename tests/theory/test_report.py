import numpy as np
import pytest

import superarm as sa
from superarm.simulation.regret import Target
from superarm.simulation.results import Results
from superarm.theory import bounds_report
from superarm.theory.upper.kl_ucb import upper_bound_kl_default


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    room = tmp_path_factory.mktemp("bounds")
    instance = sa.instances.lower_bound(8, 4, n_items=2, epsilon=0.3)
    return bounds_report(instance, {"BC-UCB": sa.bc_ucb()}, 600, 2, out_dir=room, progress=False), room


def test_everything_is_named(report):
    text, room = report
    for name in (
        "Theorem 1 (BC-UCB)", "Corollary 1", "sharpened", "trivial", "Lai-Robbins", "Graves-Lai rate",
        "gap-free, some instance", "vacuous, below the trivial bound from T =", "alpha 1, beta 1",
        "the same means in every round", "before the next round",
    ):  # fmt: skip
        assert name in text
    assert (room / "bounds.txt").read_text().strip() == text.strip()
    assert (room / "bounds.png").read_bytes()[:4] == b"\x89PNG"


def test_order_of_the_table(report):
    rows = [line.split("  ")[-1].split(" ±")[0] for line in report[0].splitlines() if line.startswith(("reg", "upp"))]
    regret, *upper = map(float, rows)
    assert len(upper) == 7  # six theorems are about BC-UCB
    assert regret < min(upper)  # also below the trivial bound


def test_each_policy_has_the_bounds_of_its_own_oracle(monkeypatch):
    monkeypatch.setattr("superarm.theory.report.simulate", silent)
    p = np.random.default_rng(0).uniform(0.0, 0.3, (6, 3))
    instance = sa.Instance(sa.Problem(6, 3, sa.Coverage(), sa.Subsets(2)), sa.environments.Bernoulli(p))
    policies = {"greedy": sa.kl_ucb(), "exact": sa.kl_ucb(oracle=sa.oracles.Exhaustive()), "CTS": sa.cts()}
    text = bounds_report(instance, policies, 50, 1, progress=False)
    for alpha, label in ((sa.oracles.Greedy().guarantee(instance.problem).alpha, "0.75"), (1.0, "1")):
        value = float(upper_bound_kl_default(instance, 50, sa.theory.gaps(instance, alpha=alpha)))
        (row,) = (
            line for line in text.splitlines()
            if line.startswith("upper   KL theorem (") and f"alpha {label} " in line
        )  # fmt: skip
        assert row.split()[-1] == f"{value:.6g}"
    assert "exact: KL theorem" in text
    assert "CTS: no theorem is about this policy here" in text


def silent(instance, policies, horizon, replications, seed, target, progress):
    """No regret, in place of a simulation."""
    targets = {name: Target("approximation", 1.0, None) for name in policies}
    rounds = np.array([1, horizon])
    return Results(rounds, {name: np.zeros((1, 2)) for name in policies}, {}, targets, {}, True)


def test_bounds_that_do_not_apply_are_left_out(monkeypatch):
    monkeypatch.setattr("superarm.theory.report.simulate", silent)
    p = np.random.default_rng(0).uniform(0.0, 0.6, (6, 3))
    instance = sa.Instance(sa.Problem(6, 3, sa.Coverage(), sa.Subsets(2)), sa.environments.Bernoulli(p))
    text = bounds_report(instance, {"KL-UCB": sa.kl_ucb()}, 50, 1, progress=False)
    assert "exact oracles" in text
    odd = sa.Problem(2, 1, sa.Linear(), sa.actions.Explicit([[0], [1]]))
    text = bounds_report(
        sa.Instance(odd, sa.environments.Bernoulli([[0.95], [0.01]])), {"KL-UCB": sa.kl_ucb()}, 50, 1, progress=False
    )
    assert "Not Lai-Robbins rate" in text
    rate = 0.94 / (0.01 * np.log(0.01 / 0.95) + 0.99 * np.log(0.99 / 0.05))
    assert f"Graves-Lai rate, this instance: R(T)/log T tends to at least {rate:.4g}, not a bound at any T." in text
    assert not [line for line in text.splitlines() if line.startswith(("rate", "lower"))]


def test_bounds_of_other_instances_are_not_called_those_of_this_one(monkeypatch):
    monkeypatch.setattr("superarm.theory.report.simulate", silent)
    problem = sa.Problem(3, 2, sa.Linear(), sa.actions.Explicit([[0], [1], [2]]))
    shocks = sa.Instance(problem, sa.environments.CommonShock([[0.5, 0.4], [0.3, 0.3], [0.3, 0.2]]))
    text = bounds_report(shocks, {"KL-UCB": sa.kl_ucb()}, 50, 1, progress=False)
    assert "Not transportation bound, every policy; Graves-Lai rate, this instance: its outcomes are dependent." in text
    others = [line for line in text.splitlines() if line.startswith("size")]
    assert len(others) == 2
    assert all("not of this one" in line for line in others)
    assert sum("R(T)/log T" in line for line in text.splitlines()) == 3


def test_totals_have_their_bayesian_bound_and_no_trivial_one_without_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("superarm.theory.report.simulate", silent)
    problem = sa.Problem(6, 1, sa.Linear(), sa.Subsets(2))
    instance = sa.Instance(problem, sa.environments.Bernoulli(np.linspace(0.1, 0.6, 6)[:, None])).as_totals()
    policies = {"TS": sa.policies.total_thompson(1.0, 1.0), "other": sa.uniform()}
    text = bounds_report(instance, policies, 50, 1, out_dir=tmp_path, progress=False)
    value = float(sa.theory.bounds(instance, policies["TS"], 50)["bayes_bound_total"])
    (row,) = (line for line in text.splitlines() if line.startswith("bayes"))
    assert row.split()[-1] == f"{value:.6g}"
    assert "TS: Bayesian bound; " in text
    (row,) = (line for line in text.splitlines() if "largest gap times T" in line)
    assert row.split()[-1] == "20"
    text = bounds_report(instance, {"other": sa.uniform()}, 50, 1, out_dir=tmp_path, progress=False)
    assert "trivial" not in text
    assert not any(line.startswith(("upper", "bayes")) for line in text.splitlines())
