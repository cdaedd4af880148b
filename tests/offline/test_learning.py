"""The pessimistic slate: what it is, what it guarantees, and the bounds of CLCB and KL-CLCB."""

import math

import numpy as np
import pytest

import superarm as sa
from superarm.offline.estimators.entries import entry_intervals, entry_means
from superarm.offline.learning import clcb_bound, kl_clcb_bound
from superarm.theory.lower import divergence

from .static_logs import coverage_problem, draw_log

P = np.random.default_rng(3).uniform(0.05, 0.6, (6, 2))


def test_the_best_slate_at_the_lower_ends_of_the_intervals():
    log = draw_log(coverage_problem(), P, [0, 1], 0.7, 800, np.random.default_rng(0))
    found = log.best(oracle=sa.oracles.Exhaustive())
    low = entry_intervals(entry_means(log), 0.05).low[0]
    values = {slate: log.problem.value(low, slate) for slate in log.problem.actions.batches(6)}
    assert tuple(sorted(found.slate)) == max(values, key=values.get)
    assert found.low == pytest.approx(max(values.values()))
    assert log.value(found.slate).low == pytest.approx(found.low)
    assert len(log.best(k=3).slate) == 3
    assert set(log.best(eligible=[4, 5]).slate) == {4, 5}
    assert "worth at least" in repr(found)


def test_the_guarantees_hold():
    """60 logs with delta = 0.2: at most 12 may break a guarantee on average, more than 21 in fewer than 1 of 200."""
    problem = coverage_problem()
    best = max(problem.value(P, slate) for slate in problem.actions.batches(6))
    broken = 0
    for seed in range(60):
        log = draw_log(problem, P, [0, 1], 0.4, 150, np.random.default_rng(seed))
        found = log.best(delta=0.2, oracle=sa.oracles.Exhaustive())
        value = problem.value(P, found.slate)
        top = max(problem.actions.batches(6), key=lambda slate: problem.value(P, slate))
        bound = kl_clcb_bound(problem, log.tally.pulls, top, delta=0.2)
        broken += value < found.low or best - value > min(found.shortfall, bound)
    assert broken <= 21


def test_a_slate_that_was_rarely_shown_is_not_recommended():
    """One arm did well twice: the means prefer it, pessimism does not."""
    problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=sa.Subsets(1))
    slates = [[0]] * 200 + [[1]] * 200 + [[2]] * 2
    outcomes = [[1]] * 100 + [[0]] * 100 + [[1]] * 40 + [[0]] * 160 + [[1]] * 2
    log = sa.offline.Log.from_arrays(problem, slates, outcomes)
    assert log.value(sa.policies.follow_the_leader()).slate == ("2",)
    assert log.best().arms == ("0",)


def test_the_bound_by_hand():
    problem = sa.Problem(n_arms=10, n_items=2, reward=sa.Coverage(), actions=sa.Subsets(2), weights=[1.0, 3.0])
    pulls = np.full(10, 400.0)
    x = math.log(20 / 0.1) + 0.5 * math.log(400) + math.log(2)
    assert kl_clcb_bound(problem, pulls, [3, 4], 0.1, 0.5) == pytest.approx(
        2 * math.sqrt(2) * 0.5 * 0.5 * 4.0 * math.sqrt(2 * x / 400)
    )
    assert kl_clcb_bound(problem, np.zeros(10), [3, 4]) == math.inf
    assert clcb_bound(problem, np.zeros(10), [3, 4]) == math.inf


def test_kl_clcb_grows_with_the_square_root_of_the_slate():
    """For coverage, four times the arms double the bound of KL-CLCB and quadruple that of CLCB."""
    problem = sa.Problem(n_arms=100, n_items=1, reward=sa.Coverage(), actions=sa.Subsets(64))
    pulls = np.full(100, 1000.0)
    for bound, factor in ((kl_clcb_bound, 2.0), (clcb_bound, 4.0)):
        assert bound(problem, pulls, range(64)) / bound(problem, pulls, range(16)) == pytest.approx(factor)
    for k in (1, 2, 3, 64):
        assert kl_clcb_bound(problem, pulls, range(k)) < clcb_bound(problem, pulls, range(k))


def test_the_inequalities_of_the_proof():
    """On the event, g(p) - g(low) <= 2 sqrt(2 x / N), with g = 2 arcsin sqrt; nearly attained at a mean of 1/2."""
    rng = np.random.default_rng(1)
    for _ in range(500):
        mean, x, n = rng.random(), rng.uniform(0.5, 12.0), int(rng.integers(1, 3000))
        ends = sorted([rng.random(), rng.random()])
        if max(n * divergence(mean, end) for end in ends) <= x:
            gap = 2 * (math.asin(math.sqrt(ends[1])) - math.asin(math.sqrt(ends[0])))
            assert gap <= 2 * math.sqrt(2 * x / n) + 1e-12
    for n in (1, 2, 5, 50, 5000):
        s = np.linspace(0.0, n, 400)
        from superarm.offline.estimators.entries import threshold

        allowed = threshold(np.full(400, float(n)), s, 1.0)
        assert np.argmax(allowed) in (0, 399)
