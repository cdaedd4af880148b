"""Random numbers against plain integers, SciPy's distributions and high-precision quantiles. Seeds are fixed."""

import mpmath
import naive
import numpy as np
import pytest
from scipy import stats

from superarm.core import streams
from superarm.core.reference import beta_draws

N = 20_000


def words(*values):
    return np.array(values, np.uint64)


def test_mix_is_splitmix64():
    values = np.random.default_rng(0).integers(0, 2**64, 100, dtype=np.uint64)
    assert [int(word) for word in streams.mix(values)] == [naive.splitmix(int(word)) for word in values]


def test_seeded_with_0_the_words_are_the_published_ones():
    # SplitMix64 from seed 0: the first outputs of the reference implementation.
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    found = streams.number(words(1, 2, 3) * streams.STEP)
    assert found.tolist() == [(word >> 11) / 2**53 for word in published]


def test_places_rounds_arms_and_keys_differ():
    keys = streams.run_keys(np.random.SeedSequence(1).spawn(3)).policy
    drawn = np.concatenate([streams.uniform(keys, t, np.arange(30), 3).ravel() for t in range(30)])
    assert len(np.unique(drawn)) == drawn.size == 3 * 30 * 30 * 3  # a collision has probability 4e-9
    again = streams.uniform(keys, 7, np.array([5]), 3)
    np.testing.assert_array_equal(again, streams.uniform(keys, 7, np.arange(30), 3)[:, 5:6])


def test_neighbouring_places_are_uniform_and_uncorrelated():
    """The four tests together raise a false alarm with probability below 4e-6."""
    key = words(3)
    u = np.array([streams.uniform(key, t, np.arange(150))[0, :, 0] for t in range(150)])
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-6
    for a, b in ((u[1:], u[:-1]), (u[:, 1:], u[:, :-1]), (u[1:, 1:], u[:-1, :-1])):
        r = np.corrcoef(a.ravel(), b.ravel())[0, 1]
        assert abs(r) < 4.9 / np.sqrt(a.size)  # 4.9 standard errors: probability 1e-6


def test_the_keys_of_one_seed_are_three_and_leave_the_seed_alone():
    seed = np.random.SeedSequence(7)
    keys = [int(part[0]) for part in streams.run_keys([seed])]
    assert len(set(keys)) == 3
    assert keys == [int(part[0]) for part in streams.run_keys([seed])]
    assert seed.n_children_spawned == 0
    assert keys == [int(child.generate_state(1, np.uint64)[0]) for child in np.random.SeedSequence(7).spawn(3)]


@pytest.mark.parametrize("u", [1e-300, 1e-16, 1e-9, 0.001, 0.0749, 0.0751, 0.3, 0.5, 0.6, 0.9251, 0.99, 1 - 1e-12])
def test_quantile_inverts_the_normal_distribution(u):
    with mpmath.workdps(400 if u < 1e-200 else 50):
        exact = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(u) - 1)
        assert abs(streams.quantile(np.array(u)).item() - exact) <= 2e-15 * max(1, abs(exact))


def test_numbers_reach_0_and_never_1_and_normal_ones_are_finite():
    ends = streams.number(words(naive.unsplitmix(0), naive.unsplitmix(2**64 - 1)))
    assert ends.tolist() == [0.0, 1.0 - 2.0**-53]
    # Phi(-8.29) = 5.6e-17 = 2^-54 and Phi(8.21) = 1 - 1.1e-16 = 1 - 2^-53.
    low, high = streams.quantile(streams.move_inside(ends))
    assert low == pytest.approx(stats.norm.ppf(2.0**-54), rel=1e-12)
    assert high == pytest.approx(stats.norm.isf(2.0**-53), rel=1e-12)


def test_normal_numbers_follow_their_law():
    """Kolmogorov-Smirnov on 20,000 numbers; a true sampler fails with probability 1e-6."""
    u = streams.uniform(words(5), 1, np.arange(N))[0, :, 0]
    assert stats.kstest(streams.normal(u), stats.norm.cdf).pvalue > 1e-6


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1.0, 3.0), (40.0, 2.0), (0.3, 7.5)])
def test_beta_numbers_follow_their_law(a, b):
    drawn = beta_draws(np.arange(N).astype(np.uint64), np.full(N, a), np.full(N, b))
    assert stats.kstest(drawn, stats.beta(a, b).cdf).pvalue > 1e-6


def test_beta_with_tiny_parameters_sits_at_the_ends():
    # Beta(a, b) with a, b -> 0 is 1 with probability a / (a + b), else 0: here 1/4.
    x = beta_draws(np.arange(4000).astype(np.uint64), np.full(4000, 1e-5), np.full(4000, 3e-5))
    assert ((x >= 0.0) & (x <= 1.0)).all()
    assert (np.minimum(x, 1.0 - x) < 1e-6).mean() > 0.99
    assert abs(x.mean() - 0.25) < 4.9 * np.sqrt(0.25 * 0.75 / 4000)


def test_coins_keep_the_mean_and_depend_on_round_and_arm_alone():
    """Exact binomial tests: a fair coin fails with probability 1e-6."""
    arms, keys = np.arange(4000)[None], words(9)
    for chance in (0.0, 0.1, 0.5, 0.9, 1.0):
        flips = streams.coins(keys, 2, arms, np.full((1, 4000, 1), chance))
        assert set(np.unique(flips)) <= {0.0, 1.0}
        assert stats.binomtest(int(flips.sum()), 4000, chance).pvalue > 1e-6
    everyone = streams.coins(keys, 2, arms[:, :9], np.full((1, 9, 4), 0.5))
    assert 0.0 < everyone.mean() < 1.0
    some = streams.coins(keys, 2, np.array([[7, 0]]), np.full((1, 2, 4), 0.5))
    np.testing.assert_array_equal(some, everyone[:, [7, 0]])
