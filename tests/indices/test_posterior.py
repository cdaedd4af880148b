"""Sampled indices follow the laws they name. Fixed seeds; each test fails falsely with probability below 1e-5."""

import numpy as np
import pytest
from scipy import stats

from superarm.indices import AnglePosterior, BetaPosterior, GaussianSample
from superarm.streams import new_stream, seek

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
