import math

import mpmath as mp
import numpy as np
import pytest

import superarm as sa
from superarm.theory import gaps, lower_bound, lower_bound_gap_free
from superarm.theory.lower import rates


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.3, 0.5])
def test_rates_against_high_precision(epsilon):
    weight = 2.5
    with mp.workdps(40):
        p = mp.mpf(1) / 2 - mp.mpf(epsilon)
        kl = sum(x * mp.log(2 * x) for x in (p, 1 - p) if x > 0)
        exact = 8 * mp.mpf(weight) * mp.mpf(epsilon) / kl
    stated, found = rates(12, 4, weight * epsilon, weight)
    assert found == pytest.approx(float(exact), rel=1e-9)
    assert stated == pytest.approx(weight * 8 / (4 * epsilon), rel=1e-12)
    assert stated <= found <= 2.0 * stated * (1 + 1e-9)  # the stated one is loose by up to 2


def test_of_the_named_instance():
    instance = sa.instances.lower_bound(10, 4, n_items=3, epsilon=0.2)
    found = gaps(instance)
    assert found.smallest == found.largest == pytest.approx(3 * 0.2)
    bound = lower_bound(instance, [10, 100])
    assert bound.stated == pytest.approx(9 * 6 / (4 * 0.6))
    np.testing.assert_allclose(np.asarray(bound), bound.exact * np.log([10, 100]))
    assert float(lower_bound(instance, 10)) == pytest.approx(bound.value[0])


def test_gap_free():
    instance = sa.instances.lower_bound(10, 4, n_items=3)
    t = np.array([1, 4, 7, 100])
    np.testing.assert_allclose(lower_bound_gap_free(instance, t), 3 / 20 * np.minimum(np.sqrt(7 * t), t))
    np.testing.assert_allclose(lower_bound_gap_free(instance.problem, t), lower_bound_gap_free(instance, t))


@pytest.mark.parametrize("gap", [0.0, -0.1, 0.51, math.inf, math.nan])
def test_gaps_that_no_such_instance_has(gap):
    with pytest.raises(sa.InvalidArgument, match="gap"):
        rates(5, 2, gap)
