import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import superarm as sa
from superarm.theory import graves_lai, lower_bound


def kl(p, q):
    return sum(x * math.log(x / y) for x, y in ((p, q), (1 - p, 1 - q)) if x > 0)


@pytest.mark.parametrize("n_items", [1, 3])
def test_lower_bound_instance_is_lai_robbins(n_items):
    instance = sa.instances.lower_bound(7, 3, n_items=n_items, epsilon=0.15)
    found = graves_lai(instance)
    assert found.low == pytest.approx(lower_bound(instance, 2).exact, rel=1e-6)
    assert found.high == pytest.approx(found.low, rel=1e-5)


def test_disjoint_batches_by_hand():
    # equal arms: the cheapest confusion raises all of them alike, and batches do not help one another
    instance = sa.instances.disjoint_batches(16, suboptimal_arms=32)
    best = 1 - (1 - 1.6 / 16) ** 16
    gap = best - (1 - (1 - 0.1 / 16) ** 16)
    assert graves_lai(instance).low == pytest.approx(2 * gap / (16 * kl(0.1 / 16, 1.6 / 16)), rel=1e-6)


def two_items(seed, overlap=True):
    rng = np.random.default_rng(seed)
    batches = [[0, 1], [2, 3], [1, 2]] if overlap else [[0, 1], [2, 3]]
    p = rng.uniform(0.05, 0.5, (4, 2))
    p[:2] += 0.3
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Explicit(batches), weights=[1.0, 2.0])
    return sa.Instance(problem, sa.environments.Bernoulli(p))


@pytest.mark.parametrize("seed", range(3))
def test_two_items_against_a_general_optimiser(seed):
    # one suboptimal batch of two free arms: C = gap / min information, found here by SLSQP
    instance = two_items(seed, overlap=False)
    p = instance.p.reshape(4, 2)
    best, other = instance.value([0, 1]), instance.value([2, 3])

    def information(lam):
        return sum(kl(a, b) for a, b in zip(p[2:].ravel(), lam, strict=True))

    def surplus(lam):
        lam = lam.reshape(2, 2)
        return float(np.array([1.0, 2.0]) @ (1 - np.prod(1 - lam, axis=0))) - best

    solved = min(
        (
            minimize(information, start, bounds=[(a, 1 - 1e-9) for a in p[2:].ravel()],
                     constraints={"type": "ineq", "fun": surplus}, method="SLSQP")
            for start in (p[2:].ravel() * 0.5 + 0.5, np.full(4, 0.9))
        ),
        key=lambda found: found.fun if found.success else math.inf,
    )  # fmt: skip
    assert graves_lai(instance).low == pytest.approx((best - other) / solved.fun, rel=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_bracket_and_feasibility(seed):
    found = graves_lai(two_items(seed))
    assert 0.0 < found.low <= found.high <= found.low * (1 + 1e-4)


def test_empty_arms_are_priced():
    # p = 0: kl(0, q) = -log(1 - q) is linear in the surplus
    problem = sa.Problem(2, 1, sa.Coverage(), sa.Explicit([[0], [1]]))
    instance = sa.Instance(problem, sa.environments.Bernoulli([[0.0], [0.4]]))
    assert graves_lai(instance).low == pytest.approx(0.4 / -math.log(0.6), rel=1e-6)


def test_nothing_to_learn():
    problem = sa.Problem(2, 1, sa.Coverage(), sa.Explicit([[0, 1], [0]]))
    assert graves_lai(sa.Instance(problem, sa.environments.Bernoulli([[0.2], [0.4]]))) == (0.0, 0.0)


def test_what_it_does_not_answer():
    with pytest.raises(sa.InvalidArgument, match="listed batches"):
        graves_lai(sa.instances.random_coverage(5, 2, 2))
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Explicit(itertools.combinations(range(3), 2)))
    with pytest.raises(sa.InvalidArgument, match="depend"):
        graves_lai(sa.Instance(problem, sa.environments.CommonShock(np.full((3, 2), 0.3))))
