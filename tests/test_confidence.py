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

import superarm as sa
from superarm.core.tally import Feedback, Tally
from superarm.environments import Bernoulli, Beta, CommonShock, Comonotone, Copula
from superarm.indices import KL, Bernstein, Hoeffding

ARMS = 6000
ROW = [0.03, 0.4, 0.85]
SIZES = (4, 30, 150)
XS = (0.7, 1.5, 3.0, 4.5)
WORLDS = {
    "bernoulli": Bernoulli(np.tile(ROW, (ARMS, 1))),
    "beta": Beta(np.tile(ROW, (ARMS, 1)), 1.0),
    "dependent items": Comonotone(np.tile(ROW, (ARMS, 1))),
}
RATES = {"hoeffding": (Hoeffding(), 1.0), "kl": (KL(), 1.0), "bernstein": (Bernstein(), 3.0)}


def tallies(environment, n_arms, rounds, seed):
    """The tally after each round in which every arm is played."""
    problem = sa.Problem(n_arms, 3, sa.Linear(), sa.Subsets(n_arms))
    tally, action = Tally(problem.support), np.arange(n_arms)[None]
    for t in range(1, rounds + 1):
        outcome = environment.draw(problem, action, t, np.array([seed], np.uint64)).outcome
        tally.record(Feedback(t, action, outcome))
        yield t, tally


@functools.cache
def observed(name):
    """Mean and deviation of every entry, (1, 3, ARMS) each, after SIZES rounds."""
    played = tallies(WORLDS[name], ARMS, max(SIZES), 8)
    return {t: (tally.mean.copy(), tally.deviation.copy()) for t, tally in played if t in SIZES}


def failures(index, level, mean, deviation):
    """How many bounds of each item are below its mean."""
    q = index.score(mean, deviation, np.full(mean.shape, level), None)
    return (q < np.array(ROW)[:, None] - 1e-12).sum(axis=2)[0]


def limit(rate):
    rate = min(1.0, rate)
    return ARMS * rate + 5.0 * math.sqrt(ARMS * rate * (1.0 - rate)) + 1.0


@pytest.mark.parametrize("environment", WORLDS)
@pytest.mark.parametrize("name", RATES)
def test_bounds_hold_at_their_rate(environment, name):
    index, factor = RATES[name]
    for n, estimates in observed(environment).items():
        for x in XS:
            assert (failures(index, x / n, *estimates) <= limit(factor * math.exp(-x))).all(), (n, x)


def test_a_bound_that_is_too_tight_is_found_out():
    """The same comparison at a third of the level: the counts above are not below their limits by default."""
    for index in (Hoeffding(), KL()):
        assert any(
            (failures(index, x / 3.0 / n, *estimates) > limit(math.exp(-x))).any()
            for n, estimates in observed("bernoulli").items()
            for x in XS
        )


@pytest.mark.parametrize(
    "environment", [Copula(np.tile(ROW, (6, 1)), arms=0.3, items=0.3, all=0.2), CommonShock(np.tile(ROW, (6, 1)), 0.5)]
)
def test_bounds_of_all_entries_hold_at_once_when_everything_depends(environment):
    """Over 400 rounds of a fully dependent environment no entry leaves the paper's bounds, nor KL's with f = 3 log t.

    The union over 18 entries, two bounds of at most 3 t^-3 and t = 20, ..., 400 is below 18 * 6 * 0.00133 = 0.15; the
    seed is fixed.
    """
    for t, tally in tallies(environment, 6, 400, 21):
        for index in (Bernstein(), KL(3, 0)) if t >= 20 else ():
            level = index.level(tally.counts(tally.pulls), t, 0.5)
            q = index.score(tally.mean, tally.deviation, np.broadcast_to(level, tally.mean.shape).copy(), None)
            assert (q >= np.array(ROW)[:, None]).all(), (t, index)
