"""The environment of scores: the worth of the best one against closed forms and averages, and what policies earn."""

import numpy as np
import pytest
from scipy.stats import norm

import superarm as sa
from superarm.describe import build, describe
from superarm.environments import Scores
from superarm.experiments.spec.experiment import from_dict

NORMALS = ((60.0, 2.0), (50.0, 20.0), (55.0, 5.0))


def instance(rho=0.0, k=2, utility=None):
    problem = sa.Problem(n_arms=3, items=sa.Thresholds(0, 100, utility=utility), actions=sa.Subsets(k))
    return sa.Instance(problem, Scores([{"norm": parameters} for parameters in NORMALS], rho))


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_best_of_two_normal_scores_is_worth_what_the_closed_form_says(rho):
    for first, second in ((0, 1), (0, 2), (1, 2)):
        (m1, s1), (m2, s2) = NORMALS[first], NORMALS[second]
        a = np.sqrt(s1**2 + s2**2 - 2.0 * rho * s1 * s2)
        z = (m1 - m2) / a
        closed = m1 * norm.cdf(z) + m2 * norm.cdf(-z) + a * norm.pdf(z)
        assert instance(rho).value([first, second]) == pytest.approx(closed, abs=0.05)  # 400 quantiles cut the tails


@pytest.mark.parametrize(("rho", "utility"), [(0.0, None), (0.7, None), (0.0, lambda x: np.minimum(x, 60.0))])
def test_drawn_scores_average_to_the_expected_best(rho, utility):
    """40,000 replications, within five standard errors; single scores average to their means, and bins to theirs."""
    one = instance(rho, 3, utility)
    action = np.tile([2, 0, 1], (40_000, 1))
    keys = np.random.default_rng(5).integers(0, 2**63, 40_000).astype(np.uint64)
    x = one.environment.scores(action, 3, keys)
    best = x.max(1) if utility is None else one.problem.thresholds.value(x.max(1))
    assert abs(best.mean() - one.value([0, 1, 2])) < 5.0 * best.std() / 200.0
    outcome = one.environment.draw(one.problem, action, 3, keys).outcome
    assert np.abs(outcome.mean(0)[[1, 2, 0]] - one.p).max() < 5.0 * 0.5 / 200.0
    correlation = np.corrcoef(norm.ppf([np.argsort(np.argsort(x[:, n])) / 4e4 + 1e-6 for n in range(3)]))[0, 1]
    assert correlation == pytest.approx(rho, abs=0.03)


def test_regret_is_against_the_best_set_and_never_negative():
    rng = np.random.default_rng(0)
    arms = [rng.normal(m, s, 50) for m, s in zip(rng.uniform(40, 60, 8), rng.uniform(2, 30, 8), strict=True)]
    one = sa.instances.best_of(arms, k=3, low=0, high=100)
    best = 0.0
    for a, b, c in one.problem.actions.batches(8):
        every = np.maximum(np.maximum.outer(arms[a], arms[b])[:, :, None], arms[c])
        best = max(best, every.mean())
    assert one.environment.best(one.problem) == pytest.approx((best, best))
    policies = {"shapes": sa.policies.shapes(), "uniform": sa.uniform()}
    results = sa.simulate(one, policies, horizon=400, replications=4, progress=False)
    assert str(results.targets["shapes"]) == f"optimal ({best:.6g} per round)"
    assert results.regret["shapes"].min() >= -1e-9
    assert results.regret["shapes"][:, -1].mean() < 0.5 * results.regret["uniform"][:, -1].mean()


def test_the_best_of_many_batches_is_bracketed():
    rng = np.random.default_rng(1)
    one = sa.instances.best_of(list(rng.random((60, 30))), k=4)
    low, high = one.environment.best(one.problem)
    tried = [one.value(rng.choice(60, 4, replace=False)) for _ in range(200)]
    assert max(tried) <= high
    assert 0.0 < low < high


def test_worlds_of_scores_are_stored_and_read_from_experiments():
    one = instance(0.3)
    assert build(describe(one.environment)) == one.environment
    table = {"generator": "best_of", "arms": [{"beta": [2, 5]}, {"norm": [0.4, 0.2]}, [0.1, 0.9]], "k": 2, "rho": 0.3}
    experiment = from_dict(
        {
            "name": "best-of",
            "horizon": 50,
            "replications": 2,
            "instances": {"best": table},
            "policies": {"shapes": {"policy": "shapes"}, "ucb": {"policy": "kl_ucb"}},
        }
    )
    assert len(experiment.cells()) == 2


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([], "there is none, or one without scores"),
        ([[1.0], []], "there is none, or one without scores"),
        ([{"bernoulli": [0.5]}], "give scores, or one distribution of scipy.stats"),
        ([{"norm": [0, 1], "beta": [1, 1]}], "is no distribution"),
        ([[float("inf")]], "give finite numbers"),
    ],
)
def test_wrong_scores_are_refused(arms, message):
    with pytest.raises(sa.InvalidArgument, match=message.replace(".", r"\.")):
        Scores(arms)


def test_scores_do_not_fit_other_problems():
    with pytest.raises(sa.InvalidArgument, match="its items are no thresholds of scores"):
        sa.Instance(sa.Problem(2, 1, sa.Coverage(), sa.Subsets(1)), Scores([[1.0], [2.0]]))
    with pytest.raises(sa.InvalidArgument, match="2 for 3 arms"):
        sa.Instance(instance().problem, Scores([[1.0], [2.0]]))
