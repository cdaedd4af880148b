"""Certificates are right when they are given, and foretell when they will be."""

import numpy as np
import pytest

import superarm as sa
from superarm.core.tally import Tally
from superarm.offline import certify_convergence

PROBLEM = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
P = np.array([0.8, 0.1, 0.2, 0.7, 0.1, 0.1, 0.3, 0.2])


def exact_tally(n):
    """A tally whose means are the truth, after ``n`` observations of every arm."""
    return tally_of(np.full(4, float(n)), n * P)


def tally_of(pulls, total):
    tally = Tally(PROBLEM.support)
    tally.pulls[0], tally.total[0], tally.square[0] = pulls, total.reshape(4, 2).T, total.reshape(4, 2).T
    tally.refresh()
    return tally


def test_a_certificate_says_what_the_best_slate_is():
    found = certify_convergence(PROBLEM, exact_tally(20_000), np.ones(4, bool))
    assert (sorted(found.slate), found.certified, found.growth) == ([0, 1], True, 1.0)
    best = PROBLEM.value(P, found.slate)
    assert found.low <= best <= found.high
    assert found.epsilon == pytest.approx(0.05 * best)


def test_the_growth_that_is_foretold_certifies():
    now = certify_convergence(PROBLEM, exact_tally(40), np.ones(4, bool), epsilon=0.1)
    assert not now.certified
    later = certify_convergence(PROBLEM, exact_tally(int(40 * now.growth) + 1), np.ones(4, bool), epsilon=0.1)
    assert later.certified
    sooner = certify_convergence(PROBLEM, exact_tally(int(40 * now.growth / 1.2)), np.ones(4, bool), epsilon=0.1)
    assert not sooner.certified


def test_arms_that_are_not_eligible_are_no_rivals():
    found = certify_convergence(PROBLEM, exact_tally(20_000), np.array([True, False, True, True]))
    assert 1 not in found.slate
    with pytest.raises(sa.InvalidArgument, match="eligible"):
        certify_convergence(PROBLEM, exact_tally(5), np.zeros(4, bool))


def test_certificates_are_rarely_wrong():
    """Of 60 logs, looked at five times each, a wrong certificate is given in at most a share delta = 0.2."""
    wrong = given = 0
    best = max(PROBLEM.value(P, np.array(slate)) for slate in PROBLEM.actions.batches(4))
    for seed in range(60):
        rng, total, mistaken = np.random.default_rng(seed), np.zeros(8), False
        for look in range(1, 6):
            total = total + rng.binomial(60, P)
            tally = tally_of(np.full(4, 60.0 * look), total)
            found = certify_convergence(PROBLEM, tally, np.ones(4, bool), epsilon=0.35, delta=0.2)
            given += found.certified
            mistaken |= found.certified and best - PROBLEM.value(P, found.slate) > 0.35
        wrong += mistaken
    assert given > 20
    assert wrong <= 20
