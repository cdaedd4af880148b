"""What is recorded of an outcome."""

import numpy as np
from scipy import stats

from superarm.intake import Coin, Exact, take
from superarm.core.streams import new_stream, seek
from superarm.core.support import Dense
from superarm.core.tally import Feedback, empty, record

N = 4000


def coins(outcome, seed=0):
    source = new_stream(np.random.SeedSequence(seed))
    seek(source, 1, 0)
    return np.array([take(Coin(), outcome, source) for _ in range(N)])


def test_exact_takes_the_outcome_itself():
    source = new_stream(np.random.SeedSequence(0))
    assert [take(Exact(), x, source) for x in (0.0, 0.3, 1.0)] == [0.0, 0.3, 1.0]


def test_a_coin_keeps_the_mean():
    """Exact binomial test with a fixed seed: a fair coin fails with probability 1e-6."""
    for outcome in (0.1, 0.5, 0.9):
        flips = coins(outcome)
        assert set(flips) == {0.0, 1.0}
        assert stats.binomtest(int(flips.sum()), N, outcome).pvalue > 1e-6


def test_certain_outcomes_are_taken_as_they_are():
    assert not coins(0.0).any()
    assert coins(1.0).all()


def test_coins_hang_on_round_and_arm_alone():
    here, source = Dense(3, 4), new_stream(np.random.SeedSequence(5))
    half = np.full(12, 0.5)

    def flipped(action, seen_first):
        tally = empty(here)
        if seen_first:  # other feedback before it must not shift the coins
            record(tally, here, Feedback(1, np.array([0]), half[:4], np.ones(4, bool)), Coin(), source, 1.0)
            tally = empty(here)
        told = Feedback(2, np.array(action), half, np.ones(12, bool))
        record(tally, here, told, Coin(), source, 1.0)
        return tally.total.reshape(3, 4)

    everyone = flipped([0, 1, 2], False)
    assert 0 < everyone.sum() < 12
    assert np.array_equal(flipped([2, 0], True)[[0, 2]], everyone[[0, 2]])
    assert np.array_equal(flipped([1], True)[1], everyone[1])
