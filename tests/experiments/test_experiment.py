import numpy as np
import pytest

import superarm as sa
from superarm.core.errors import InvalidSpec
from superarm.experiments import Experiment, from_toml, load
from superarm.experiments.spec.build import resolve_component

GOOD = """
name = "x"
horizon = 100
replications = 2

[instances.random]
generator = "random_coverage"
n_arms = 8
k = { sweep = [2, 3] }

[policies.KL-UCB]
policy = "kl_ucb"
rho = 1.0
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "wanted"),
    [
        ("horizon = 100", "horizont = 100", 3, ["horizont", "did you mean 'horizon'?"]),
        ("n_arms = 8", "n_arm = 8", 8, ["instances.random.n_arm", "did you mean 'n_arms'?"]),
        ('"random_coverage"', '"random_covrage"', 7, ["generator", "did you mean 'random_coverage'?"]),
        ('"kl_ucb"', '"klucb"', 12, ["policies.KL-UCB.policy", "did you mean 'kl_ucb'?"]),
        ("rho = 1.0", "roh = 1.0", 13, ["policies.KL-UCB.roh", "did you mean 'rho'?"]),
        ("n_arms = 8", 'n_arms = "8"', 8, ["n_arms", "is not of type int"]),
        ("horizon = 100", "horizon = 0", 3, ["horizon", ">= 1"]),
        ("k = { sweep = [2, 3] }", "k = { sweep = [] }", 9, ["k", "not a sweep"]),
        ("replications = 2", 'target = "optimum"', 4, ["target", "did you mean 'optimal'?"]),
        ("rho = 1.0", 'oracle = "Gredy"', 13, ["oracle", "did you mean 'Greedy'?"]),
    ],
)
def test_a_mistake_is_answered_with_line_key_and_remedy(old, new, line, wanted):
    with pytest.raises(InvalidSpec) as refused:
        from_toml(GOOD.replace(old, new), "exp.toml")
    message = str(refused.value)
    assert message.startswith(f"exp.toml:{line}: ")
    for words in wanted:
        assert words in message


@pytest.mark.parametrize("missing", ["name", "instances", "policies"])
def test_what_is_missing_is_named(missing):
    table = {
        "name": "x",
        "instances": {"a": {"generator": "rare_hits", "k": 2}},
        "policies": {"u": {"policy": "uniform"}},
    }
    from superarm.experiments.spec.experiment import from_dict

    del table[missing]
    with pytest.raises(InvalidSpec, match=missing):
        from_dict(table)


def test_a_required_parameter_is_asked_for():
    with pytest.raises(InvalidSpec, match="lacks 'k'"):
        from_toml(GOOD.replace("random_coverage", "rare_hits").replace("k = { sweep = [2, 3] }", ""))


def test_toml_that_is_none_names_the_line():
    with pytest.raises(InvalidSpec, match="line 3"):
        from_toml("name = 'x'\n\nhorizon = = 3")
    with pytest.raises(InvalidSpec, match="recursion depth exceeded; correct the TOML there"):
        from_toml("name = " + "[" * 5_000)


def test_what_a_generator_refuses_is_told_with_its_key():
    broken = from_toml(GOOD.replace("k = { sweep = [2, 3] }", "k = 9"))
    with pytest.raises(InvalidSpec, match=r"instances\.random\.k: 9 arms of 8"):
        broken.cells()


def test_toml_there_and_back_is_the_same_experiment():
    first = from_toml(GOOD)
    second = from_toml(first.to_toml())
    assert second == first
    assert second.digest == first.digest
    assert [a.digest for a in first.cells()] == [b.digest for b in second.cells()]


def test_objects_go_to_toml_and_back_to_the_bit():
    problem = sa.Problem(4, 2, sa.Logistic(2.0), sa.actions.Explicit([[0, 1], [2, 3]]), weights=[1.0, 2.5])
    p = np.random.default_rng(0).uniform(size=(4, 2))
    first = Experiment(
        name="objects",
        instances={"mine": sa.Instance(problem, sa.environments.Beta(p, 3.0))},
        policies={"BC-UCB": sa.bc_ucb(0.1), "greedy": {"policy": "kl_ucb", "oracle": sa.oracles.Greedy()}},
        horizon=10,
    )
    second = from_toml(first.to_toml())
    assert [cell.digest for cell in second.cells()] == [cell.digest for cell in first.cells()]
    assert np.array_equal(second.cells()[0].instance.environment.p, p)


def test_files_are_looked_for_beside_the_spec(tmp_path):
    np.save(tmp_path / "p.npy", np.full((4, 2), 0.25))
    (tmp_path / "e.toml").write_text(
        'name = "files"\n[instances.mine]\ngenerator = "arrays"\nfile = "p.npy"\nk = 2\n'
        '[policies.u]\npolicy = "uniform"\n'
    )
    (cell,) = load(tmp_path / "e.toml").cells()
    assert cell.instance.problem.n_arms == 4


def test_outcomes_replace_the_environment_and_keep_the_means():
    text = GOOD.replace("n_arms = 8", 'n_arms = 8\noutcomes = { name = "Copula", items = 0.5 }')
    with_copula, plain = from_toml(text).cells()[0], from_toml(GOOD).cells()[0]
    assert with_copula.instance.environment.items == 0.5
    assert np.array_equal(with_copula.instance.p, plain.instance.p)


@pytest.mark.parametrize(
    ("claim", "wanted"),
    [
        ({"kind": "les", "policy": "KL-UCB"}, "did you mean 'less'?"),
        ({"kind": "less", "policy": "KL-UCB"}, "lacks 'than'"),
        ({"kind": "less", "policy": "KL-UCB", "than": "KLUCB"}, "did you mean 'KL-UCB'?"),
        ({"kind": "slope", "policy": "KL-UCB", "against": "k"}, "above and below"),
        ({"kind": "growth", "policy": "KL-UCB", "below": 1.0, "abov": 2}, "did you mean 'above'?"),
        ({"kind": "bound", "policy": "KL-UCB", "bound": "uper_bound"}, "did you mean 'upper_bound"),
        ({"kind": "growth", "policy": "KL-UCB", "below": 1.0, "instance": "randon"}, "did you mean 'random'?"),
        ({"kind": "reported", "policy": "KL-UCB", "regret": 1.0}, "nothing says how exact"),
        ({"kind": "reported", "policy": "KL-UCB", "regret": 1.0, "deviation": 2.0}, "give deviation and runs"),
    ],
)
def test_a_claim_that_cannot_be_checked_is_refused(claim, wanted):
    table = {
        "name": "x",
        "instances": {"random": {"generator": "random_coverage"}},
        "policies": {"KL-UCB": sa.kl_ucb()},
    }
    with pytest.raises(InvalidSpec, match=wanted.replace("?", r"\?")):
        Experiment(**table, claims=[claim])


@pytest.mark.parametrize(
    ("key", "entry", "wanted"),
    [
        ("published", {"paper": "A", "place": "B"}, "lacks 'read'"),
        ("published", {"paper": "A", "place": "B", "read": "by eye"}, "unknown way of reading"),
        ("published", {"papers": "A"}, "did you mean 'paper'?"),
        ("instances", {"i": {"generator": "cascade", "policies": ["KLUCB"]}}, "did you mean 'KL-UCB'?"),
    ],
)
def test_a_source_or_a_player_that_is_not_there_is_refused(key, entry, wanted):
    table = {"name": "x", "instances": {"i": {"generator": "cascade"}}, "policies": {"KL-UCB": sa.kl_ucb()}}
    with pytest.raises(InvalidSpec, match=wanted.replace("?", r"\?")):
        Experiment(**table | {key: entry})


def test_a_policy_without_parentheses_is_refused():
    with pytest.raises(InvalidSpec, match="with the parentheses"):
        Experiment(name="x", instances={"r": {"generator": "random_coverage"}}, policies={"KL": sa.kl_ucb})


def test_a_seed_that_is_drawn_is_written_down_and_sizes_may_be_floats():
    entries = {"instances": {"a": {"generator": "rare_hits", "k": 2}}, "policies": {"u": {"policy": "uniform"}}}
    drawn = [
        Experiment(name="x", seed=seed, horizon=1e4, **entries)
        for seed in (np.random.default_rng(1), np.random.default_rng(1), np.random.SeedSequence(1), None, None)
    ]
    assert drawn[0].seed == drawn[1].seed
    assert len({one.seed for one in drawn}) == 4
    assert all(from_toml(one.to_toml()).seed == one.seed for one in drawn)
    assert drawn[0].horizon == 10_000
    assert isinstance(drawn[0].horizon, int)


def test_the_rules_of_a_page_can_be_written_in_a_file():
    brands = {"name": "PartitionMatroid", "groups": list("aabbcc"), "limits": {"a": 2, "b": 2, "c": 1}}
    own = {**brands, "k": 3, "minimums": {"c": 1}}
    page = {"name": "Intersection", "rules": [brands, {"name": "Subsets", "k": 2}]}
    partition = sa.actions.PartitionMatroid(list("aabbcc"), brands["limits"])
    assert resolve_component("actions", page, ()) == sa.actions.Intersection([partition, sa.Subsets(2)])
    expected = sa.actions.PartitionMatroid(list("aabbcc"), brands["limits"], k=3, minimums={"c": 1})
    assert resolve_component("actions", own, ()) == expected
    pinned = {"name": "Pinned", "actions": page["rules"][1], "arms": [1]}
    assert resolve_component("actions", pinned, ()) == sa.actions.Pinned(sa.Subsets(2), [1])
