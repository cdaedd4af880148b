"""Sampled indices follow the laws they name. Fixed seeds; each test fails falsely with probability below 1e-5."""

import numpy as np
import pytest
from scipy import stats

from superarm.indices import AnglePosterior, BetaPosterior, GaussianSample, score, score_entries
from superarm.indices.beta_draws import _try
from superarm.core.streams import gamma, later_state, move_inside, new_stream, quantile, seek, uniform

N = 4000


def sampled(index, mean, pulls):
    source = new_stream(np.random.SeedSequence(1))
    seek(source, 1, 0)
    x = index.level(float(pulls), 123, 0.5)
    return np.array([index.score(mean, 0.3, x, source) for _ in range(N)])


@pytest.mark.parametrize(("hits", "pulls"), [(0, 1), (1, 1), (0, 50), (7, 20), (300, 400)])
def test_beta_posterior(hits, pulls):
    law = stats.beta(1 + hits, 1 + pulls - hits)
    assert stats.kstest(sampled(BetaPosterior(), hits / pulls, pulls), law.cdf).pvalue > 1e-6


@pytest.mark.parametrize(("hits", "pulls"), [(0, 1), (1, 1), (7, 20), (300, 400)])
def test_angle_posterior(hits, pulls):
    q = sampled(AnglePosterior(), hits / pulls, pulls)
    centre = np.arcsin(np.sqrt((hits + 0.375) / (pulls + 0.75)))
    angles, width = np.arcsin(np.sqrt(q)), 0.5 / np.sqrt(pulls)
    low, high = -centre / width, (np.pi / 2 - centre) / width
    for end, tail in ((0.0, stats.norm.cdf(low)), (np.pi / 2, stats.norm.sf(high))):
        clipped = int(np.isclose(angles, end, atol=1e-7).sum())
        assert stats.binomtest(clipped, N, tail).pvalue > 1e-6
    inside = angles[(angles > 1e-7) & (angles < np.pi / 2 - 1e-7)]
    assert stats.kstest(inside, stats.truncnorm(low, high, centre, width).cdf).pvalue > 1e-6


@pytest.mark.parametrize(("hits", "pulls"), [(0, 1), (7, 20), (390, 400)])
def test_gaussian_sample(hits, pulls):
    mean, width = hits / pulls, 0.3 / np.sqrt(pulls + 1.0)
    q = sampled(GaussianSample(0.3), mean, pulls)
    for end, tail in ((0.0, stats.norm.cdf(-mean / width)), (1.0, stats.norm.sf((1.0 - mean) / width))):
        assert stats.binomtest(int((q == end).sum()), N, tail).pvalue > 1e-6
    law = stats.truncnorm(-mean / width, (1.0 - mean) / width, mean, width)
    assert stats.kstest(q[(q > 0.0) & (q < 1.0)], law.cdf).pvalue > 1e-6


@pytest.mark.parametrize("index", [BetaPosterior(), AnglePosterior(), GaussianSample()])
def test_samples_shrink_to_the_mean(index):
    assert index.level(17.0, 5, 0.1) == 17.0
    wide, narrow = (sampled(index, 0.4, pulls) for pulls in (10, 10_000))
    assert narrow.std() < wide.std() / 20
    assert narrow.mean() == pytest.approx(0.4, abs=0.001)


@pytest.mark.parametrize("pulls", [1.0, 3.0, 60.0, 5_000.0, 2.0**40])
@pytest.mark.parametrize("n", [1, 16, 37])
def test_many_beta_numbers_are_those_drawn_one_by_one(pulls, n):
    rng = np.random.default_rng(int(pulls) % 97 + n)
    mean = np.floor(rng.random(n + 5) * (pulls + 1.0)) / pulls
    mean[: n // 2] = np.round(mean[: n // 2])  # some of them 0 or 1, where Gamma numbers are refused most often
    refused = 0
    for t in range(30):
        together, apart = (new_stream(np.random.SeedSequence(4)) for _ in range(2))
        for stream in (together, apart):
            seek(stream, t, 0)
        before, q, each = together.state[0], np.full(n + 5, 7.0), np.full(n + 5, 7.0)
        score_entries(BetaPosterior(), mean, mean, 3, n, pulls, together, q)
        for e in range(3, n + 3):
            each[e] = score(BetaPosterior(), mean[e], 0.0, pulls, apart)
        assert np.array_equal(q, each)
        assert together.state[0] == apart.state[0]
        refused += together.state[0] != later_state(before, 4 * n)
    assert refused > 0 or n == 1 or pulls > 3.0


def test_a_try_that_is_called_certain_is_accepted():
    stream, rng, certain, drawn = new_stream(np.random.SeedSequence(2)), np.random.default_rng(3), 0, 0
    for t in range(3_000):
        shape = 1.0 + float(rng.choice([0.0, 0.5, 1.0, 7.0, 300.0, 1e6, 1e11])) * rng.random()
        seek(stream, t, 0)
        after = later_state(stream.state[0], 2)
        first, second = uniform(stream), uniform(stream)
        value, sure = _try(shape, quantile(move_inside(first)), second)
        seek(stream, t, 0)
        accepted = gamma(stream, shape)
        drawn += 1
        if sure:
            certain += 1
            assert stream.state[0] == after
            assert accepted == value
    assert certain > 0.9 * drawn
