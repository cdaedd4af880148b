"""Named instances with contexts: what they promise about their means."""

import numpy as np

from superarm.simulation.contextual_instances import contextual_coverage, linear_cascade, segment_coverage


def test_means_of_a_linear_cascade_are_linear_and_of_order_one_over_k():
    values = []
    for k in (5, 20):
        instance = linear_cascade(k=k, n_arms=40, n_contexts=10)
        environment, context = instance.environment, instance.problem.context
        design = np.stack([np.kron(context.arms, x).reshape(40, -1) for x in environment.vectors]).reshape(400, -1)
        p = environment.p.reshape(-1)
        fitted = design @ np.linalg.lstsq(design, p, rcond=None)[0]
        assert np.allclose(fitted, p, atol=2e-3 / k)
        assert p.max() <= 2.0 / k
        values.append(environment.best_worth.mean())
    assert abs(values[0] - values[1]) < 0.1


def test_means_of_coverage_are_linear_with_an_effect_of_the_item():
    instance = contextual_coverage(n_arms=6, n_items=3, k=2, n_contexts=5, largest=0.25)
    p = instance.environment.p.reshape(5, 6, 3)
    assert np.isclose(p.max(), 0.25)
    assert np.allclose(p - p[:, :, :1], (p - p[:, :, :1])[0, 0])


def test_segments_without_spread_have_equal_means():
    p = segment_coverage(n_segments=3, spread=0.0).environment.p
    assert np.allclose(p, p[0])
    assert not np.allclose(segment_coverage(n_segments=3).environment.p[0], p[0])
