"""The minimisations over breaks, in one pass and by bisection, find the same break."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from superarm.core.moments import Sample
from superarm.policies.directions import (
    _least_peak,
    _least_spread,
    _search_least_peak,
    _search_least_spread,
    new_direction,
    turn,
)
from superarm.core.support import Dense

N_ITEMS = 6
GRID = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=N_ITEMS, max_size=N_ITEMS)
ANY = st.lists(st.floats(0.0, 1.0, allow_subnormal=False), min_size=N_ITEMS, max_size=N_ITEMS)


def break_of(index, direction):
    return None if index < 0 else float(direction.breaks[index])


@settings(max_examples=300, deadline=None)
@given(st.one_of(GRID, ANY), st.one_of(GRID, ANY), st.one_of(GRID, ANY), st.floats(0.0, 4.0), st.integers(0, 720))
def test_one_pass_finds_the_break_of_bisection_or_says_that_rounding_could_decide(c, reference, entries, whole, seed):
    direction, reference, entries = new_direction(N_ITEMS), np.array(reference), np.array(entries)
    direction.order[:] = np.random.default_rng(seed).permutation(N_ITEMS)  # that of any direction before
    direction.c[:] = c
    turn(direction, reference)
    assert np.array_equal(direction.breaks[1:], np.sort(direction.ratio))
    assert np.array_equal(direction.breaks[1:], direction.ratio[direction.order])
    one = np.array([whole])
    sample = Sample(np.ones(1), entries, entries, entries, one, one, np.zeros(0))
    support = Dense(1, N_ITEMS)
    fast = _least_spread(direction, reference, entries, 0, whole), _least_peak(direction, reference, entries, 0, whole)
    slow = [f(support, sample, reference, direction, 0) for f in (_search_least_spread, _search_least_peak)]
    for one_pass, bisection in zip(fast, slow, strict=True):
        assert break_of(one_pass, direction) in (None, break_of(bisection, direction))


def test_one_pass_is_enough_where_no_sum_is_near_0():
    rng, unsure = np.random.default_rng(2), 0
    for _ in range(200):
        direction, reference, entries = new_direction(N_ITEMS), rng.uniform(0.2, 2.0, N_ITEMS), rng.random(N_ITEMS)
        direction.c[:] = rng.random(N_ITEMS)
        turn(direction, reference)
        unsure += _least_spread(direction, reference, entries, 0, rng.random()) < 0
        unsure += _least_peak(direction, reference, entries, 0, rng.random()) < 0
    assert unsure == 0
