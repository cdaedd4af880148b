"""The local theorem: slopes by brute force, concavity along increasing directions, the bound by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import superarm as sa
from superarm.theory import gaps
from superarm.theory.upper.local import local_slopes, upper_bound_local, upper_bound_local_default


def random(seed, reward=None, alpha=1.0):
    rng = np.random.default_rng(seed)
    problem = sa.Problem(5, 3, reward or sa.Coverage(), sa.Subsets(2), weights=rng.uniform(0.2, 2.0, 3))
    instance = sa.Instance(problem, sa.environments.Bernoulli(rng.uniform(0.0, 0.9, (5, 3))))
    return instance, gaps(instance, alpha=alpha)


def naive_slopes(instance, known):
    """G^2 and H of every arm, with derivatives by differences of the batch's value."""
    problem, p = instance.problem, instance.p.reshape(5, 3)
    main, slow = np.full(5, np.nan), np.full(5, np.nan)
    for batch in itertools.combinations(range(5), 2):
        if problem.value(p, batch) >= known.target - 1e-12:
            continue
        slopes = np.zeros((5, 3))
        for j, i in itertools.product(batch, range(3)):
            up, down = p.copy(), p.copy()
            up[j, i] += 1e-5
            down[j, i] -= 1e-5
            slopes[j, i] = (problem.value(up, batch) - problem.value(down, batch)) / 2e-5
        square = ((slopes * np.sqrt(p * (1 - p))).sum(axis=1) ** 2).sum()
        for j in batch:
            main[j], slow[j] = np.fmax(main[j], square), np.fmax(slow[j], slopes.sum(axis=1).max())
    return main, slow


@pytest.mark.parametrize("reward", [sa.Coverage(), sa.Linear(), sa.Logistic(0.7)], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("alpha", [1.0, 0.98])
def test_slopes_are_the_definition(reward, alpha):
    instance, known = random(1, reward, alpha)
    found = local_slopes(instance, known)
    main, slow = naive_slopes(instance, known)
    np.testing.assert_allclose(found.main, main, rtol=1e-6)
    np.testing.assert_allclose(found.slow, slow, rtol=1e-6)
    smooth, weight = reward.smoothness(2), instance.problem.weights.sum()
    assert np.nanmax(found.main) <= smooth.gamma_g**2 * weight**2 * (1 + 1e-12)
    assert np.nanmax(found.slow) <= smooth.gamma_inf * weight * (1 + 1e-12)


def test_the_bound_by_hand():
    instance, known = random(2)
    slopes, mask, t = local_slopes(instance, known), known.suboptimal, 5000.0
    least, most = known.minimum[mask], known.maximum[mask]
    lam = 1.0 + np.geomspace(1e-3, 1e6, 100_001)[:, None]  # the smallest sum over a grid: the minimum is flat
    e, ratio = lam * np.log(1 + 2 / (lam - 1)), lam * 2 / (lam + 1)
    main = (slopes.main[mask] * (e + ratio * (1 - least / most)) / least).sum(axis=1)
    slow = (slopes.slow[mask] * (e + ratio * np.log(most / least))).sum(axis=1)
    total, constant = (2 * main + slow).min(), 5 * known.largest
    expected = 12 * total * math.log(t) + constant * (1 + math.pi**2)
    assert float(upper_bound_local(instance, t, known)) == pytest.approx(expected)
    level = math.log(t) + 3 * math.log(math.log(t))
    expected = 4 * total * level + constant * (1 + 6 * math.e * (math.log(math.log(t)) + 2.3))
    assert float(upper_bound_local_default(instance, t, known)) == pytest.approx(expected)


def test_it_is_for_rewards_that_are_known_to_be_concave():
    with pytest.raises(sa.InvalidArgument, match="concave"):
        upper_bound_local(random(0, sa.Logistic(2.0))[0], 10)
    many = sa.Problem(60, 1, sa.Coverage(), sa.Subsets(8))
    large = sa.Instance(many, sa.environments.Bernoulli(np.full((60, 1), 0.1)))
    with pytest.raises(sa.InvalidArgument, match="batches"):
        local_slopes(large, random(0)[1])


unit = st.floats(0.0, 1.0)


@given(st.lists(st.tuples(unit, unit), min_size=1, max_size=6), st.floats(0.05, 1.0))
def test_values_rise_by_at_most_the_slopes_at_the_start(rows, c):
    # f(q) - f(p) <= grad f(p) (q - p) for q >= p: coverage, and logistic with c <= 1
    p = np.array([row[0] for row in rows])
    q = p + np.array([row[1] for row in rows]) * (1 - p)
    slopes = np.array([np.prod(np.delete(1 - p, j)) for j in range(len(p))])
    assert np.prod(1 - p) - np.prod(1 - q) <= slopes @ (q - p) + 1e-12
    f = [1 / (1 + c * math.exp(-x.sum())) for x in (p, q)]
    assert f[1] - f[0] <= f[0] * (1 - f[0]) * (q - p).sum() + 1e-12
