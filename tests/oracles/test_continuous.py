import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.oracles.continuous import _build_batch, _total_uncovered
from tests.action_sets import random_set


@pytest.mark.parametrize("kind", ["partition", "laminar", "slots", "trees", "subsets"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_rounding_loses_nothing(kind, seed):
    rng = np.random.default_rng(seed)
    actions, n = random_set(kind, rng)
    problem = sa.Problem(n, 3, sa.Coverage(), actions)
    p, steps, candidates = rng.random((n, 3)), 4, problem.candidates()
    share, chosen = np.zeros(n), np.empty(problem.k, np.int64)
    for _ in range(steps):
        size = _build_batch(problem, problem.entries(p), candidates, share, 1.0 / steps, chosen)
        assert actions.includes(chosen[:size])
    covered = 3.0 - _total_uncovered(problem, problem.entries(p), share)
    by_hand = (1.0 - np.prod(1.0 - share[:, None] * p, axis=0)).sum()
    assert covered == pytest.approx(by_hand)
    assert problem.value(p, sa.solve(problem, p, sa.ContinuousGreedy(steps))) >= covered - 1e-9
