"""The inequalities behind the sharpest constants, by quadrature and by random search with fixed seeds."""

import itertools
import math

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.integrate import quad
from scipy.special import gammaln

from superarm.indices import KL, kl_upper
from superarm.theory.upper.directional import add_failures


def g(z):
    """2 arcsin sqrt z."""
    return 2.0 * math.asin(math.sqrt(min(1.0, max(0.0, z))))


def upper(mean, x):
    return kl_upper(np.array([[mean]]), np.array([[x]])).item()


# --- bc-ucb.md: what the pulls of one arm can cost ---


def lemma(c1, c2, d, top, k, lam):
    """The lemma with c1 for c1^2 f and c2 for 2 c2 f."""
    base, ratio = lam * math.log(1 + k / (lam - 1)), lam * k / (k + lam - 1)
    return c1 / d * (base + ratio * (1 - d / top)) + c2 * (base + ratio * math.log(top / d))


def largest_charge(s, c1, c2, d, top, k, lam):
    """The largest charge at N = s over the gaps in [d, top]: both branches cross at one gap."""
    b1, b2, kappa = lam * c1, lam * c2, (lam - 1) / k
    u = (1 + kappa) * s
    cross = np.clip((b2 + np.sqrt(b2 * b2 + 4 * u * b1)) / (2 * u), d, top)
    return np.minimum(cross, np.maximum(0.0, (b1 / cross + b2) / s - kappa * cross))


def random_charges(seed):
    rng = np.random.default_rng(seed)
    d = 10 ** rng.uniform(-1, 0)
    c2 = 0.0 if rng.random() < 0.3 else 10 ** rng.uniform(-1, 1.5)
    top = d * (1.0 if rng.random() < 0.3 else 10 ** rng.uniform(0, 1.5))
    return 10 ** rng.uniform(-2, 3), c2, d, top, int(rng.integers(1, 40)), 1 + 10 ** rng.uniform(-1.5, 1.5)


def test_the_lemma_is_the_integral_of_the_charges_and_above_their_sum():
    worst = 0.0
    for seed in range(120):
        case = random_charges(seed)
        c1, c2, d, _, k, lam = case
        end = lam * (c1 / d**2 + c2 / d) * k / (lam - 1)  # from here on nothing is charged
        ends = [lam * (c1 / gap**2 + c2 / gap) / (1 + (lam - 1) / k) for gap in (case[3], d)]
        points = [0.0, *ends, end]
        integral = sum(
            quad(largest_charge, low, high, case, limit=200)[0]
            for low, high in itertools.pairwise(points)
            if high > low
        )
        assert integral == pytest.approx(lemma(*case), rel=1e-6)
        total = largest_charge(np.arange(1.0, min(end, 4e5) + 1), *case).sum()
        gaps = np.geomspace(d, case[3], 50)[:, None]  # no gap of a grid is charged more
        s = np.arange(1.0, min(end, 300.0) + 1)
        b1, b2, kappa = lam * c1, lam * c2, (lam - 1) / k
        grid = np.minimum(gaps, np.maximum(0.0, (b1 / gaps + b2) / s - kappa * gaps)).max(axis=0)
        assert (grid <= largest_charge(s, *case) * (1 + 1e-9)).all()
        worst = max(worst, total / lemma(*case))
    assert 0.99 < worst <= 1.0 + 1e-9  # no smaller constant would do, and no term D is needed


@pytest.mark.parametrize("seed", range(6))
def test_no_sequence_of_batches_costs_more(seed):
    # in every round the batch with the largest gap that the condition still allows is played
    rng = np.random.default_rng(seed)
    arms, k, c1, c2 = 6, 3, rng.uniform(1, 4), rng.choice([0.0, 1.0])
    batches = [list(b) for size in range(1, k + 1) for b in itertools.combinations(range(arms), size)]
    gaps, n, cost = rng.uniform(0.3, 1.0, len(batches)), np.ones(arms), 0.0
    holds = np.array([[j in b for j in range(arms)] for b in batches])
    while True:
        share = holds @ (1.0 / n)
        allowed = gaps <= c1 * np.sqrt(share) + c2 * share
        if not allowed.any():
            break
        chosen = int(np.argmax(np.where(allowed, gaps, 0.0)))
        cost += gaps[chosen]
        n += holds[chosen]
    ends = [(gaps[holds[:, j]].min(), gaps[holds[:, j]].max()) for j in range(arms)]
    for lam in (1.2, 2.0, 10.0):
        assert cost <= sum(lemma(c1**2, 2 * c2, low, high, k, lam) for low, high in ends)


# --- directional.md: optimism at all counts, widths, every direction ---


def growth(m, n):
    """C_m(n)."""
    return math.sqrt(math.pi) * math.exp(gammaln(n + (m + 1) / 2) - gammaln((m + 1) / 2) - gammaln(n + 0.5))


def test_the_mixture_loses_at_most_a_root():
    # Gauss-Chebyshev nodes integrate polynomials against Beta(1/2, 1/2) exactly; the largest product over a grid
    rng, grid, worst = np.random.default_rng(0), np.linspace(0.0, 1.0, 2001), 0.0
    for _ in range(400):
        n, mu = int(rng.integers(1, 100)), rng.uniform(0.01, 0.99)
        y = [rng.integers(0, 2, n), rng.beta(0.2, 0.2, n), np.full(n, rng.integers(0, 2))][rng.integers(3)]
        z = (y - mu) / (1.0 - mu)
        nodes = (1 + np.cos(np.pi * (np.arange(n + 1) + 0.5) / (n + 1))) / 2
        mixture = np.prod(1 - np.outer(nodes, z), axis=1).mean()
        worst = max(worst, np.prod(1 - np.outer(grid, z), axis=1).max() / (mixture * growth(1, n)))
    assert 0.999 < worst <= 1.0 + 1e-9
    for n in (1, 2, 7, 100, 10**6):
        assert growth(1, n) <= 2.0 * math.sqrt(n) * (1 + 1e-6)


def test_the_mixture_over_two_items():
    # Dirichlet(1/2, 1/2, 1/2) are the squares of a uniform point of the sphere, integrated exactly
    rng, worst = np.random.default_rng(1), 0.0
    share = np.linspace(0.0, 1.0, 121)
    a, b = (x.ravel() for x in np.meshgrid(share, share))
    grid = np.column_stack([1 - a - b, a, b])[a + b <= 1]
    for _ in range(60):
        n, p = int(rng.integers(1, 20)), rng.uniform(0.05, 0.95, 2)
        x = rng.integers(0, 2, (n, 2)) if rng.random() < 0.6 else rng.beta(0.2, 0.2, (n, 2))
        prices = np.column_stack([np.ones(n), (1 - x * (rng.random() < 0.8)) / (1 - p)])
        z, weight = leggauss(n + 1)
        angle = np.arange(2 * n + 2) * 2 * np.pi / (2 * n + 2)
        around = np.sqrt(1 - z**2)[:, None]
        points = np.stack([np.repeat(z[:, None], len(angle), 1), around * np.cos(angle), around * np.sin(angle)], -1)
        mixture = float(np.prod(points**2 @ prices.T, axis=-1).mean(axis=1) @ weight / 2)
        worst = max(worst, np.prod(grid @ prices.T, axis=1).max() / (mixture * growth(2, n)))
    assert 0.9 < worst <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("rho", "c", "m", "factor"), [(1.5, 2.0, 1, 3.0), (1.0, 3.0, 1, 1.0), (6.0, 2.0, 10, 40.0), (1.5, 2.0, 0, 2.0)]
)
def test_sums_of_failures_are_at_most_one_percent_too_large(rho, c, m, factor):
    t = np.arange(1.0, 1e6 + 1)
    log_terms = (
        gammaln(t + (m + 1) / 2) - gammaln(t + 0.5) - gammaln((m + 1) / 2) + math.log(factor * math.sqrt(math.pi))
    )
    exact = np.cumsum(np.minimum(1.0, np.exp(log_terms - rho * np.log(t) - c * np.log(np.maximum(1.0, np.log(t))))))
    horizons = np.array([1, 2, 999, 1000, 1001, 12_345, 10**6])
    found = add_failures(KL(rho, c), m, math.log(factor))(horizons.astype(float))
    assert (found >= exact[horizons - 1] * (1 - 1e-9)).all()
    assert (found <= exact[horizons - 1] * 1.01).all()


def test_the_failures_that_directional_md_states():
    far = np.array([1e7, 1e30, 1e300])
    assert add_failures(KL(1.5, 2.0), 1, 0.0)(far).max() <= 3.9
    assert add_failures(KL(1.5, 2.0), 0, math.log(2.0))(far).max() - 1.0 <= 1.45
    assert float(add_failures(KL(1.0, 3.0), 1, 0.0)(far[:1])[0]) < 10.0  # the default level


def test_how_often_an_arm_is_played_with_a_failed_width():
    """Each count n at most once: sum_n 2 exp(-l_(n+1)) on average; at the level (1/2) log t + log^+ log t here."""
    rng, runs, last, p = np.random.default_rng(3), 400, 200, 0.15
    n = np.arange(1.0, last + 1)
    ell = 0.5 * np.log(n + 1) + np.log(np.maximum(1.0, np.log(n + 1)))
    x, var = ell / n, p * (1 - p)
    y = rng.random((runs, last)) < p
    mean = np.cumsum(y, axis=1) / n
    square = np.cumsum((y - p) ** 2, axis=1) / n
    failed = (mean > p + np.sqrt(2 * var * x) + x / 3) | (square > var + np.sqrt(2 * var * x) + x / 3)
    counts = failed.sum(axis=1)
    allowed = np.minimum(1.0, 2 * np.exp(-ell)).sum()
    assert counts.mean() <= allowed + 4 * counts.std() / math.sqrt(runs)
    assert counts.mean() > 0.5  # so that the comparison says something


def test_deviations_in_every_direction_from_two_orthants():
    """Where (3) holds for lambda >= 0 and for lambda <= 0, so does (4), also for directions of mixed signs."""
    rng, nearest = np.random.default_rng(4), 0.0
    shares = np.append(np.geomspace(1e-3, 0.9, 40), [0.95, 0.99, 1 - 1e-9])
    split = np.linspace(0.0, 1.0, 41)
    weights = np.column_stack([split, 1 - split])
    for _ in range(150):
        p, n = rng.uniform(0.05, 0.95, 2), int(rng.integers(2, 50))
        u = rng.random((n, 1)) if rng.random() < 0.5 else rng.random((n, 2))
        x = (u < p).astype(float) if rng.random() < 0.7 else np.clip(p + 0.6 * (u - 0.5), 0.0, 1.0)
        assets = [(x - p) / (1 - p), (p - x) / p]  # with 1 - share * weights @ asset: the vertices of both orthants
        logs = [np.log1p(-shares[:, None, None] * (weights @ asset.T)[None]).mean(axis=2).max() for asset in assets]
        level = max(0.0, *logs) * 1.05 + 1e-7  # a little above: the grid is coarse
        for c in [np.sign(x.mean(axis=0) - p), *rng.normal(size=(4, 2))]:
            spread = np.abs(c) @ x.std(axis=0)
            allowed = math.sqrt(2 * level) * spread + (3 + math.sqrt(5)) * np.abs(c).sum() * level
            deviation = abs(float(c @ (x.mean(axis=0) - p)))
            assert deviation <= allowed + 1e-9
            nearest = max(nearest, deviation / allowed)
    assert nearest > 0.3


def test_three_plus_the_root_of_five():
    y = np.linspace(1e-6, 1 - 1e-6, 10**6)  # sqrt(2 x)
    assert np.minimum(2 / (1 - y), 2 / y**2).max() == pytest.approx(3 + math.sqrt(5), rel=1e-5)


# --- kl-ucb.md and offline.md: one angle for two divergences ---


def test_both_ends_of_an_interval_are_within_two_roots_of_two():
    """KL-CLCB: 10^5 random pairs on the event; the largest ratio is nearly attained at a mean of 1/2."""
    rng = np.random.default_rng(5)
    mean, ends = rng.random(10**5), rng.random((2, 10**5))
    ends[:, ::2] = np.clip(mean[::2] + rng.normal(0, 0.05, (2, 5 * 10**4)), 1e-9, 1 - 1e-9)
    kl = mean * np.log(mean / ends) + (1 - mean) * np.log((1 - mean) / (1 - ends))
    angles = 2 * np.arcsin(np.sqrt(ends))
    ratio = np.abs(angles[0] - angles[1]) / np.sqrt(kl.max(axis=0))
    assert ratio.max() <= 2 * math.sqrt(2)
    q = upper(0.5, 1e-6)
    assert (g(q) - g(1 - q)) / 1e-3 > 2.0 * math.sqrt(2.0) * (1 - 1e-5)
