"""The test of the semi-bandit assumption: calibrated where it holds, powerful where it fails."""

import numpy as np
import pytest

import superarm as sa
from superarm.offline.assumption import deviations_from_past, forward_differences

from .static_logs import coverage_problem, draw_log

P = np.random.default_rng(2).uniform(0.1, 0.6, (6, 2))


def adaptive_log(seed, n=200):
    """Slates of the two arms with the best means so far, in that order, with ties and exploration at random.

    Slot and slate-mates depend on the outcomes before, as under any policy that learns.
    """
    rng = np.random.default_rng(seed)
    total, count = np.ones(6), np.full(6, 2.0)
    slates, outcomes = np.zeros((n, 2), int), np.zeros((n, 2, 2))
    for t in range(n):
        index = total / count + np.sqrt(0.3 / count) * rng.random(6)
        slates[t] = np.argsort(-index)[:2]
        outcomes[t] = rng.random((2, 2)) < P[slates[t]]
        total[slates[t]] += outcomes[t].mean(axis=1)
        count[slates[t]] += 1.0
    return sa.offline.Log.from_arrays(coverage_problem(), slates, outcomes)


def test_calibrated_under_a_policy_that_learns():
    """120 logs in which the assumption holds: p < 0.05 in at most 14, in all and of each part.

    At the level 0.05 more than 14 of 120 have probability 1 in 700. The mean of 120 uniform p-values is within 0.09 of
    one half but for 1 in 1,000.
    """
    tests = [adaptive_log(seed).assumption_test for seed in range(120)]
    assert len(tests[0].parts) == 3
    assert sum(test.p_value < 0.05 for test in tests) <= 14
    for part in range(3):
        p = np.array([test.parts[part].p_value for test in tests])
        assert (p < 0.05).sum() <= 14
        assert 0.41 < p.mean() < 0.59


def test_calibrated_where_arms_of_a_slate_err_together():
    """Both arms of a slate share their random numbers: dependence within a round is no effect of slate-mates."""

    def same_users(seed):
        rng = np.random.default_rng(seed)
        slates = np.array([rng.choice(6, 2, replace=False) for _ in range(200)])
        outcomes = (rng.random((200, 1, 2)) < P[slates]).astype(float)
        return sa.offline.Log.from_arrays(coverage_problem(), slates, outcomes)

    assert sum(same_users(seed).assumption_test.p_value < 0.05 for seed in range(60)) <= 9


@pytest.mark.parametrize(
    ("means", "part"),
    [
        (lambda slates, p: p[slates] * np.array([1.0, 0.7])[None, :, None], "the slot"),
        (lambda slates, p: p[slates] * (1.0 - 1.2 * p[slates[:, ::-1]].mean(axis=2, keepdims=True)), "slate-mates"),
        (lambda slates, p: p[slates] * np.where(slates[:, ::-1, None] == 3, 0.6, 1.0), "which slate-mates"),
    ],
    ids=["slot", "strength", "one arm"],
)
def test_interference_is_found(means, part):
    """Of 10 logs of 4,000 rounds at least 9 are rejected at the level 0.01."""
    logs = (
        draw_log(coverage_problem(), P, [0, 1], 0.8, 4000, np.random.default_rng(seed), means=means)
        for seed in range(10)
    )
    tests = [log.assumption_test for log in logs]
    assert sum(test.p_value < 0.01 for test in tests) >= 9
    assert sum(part in test.worst for test in tests) >= 8


def test_forward_differences_have_mean_zero_where_deviations_from_the_mean_do_not():
    """20,000 sequences of 8 outcomes, and a covariate that looks at the past: was the last outcome a success?

    The mean product with forward differences is within four standard errors of 0; with deviations from the mean of all
    outcomes it is 20 standard errors below 0, the bias of the hot hand.
    """
    rng = np.random.default_rng(0)
    y = (rng.random((20_000, 8)) < 0.5).astype(float)
    after_success = np.concatenate([np.zeros((20_000, 1)), y[:, :-1]], axis=1)
    arm = np.repeat(np.arange(20_000), 8)
    ahead = forward_differences(y.reshape(-1), arm).reshape(y.shape)
    z = deviations_from_past(after_success.reshape(-1, 1), arm).reshape(y.shape)
    for part, covariate in ((ahead, after_success), (ahead, z)):
        sums = (part * covariate).sum(axis=1)
        assert abs(sums.mean()) < 4 * sums.std() / np.sqrt(20_000)
        assert sums.var() == pytest.approx(0.25 * (covariate[:, :-1] ** 2).sum(axis=1).mean(), rel=0.05)
    biased = ((y - y.mean(axis=1, keepdims=True)) * after_success).sum(axis=1)
    assert biased.mean() < -20 * biased.std() / np.sqrt(20_000)


def test_a_short_log_is_not_tested():
    log = draw_log(coverage_problem(), P, [0, 1], 0.8, 5, np.random.default_rng(0))
    assert log.assumption_test.parts == ()
    assert log.assumption_test.p_value == 1.0
    assert "too few rounds" in repr(log.check())
