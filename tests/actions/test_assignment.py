import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from superarm.actions.assignment import solve_assignment


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 4))
def test_the_value_is_that_of_scipy(seed, n_rows, more):
    rng = np.random.default_rng(seed)
    gain = rng.random((n_rows, n_rows + more)) * (rng.random((n_rows, n_rows + more)) < 0.7)
    columns = solve_assignment(gain, np.zeros_like(gain))
    assert len(set(columns.tolist())) == n_rows
    rows, best = linear_sum_assignment(gain, maximize=True)
    assert gain[np.arange(n_rows), columns].sum() == pytest.approx(gain[rows, best].sum(), abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_equal_values_go_to_the_fewest_pulls(seed, n):
    pulls = np.random.default_rng(seed).integers(0, 9, (n, n)).astype(float)
    columns = solve_assignment(np.ones((n, n)), pulls)
    rows, best = linear_sum_assignment(pulls)
    assert pulls[np.arange(n), columns].sum() == pulls[rows, best].sum()
