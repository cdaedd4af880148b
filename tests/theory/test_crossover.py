import math

import pytest

from superarm.theory import crossover


def test_root_of_a_logarithm():
    t = crossover(lambda t: 50.0 * math.log(t) + 3.0, 0.5)
    assert 50.0 * math.log(t) + 3.0 == pytest.approx(0.5 * t, rel=1e-9)
    assert 50.0 * math.log(2 * t) + 3.0 < 0.5 * 2 * t


def test_never():
    assert crossover(lambda t: 2.0 * t, 1.0) == math.inf
    assert crossover(lambda t: math.inf, 1.0) == math.inf
    assert crossover(lambda t: 1.0, 0.0) == math.inf


def test_from_the_start():
    assert crossover(lambda t: 0.0, 1.0) == pytest.approx(0.5, abs=0.5)
