import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import superarm as sa
from superarm.theory import graves_lai
from superarm.theory.lower import lower_bound


def kl(p, q):
    return sum(x * math.log(x / y) for x, y in ((p, q), (1 - p, 1 - q)) if x > 0)


@pytest.mark.parametrize("n_items", [1, 3])
def test_lower_bound_instance_is_lai_robbins(n_items):
    instance = sa.instances.lower_bound(7, 3, n_items=n_items, epsilon=0.15)
    found = graves_lai(instance)
    assert found.low == pytest.approx(lower_bound(instance).exact, rel=1e-6)
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
    problem = sa.Problem(4, 2, sa.Coverage(), sa.actions.Explicit(batches), weights=[1.0, 2.0])
    return sa.Instance(problem, sa.environments.Bernoulli(p))


@pytest.mark.parametrize("margin", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_two_items_against_a_general_optimiser(seed, margin):
    # one suboptimal batch of two free arms: C = gap / min information, found here by SLSQP
    instance = two_items(seed, overlap=False)
    p = instance.p.reshape(4, 2)
    best, other = instance.value([0, 1]), instance.value([2, 3])

    def information(lam):
        return sum(kl(a, b) for a, b in zip(p[2:].ravel(), lam, strict=True))

    def surplus(lam):
        lam = lam.reshape(2, 2)
        return float(np.array([1.0, 2.0]) @ (1 - np.prod(1 - lam, axis=0))) - best - margin

    solved = min(
        (
            minimize(information, start, bounds=[(a, 1 - 1e-9) for a in p[2:].ravel()],
                     constraints={"type": "ineq", "fun": surplus}, method="SLSQP")
            for start in (p[2:].ravel() * 0.5 + 0.5, np.full(4, 0.9))
        ),
        key=lambda found: found.fun if found.success else math.inf,
    )  # fmt: skip
    assert graves_lai(instance, margin=margin).low == pytest.approx((best - other) / solved.fun, rel=1e-4)
    assert graves_lai(instance, margin=3.0) == (0.0, 0.0)  # nothing is worth more than 3


@pytest.mark.parametrize("seed", range(2))
def test_bracket_and_feasibility(seed):
    found = graves_lai(two_items(seed))
    assert 0.0 < found.low <= found.high <= found.low * (1 + 1e-4)


def test_empty_arms_are_priced():
    # p = 0: kl(0, q) = -log(1 - q) is linear in the surplus
    problem = sa.Problem(2, 1, sa.Coverage(), sa.actions.Explicit([[0], [1]]))
    instance = sa.Instance(problem, sa.environments.Bernoulli([[0.0], [0.4]]))
    assert graves_lai(instance).low == pytest.approx(0.4 / -math.log(0.6), rel=1e-6)


def test_nothing_to_learn():
    problem = sa.Problem(2, 1, sa.Coverage(), sa.actions.Explicit([[0, 1], [0]]))
    assert graves_lai(sa.Instance(problem, sa.environments.Bernoulli([[0.2], [0.4]]))) == (0.0, 0.0)


def test_what_it_does_not_answer():
    with pytest.raises(sa.InvalidArgument, match="batches; give one with at most 400"):
        graves_lai(sa.instances.random_coverage(40, 2, 4))
    problem = sa.Problem(3, 2, sa.Coverage(), sa.actions.Explicit(itertools.combinations(range(3), 2)))
    with pytest.raises(sa.InvalidArgument, match="depend"):
        graves_lai(sa.Instance(problem, sa.environments.CommonShock(np.full((3, 2), 0.3))))


def test_linear_rewards_against_the_rate_of_playing_several_arms():
    """The k best of n arms: an arm j that is none of them costs (p_k - p_j) / kl(p_j, p_k) per log T.

    Known from Anantharam, Varaiya and Walrand (1987).
    """
    p = np.array([0.8, 0.7, 0.55, 0.4, 0.3])
    for k in (1, 2, 3):
        problem = sa.Problem(5, 1, sa.Linear(), sa.Subsets(k))
        found = graves_lai(sa.Instance(problem, sa.environments.Bernoulli(p[:, None])))
        worst = p[k - 1]
        known = sum((worst - q) / kl(q, worst) for q in p[k:])
        assert found.low == pytest.approx(known, rel=1e-4)
        assert found.high == pytest.approx(known, rel=1e-4)


def test_subsets_are_the_same_batches_listed():
    p = np.random.default_rng(3).random((5, 2)) * 0.8
    listed = sa.actions.Explicit([list(batch) for batch in itertools.combinations(range(5), 2)])
    for reward in (sa.Coverage(), sa.Linear()):
        found = [
            graves_lai(sa.Instance(sa.Problem(5, 2, reward, actions), sa.environments.Bernoulli(p)), precision=1e-4)
            for actions in (sa.Subsets(2), listed)
        ]
        assert found[0].low == pytest.approx(found[1].low, rel=1e-9)


def test_a_batch_that_can_never_be_optimal_needs_no_exploration():
    problem = sa.Problem(3, 1, sa.Linear(), sa.actions.Explicit([[0, 1], [2]]))
    certain = sa.Instance(problem, sa.environments.Bernoulli([[0.8], [0.7], [0.4]]))  # arm 2 alone earns at most 1
    assert graves_lai(certain) == (0.0, 0.0)
