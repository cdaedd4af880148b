"""The kernels of the offline package, compiled, against formulas in numpy."""

import numpy as np
import pytest

from .static_logs import coverage_problem, draw_log

P = np.random.default_rng(1).uniform(0.05, 0.5, (6, 2))


@pytest.mark.compiled("kernels that no other test compiles")
def test_values_and_derivatives_are_those_of_numpy():
    log = draw_log(coverage_problem(), P, [0, 1], 0.5, 300, np.random.default_rng(0))
    mean = (log.tally.total / np.repeat(log.tally.pulls, 2)).reshape(6, 2)
    found = log.value([2, 3])
    assert found.value == pytest.approx((1.0 - (1.0 - mean[2]) * (1.0 - mean[3])).sum())
    assert found.low < found.approximate.low < found.approximate.high < found.high
    x = log.rows.outcome.reshape(300, 2, 2)
    np.testing.assert_allclose(log.rewards, (1.0 - np.prod(1.0 - x, axis=1)).sum(axis=1))
    one_step = log.value([2, 3], method="one_step")
    assert one_step.value == pytest.approx(found.value, abs=0.2)
    assert one_step.baseline_value.value == pytest.approx(log.rewards.mean(), abs=0.05)
    assert log.best().low == pytest.approx(log.value(log.best().slate).low)
