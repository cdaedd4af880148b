"""The model of positions: unbiased corrections, the fit against an independent one, and agents that it sets right."""

import numpy as np
import pytest
from scipy.optimize import minimize

import superarm as sa
from superarm.offline import Log, Positions

EXAMINED = np.array([1.0, 0.7, 0.45, 0.3])
RATES = np.linspace(0.02, 0.2, 12)
PROBLEM = sa.Problem(12, 1, sa.Linear(), sa.Subsets(4))


def shuffled_log(rounds, rng):
    """Random slates of twelve arms, of which a click needs a look."""
    slates = np.array([rng.permutation(12)[:4] for _ in range(rounds)])
    return Log.from_arrays(PROBLEM, slates, (rng.random((rounds, 4)) < EXAMINED * RATES[slates]).astype(float))


def test_corrected_outcomes_have_the_same_mean_in_every_slot():
    page, clicks = Positions(2.0 * EXAMINED), np.eye(4)
    means = (EXAMINED * 0.2) @ page.correct(clicks)  # slot s is clicked with probability 0.2 * examined
    np.testing.assert_allclose(means, 0.2 * 0.3)
    np.testing.assert_allclose(page.correct([1.0, 0.5], [3, 0]), [1.0, 0.15])


def test_the_fit_maximises_the_likelihood_and_is_near_the_truth():
    log = shuffled_log(6000, np.random.default_rng(1))
    found = Positions.learn(log).examined
    n, x = np.zeros((2, 12, 4))
    for arm, slot, click in zip(log.rows.arm, log.rows.slot, log.rows.outcome[:, 0], strict=True):
        n[arm, slot] += 1
        x[arm, slot] += click

    def loss(logs):
        rate = np.exp(logs[:12, None] + np.append(0.0, logs[12:]))
        return (n * rate - x * np.log(rate)).sum()

    other = minimize(loss, np.full(15, -1.0)).x
    np.testing.assert_allclose(found, np.exp(np.append(0.0, other[12:])), rtol=1e-3)
    # 2,600 clicks in the best slot, 800 in the worst: a deviation of about 5 %
    np.testing.assert_allclose(found, EXAMINED, rtol=0.2)
    corrected = Positions(EXAMINED).correct_log(log)
    slot_means = [corrected.rows.outcome[log.rows.slot == s].mean() for s in range(4)]
    np.testing.assert_allclose(slot_means, RATES.mean() * 0.3, rtol=0.2)


def test_slots_that_cannot_be_compared_are_refused():
    slates, ones = np.tile(np.arange(4), (20, 1)), np.ones((20, 4))
    with pytest.raises(sa.InvalidArgument, match="random order"):
        Positions.learn(Log.from_arrays(PROBLEM, slates, ones))
    with pytest.raises(sa.InvalidArgument, match="examined"):
        Positions([1.0, 0.0])
    with pytest.raises(sa.InvalidArgument, match="slot of each"):
        Positions(EXAMINED).correct(np.ones(5))


def test_an_agent_that_corrects_is_not_led_by_the_first_slot():
    """A fixed page with good arms low down: without the correction, estimates follow the slots."""
    rates, order, rng = np.array([0.1, 0.12, 0.14, 0.16]), [0, 1, 2, 3], np.random.default_rng(2)
    problem = sa.Problem(4, 1, sa.Linear(), sa.Subsets(4))
    plain, right = sa.Agent(problem, seed=1), sa.Agent(problem, seed=1)
    for _ in range(3000):
        clicks = (rng.random(4) < EXAMINED * rates).astype(float)
        corrected = Positions(EXAMINED).correct(clicks)
        for agent, told in ((plain, clicks), (right, corrected)):
            decision = agent.ask()
            agent.tell(decision, told[[order.index(j) for j in decision.action]][:, None])
    assert np.argsort(plain.tally.mean[0, 0]).tolist() == [3, 2, 1, 0]
    assert np.argsort(right.tally.mean[0, 0]).tolist() == [0, 1, 2, 3]


def test_equals_are_shown_in_random_order_and_others_best_first():
    rng, worth = np.random.default_rng(1), [0.05, 0.2, 0.19, 0.1, 0.185, 0.091]
    orders = np.array([Positions.shuffle(worth, rng) for _ in range(3000)])
    assert (np.sort(orders[:, :3], 1) == [1, 2, 4]).all()  # within a tenth of 0.2
    assert (np.sort(orders[:, 3:5], 1) == [3, 5]).all()
    assert (orders[:, 5] == 0).all()
    for arm in (1, 2, 4):  # four standard errors are 0.034
        assert (orders[:, :3] == arm).mean(0) == pytest.approx(np.full(3, 1 / 3), abs=0.035)
    assert Positions.shuffle(worth, rng, within=0.0).tolist() == [1, 2, 4, 3, 5, 0]
    assert Positions.shuffle([], rng).tolist() == []
