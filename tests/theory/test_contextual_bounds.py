"""The lemma on angles, checked on a grid; the determinant step; and the bounds as their formulas on paper."""

import numpy as np
import pytest

import superarm as sa
from superarm.context.sums import round_weight
from superarm.simulation.contextual_instances import contextual_coverage, linear_cascade
from superarm.theory.upper import contextual

NEAR_ZERO = np.geomspace(1e-6, 0.5, 40)


def test_the_lemma_on_angles_holds_and_its_constant_is_needed():
    """All positions of estimate, truth and radius on a grid; 12 suffices, and 5 would not."""
    worst = 0.0
    for ell in np.geomspace(1e-5, 1.0, 60):
        for estimate in np.concatenate([np.linspace(-1.0, 2.0, 61), NEAR_ZERO, 1 - NEAR_ZERO]):
            truth = np.clip(np.linspace(estimate - ell, estimate + ell, 41), 0.0, 1.0)
            truth = truth[np.abs(truth - estimate) <= ell * (1 + 1e-12)]
            low, high = np.clip([estimate - 2 * ell, estimate + 2 * ell], 0.0, 1.0)
            variance = 0.25 if low < 0.5 < high else max(low * (1 - low), high * (1 - high))
            if not truth.size or variance == 0.0:
                continue
            angle = 2 * (np.arcsin(np.sqrt(high)) - np.arcsin(np.sqrt(truth)))
            worst = max(worst, float((angle * np.sqrt(variance) / ell).max()))
    assert 5.0 < worst <= 12.0


def test_rounded_weights_lose_at_most_a_sixteenth():
    variances = np.linspace(1 / 4096, 0.25, 2001)
    ratios = np.array([round_weight(v) * v for v in variances])
    assert (ratios <= 1.0 + 1e-12).all()
    assert (ratios >= 15 / 16).all()


def test_a_determinant_grows_by_at_least_one_plus_the_squared_widths():
    rng = np.random.default_rng(0)
    for _ in range(200):
        d, n = rng.integers(1, 6), rng.integers(1, 8)
        root = rng.normal(size=(d, d))
        g = np.eye(d) + root @ root.T
        phi, weight = rng.normal(size=(n, d)), rng.uniform(4, 100, n)
        widths = np.einsum("nd,de,ne->n", phi, np.linalg.inv(g), phi) * weight
        after = np.linalg.det(g + (phi.T * weight) @ phi)
        assert after >= np.linalg.det(g) * (1 + widths.sum()) * (1 - 1e-9)


def test_angles_of_means_differ_by_less_than_their_hellinger_distance():
    p = np.linspace(0, 1, 401)
    q = p[:, None]
    hellinger = 1 - np.sqrt(p * q) - np.sqrt((1 - p) * (1 - q))
    angles = 2 * np.arcsin(np.sqrt(p)) - 2 * np.arcsin(np.sqrt(q))
    assert (angles**2 <= np.pi**2 * hellinger + 1e-9).all()


def test_means_of_likelihood_ratios_are_largest_for_binary_outcomes():
    rng = np.random.default_rng(2)
    for _ in range(200):
        f, other = rng.uniform(0.01, 0.99, 2)
        outcome = rng.beta(*rng.uniform(0.2, 3, 2), 5)
        outcome = np.clip(outcome * f / outcome.mean(), 0, 1)
        weights = np.full(5, 0.2)
        mean = float(weights @ outcome)  # the true mean of this outcome
        ratio = outcome * np.log(other / mean) + (1 - outcome) * np.log((1 - other) / (1 - mean))
        hellinger = 1 - np.sqrt(mean * other) - np.sqrt((1 - mean) * (1 - other))
        assert weights @ np.exp(ratio) <= 1 + 1e-12
        assert weights @ np.exp(ratio / 2) <= 1 - hellinger + 1e-12


def test_bounds_are_those_on_paper():
    problem, t = contextual_coverage(n_arms=8, n_items=3, k=2, n_contexts=2).problem, 1e5
    d, n = problem.context.dimension(3), 2 * 3
    smooth, norm = problem.reward.smoothness(2), np.sqrt(3.0)
    plain = d * np.log(1 + n * t / d)

    def lost(log_det, failed):
        return 3 * (log_det / np.log(2) + failed)

    radius = np.sqrt(plain + 2 * np.log(t)) + 1
    expected = 2 * radius * smooth.gamma_inf * norm * np.sqrt(2 * t * plain / np.log(2)) + lost(plain, 1 + np.log(t))
    assert float(contextual.upper_bound_c2_ucb(problem, t)) == pytest.approx(expected)
    weighted = d * np.log(1 + 4096 * n * t / d)
    log_n = d * np.log(4 * d**2 * n**4 * t**4)
    radius = 2 + 4 * np.sqrt(np.log(6 * t**2) + log_n + np.log(np.log(3 * t**2) + log_n))
    leading = 12.4 * radius * smooth.gamma_g * norm * np.sqrt(t * weighted / np.log(2))
    assert float(contextual.upper_bound_vac2_ucb(problem, t)) == pytest.approx(leading + lost(weighted, 1))
    assert float(contextual.information(3, 10, 4.0, 2.0)) == pytest.approx(3 * np.log(1 + 40 / 6))


def test_the_batch_size_enters_one_bound_by_its_root_and_the_other_inside_logarithms():
    small, large = (linear_cascade(n_arms=300, k=k, n_contexts=1).problem for k in (4, 256))
    blind, aware = contextual.upper_bound_c2_ucb, contextual.upper_bound_vac2_ucb
    assert float(blind(large, 1e12)) / float(blind(small, 1e12)) > 7.0  # the root of 64 is 8
    assert float(aware(large, 1e12)) / float(aware(small, 1e12)) < 1.3


def test_a_problem_without_a_linear_model_is_refused():
    with pytest.raises(sa.InvalidArgument, match="it has no shared linear model"):
        contextual.upper_bound_vac2_ucb(sa.Problem(3, 1, sa.Coverage(), sa.Subsets(1)), 10)
