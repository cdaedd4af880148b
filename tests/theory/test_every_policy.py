"""Lower bounds that hold at every T for every policy: by hand, against exact minimax play, against every policy."""

import inspect
import math

import numpy as np
import pytest
from scipy.optimize import brentq

import superarm as sa
from superarm.policies import catalog
from superarm.theory.lower import divergence, lower_bound_near, lower_bound_smooth, lower_bound_smooth_gap_free


def one_arm(p, reward=None):
    problem = sa.Problem(len(p), 1, reward or sa.Linear(), sa.Subsets(1))
    return sa.Instance(problem, sa.environments.Bernoulli(np.array(p)[:, None]))


def risks(best, p, margin, horizon, weight):
    """The least (1 - w) R + w R' of any policy on a known arm and one of mean p, or else best + margin; by play from
    the end: all that matters is how often the other arm was played, and with what success."""
    high = best + margin
    n, s = np.meshgrid(np.arange(horizon + 2), np.arange(horizon + 2), indexing="ij")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = s * math.log(high / p) + (n - s) * math.log((1 - high) / (1 - p))
    belief = 1.0 / (1.0 + (1.0 - weight) / weight * np.exp(np.clip(-ratio, -600, 600)))
    chance, value = belief * high + (1 - belief) * p, np.zeros(n.shape)
    for _ in range(horizon):
        later = np.zeros(n.shape)
        later[:-1, :-1] = chance[:-1, :-1] * value[1:, 1:] + (1 - chance[:-1, :-1]) * value[1:, :-1]
        value = np.minimum(belief * margin + value, (1 - belief) * (best - p) + later)
    return float(value[0, 0])


@pytest.mark.parametrize(("best", "p", "margin"), [(0.5, 0.4, 0.1), (0.3, 0.1, 0.05), (0.7, 0.6, 0.25)])
def test_no_policy_at_all_is_below_the_bound(best, p, margin):
    """With two arms the least largest regret is known exactly; the bound is at least two thirds of it."""
    for horizon in (1, 4, 20, 120):
        weights = np.linspace(0.02, 0.98, 49)
        least = [risks(best, p, margin, horizon, w) for w in weights]
        bound = float(lower_bound_near(one_arm([best, p]), horizon, margins=margin))
        assert max(least) / 1.5 <= bound <= max(least) + 1e-12
        for elsewhere in (0.02 * horizon * margin, 0.3 * horizon * margin):
            exact = max((r - w * elsewhere) / (1 - w) for r, w in zip(least, weights, strict=True))
            given = float(lower_bound_near(one_arm([best, p]), horizon, margins=margin, elsewhere=elsewhere))
            assert 0.0 <= given <= exact + 0.02 * horizon * (best - p)  # exact up to the grid of weights


@pytest.mark.parametrize("horizon", [1, 30, 10**4, 10**9])
def test_of_single_arms_by_hand(horizon):
    p, margin = np.array([0.6, 0.5, 0.45, 0.2]), 0.05
    cost = sum((0.6 - q) / divergence(q, 0.6 + margin) for q in p[1:])

    def surplus(r):
        return cost * divergence(1 - r / (0.1 * horizon), r / (margin * horizon)) - r

    root = brentq(surplus, 1e-13 * horizon, horizon / (1 / 0.1 + 1 / margin))
    found = lower_bound_near(one_arm(p), horizon, margins=margin)
    assert float(found) == pytest.approx(root, rel=1e-5)
    stated = float(lower_bound_near(one_arm(p), 10**9, elsewhere=500.0))
    assert 0.8 * sum((0.6 - q) / divergence(q, 0.625) for q in p[1:]) * math.log(0.025e9 / 500.0) <= stated


def test_it_grows_like_the_rate_of_graves_and_lai():
    instance = one_arm([0.6, 0.5, 0.4])
    rate = sa.theory.graves_lai(instance).low
    values = [float(lower_bound_near(instance, t, margins=[1e-4, 1e-5])) / math.log(t) for t in (1e30, 1e100, 1e280)]
    assert values == sorted(values)
    assert 0.9 * rate <= values[-1] <= rate


def test_what_has_no_such_bound():
    with pytest.raises(sa.InvalidArgument, match="optimal"):
        lower_bound_near(one_arm([0.5, 0.5]), 10)
    with pytest.raises(sa.InvalidArgument, match="covered"):
        lower_bound_near(one_arm([0.5, 0.4], sa.rewards.Logistic(2.0)), 10)
    problem = sa.Problem(3, 1, sa.Coverage(), sa.Subsets(3))
    with pytest.raises(sa.InvalidArgument, match="one batch"):
        lower_bound_smooth_gap_free(problem, 10)


def inverse(share, told):
    return brentq(lambda z: divergence(share, z) - told, share, 1 - 1e-12)


FORMULAS = {
    "Coverage": (sa.Coverage(), lambda x: 1 - np.prod(1 - x)),
    "Linear": (sa.Linear(), np.sum),
    "Logistic": (sa.rewards.Logistic(5.0), lambda x: 1 / (1 + 5 * math.exp(-x.sum()))),
    "ClippedLinear": (sa.rewards.ClippedLinear(3.0, 0.25), lambda x: np.clip(3 * (x - 0.25), 0, 1).sum()),
    "Conjunctive": (sa.rewards.Conjunctive(), np.prod),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_of_smooth_rewards_against_random_instances(name):
    """Lemma 11 with kl, at random n, p, q and means of common arms: at most a little above the maximum on the grid."""
    reward, f = FORMULAS[name]
    rng, n_arms, k, weights = np.random.default_rng(1), 13, 3, [0.5, 2.0]
    problem = sa.Problem(n_arms, 2, reward, sa.Subsets(k), weights=weights)
    for horizon in (1, 50, 5000):
        best = 0.0
        for _ in range(1500):
            n, common = int(rng.integers(1, k + 1)), float(rng.choice([0.0, 0.25, 0.5, 0.75, 1.0]))
            p = rng.uniform(0.05, 0.95)
            q, batches = p * (1 - rng.random() ** 3), (n_arms - k + n) // n
            gap = 2.5 * (f(np.array([p] * n + [common] * (k - n))) - f(np.array([q] * n + [common] * (k - n))))
            told = horizon / batches * divergence(q, p)
            last = divergence(1 / batches, 1 - 1e-12)
            z = 1.0 if told >= last else inverse(1 / batches, told)
            best = max(best, horizon * gap * (1 - z))
        bound = float(lower_bound_smooth_gap_free(problem, horizon))
        assert 0.97 * best <= bound
        assert bound <= 1.25 * best  # random draws do not find all of it


@pytest.mark.parametrize("name", FORMULAS)
def test_the_rate_is_at_least_that_of_the_paper(name):
    """Theorem 1 of Merlis and Mannor (2020) for equal means: (m - 2K) n p (1 - p) f'^2 / (8 gap), for small gaps."""
    reward, f = FORMULAS[name]
    n_arms, k, gap = 13, 3, 1e-3
    p = np.linspace(0.05, 0.95, 19)
    paper = 0.0
    for n in range(1, k + 1):
        for common in (0.0, 0.5, 1.0):
            for x in p[1:-1]:
                up, down = (np.array([x + h] + [x] * (n - 1) + [common] * (k - n)) for h in (1e-6, -1e-6))
                slope = (f(up) - f(down)) / 2e-6
                paper = max(paper, (n_arms - 2 * k) * n * x * (1 - x) * slope**2 / (8 * gap))
    batches = sa.actions.Explicit([[0, 1, 2], *([0, 1, j] for j in range(3, n_arms))])
    instance = sa.Instance(sa.Problem(n_arms, 1, reward, batches), sa.environments.Bernoulli(np.full((n_arms, 1), 0.5)))
    gaps, found = np.full(n_arms, gap), sa.theory.gaps(instance, alpha=1.0)
    known = sa.theory.Gaps(1.0, found.r_max, gaps, gaps, gaps, "enumeration", 1)
    assert paper <= lower_bound_smooth(instance, known) <= 50 * paper


def shipped(problem):
    """Every policy of the catalogue, and the others that need no arguments, if it applies to ``problem``."""
    for name in sa.policies.__all__:
        make = getattr(sa.policies, name)
        own = inspect.isclass(make) and issubclass(make, sa.policies.Policy) and make is not sa.policies.Policy
        if name in catalog.__all__ or own:
            try:
                policy = make()
                policy.validate(problem)
            except (TypeError, sa.InvalidArgument):
                continue
            if not policy.needs_totals:
                yield name, policy


@pytest.mark.slow("long statistics")
def test_every_shipped_policy_has_the_regret_that_none_can_avoid():
    """On an instance and its near ones, and on all places of the best arm; at most 5 standard errors below."""
    p, margin, rounds = [0.5, 0.3, 0.3, 0.3], 0.2, [5, 20, 80, 300]
    near = [one_arm(p)] + [one_arm([*p[:j], 0.7, *p[j + 1 :]]) for j in (1, 2, 3)]
    bound = lower_bound_near(near[0], rounds, margins=margin).value
    policies = dict(shipped(near[0].problem))
    assert len(policies) >= 12
    for name, policy in policies.items():
        runs = [
            sa.simulate(one, {"": policy}, 300, 30, seed=3, rounds=rounds, target="optimal", progress=False).regret[""]
            for one in near
        ]
        means, errors = np.mean(runs, axis=1), np.std(runs, axis=1) / math.sqrt(30)
        assert ((means + 5 * errors).max(axis=0) >= bound).all(), name
