"""The test of the semi-bandit assumption: calibrated where it holds, powerful where it fails."""

import numpy as np
import pytest

from superarm.offline.assumption import FIRST_PULLS, balanced_weights, deviations_from_mean
from tests.next import names as sa

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


def test_calibrated_under_thompson_sampling_where_one_number_decides_a_round():
    """Of 40 logs with 60 arms, of which most are given up after bad luck, at most 7 have p < 0.05.

    At the level 0.05 more have probability 1 in 1,000.
    """

    def thompson(seed, n=600):
        rng = np.random.default_rng(seed)
        p = np.random.default_rng(3).uniform(0.05, 0.5, (60, 3))
        ones, zeros = np.ones((60, 3)), np.ones((60, 3))
        slates, outcomes = np.zeros((n, 2), int), np.zeros((n, 2, 3))
        for t in range(n):
            q = rng.beta(ones, zeros)
            slates[t, 0] = np.argmax(q.sum(axis=1))
            gain = ((1.0 - q[slates[t, 0]]) * q).sum(axis=1)
            gain[slates[t, 0]] = -1.0
            slates[t, 1] = np.argmax(gain)
            outcomes[t] = rng.random() < p[slates[t]]
            ones[slates[t]] += outcomes[t]
            zeros[slates[t]] += 1.0 - outcomes[t]
        return sa.offline.Log.from_arrays(coverage_problem(60, 3), slates, outcomes)

    assert sum(thompson(seed).assumption_test.p_value < 0.05 for seed in range(40)) <= 7


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


def test_weights_look_at_the_past_alone_and_add_up_to_at_most_one():
    """Naive code, one covariate at a time; later rows change nothing."""
    rng = np.random.default_rng(0)
    arm, z = np.repeat([0, 3, 4], [60, 3, 40]), rng.random((103, 2)) * [1.0, 4.0]
    found = balanced_weights(z, arm)
    for j in (0, 3, 4):
        for i in range(2):
            own, total = z[arm == j, i], 0.0
            for s, weight in enumerate(found[arm == j, i]):
                wanted = own[s] - own[:s].mean() if s >= FIRST_PULLS else 0.0
                assert weight == pytest.approx(min(max(wanted, -1.0 - total), 1.0 - total))
                total += weight
                assert abs(total) <= 1.0 + 1e-12
    assert balanced_weights(z[:45], arm[:45]).tolist() == found[:45].tolist()


def test_the_statistic_is_centred_where_the_number_of_pulls_depends_on_luck():
    """4,000 sequences: pulls end at the first failure after 20, or at 60; the covariate is the last outcome.

    The mean of the sum is within 0.11 standard deviations of 0: four standard errors (0.06) and the part that is not a
    martingale, the error of one mean. With the mean of the later outcomes, as if N were fixed, it is 0.2 off.
    """
    rng, sums, fixed = np.random.default_rng(1), [], []
    for _ in range(4000):
        y = (rng.random(60) < 0.8).astype(float)
        n = 60 if y[20:].all() else 21 + int(np.argmin(y[20:]))
        y, arm = y[:n], np.zeros(n)
        weight = balanced_weights(np.append(0.0, y[:-1])[:, None], arm)[:, 0]
        sums.append(weight @ deviations_from_mean(y, arm))
        ahead = [y[s] - y[s + 1 :].mean() for s in range(n - 1)]
        fixed.append(weight[:-1] @ ahead)
    assert abs(np.mean(sums)) < 0.11 * np.std(sums)
    assert np.mean(fixed) > 0.2 * np.std(fixed)


def test_a_short_log_is_not_tested():
    log = draw_log(coverage_problem(), P, [0, 1], 0.8, 5, np.random.default_rng(0))
    assert log.assumption_test.parts == ()
    assert log.assumption_test.p_value == 1.0
    assert "too few rounds" in repr(log.check())
