"""Policies that use the covariance of an arm's items against their definitions: the kernels as plain Python."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

import superarm as sa
from superarm.policies import CovarianceBox, CovarianceEllipsoid, prepare, traits
from superarm.policies.covariance_regions import covariance_slack
from superarm.core.streams import new_stream
from superarm.core.tally import Feedback

T = 60
WEIGHTS = np.array([1.0, 0.5, 0.0, 2.0])


def observed(policy, problem, rng, n_pulls):
    """The policy's memory of some pulls of each arm, and the outcomes, (n_pulls[j], n_items) each."""
    outcomes = [(rng.random((n, problem.n_items)) < rng.random(problem.n_items)) * 1.0 for n in n_pulls]
    for rows in outcomes:
        rows[:, 1] = np.where(rng.random(len(rows)) < 0.7, rows[:, 0], rows[:, 1])  # two items that move together
    tally = traits.empty_tally(policy, problem)
    memory, stream = prepare(policy, problem, tally), new_stream(np.random.SeedSequence(0))
    for j, rows in enumerate(outcomes):
        for row in rows:
            policy.learn(problem, tally, memory, Feedback(1, np.array([j]), row, np.ones(len(row), bool)), stream, 1.0)
    return memory, outcomes


def width_of(policy, problem, memory, arm, pulls):
    support, weights = problem.terms.support, problem.terms.weights
    return policy.region.width(support, weights, memory.sample, arm, T, float(pulls))


def bounded_covariance(rows, caution, n_entries):
    h = math.sqrt(math.log(T) + math.log(n_entries))
    n = len(rows)
    slack = 0.25 * (5 * h / math.sqrt(n) + h**2 / n + 1 / n**2)
    assert covariance_slack(T, n_entries, n) == pytest.approx(slack)
    return np.cov(rows.T, bias=True) + caution * slack


@pytest.mark.parametrize("caution", [0.0, 0.3, 1.0])
def test_the_ellipsoid_is_the_norm_of_the_paper_for_all_base_arms(caution):
    problem = sa.Problem(3, 4, sa.Coverage(), sa.Subsets(1), weights=WEIGHTS)
    policy = sa.ols_ucb_c(rho=0.7, c=0.1, caution=caution).fit(problem)
    n_pulls = [5, 9, 4]
    memory, outcomes = observed(policy, problem, np.random.default_rng(1), n_pulls)
    base = 12  # all entries are base arms; the matrices are those of the whole problem
    for j in range(3):
        inside = slice(4 * j, 4 * j + 4)
        covariance = np.zeros((base, base))
        covariance[inside, inside] = bounded_covariance(outcomes[j], caution, base)
        gram = np.eye(base)
        for other, n in enumerate(n_pulls):
            played = np.zeros(base)
            played[4 * other : 4 * other + 4] = 1.0
            for _ in range(n):
                gram += np.diag(played) @ covariance @ np.diag(played)
        counts = np.repeat(n_pulls, 4).astype(float)
        gram += np.diag(np.diag(covariance)) @ np.diag(counts)
        action = np.zeros(base)
        action[inside] = WEIGHTS
        scaled = action / counts
        f = 0.7 * math.log(T) + 0.1 * base * math.log(math.log(T))
        assert width_of(policy, problem, memory, j, n_pulls[j]) == pytest.approx(f * math.sqrt(scaled @ gram @ scaled))


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

    start = np.full(len(s), 1e-3)
    found = optimize.minimize(
        lambda error: -error.sum(),
        start,
        constraints={"type": "ineq", "fun": cost},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert cost(found.x) > -1e-6
    return -top * found.fun


@pytest.mark.parametrize(("rho", "c", "caution"), [(8.0, 4.0 * math.e, 1.0), (1.0, 0.0, 0.2), (0.5, 0.0, 0.0)])
def test_the_bonus_of_escb_c_is_the_largest_error_in_its_region(rho, c, caution):
    problem = sa.Problem(3, 4, sa.Coverage(), sa.Subsets(1), weights=WEIGHTS)
    policy = sa.escb_c(rho, c, caution).fit(problem)
    n_pulls = [25, 40, 30]
    memory, outcomes = observed(policy, problem, np.random.default_rng(2), n_pulls)
    level = rho * (math.log(T) + math.log(math.log(T))) + c * 3  # three items count
    for j, n in enumerate(n_pulls):
        best = most_optimistic([(bounded_covariance(outcomes[j], caution, 12), WEIGHTS, n)], level, 3)
        assert width_of(policy, problem, memory, j, n) == pytest.approx(best, rel=1e-4)


def test_for_two_arms_the_root_of_the_squares_is_at_least_the_joint_bonus_of_escb_c():
    problem = sa.Problem(3, 4, sa.Linear(), sa.Subsets(2), weights=WEIGHTS)
    policy = sa.escb_c(1.0, 0.0, 0.2).fit(problem)
    n_pulls = [25, 80, 30]
    memory, outcomes = observed(policy, problem, np.random.default_rng(3), n_pulls)
    level = math.log(T) + math.log(math.log(T))
    for pair in itertools.combinations(range(3), 2):
        blocks = [(bounded_covariance(outcomes[j], 0.2, 12), WEIGHTS, n_pulls[j]) for j in pair]
        root = math.sqrt(sum(width_of(policy, problem, memory, j, n_pulls[j]) ** 2 for j in pair))
        joint = most_optimistic(blocks, level, 6)
        assert joint - 1e-6 <= root <= 1.3 * joint


@pytest.mark.parametrize("make", [sa.escb_c, sa.ols_ucb_c])
@pytest.mark.parametrize(("reward", "k"), [(sa.Coverage(), 1), (sa.Linear(), 2)], ids=["coverage", "linear"])
def test_the_batch_played_is_the_best_by_the_index_of_every_batch(make, reward, k):
    rng = np.random.default_rng(4)
    problem = sa.Problem(4, 3, reward, sa.Subsets(k))
    agent, plain = sa.Agent(problem, make(0.5, 0.0, 0.1), seed=1), make(0.5, 0.0, 0.1).fit(problem)
    p = rng.random((4, 3))
    seen = [[] for _ in range(4)]
    for t in range(1, 40):
        decision = agent.ask()
        played = [int(j) for j in decision.action]
        if all(seen):
            worth = [np.mean(rows, axis=0).sum() for rows in seen]
            bonus = [_naive_bonus(plain.region, np.array(rows), t) for rows in seen]
            value = {
                batch: sum(worth[j] for j in batch) + math.sqrt(sum(bonus[j] ** 2 for j in batch))
                for batch in itertools.combinations(range(4), k)
            }
            assert value[tuple(sorted(played))] == pytest.approx(max(value.values()))
        rows = (rng.random((k, 3)) < p[played]) * 1.0
        agent.tell(decision, rows)
        for j, row in zip(played, rows, strict=True):
            seen[j].append(row)


def _naive_bonus(region, rows, t):
    n = len(rows)
    h = math.sqrt(math.log(t) + math.log(12))
    slack = 0.25 * (5 * h / math.sqrt(n) + h**2 / n + 1 / n**2)
    covariance = np.cov(rows.T, bias=True) + 0.1 * slack
    if isinstance(region, CovarianceEllipsoid):
        return 0.5 * math.log(t) * math.sqrt((covariance.sum() + np.trace(covariance)) / n + 3 / n**2)
    nu = 0.5 * (math.log(t) + math.log(max(1.0, math.log(t)))) / n
    m = region.batch_entries
    return 0.5 * (m * nu + math.sqrt((m * nu) ** 2 + 4 * nu * np.maximum(covariance, 0.0).sum()))


def test_covariance_policies_refuse_rewards_that_do_not_add_up():
    for policy in (sa.escb_c(), sa.ols_ucb_c()):
        with pytest.raises(sa.InvalidArgument, match="linear in the parameters of a batch"):
            policy.fit(sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2)))
        with pytest.raises(sa.InvalidArgument, match="linear in the parameters of a batch"):
            policy.fit(sa.Problem(4, 2, sa.Logistic(1.0), sa.Subsets(1)))
        assert "independent of one another" in policy.caveat
    with pytest.raises(sa.InvalidArgument, match="caution"):
        CovarianceBox(caution=-1.0)


def test_entries_of_weight_0_count_neither_in_the_level_nor_in_the_bonus():
    heavy = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1))
    light = sa.Problem(3, 4, sa.Coverage(), sa.Subsets(1), weights=[1.0, 1.0, 0.0, 0.0])
    assert sa.escb_c().fit(heavy).region.batch_entries == sa.escb_c().fit(light).region.batch_entries == 2.0
