"""The lemmas and the bound of ``docs/theory/directional.md``, against simulation."""

import itertools
import math

import numpy as np
import pytest

import superarm as sa
from superarm.indices import KL
from superarm.theory.upper.directional import upper_bound_directional, upper_bound_directional_greedy


def sample_bound(y, x):
    """The index (1) of the page by a fine search over kappa."""
    kappa = np.append(10.0 ** np.linspace(-4, -0.001, 300), 1.0 - 10.0 ** -np.linspace(2, 9, 40))
    return float(np.min((1.0 - np.exp(np.log1p(-np.outer(kappa, y)).mean(axis=1) - x)) / kappa))


def test_optimism_at_all_counts():
    # At level l the theorem allows 2 sqrt(t) exp(-l) = 0.05; 400 runs of a law that is rarely high. A false alarm needs
    # 41 failures of Binomial(400, 0.05): probability below 1e-4.
    rng, t = np.random.default_rng(2), 64
    level = math.log(2.0 * math.sqrt(t) / 0.05)
    failures = 0
    for _ in range(400):
        y = np.where(rng.random(t) < 0.1, 1.0, 0.2)
        failures += any(sample_bound(y[:n], level / n) < 0.28 for n in (1, 2, 4, 8, 16, 32, 64))
    assert failures <= 40


def coverage_values(p, w, k):
    """The value of every batch of k arms."""
    batches = itertools.combinations(range(len(p)), k)
    return {batch: float(w @ (1.0 - np.prod(1.0 - p[list(batch)], axis=0))) for batch in batches}


def largest_divergence(x, p):
    """The largest mean of log(1 - lambda (X - p)) over a grid of lambda in two dimensions: (3) holds from there on."""
    best, shares = 0.0, np.append(np.geomspace(1e-4, 0.9, 60), [0.95, 0.99, 0.999, 1.0 - 1e-9])
    for angle in np.linspace(0.0, 2.0 * np.pi, 120, endpoint=False):
        c = np.array([np.cos(angle), np.sin(angle)])
        reach = np.maximum(c * (1.0 - p), -c * p).sum()  # the largest value of c (y - p) over the square
        best = max(best, float(np.log1p(-np.outer(shares, (x - p) @ c / reach)).mean(axis=1).max()))
    return best


def test_optimism_and_deviations_in_every_direction():
    """Where (3) holds, so do optimism and (4), also for directions that were chosen after the sample."""
    rng, checked = np.random.default_rng(3), 0
    for _ in range(60):
        p = rng.uniform(0.05, 0.9, 2)
        n, law = int(rng.integers(2, 60)), rng.integers(3)
        u = rng.random((n, 1)) if law == 0 else rng.random((n, 2))
        x = (
            (u < p).astype(float)
            if law < 2
            else np.where(rng.random((n, 1)) < 0.2, 1.0, np.maximum(0.0, (p - 0.2) / 0.8))
        )
        level = largest_divergence(x, p) * 1.03 + 1e-7  # a little above: the grid is coarse
        for c in [p - x.mean(axis=0), x.mean(axis=0) - p, *rng.normal(size=(4, 2))]:
            norm = np.abs(c).sum()
            if norm > 0.0:
                deviation = abs(float(c @ (x.mean(axis=0) - p)))
                spread = sum(float((x @ part).std()) for part in (np.maximum(c, 0.0), np.maximum(-c, 0.0)))
                assert deviation <= math.sqrt(2.0 * level) * spread + 5.2361 * norm * level + 1e-9
            weights = np.abs(c)
            if weights.sum() > 0.0:
                checked += 1
                y = x @ weights / weights.sum()
                assert sample_bound(y, level) >= float(p @ weights / weights.sum()) - 1e-6
    assert checked > 300


def test_greedy_with_an_estimated_residual_loses_what_is_charged_to_its_arms():
    """The decomposition in the proof of Theorem 2, with made-up bounds that are optimistic in direction c hat."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        n_arms, m, k = 6, 3, int(rng.integers(1, 5))
        p = rng.uniform(0.0, 1.0, (n_arms, m)) ** 2
        hat, w = np.clip(p + rng.normal(0.0, 0.2, p.shape), 0.0, 1.0), rng.uniform(0.2, 2.0, m)
        slack = rng.exponential(0.1, n_arms)
        batch, c, c_hat, directions, widths = [], w.copy(), w.copy(), [], []
        for _ in range(k):
            bounds = [-1.0 if j in batch else float(c_hat @ p[j]) + slack[j] for j in range(n_arms)]
            j = int(np.argmax(bounds))
            directions.append((j, c.copy(), c_hat.copy()))
            widths.append(slack[j])
            batch.append(j)
            c, c_hat = c * (1.0 - p[j]), c_hat * (1.0 - hat[j])
        value = {
            a: float(w @ (1.0 - np.prod(1.0 - p[list(a)], axis=0))) for a in itertools.combinations(range(n_arms), k)
        }
        best = max(value, key=value.get)
        gap = (1.0 - (1.0 - 1.0 / k) ** k) * value[best] - value[tuple(sorted(batch))]
        charged = 0.0
        for at, (j, _, residual) in enumerate(directions):
            e, rest = np.zeros(m), np.ones(m)
            for n in range(at + 1, k):
                others = [o for o in best if o not in batch[:n]]
                covered = 1.0 - np.prod(1.0 - p[others], axis=0) if others else np.zeros(m)
                e += (1.0 - 1.0 / k) ** (k - 1 - n) * rest * (covered / k - p[batch[n]])
                rest *= 1.0 - p[batch[n]]
            assert (np.abs(e) <= 1.0 + 1e-12).all()
            charged += float((residual * e) @ (hat[j] - p[j]))
        assert gap <= sum(widths) + charged + 1e-9


def test_ordered_batches_have_at_most_half_the_square_of_the_weights():
    rng = np.random.default_rng(5)
    for _ in range(300):
        p, w = rng.uniform(0.0, 1.0, (int(rng.integers(1, 12)), 4)) ** rng.integers(1, 5), rng.uniform(0.0, 1.0, 4)
        residual = w * np.cumprod(np.vstack([np.ones(4), 1.0 - p[:-1]]), axis=0)
        total = ((residual * np.sqrt(p * (1.0 - p))).sum(axis=1) ** 2).sum()
        assert total <= 0.5 * w.sum() ** 2 + 1e-12


def failures(rho, c, horizon, factor, m):
    """The sum of min(1, factor C_m(t) exp(-level)) over t, one by one."""
    total = 0.0
    for t in range(1, horizon + 1):
        level = rho * math.log(t) + c * math.log(max(1.0, math.log(t)))
        growth = math.lgamma(t + (m + 1) / 2) - math.lgamma((m + 1) / 2) - math.lgamma(t + 0.5)
        total += min(1.0, factor * math.exp(0.5 * math.log(math.pi) + growth - level))
    return total


def level(rho, c, t):
    return rho * math.log(t) + c * math.log(max(1.0, math.log(t)))


@pytest.mark.parametrize("constants", [(1.5, 2.0), (3.0, 0.0), (1.0, 3.0)])
@pytest.mark.parametrize("environment", [sa.environments.Bernoulli, sa.environments.Comonotone])
def test_one_arm_per_batch_by_hand_and_above_simulated_regret(environment, constants):
    p = np.repeat([[0.5], [0.3], [0.2]], 4, axis=1)
    instance = sa.Instance(sa.Problem(3, 4, sa.Coverage(), sa.Subsets(1)), environment(p))
    policy = sa.policies.directional_kl_ucb(*constants)
    bound = sa.theory.bounds(instance, policy, [100, 400])["upper_bound_directional"]
    results = sa.simulate(instance, {"": policy}, 400, 2, target="optimal", rounds=[100, 400], progress=False)
    assert (results.regret[""].mean(axis=0) < bound.value).all()
    # arms 1 and 2 have gaps 0.8 and 1.2, b = 4; E = 1, as all gaps of an arm are equal
    square = 4.0 if environment is sa.environments.Bernoulli else 16.0
    growing = 8.0 * square * (0.21 / 0.8 + 0.16 / 1.2) + 14.0 / 3.0 * 4.0 * 2.0
    optimism, width = failures(*constants, 400, 1.0, 1), failures(*constants, 400, 2.0, 0) - 1.0
    by_hand = growing * level(*constants, 400) + 1.2 * (3.0 + optimism + 3.0 * width)
    assert float(bound.value[1]) == pytest.approx(by_hand)


def test_linear_rewards_on_a_matroid_by_hand():
    p = np.array([[0.9], [0.5], [0.4]])
    instance = sa.Instance(sa.Problem(3, 1, sa.Linear(), sa.Subsets(2)), sa.environments.Bernoulli(p))
    bound = upper_bound_directional(instance, 1000)
    least, most = np.array([0.1, 0.5, 0.1]), np.array([0.1, 0.5, 0.5])
    spread = np.array([0.34, 0.49, 0.49])  # 0.09, 0.25 and 0.24: the arm itself and the largest other one
    lam = 1.0 + np.geomspace(1e-3, 1e6, 100_001)[:, None]
    e, ratio = lam * np.log(1 + 2 / (lam - 1)), lam * 2 / (lam + 1)
    main = (8.0 * spread / least * (e + ratio * (1 - least / most))).sum(axis=1)
    slow = (14.0 / 3.0 * (e + ratio * np.log(most / least))).sum(axis=1)
    failed = 3.0 + failures(1.5, 2.0, 1000, 2.0, 1) + 3.0 * (failures(1.5, 2.0, 1000, 2.0, 0) - 1.0)
    assert float(bound.value) == pytest.approx((main + slow).min() * level(1.5, 2.0, 1000) + failed * 0.5)


def test_estimated_directions_are_refused():
    instance = sa.instances.random_coverage(4, 2, 2)
    with pytest.raises(sa.InvalidArgument, match="direction is estimated"):
        upper_bound_directional(instance, 10)


def test_coverage_with_several_arms_by_hand_and_above_simulated_regret():
    p = np.array([[0.9, 0.8], [0.8, 0.9], [0.1, 0.05], [0.05, 0.1]])
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2), weights=[1.0, 2.0])
    instance = sa.Instance(problem, sa.environments.Bernoulli(p))
    policy = sa.policies.directional_kl_ucb(rho=2.0, c=2.0)
    bound = sa.theory.bounds(instance, policy, [50, 200])["upper_bound_directional_greedy"]
    gaps = {a: 0.75 * max(coverage_values(p, problem.weights, 2).values()) - v
            for a, v in coverage_values(p, problem.weights, 2).items()}  # fmt: skip
    lam = 1.0 + np.geomspace(1e-3, 1e6, 100_001)
    e, ratio, growing = lam * np.log(1 + 2 / (lam - 1)), lam * 2 / (lam + 1), 0.0
    for j in range(4):
        own = [gap for a, gap in gaps.items() if j in a and gap > 0.0]
        if own:
            growing += 9.0 * 9.0 / min(own) * (e + ratio * (1 - min(own) / max(own)))
            growing += 23.0 * 3.0 * (e + ratio * math.log(max(own) / min(own)))
    failed = 4.0 + failures(2.0, 2.0, 200, 8.0, 2)
    by_hand = growing.min() * level(2.0, 2.0, 200) + failed * max(gaps.values())
    assert float(bound.value[1]) == pytest.approx(by_hand)
    results = sa.simulate(instance, {"": policy}, 200, 2, target="approximation", rounds=[50, 200], progress=False)
    assert (results.regret[""].mean(axis=0) < bound.value).all()
    with pytest.raises(sa.InvalidArgument, match="another reward"):
        upper_bound_directional_greedy(sa.instances.disjoint_batches(2), 10)
    with pytest.raises(sa.InvalidArgument, match="too low"):
        upper_bound_directional_greedy(instance, 10, index=KL(0.9, 3.0))
