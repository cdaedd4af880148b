import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import superarm as sa
from superarm.theory import sensitivity

unit = st.floats(0.0, 1.0)


@given(st.lists(st.tuples(unit, st.floats(0.0, 3.0), st.floats(0.0, 0.5)), min_size=1, max_size=6), st.floats(0.1, 9.0))
def test_rewards_rise_by_at_most_that(rows, c):
    x, u, v = (np.array(column) for column in zip(*rows, strict=True))
    q = x + np.minimum(u * np.sqrt(x * (1 - x)) + v, 1 - x)
    for reward, rise in (
        (sa.Coverage(), np.prod(1 - x) - np.prod(1 - q)),
        (sa.rewards.Conjunctive(), np.prod(q) - np.prod(x)),
        (sa.Logistic(c), 1 / (1 + c * math.exp(-q.sum())) - 1 / (1 + c * math.exp(-x.sum()))),
        (sa.Linear(), (q - x).sum()),
    ):
        assert rise <= sensitivity(reward.smoothness(len(rows)), u, v) + 1e-12


def test_no_smaller_constant_holds_for_all_rewards():
    # one arm; f rises like the angle up to 1 - eta and linearly beyond: gamma_g = 1, and the ratio tends to 2
    a, eta = 1e-4, 1e-9
    rise = 2 * math.asin(math.sqrt(1 - eta)) - 2 * math.asin(math.sqrt(1 - a))
    bound = sensitivity(sa.rewards.Smoothness(1 / math.sqrt(eta * (1 - eta)), 1.0), u=math.sqrt(a / (1 - a)))
    assert 0.99 < rise / bound <= 1.0


def test_numbers_and_lists():
    smooth = sa.Coverage().smoothness(2)
    assert sensitivity(smooth, 0.5) == 0.5
    assert sensitivity(smooth, [0.3, 0.4], 0.1) == pytest.approx(0.7)
    assert sensitivity(sa.theory.smoothness(sa.Coverage(), k=2), [0.3, 0.4], [0.1, 0.0]) == pytest.approx(0.6)
    with pytest.raises(sa.InvalidArgument, match="u"):
        sensitivity(smooth, -0.1)
