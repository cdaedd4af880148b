"""The lemmas and the bound of ``docs/theory/directional.md``, against simulation."""

import math

import numpy as np
import pytest

import superarm as sa
from superarm.indices.two_moments import two_moment_bound
from superarm.theory import upper_bound_directional


def sample_bound(y, x):
    """The index (1) of the page by a fine search over kappa."""
    kappa = np.append(10.0 ** np.linspace(-4, -0.001, 300), 1.0 - 10.0 ** -np.linspace(2, 9, 40))
    return float(np.min((1.0 - np.exp(np.log1p(-np.outer(kappa, y)).mean(axis=1) - x)) / kappa))


def test_width():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        h, x = rng.uniform(0.01, 1.0), float(10.0 ** rng.uniform(-5, 1.5))
        m = rng.uniform(0.0, h)
        v = rng.uniform(0.0, m * (h - m))
        assert two_moment_bound(m, v, h, x) <= m + math.sqrt(2.0 * v * x) + x + 1e-12


def test_neighbours_on_the_grid_of_the_proof():
    rng = np.random.default_rng(1)
    z = 1.0 - rng.exponential(2.0, 4000)
    near = rng.uniform(0.0, 1.0, 4000)
    grid = 0.5 + (near - 0.5) * rng.random(4000)  # between near and 1/2
    assert (np.log((1.0 - near * z) / (1.0 - grid * z)) <= 2.0 * np.abs(near - grid) + 1e-12).all()


def test_optimism_at_all_counts():
    # At level l the theorem allows 5 e t exp(-l) = 0.05; 400 runs of a law that is rarely high. A false alarm needs
    # 41 failures of Binomial(400, 0.05): probability below 1e-4.
    rng, t = np.random.default_rng(2), 64
    level = math.log(5.0 * math.e * t / 0.05)
    failures = 0
    for _ in range(400):
        y = np.where(rng.random(t) < 0.1, 1.0, 0.2)
        failures += any(sample_bound(y[:n], level / n) < 0.28 for n in (1, 2, 4, 8, 16, 32, 64))
    assert failures <= 40


@pytest.mark.parametrize("environment", [sa.environments.Bernoulli, sa.environments.Comonotone])
def test_the_bound_is_above_simulated_regret(environment):
    p = np.repeat([[0.5], [0.3], [0.2]], 4, axis=1)
    instance = sa.Instance(sa.Problem(3, 4, sa.Coverage(), sa.Subsets(1)), environment(p))
    scale = 2.0 if environment is sa.environments.Bernoulli else 4.0
    bound = upper_bound_directional(instance, scale * np.sqrt(p[:, 0] * (1.0 - p[:, 0])), [100, 400])
    policy = sa.directional_kl_ucb(rho=3.0, c=0.0)
    results = sa.simulate(instance, {"": policy}, 400, 2, target="optimal", rounds=[100, 400], progress=False)
    assert (results.regret[""].mean(axis=0) < bound.value).all()
    # By hand: arms 1 and 2 have gaps 0.8 and 1.2, b = 4, and 28 * 3 * 1.2 pays for initial and failed rounds.
    main = 24.0 * scale**2 * (0.21 / 0.8 + 0.16 / 1.2)
    by_hand = (main + 14.0 * 4.0 * 2.0) * math.log(400) + 2.0 + 28.0 * 3.0 * 1.2
    assert float(bound.value[1]) == pytest.approx(by_hand)


def test_linear_rewards_on_a_matroid_by_hand():
    p = np.array([[0.9], [0.5], [0.4]])
    instance = sa.Instance(sa.Problem(3, 1, sa.Linear(), sa.Subsets(2)), sa.environments.Bernoulli(p))
    sd = np.sqrt(p[:, 0] * (1.0 - p[:, 0]))
    bound = upper_bound_directional(instance, sd, 1000)
    factors = sa.theory.charge_factors(2)
    least, most = np.array([0.1, 0.5, 0.1]), np.array([0.1, 0.5, 0.5])
    main = 24.0 * 0.49 * factors.total * (1.0 / least).sum()
    slow = 14.0 * (factors.base + factors.ratio * np.log(most / least)).sum()
    assert float(bound.value) == pytest.approx((main + slow) * math.log(1000) + 29.0 * 3.0 * 0.5)


def test_estimated_directions_are_refused():
    instance = sa.instances.random_coverage(4, 2, 2)
    with pytest.raises(sa.InvalidArgument, match="direction is estimated"):
        upper_bound_directional(instance, np.ones(4), 10)
