"""Policies that use the covariance of an arm's items, against their definitions and a solver."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

import superarm as sa
from superarm.core.tally import Feedback
from superarm.policies import escb_c, ols_ucb_c
from superarm.policies.covariance import CovarianceBox, CovarianceEllipsoid, covariance_slack

T = 60
WEIGHTS = np.array([1.0, 0.5, 0.0, 2.0])


def observed(policy, problem, rng, n_pulls):
    """A tally of some pulls of each arm, and the outcomes, (n_pulls[j], n_items) each."""
    outcomes = [(rng.random((n, problem.n_items)) < rng.random(problem.n_items)) * 1.0 for n in n_pulls]
    tally = policy.new_memory(problem, 1).tally
    for j, rows in enumerate(outcomes):
        rows[:, 1] = np.where(rng.random(len(rows)) < 0.7, rows[:, 0], rows[:, 1])  # two items that move together
        for row in rows:
            tally.record(Feedback(1, np.array([[j]]), row[None, None]))
    return tally, outcomes


def widths(policy, problem, tally):
    return policy.region.width(problem, tally.moments, T, tally.pulls)[0]


def bounded_covariance(rows, caution, n_entries):
    n, h = len(rows), math.sqrt(math.log(T) + math.log(n_entries))
    slack = 0.25 * (5 * h / math.sqrt(n) + h**2 / n + 1 / n**2)
    assert covariance_slack(T, n_entries, n) == pytest.approx(slack)
    return np.cov(rows.T, bias=True) + caution * slack


@pytest.mark.parametrize("caution", [0.0, 0.3, 1.0])
def test_the_ellipsoid_is_the_norm_of_the_paper_for_all_base_arms(caution):
    problem = sa.Problem(3, 4, sa.Coverage(), sa.Subsets(1), weights=WEIGHTS)
    policy, n_pulls, base = ols_ucb_c(rho=0.7, c=0.1, caution=caution), [5, 9, 4], 12
    tally, outcomes = observed(policy, problem, np.random.default_rng(1), n_pulls)
    for j in range(3):  # all entries are base arms; the matrices are those of the whole problem
        inside = slice(4 * j, 4 * j + 4)
        covariance = np.zeros((base, base))
        covariance[inside, inside] = bounded_covariance(outcomes[j], caution, base)
        gram = np.eye(base)
        for other, n in enumerate(n_pulls):
            played = np.zeros(base)
            played[4 * other : 4 * other + 4] = 1.0
            gram += n * np.diag(played) @ covariance @ np.diag(played)
        counts = np.repeat(n_pulls, 4).astype(float)
        gram += np.diag(np.diag(covariance)) @ np.diag(counts)
        action = np.zeros(base)
        action[inside] = WEIGHTS
        scaled = action / counts
        f = 0.7 * math.log(T) + 0.1 * base * math.log(math.log(T))
        assert widths(policy, problem, tally)[j] == pytest.approx(f * math.sqrt(scaled @ gram @ scaled), rel=1e-6)


def most_optimistic(blocks, level, size):
    """The largest weighted error in the region of ESCB-C, by a solver; ``blocks`` are (covariance, weights, N)."""
    top = max(weights.max() for _, weights, _ in blocks)
    spread, counts = [], []
    for covariance, weights, n in blocks:
        used = weights > 0.0
        scaled = (weights[:, None] * weights * covariance / top**2)[np.ix_(used, used)]
        spread += np.maximum(scaled, 0.0).sum(axis=1).tolist()
        counts += [n] * int(used.sum())
    s, n = np.array(spread), np.array(counts, float)

    def cost(error):
        return level - (n * error**2 / (size * np.abs(error) + s)).sum()

    found = optimize.minimize(
        lambda error: -error.sum(),
        np.full(len(s), 1e-3),
        constraints={"type": "ineq", "fun": cost},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert cost(found.x) > -1e-6
    return -top * found.fun


@pytest.mark.parametrize(("rho", "c", "caution"), [(8.0, 4.0 * math.e, 1.0), (1.0, 0.0, 0.2), (0.5, 0.0, 0.0)])
def test_the_bonus_of_escb_c_is_the_largest_error_in_its_region(rho, c, caution):
    problem = sa.Problem(3, 4, sa.Coverage(), sa.Subsets(1), weights=WEIGHTS)
    policy, n_pulls = escb_c(rho, c, caution), [25, 40, 30]
    tally, outcomes = observed(policy, problem, np.random.default_rng(2), n_pulls)
    level = rho * (math.log(T) + math.log(math.log(T))) + c * 3  # three items count
    for j, n in enumerate(n_pulls):
        best = most_optimistic([(bounded_covariance(outcomes[j], caution, 12), WEIGHTS, n)], level, 3)
        assert widths(policy, problem, tally)[j] == pytest.approx(best, rel=1e-4)


def test_for_two_arms_the_root_of_the_squares_is_at_least_the_joint_bonus_of_escb_c():
    problem = sa.Problem(3, 4, sa.Linear(), sa.Subsets(2), weights=WEIGHTS)
    policy, n_pulls = escb_c(1.0, 0.0, 0.2), [25, 80, 30]
    tally, outcomes = observed(policy, problem, np.random.default_rng(3), n_pulls)
    level, width = math.log(T) + math.log(math.log(T)), widths(policy, problem, tally)
    for pair in itertools.combinations(range(3), 2):
        blocks = [(bounded_covariance(outcomes[j], 0.2, 12), WEIGHTS, n_pulls[j]) for j in pair]
        joint = most_optimistic(blocks, level, 6)
        assert joint - 1e-6 <= math.sqrt(sum(width[j] ** 2 for j in pair)) <= 1.3 * joint


def naive_bonus(ellipsoid, rows, t, k):
    n, h = len(rows), math.sqrt(math.log(t) + math.log(12))
    covariance = np.cov(rows.T, bias=True) + 0.1 * 0.25 * (5 * h / math.sqrt(n) + h**2 / n + 1 / n**2)
    if ellipsoid:
        return 0.5 * math.log(t) * math.sqrt((covariance.sum() + np.trace(covariance)) / n + 3 / n**2)
    nu, m = 0.5 * (math.log(t) + math.log(max(1.0, math.log(t)))) / n, 3.0 * k
    return 0.5 * (m * nu + math.sqrt((m * nu) ** 2 + 4 * nu * np.maximum(covariance, 0.0).sum()))


@pytest.mark.parametrize("make", [escb_c, ols_ucb_c])
@pytest.mark.parametrize(("reward", "k"), [(sa.Coverage(), 1), (sa.Linear(), 2)], ids=["coverage", "linear"])
def test_the_batch_played_is_the_best_by_the_index_of_every_batch(make, reward, k):
    rng = np.random.default_rng(4)
    agent = sa.Agent(sa.Problem(4, 3, reward, sa.Subsets(k)), make(0.5, 0.0, 0.1), seed=1)
    p, seen = rng.random((4, 3)), [[] for _ in range(4)]
    for t in range(1, 40):
        decision = agent.ask()
        played = [int(j) for j in decision.action]
        if all(seen):
            worth = [np.mean(rows, axis=0).sum() for rows in seen]
            bonus = [naive_bonus(make is ols_ucb_c, np.array(rows), t, k) for rows in seen]
            value = {
                batch: sum(worth[j] for j in batch) + math.sqrt(sum(bonus[j] ** 2 for j in batch))
                for batch in itertools.combinations(range(4), k)
            }
            assert value[tuple(sorted(played))] == pytest.approx(max(value.values()), abs=1e-6)
        rows = (rng.random((k, 3)) < p[played]) * 1.0
        agent.tell(decision, rows)
        for j, row in zip(played, rows, strict=True):
            seen[j].append(row)


def test_entries_of_weight_0_count_neither_in_the_level_nor_in_the_bonus():
    rng, policy = np.random.default_rng(6), escb_c(caution=0.0)
    heavy = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1))
    light = sa.Problem(3, 4, sa.Coverage(), sa.Subsets(1), weights=[1.0, 1.0, 0.0, 0.0])
    tally, outcomes = observed(policy, light, rng, [9, 12, 7])
    same = policy.new_memory(heavy, 1).tally
    for j, rows in enumerate(outcomes):
        for row in rows:
            same.record(Feedback(1, np.array([[j]]), row[None, None, :2]))
    assert widths(policy, light, tally) == pytest.approx(widths(policy, heavy, same))


def test_rewards_that_do_not_add_up_are_refused():
    for policy in (escb_c(), ols_ucb_c()):
        for problem in (
            sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2)),
            sa.Problem(4, 2, sa.Logistic(1.0), sa.Subsets(1)),
        ):
            with pytest.raises(sa.InvalidArgument, match="linear in the parameters of a batch"):
                policy.validate(problem)
    for region in (CovarianceBox, CovarianceEllipsoid):
        with pytest.raises(sa.InvalidArgument, match="caution"):
            region(caution=-1.0)
