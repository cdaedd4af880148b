"""Which oracle serves which pair by default, what it promises, and instances on which promises are tight."""

import numpy as np
import pytest

import superarm as sa
from superarm.oracles import Certificate, Default, certified, certify, solve
from superarm.oracles.base import GREEDY
from superarm.simulation.regret import target
from tests.action_sets import playable, random_set

MANY = np.arange(60)


class Indebted(sa.Coverage):
    """Without arms, an item costs its weight: all values are negative."""

    def worth(self, weight, state):
        return -state


GRID = [(a, b) for a in range(10) for b in range(10)]


def _ladder(steps):
    """A network with 2**steps paths."""
    return sa.actions.Paths(steps + 1, [(v, v + 1) for v in range(steps) for _ in range(2)], 0, steps)


PARTITION = sa.actions.PartitionMatroid((MANY % 6).tolist(), [1] * 6)
CROSSING = sa.actions.Intersection([PARTITION, sa.actions.PartitionMatroid((MANY // 12).tolist(), [2] * 5)])
TABLE = [
    (sa.Linear(), sa.Subsets(5), 60, "Modular", 1.0),
    (sa.Linear(), PARTITION, 60, "Modular", 1.0),
    (sa.Linear(), sa.actions.Matching(10, 10, GRID), 100, "Modular", 1.0),
    (sa.Linear(), _ladder(20), 40, "Modular", 1.0),
    (sa.Linear(), CROSSING, 60, "Greedy", 0.5),
    (sa.Linear(), sa.actions.Intersection([PARTITION, sa.Subsets(4)]), 60, "Modular", 1.0),
    (sa.Coverage(), CROSSING, 60, "Greedy", 1 / 3),
    (sa.Linear(), sa.Knapsack(1 + MANY % 7, 20), 60, "KnapsackTable", 1.0),
    (sa.Linear(), sa.Knapsack(1 + np.sqrt(MANY), 20), 60, "KnapsackScheme", 0.95),
    (sa.Linear(), sa.actions.Explicit([[j] for j in MANY]), 60, "Modular", 1.0),
    (sa.Coverage(), sa.Subsets(1), 60, "Greedy", 1.0),
    (sa.Coverage(), sa.Subsets(2), 60, "Greedy", 0.75),
    (sa.Coverage(), sa.Subsets(5), 60, "Greedy", 0.67232),
    (sa.Coverage(), PARTITION, 60, "Greedy", 0.5),
    (sa.Coverage(), sa.actions.Laminar([(range(30), 2)]), 60, "Greedy", 0.5),
    (sa.Coverage(), sa.Slots(np.ones((4, 60), bool)), 60, "Greedy", 0.5),
    (sa.Coverage(), sa.actions.Pinned(sa.Subsets(5), [3]), 60, "Greedy", 0.67232),
    (sa.Coverage(), sa.actions.Pinned(PARTITION, [3]), 60, "Greedy", 0.5),
    (sa.Coverage(), sa.Knapsack(1 + MANY % 7, 20), 60, "GreedyMax", 0.5),
    (sa.Coverage(), sa.Knapsack(1 + MANY[:30] % 7, 20), 30, "PartialEnumeration", GREEDY),
    (sa.Coverage(), sa.Knapsack([3, 3, 3, 4, 4], 7), 5, "Exhaustive", 1.0),
    (sa.Coverage(), sa.actions.Matching(10, 10, GRID), 100, "Greedy", 1 / 3),
    (sa.Coverage(), sa.actions.Matching(2, 2, [(0, 0), (0, 1), (1, 0)]), 3, "Exhaustive", 1.0),
    (sa.Coverage(), _ladder(20), 40, "Linearised", 0.0),
    (sa.Coverage(), _ladder(5), 10, "Exhaustive", 1.0),
    (sa.Coverage(), sa.actions.Explicit([[j] for j in MANY]), 60, "Exhaustive", 1.0),
    (sa.Logistic(3.0), PARTITION, 60, "Greedy", 0.0),
    (sa.Logistic(3.0), sa.actions.Matching(10, 10, GRID), 100, "Greedy", 0.0),
]


@pytest.mark.parametrize(("reward", "actions", "n_arms", "oracle", "alpha"), TABLE)
def test_the_default_suits_the_pair_and_states_its_guarantee(reward, actions, n_arms, oracle, alpha):
    problem = sa.Problem(n_arms, 3, reward, actions)
    if oracle == "Greedy" and not reward.submodular and actions.n_batches(n_arms) <= 5000:
        oracle, alpha = "Exhaustive", 1.0
    assert type(Default().resolve(problem)).__name__ == oracle
    assert Default().guarantee(problem) == pytest.approx((alpha, 1.0))


def test_a_single_item_makes_greedy_exact_on_a_matroid_and_nowhere_else():
    assert Default().guarantee(sa.Problem(60, 1, sa.Coverage(), PARTITION)).alpha == 1.0
    assert Default().guarantee(
        sa.Problem(100, 1, sa.Coverage(), sa.actions.Matching(10, 10, GRID))
    ).alpha == pytest.approx(1 / 3)


def test_oracles_refuse_problems_they_do_not_serve():
    matching = sa.Problem(100, 2, sa.Coverage(), sa.actions.Matching(10, 10, GRID))
    off_grid = sa.Problem(3, 1, sa.Linear(), sa.Knapsack([1.00001, 2.0, 3.0], 4.0))
    refused = [
        (sa.oracles.Modular(), matching),
        (sa.oracles.StochasticGreedy(), matching),
        (sa.oracles.ContinuousGreedy(), matching),
        (sa.oracles.GreedyMax(), matching),
        (sa.oracles.PartialEnumeration(), matching),
        (sa.oracles.KnapsackScheme(), matching),
        (sa.oracles.LocalSearch(), sa.Problem(40, 1, sa.Coverage(), _ladder(20))),
        (sa.oracles.KnapsackTable(), off_grid),
    ]
    for oracle, problem in refused:
        with pytest.raises(sa.InvalidArgument):
            oracle.validate(problem)
    for make in (
        lambda: sa.oracles.StochasticGreedy(0.7),
        lambda: sa.oracles.KnapsackScheme(0.0),
        lambda: sa.oracles.ContinuousGreedy(0),
        lambda: sa.oracles.Linearised(rounds=0),
        lambda: sa.oracles.LocalSearch(step=-1.0),
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
    assert problem.value(p, solve(problem, p, sa.oracles.Greedy())) / best == pytest.approx(
        1.0 - (1.0 - 1.0 / k) ** k, abs=1e-6
    )


def test_greedy_on_a_partition_matroid_can_be_as_bad_as_one_half_and_continuous_greedy_is_not():
    # Arm 0 covers item 0 alone a hair better than the pair (1, 2) would; arm 1 then adds nothing in its own group.
    p = np.array([[0.51, 0.0], [0.0, 0.5], [0.5, 0.0]])
    problem = sa.Problem(3, 2, sa.Coverage(), sa.actions.PartitionMatroid([0, 0, 1], [1, 1]), weights=[1.0, 1.0])
    greedy = problem.value(p, solve(problem, p, sa.oracles.Greedy()))
    better = problem.value(p, solve(problem, p, sa.oracles.ContinuousGreedy(10)))
    assert greedy == pytest.approx(0.51 + 0.49 * 0.5)
    assert better == pytest.approx(1.0)


def test_the_measured_alpha_is_not_the_guarantee():
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
    found = certified(problem, [[0.9, 0.0], [0.0, 0.8], [0.1, 0.1], [0.0, 0.0]], sa.oracles.Greedy())
    assert found.guarantee.alpha == pytest.approx(0.75)
    assert found.certificate.measured_alpha > 0.9
    instance = sa.Instance(problem, sa.environments.Bernoulli(np.full((4, 2), 0.25)))
    goal = target(instance, sa.cucb(), "approximation")
    assert goal.value == pytest.approx(0.75 * 2.0 * (1.0 - 0.75**2))


def test_certificates_of_nothing_and_of_everything():
    assert Certificate(0.0, 0.0).measured_alpha == 1.0
    assert Certificate(1.0, 4.0) == (1.0, 4.0)
    assert Certificate(1.0, 4.0).measured_alpha == 0.25
    assert Certificate(1.0, 4.0).gap == 3.0


def test_a_reward_that_is_not_submodular_is_bounded_by_all_arms_together():
    problem = sa.Problem(3, 1, sa.Logistic(5.0), sa.Subsets(1))
    proof = certify(problem, [[0.5], [0.5], [1.0]], [2])
    assert proof.bound == pytest.approx(1.0 / (1.0 + 5.0 * np.exp(-2.0)))


def test_excluded_arms_do_not_count_in_the_bound():
    problem = sa.Problem(3, 1, sa.Linear(), sa.Subsets(1))
    assert certify(problem, [[0.5], [0.75], [1.0]], [1], eligible=[0, 1]) == Certificate(0.75, 0.75)


def test_a_certificate_of_a_thousand_arms():
    problem = sa.Problem(1000, 20, sa.Coverage(), sa.Subsets(10))
    p = np.random.default_rng(0).uniform(0.0, 0.3, (1000, 20))
    action = solve(problem, p, Default())
    proof = certify(problem, p, action)
    assert 0.6 < proof.measured_alpha <= 1.0


@pytest.mark.parametrize("kind", ["partition", "laminar", "slots", "trees", "subsets"])
def test_continuous_greedy_loses_nothing_by_rounding_on_a_matroid(kind):
    """Its batch is worth at least 1 - 1/e times the best, up to the error of a few steps."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        actions, n, may_play = random_set(kind, rng)
        problem, p = sa.Problem(n, 3, sa.Coverage(), actions), rng.random((n, 3))
        best = max(problem.value(p, batch) for batch in playable(may_play, n))
        assert problem.value(p, solve(problem, p, sa.oracles.ContinuousGreedy(20))) >= GREEDY * best - 1e-9


def test_a_share_of_a_negative_optimum_is_no_guarantee_and_no_bound():
    p = np.random.default_rng(0).uniform(0.1, 0.4, (6, 2))
    problem = sa.Problem(6, 2, Indebted(), sa.Subsets(2))
    assert sa.oracles.Greedy().guarantee(problem).alpha == 0.0
    assert sa.oracles.StochasticGreedy().guarantee(problem).alpha == 0.0
    assert sa.oracles.Exhaustive().guarantee(problem).alpha == 1.0
    instance = sa.Instance(problem, sa.environments.Bernoulli(p))
    reason = sa.theory.bounds(instance, sa.kl_ucb(), 100)["upper_bound_kl_default"].reason
    assert reason == "the policy's oracle guarantees nothing here"
