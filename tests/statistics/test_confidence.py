"""The confidence bounds hold at their stated rates, whatever the law of the outcomes.

At level x / n, n observations of any law on [0, 1] with mean p, the bound is below p with probability at most

* exp(-x) for ``Hoeffding`` (his inequality) and for ``KL`` (Chernoff's bound),
* 3 exp(-x) for ``Bernstein`` (Audibert, Munos and Szepesvári 2009, Theorem 1), of which the paper takes x = 3 log t.

Every arm is one replication: 6,000 arms with equal parameters, independent of each other; items may depend on each
other. Fixed seed; a count may exceed its bound by 5 standard errors, so that a true bound fails with probability
below 3e-7 in each of the 108 comparisons: 4e-5 in all.
"""

import functools
import math

import numpy as np
import pytest

from superarm.environments import Bernoulli, Beta, CommonShock, Comonotone, Copula, draw
from superarm.indices import KL, Bernstein, Hoeffding
from superarm.intake import Exact
from superarm.core.streams import new_stream
from superarm.core.support import Dense
from superarm.core.tally import Feedback, empty, estimates, record

pytestmark = pytest.mark.compiled("too many arms for plain Python")

ARMS = 6000
ROW = [0.03, 0.4, 0.85]
P = np.tile(ROW, (ARMS, 1))
HERE = Dense(ARMS, 3)
SIZES = (4, 30, 150)
XS = (0.7, 1.5, 3.0, 4.5)
WORLDS = {
    "bernoulli": Bernoulli(P),
    "beta": Beta(P, 1.0),
    "dependent items": Comonotone(P),
}
RATES = {"hoeffding": (Hoeffding(), 1.0), "kl": (KL(), 1.0), "bernstein": (Bernstein(), 3.0)}


@functools.cache
def observed(name):
    """Mean and deviation of every entry, (3, ARMS) each, after SIZES rounds."""
    environment = WORLDS[name]
    source, everyone, tally = new_stream(np.random.SeedSequence(8)), np.arange(ARMS), empty(HERE)
    outcome, seen, found = np.empty(3 * ARMS), np.ones(3 * ARMS, bool), {}
    for t in range(1, max(SIZES) + 1):
        draw(environment, HERE, everyone, t, source, outcome, seen)
        record(tally, HERE, Feedback(t, everyone, outcome, seen), Exact(), source, 1.0)
        if t in SIZES:
            mean, variance = estimates(tally, HERE)
            found[t] = mean.reshape(ARMS, 3).T, np.sqrt(variance).reshape(ARMS, 3).T
    return found


def failures(index, level, mean, deviation, p):
    """How many bounds are below p. Equal estimates have equal bounds, and binary outcomes have few."""
    pairs, counts = np.unique(np.stack([mean, deviation]), axis=1, return_counts=True)
    below = [index.score(m, d, level, None) < p - 1e-12 for m, d in pairs.T]
    return int(counts[np.array(below)].sum())


def limit(rate):
    rate = min(1.0, rate)
    return ARMS * rate + 5.0 * math.sqrt(ARMS * rate * (1.0 - rate)) + 1.0


@pytest.mark.parametrize("environment", WORLDS)
@pytest.mark.parametrize(("index", "factor"), RATES.values(), ids=RATES)
def test_bounds_hold_at_their_rate(environment, index, factor):
    for n, (mean, deviation) in observed(environment).items():
        for x in XS:
            for i, p in enumerate(ROW):
                found = failures(index, x / n, mean[i], deviation[i], p)
                assert found <= limit(factor * math.exp(-x)), (n, x, p)


def test_a_bound_that_is_too_tight_is_found_out():
    """The same comparison at a third of the level: the counts above are not below their limits by default."""
    data = observed("bernoulli")
    for index in (Hoeffding(), KL()):
        excess = [
            failures(index, x / 3.0 / n, mean[i], deviation[i], p) > limit(math.exp(-x))
            for n, (mean, deviation) in data.items()
            for x in XS
            for i, p in enumerate(ROW)
        ]
        assert any(excess)


@pytest.mark.parametrize(
    "environment", [Copula(np.tile(ROW, (6, 1)), arms=0.3, items=0.3, all=0.2), CommonShock(np.tile(ROW, (6, 1)), 0.5)]
)
def test_bounds_of_all_entries_hold_at_once_when_everything_depends(environment):
    """Over 400 rounds of a fully dependent world no entry leaves the paper's bounds, nor KL's with f = 3 log t.

    The union over 18 entries, two bounds of at most 3 t^-3 and t = 20, ..., 400 is below 18 * 6 * 0.00133 = 0.15; the
    seed is fixed.
    """
    small, source = Dense(6, 3), new_stream(np.random.SeedSequence(21))
    tally, outcome, seen, everyone = empty(small), np.empty(18), np.ones(18, bool), np.arange(6)
    for t in range(1, 401):
        draw(environment, small, everyone, t, source, outcome, seen)
        record(tally, small, Feedback(t, everyone, outcome, seen), Exact(), source, 1.0)
        if t >= 20:
            mean, variance = estimates(tally, small)
            for m, v, p in zip(mean, variance, environment.p.ravel(), strict=True):
                for index in (Bernstein(), KL(3, 0)):
                    assert index.score(m, math.sqrt(v), index.level(float(t), t, 0.5), None) >= p
