"""Which oracle serves which pair by default, what it promises, and instances on which promises are tight."""

import math

import numpy as np
import pytest

import superarm as sa
from superarm.oracles import Default, maximize
from superarm.oracles.base import GREEDY, greedy_alpha
from superarm.core.streams import new_stream

MANY = np.arange(60)
GRID = [(a, b) for a in range(10) for b in range(10)]


def _ladder(steps):
    """A network with 2**steps paths."""
    return sa.Paths(steps + 1, [(v, v + 1) for v in range(steps) for _ in range(2)], 0, steps)


PARTITION = sa.PartitionMatroid((MANY % 6).tolist(), [1] * 6)
TABLE = [
    (sa.Linear(), sa.Subsets(5), 60, "Modular", 1.0),
    (sa.Linear(), PARTITION, 60, "Modular", 1.0),
    (sa.Linear(), sa.Matching(10, 10, GRID), 100, "Modular", 1.0),
    (sa.Linear(), _ladder(20), 40, "Modular", 1.0),
    (sa.Linear(), sa.Knapsack(1 + MANY % 7, 20), 60, "KnapsackTable", 1.0),
    (sa.Linear(), sa.Knapsack(1 + np.sqrt(MANY), 20), 60, "KnapsackScheme", 0.95),
    (sa.Linear(), sa.Explicit([[j] for j in MANY]), 60, "Exhaustive", 1.0),
    (sa.Coverage(), sa.Subsets(1), 60, "Greedy", 1.0),
    (sa.Coverage(), sa.Subsets(2), 60, "Greedy", 0.75),
    (sa.Coverage(), sa.Subsets(5), 60, "Greedy", 0.67232),
    (sa.Coverage(), PARTITION, 60, "Greedy", 0.5),
    (sa.Coverage(), sa.Laminar([(range(30), 2)]), 60, "Greedy", 0.5),
    (sa.Coverage(), sa.Slots(np.ones((4, 60), bool)), 60, "Greedy", 0.5),
    (sa.Coverage(), sa.Pinned(sa.Subsets(5), [3]), 60, "Greedy", 0.67232),
    (sa.Coverage(), sa.Pinned(PARTITION, [3]), 60, "Greedy", 0.5),
    (sa.Coverage(), sa.Knapsack(1 + MANY % 7, 20), 60, "GreedyMax", 0.5),
    (sa.Coverage(), sa.Knapsack(1 + MANY[:30] % 7, 20), 30, "PartialEnumeration", GREEDY),
    (sa.Coverage(), sa.Knapsack([3, 3, 3, 4, 4], 7), 5, "Exhaustive", 1.0),
    (sa.Coverage(), sa.Matching(10, 10, GRID), 100, "Greedy", 1 / 3),
    (sa.Coverage(), sa.Matching(2, 2, [(0, 0), (0, 1), (1, 0)]), 3, "Exhaustive", 1.0),
    (sa.Coverage(), _ladder(20), 40, "Linearised", 0.0),
    (sa.Coverage(), _ladder(5), 10, "Exhaustive", 1.0),
    (sa.Coverage(), sa.Explicit([[j] for j in MANY]), 60, "Exhaustive", 1.0),
    (sa.Logistic(3.0), PARTITION, 60, "Greedy", 0.0),
    (sa.Logistic(3.0), sa.Matching(10, 10, GRID), 100, "Greedy", 0.0),
]


@pytest.mark.parametrize(("reward", "actions", "n_arms", "oracle", "alpha"), TABLE)
def test_the_default_suits_the_pair_and_states_its_guarantee(reward, actions, n_arms, oracle, alpha):
    problem = sa.Problem(n_arms, 3, reward, actions)
    if oracle == "Greedy" and not reward.submodular and actions.n_batches(n_arms) <= 5000:
        oracle, alpha = "Exhaustive", 1.0
    assert type(Default().fit(problem)).__name__ == oracle
    assert Default().guarantee(problem) == pytest.approx((alpha, 1.0))


def test_a_single_item_makes_greedy_exact_on_a_matroid_and_nowhere_else():
    assert Default().guarantee(sa.Problem(60, 1, sa.Coverage(), PARTITION)).alpha == 1.0
    assert Default().guarantee(sa.Problem(100, 1, sa.Coverage(), sa.Matching(10, 10, GRID))).alpha == pytest.approx(
        1 / 3
    )


def test_oracles_refuse_problems_they_do_not_serve():
    matching = sa.Problem(100, 2, sa.Coverage(), sa.Matching(10, 10, GRID))
    steep = sa.Problem(60, 2, sa.Logistic(3.0), sa.Subsets(3))
    off_grid = sa.Problem(3, 1, sa.Linear(), sa.Knapsack([1.00001, 2.0, 3.0], 4.0))
    refused = [
        (sa.Modular(), matching),
        (sa.StochasticGreedy(), matching),
        (sa.ContinuousGreedy(), matching),
        (sa.GreedyMax(), matching),
        (sa.CostBenefit(), matching),
        (sa.PartialEnumeration(), matching),
        (sa.KnapsackScheme(), matching),
        (sa.LazyGreedy(), steep),
        (sa.LocalSearch(), sa.Problem(40, 1, sa.Coverage(), _ladder(20))),
        (sa.KnapsackTable(), off_grid),
    ]
    for oracle, problem in refused:
        with pytest.raises(sa.InvalidArgument):
            oracle.fit(problem)
    for make in (
        lambda: sa.StochasticGreedy(0.7),
        lambda: sa.KnapsackScheme(0.0),
        lambda: sa.ContinuousGreedy(0),
        lambda: sa.Linearised(rounds=0),
        lambda: sa.LocalSearch(step=-1.0),
    ):
        with pytest.raises(sa.InvalidArgument):
            make()


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_greedy_on_subsets_can_be_as_bad_as_its_alpha_and_no_worse(k):
    # The instance of Nemhauser, Wolsey, Fisher: each of the first k arms covers a column of weight 1; the n-th of the
    # others covers 1/k of what those before it left of every column. Both gain the same; ties go to the others.
    left = (1.0 - 1.0 / k) ** np.arange(k)
    cells = np.append(left / k, (1.0 - 1.0 / k) ** k)  # the parts of a column: taken in step n, and never
    p = np.zeros((2 * k, k * (k + 1)))
    for column in range(k):
        p[column, column * (k + 1) : (column + 1) * (k + 1)] = 1.0
        p[np.arange(k, 2 * k), column * (k + 1) + np.arange(k)] = 1.0
    weights = np.tile(cells, k)
    weights[np.arange(k * (k + 1)) % (k + 1) < k] *= 1.0 + 1e-9  # decides ties
    problem = sa.Problem(2 * k, k * (k + 1), sa.Coverage(), sa.Subsets(k), weights)
    best = problem.value(p, np.arange(k))
    assert problem.value(p, sa.solve(problem, p, sa.Greedy())) / best == pytest.approx(greedy_alpha(k), abs=1e-6)


def test_greedy_on_a_partition_matroid_can_be_as_bad_as_one_half_and_continuous_greedy_is_not():
    # Arm 0 covers item 0 alone a hair better than the pair (1, 2) would; arm 1 then adds nothing in its own group.
    p = np.array([[0.51, 0.0], [0.0, 0.5], [0.5, 0.0]])
    problem = sa.Problem(3, 2, sa.Coverage(), sa.PartitionMatroid([0, 0, 1], [1, 1]), weights=[1.0, 1.0])
    greedy = problem.value(p, sa.solve(problem, p, sa.Greedy()))
    better = problem.value(p, sa.solve(problem, p, sa.ContinuousGreedy(10)))
    assert greedy == pytest.approx(0.51 + 0.49 * 0.5)
    assert better == pytest.approx(1.0)


def test_stochastic_greedy_keeps_its_promise_in_expectation_and_draws_from_its_stream_alone():
    rng = np.random.default_rng(0)
    problem, p = sa.Problem(40, 8, sa.Coverage(), sa.Subsets(5)), rng.random((40, 8)) * (rng.random((40, 8)) < 0.3)
    oracle, q, candidates = sa.StochasticGreedy(0.3), problem.entries(p), problem.candidates()
    best = problem.value(p, sa.solve(problem, p, sa.Greedy()))
    batches = [maximize(oracle, problem, q, candidates, new_stream(np.random.SeedSequence(n))) for n in range(200)]
    again = [maximize(oracle, problem, q, candidates, new_stream(np.random.SeedSequence(n))) for n in range(200)]
    assert [a.tolist() for a in batches] == [a.tolist() for a in again]
    assert len({tuple(a) for a in batches}) > 20
    values = [problem.value(p, a) for a in batches]
    assert np.mean(values) >= oracle.expected_alpha() * best
    promise = oracle.guarantee(problem)
    assert promise.alpha == promise.beta == pytest.approx(1.0 - math.sqrt(1.0 - oracle.expected_alpha()))
    assert np.mean(np.array(values) >= promise.alpha * best) >= promise.beta
