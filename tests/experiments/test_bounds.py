import numpy as np

import superarm as sa
from superarm.experiments.analysis import bounds

ROUNDS = np.array([10, 100, 1000])


def test_no_bound_is_shown_for_a_target_that_it_does_not_hold_for():
    approximate = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
    assert bounds.bound_curves(approximate, ROUNDS, "oracle") == {}


def test_bounds_of_theory_are_curves_above_zero():
    found = bounds.bound_curves(sa.instances.lower_bound(6, 2), ROUNDS, "optimal")
    assert "Theorem 1 (BC-UCB)" in found
    assert "Lai-Robbins rate × log T, this size and gap" in found
    assert all(np.shape(values) == (3,) and (np.diff(values) > 0).all() for values in found.values())
    elsewhere = bounds.bound_curves(sa.instances.disjoint_batches(4, suboptimal_arms=8), ROUNDS, "optimal")
    assert "Lai-Robbins rate × log T, this size and gap" not in elsewhere


def test_no_bound_is_shown_where_a_batch_is_not_seen_whole():
    assert bounds.bound_curves(sa.instances.cascade(n_arms=32, k=8), ROUNDS, "optimal") == {}
