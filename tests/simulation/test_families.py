"""Families of instances: rows are instances, and every run has its own random numbers."""

import math
import threading

import numpy as np
import pytest

import superarm as sa
from superarm.core.errors import InvalidSpec
from superarm.simulation.results import performance_profile
from superarm.simulation.runs import play

SIZE = {"n_arms": 6, "n_items": 3, "k": 2}
POLICIES = {"CTS": sa.cts(), "uniform": sa.uniform()}
FAMILY = sa.instances.family(sa.instances.random_coverage, draws=5, seed=3, **SIZE)


def simulate(family=FAMILY, **options):
    return sa.simulate(family, POLICIES, 60, progress=False, **({"rounds": [10, 60]} | options))


def test_an_instance_of_a_family_has_the_seed_of_its_draw():
    assert [one == sa.instances.random_coverage(**SIZE, seed=3 + n) for n, one in enumerate(FAMILY)] == [True] * 5
    assert FAMILY[4] == list(FAMILY)[4]
    assert len({instance.p.tobytes() for instance in FAMILY}) == 5
    with pytest.raises(IndexError, match="draws 0 to 4"):
        FAMILY[5]


@pytest.mark.parametrize("each", [1, 3])
def test_a_row_is_the_mean_over_the_runs_of_an_instance_each_with_its_own_seed(each):
    """Against runs that are played one by one, with the seeds of a simulation of all runs together."""
    found = simulate(replications=each, seed=8)
    seeds = sa.simulation.seeds(8, 5 * each)
    stop = threading.Event()
    for d, instance in enumerate(FAMILY):
        best = sa.simulation.optimum(instance.problem, instance.p).high
        runs = [
            play(instance, POLICIES["CTS"], [seeds[d * each + r]], np.array([10, 60]), stop, lambda _: None)
            for r in range(each)
        ]
        expected = np.mean([np.array([10, 60]) * best - run.earned[0] for run in runs], axis=0)
        assert found["CTS"].regret[d] == pytest.approx(expected, abs=1e-9)
    assert found.runs["CTS"].shape == (5, each)


def test_results_do_not_depend_on_threads():
    one, two = simulate(replications=2, threads=1), simulate(replications=2, threads=2)
    assert all(np.array_equal(one.regret[name], two.regret[name]) for name in POLICIES)


def test_intervals_are_over_instances_and_variance_is_split():
    """Regret of instance d is d, with runs at d - 1 and d + 1: both variances are known."""
    d = np.arange(10.0)
    runs = (d[:, None] + [[-1.0, 1.0]]).reshape(-1, 1)
    made = simulate(replications=1)
    target = made.targets["CTS"]
    results = sa.Results(np.array([5]), {"x": runs}, {"x": runs}, {"x": target}, {"x": 1.0}, True).over_instances(2)
    (row,) = results.summary().rows
    assert row["regret"][:2] == pytest.approx((4.5, d.std(ddof=1) / math.sqrt(10)))
    (split,) = results.variance().rows
    assert split["within"] == pytest.approx(2.0)
    assert split["between instances"] == pytest.approx(d.var(ddof=1) - 1.0)
    assert "10 instances × 2 replications" in str(results)
    with pytest.raises(sa.InvalidArgument, match="there is one instance"):
        sa.simulate(FAMILY[0], POLICIES, 5, 2, progress=False).variance()


def test_results_are_saved_and_compared(tmp_path):
    found = simulate(replications=2)
    found.save(tmp_path / "results.npz")
    again = sa.Results.load(tmp_path / "results.npz")
    assert str(again) == str(found)
    for part in ("regret", "pulls", "runs"):
        assert all(np.array_equal(getattr(again, part)[name], getattr(found, part)[name]) for name in POLICIES)
    difference = found.compare("CTS", "uniform")
    by_hand = found.regret["CTS"][:, -1] - found.regret["uniform"][:, -1]
    assert difference.value == pytest.approx(by_hand.mean())
    assert difference.low < difference.value < difference.high
    with pytest.raises(sa.InvalidArgument, match="give one of CTS, uniform"):
        found["CUCB"]


def test_changing_worlds_and_targets_are_saved_too(tmp_path):
    moving = sa.instances.family(sa.instances.changing_coverage, every=20, phases=2, draws=1, **SIZE)
    found = simulate(moving)
    assert found.targets["CTS"].eras
    found.save(tmp_path / "results.npz")
    assert sa.Results.load(tmp_path / "results.npz").targets == found.targets


def test_profiles_against_their_definition():
    rng = np.random.default_rng(0)
    values = {name: rng.exponential(size=40) for name in "abc"}
    at, shares = performance_profile(values, [1.0, 1.5, 4.0])
    for name in values:
        ratio = [values[name][n] / min(values[other][n] for other in values) for n in range(40)]
        assert shares[name].tolist() == [np.mean([one <= limit for one in ratio]) for limit in at]
    assert sum(share[0] for share in shares.values()) == pytest.approx(1.0)


def test_an_experiment_file_plays_a_family_as_simulate_does(tmp_path):
    text = """
    name = "family"
    horizon = 60
    checkpoints = 5
    [instances.random]
    generator = "random_coverage"
    n_arms = 6
    n_items = 3
    k = 2
    seed = 3
    draws = 5
    replications = 2
    [policies.CTS]
    policy = "cts"
    """
    experiment = sa.experiments.from_toml(text)
    study = experiment.run(tmp_path, progress=False)
    record = study.records["random", "CTS"]
    found = simulate(replications=2, rounds=record.rounds)
    assert np.array_equal(record.regret, found.regret["CTS"])
    assert np.array_equal(record.runs, found.runs["CTS"])
    assert "5 instances × 2 replications" in str(study)
    assert len({cell.digest for cell in experiment.cells()}) == 5
    assert study.report().read_text().count("this is a family") == 1
    own = sa.Experiment("family", {"random": FAMILY}, {"CTS": sa.cts()}, horizon=60, checkpoints=5)
    assert sa.experiments.from_toml(own.to_toml()).cells()[4].digest == own.cells()[4].digest


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ({"generator": "random_coverage", "draws": 0}, "give an int >= 1"),
        ({"generator": "random_coverage", "replications": 3}, "add draws"),
        ({"generator": "disjoint_batches", "k": 2, "draws": 3}, "no seed"),
    ],
)
def test_draws_that_make_no_sense_are_refused(entry, match):
    with pytest.raises(InvalidSpec, match=match):
        sa.Experiment("x", {"x": entry}, POLICIES)


@pytest.mark.parametrize(
    "wrong", [{"generator": 3}, {"generator": sa.instances.disjoint_batches, "k": 2}, {"draws": 0}]
)
def test_a_generator_without_a_seed_makes_no_family(wrong):
    with pytest.raises(sa.InvalidArgument):
        sa.instances.family(**({"generator": sa.instances.random_coverage} | wrong))
