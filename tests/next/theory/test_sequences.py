import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superarm.theory.sequences import Sequences, best_sequences, factor, geometric, levels
from tests.next import names as sa


def test_levels_are_exact_powers():
    for k in (1, 2, 5, 6, 25, 26, 125, 126, 625, 626, 3125, 3126, 15625, 15626):
        assert 5 ** levels(k) >= k
        assert levels(k) == 1 or 5 ** (levels(k) - 1) < k


@pytest.mark.parametrize("k", [1, 5, 6, 25, 200])
def test_the_papers_factor(k):
    k0 = levels(k)
    assert factor(geometric(k), k) == pytest.approx(k0 * (4 * k0 + 1))
    assert factor(geometric(k), k) <= 5 * k0**2


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 16, 25, 64, 256, 1656, 10**5])
def test_best_is_lawful_and_better(k):
    best = best_sequences(k)
    assert factor(best, k) <= factor(geometric(k), k)
    assert best.b[-1] == pytest.approx(1 / k)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.05, 0.95), min_size=1, max_size=5), st.lists(st.floats(0.05, 1.0), min_size=5, max_size=5))
def test_no_random_sequence_beats_the_best(shares, falls):
    k = 40
    b = np.cumprod(shares)
    b[-1] = min(b[-1], 1 / k)
    a = np.cumprod(falls)[: len(b)]
    assert factor(Sequences(a, b), k) >= factor(best_sequences(k), k) * (1 - 1e-6)


def test_growth():
    assert factor(best_sequences(10**9), 10**9) / math.log(10**9) ** 2 == pytest.approx(1.57, abs=0.03)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 10**5), min_size=1, max_size=12), st.floats(0.5, 1e4), st.booleans())
def test_lemma_on_counts(pulls, scale, paper):
    # if no G^k occurs, the sum of 1/N is below K l / scale: the lemma behind the factor
    k = len(pulls)
    a, b = geometric(k) if paper else best_sequences(k)
    n = np.array(pulls)
    occurs = any((n <= a_k * scale).sum() >= k * b_k * (1 - 1e-12) for a_k, b_k in zip(a, b, strict=True))
    before = np.concatenate([[1.0], b[:-1]])
    ell = np.sum((before - b) / a) + b[-1] / a[-1]
    assert occurs or (1.0 / n).sum() < k * ell / scale * (1 + 1e-9)


@pytest.mark.parametrize(
    "bad", [([1.0], [1.0, 0.5]), ([0.1, 0.2], [0.5, 0.1]), ([0.2, 0.1], [0.5, 0.4]), ([0.2], [0.0]), ([], [])]
)
def test_unlawful_sequences(bad):
    with pytest.raises(sa.InvalidArgument, match="sequences"):
        factor(Sequences(*map(np.array, bad)), 10)


def test_batch_size_is_checked():
    with pytest.raises(sa.InvalidArgument, match="k"):
        best_sequences(0)
