import numpy as np

import superarm as sa
from superarm.experiments import bounds

ROUNDS = np.array([10, 100, 1000])


def test_no_bound_is_shown_for_a_target_it_does_not_speak_of():
    approximate = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
    assert bounds.curves(approximate, ROUNDS, "oracle") == {}


def test_bounds_of_theory_are_curves_above_zero():
    found = bounds.curves(sa.instances.lower_bound(6, 2), ROUNDS, "optimal")
    assert "BC-UCB: Theorem 1 as in the paper" in found
    assert "lower bound: exact rate · log t" in found
    assert all(np.shape(values) == (3,) and (np.diff(values) > 0).all() for values in found.values())
    elsewhere = bounds.curves(sa.instances.disjoint_batches(4, suboptimal_arms=8), ROUNDS, "optimal")
    assert "lower bound: exact rate · log t" not in elsewhere


def test_no_bound_is_shown_where_a_batch_is_not_seen_whole():
    assert bounds.curves(sa.instances.cascade(n_arms=32, k=8), ROUNDS, "optimal") == {}
