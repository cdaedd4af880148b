"""The streams of chance against plain integers, SciPy's distributions and high-precision quantiles."""

import mpmath
import naive
import numpy as np
import pytest
from scipy import stats

from superarm.core.streams import Stream, beta, gamma, integer, mix, new_stream, normal, quantile, run_streams, seek, uniform

STEP = 0x9E3779B97F4A7C15
N = 20_000


def stream(seed=0):
    return new_stream(np.random.SeedSequence(seed))


def at(state):
    """A stream whose next word is ``splitmix(state + STEP)``."""
    return Stream(np.zeros(1, np.uint64), np.array([state], np.uint64))


def drawn(draw, n=N, seed=0):
    source = stream(seed)
    seek(source, 1, 0)
    return np.array([draw(source) for _ in range(n)])


def test_mix_is_splitmix64():
    rng = np.random.default_rng(0)
    for word in rng.integers(0, 2**64, 100, dtype=np.uint64):
        with np.errstate(over="ignore"):
            assert int(mix(word)) == naive.splitmix(int(word))


def test_seeded_with_0_the_words_are_the_published_ones():
    # SplitMix64 from seed 0: the first outputs of the reference implementation.
    source = at(0)
    words = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [uniform(source) for _ in words] == [(word >> 11) / 2**53 for word in words]


def test_seek_forgets_what_was_drawn_before():
    source = stream()
    seek(source, 5, 2)
    first = [uniform(source) for _ in range(3)]
    uniform(source)
    seek(source, 6, 2)
    uniform(source)
    seek(source, 5, 2)
    assert [uniform(source) for _ in range(3)] == first


def test_places_rounds_and_keys_differ():
    def first(seed, t, place):
        source = stream(seed)
        seek(source, t, place)
        return uniform(source)

    drawn = {first(seed, t, place) for seed in range(3) for t in range(30) for place in range(30)}
    assert len(drawn) == 3 * 30 * 30  # 2700 numbers out of 2^53: a collision has probability 4e-10


def test_neighbouring_places_are_uniform_and_uncorrelated():
    """Fixed seed; the four tests together raise a false alarm with probability below 4e-6."""
    source, u = stream(3), np.empty((150, 150))
    for t in range(150):
        for place in range(150):
            seek(source, t, place)
            u[t, place] = uniform(source)
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-6
    for a, b in ((u[1:], u[:-1]), (u[:, 1:], u[:, :-1]), (u[1:, 1:], u[:-1, :-1])):
        r = np.corrcoef(a.ravel(), b.ravel())[0, 1]
        assert abs(r) < 4.9 / np.sqrt(a.size)  # 4.9 standard errors: probability 1e-6


def test_streams_of_one_seed_are_three_and_leave_the_seed_alone():
    seed = np.random.SeedSequence(7)
    keys = [int(part.key[0]) for part in run_streams(seed)]
    assert len(set(keys)) == 3
    assert keys == [int(part.key[0]) for part in run_streams(seed)]
    assert seed.n_children_spawned == 0
    assert keys == [int(child.generate_state(1, np.uint64)[0]) for child in np.random.SeedSequence(7).spawn(3)]


@pytest.mark.parametrize("u", [1e-300, 1e-16, 1e-9, 0.001, 0.0749, 0.0751, 0.3, 0.5, 0.6, 0.9251, 0.99, 1 - 1e-12])
def test_quantile_inverts_the_normal_distribution(u):
    with mpmath.workdps(400 if u < 1e-200 else 50):
        exact = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(u) - 1)
        assert abs(quantile(u) - exact) <= 2e-15 * max(1, abs(exact))


def test_normal_is_finite_at_both_ends_of_uniform():
    lowest, highest = (at((naive.unsplitmix(word) - STEP) % 2**64) for word in (0, 2**64 - 1))
    low, high = normal(lowest), normal(highest)
    # Phi(-8.29) = 5.6e-17 = 2^-54 and Phi(8.21) = 1 - 1.1e-16 = 1 - 2^-53.
    assert low == pytest.approx(stats.norm.ppf(2.0**-54), rel=1e-12)
    assert high == pytest.approx(stats.norm.isf(2.0**-53), rel=1e-12)


def test_uniform_reaches_0_and_never_1():
    lowest, highest = (at((naive.unsplitmix(word) - STEP) % 2**64) for word in (0, 2**64 - 1))
    assert uniform(lowest) == 0.0
    assert uniform(highest) == 1.0 - 2.0**-53


def test_integer_stays_below_n():
    highest = at((naive.unsplitmix(2**64 - 1) - STEP) % 2**64)
    assert integer(highest, 3) == 2
    counts = np.bincount(drawn(lambda s: integer(s, 5)).astype(int), minlength=5)
    assert counts.size == 5
    assert stats.chisquare(counts).pvalue > 1e-6  # fixed seed; false alarm 1e-6


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (normal, stats.norm()),
        (lambda s: gamma(s, 0.3), stats.gamma(0.3)),
        (lambda s: gamma(s, 1.0), stats.gamma(1.0)),
        (lambda s: gamma(s, 7.5), stats.gamma(7.5)),
        (lambda s: beta(s, 0.5, 0.5), stats.beta(0.5, 0.5)),
        (lambda s: beta(s, 1.0, 3.0), stats.beta(1.0, 3.0)),
        (lambda s: beta(s, 40.0, 2.0), stats.beta(40.0, 2.0)),
    ],
)
def test_distributions(draw, law):
    """Kolmogorov-Smirnov on 20,000 draws; fixed seed, a true sampler fails with probability 1e-6."""
    assert stats.kstest(drawn(draw), law.cdf).pvalue > 1e-6


def test_beta_with_tiny_parameters_sits_at_the_ends():
    # Beta(a, b) with a, b -> 0 is 1 with probability a / (a + b), else 0: here 1/4.
    x = drawn(lambda s: beta(s, 1e-5, 3e-5), 4000)
    assert ((x >= 0.0) & (x <= 1.0)).all()
    assert (np.minimum(x, 1.0 - x) < 1e-6).mean() > 0.99
    assert abs(x.mean() - 0.25) < 4.9 * np.sqrt(0.25 * 0.75 / 4000)
