"""Simulated regret stays under the theorems and over the lower bound's shape, on 50 random small instances."""

import numpy as np
import pytest

import superarm as sa
from superarm.theory import bounds, gaps, graves_lai

pytestmark = pytest.mark.slow("long statistics")

HORIZON = 3000


def instance(seed):
    rng = np.random.default_rng(seed)
    n_arms, n_items = int(rng.integers(3, 7)), int(rng.integers(1, 4))
    batches = {tuple(sorted(rng.choice(n_arms, rng.integers(1, 4), replace=False))) for _ in range(8)}
    batches |= {(j,) for j in range(n_arms)}
    problem = sa.Problem(
        n_arms, n_items, sa.Coverage(), sa.actions.Explicit(sorted(batches)), weights=rng.uniform(0.2, 2.0, n_items)
    )
    return sa.Instance(problem, sa.environments.Bernoulli(rng.uniform(0.0, 1.0, (n_arms, n_items))))


POLICIES = {"BC-UCB": sa.bc_ucb(), "KL-UCB": sa.kl_ucb(rho=3.0, c=0.0), "default": sa.kl_ucb()}


@pytest.mark.parametrize("seed", range(50))
def test_regret_between_the_bounds(seed):
    environment = instance(seed)
    known = gaps(environment)
    found = sa.simulate(environment, POLICIES, HORIZON, 3, seed=seed, target="approximation", progress=False)
    bc, kl, default = (found.regret[name].mean(axis=0) for name in POLICIES)
    for regret, policy in zip((bc, kl, default), POLICIES.values(), strict=True):
        upper = [bound for bound in bounds(environment, policy, found.rounds).applying if bound.kind == "upper"]
        assert upper
        assert all((regret <= bound.value).all() for bound in upper)
    # no consistent policy stays under the Graves-Lai rate for ever; it may while log T has not told T apart
    rate = graves_lai(environment, precision=1e-3).low
    reachable = min(rate * np.log(HORIZON), 0.25 * known.smallest * HORIZON)
    assert bc[-1] >= 0.5 * reachable - 1e-6
    assert kl[-1] >= 0.5 * reachable - 1e-6
