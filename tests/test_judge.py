"""Judges that err: against all outcomes of small sets, and simulations in which models fail together."""

import itertools

import numpy as np
import pytest

import superarm as sa


def delivered(passed, right, ladder):
    """The chance that the delivered answer of a task is right: the first that passed, or any of them."""
    at = np.flatnonzero(passed)
    if not len(at):
        return 0.0
    return float(right[at[0]]) if ladder else float(np.mean(np.asarray(right)[at]))


def chance(marks, p):
    return float(np.prod(np.where(marks, p, 1.0 - np.asarray(p))))


@pytest.mark.parametrize("ladder", [False, True])
def test_worth_is_that_of_all_outcomes(ladder):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4):
        p, judge = rng.random(n), sa.Judge(*rng.uniform(0.0, 0.5, 2))
        worth = 0.0
        for right in itertools.product([0, 1], repeat=n):
            pass_rate = np.where(right, 1.0 - judge.false_negative, judge.false_positive)
            for passed in itertools.product([0, 1], repeat=n):
                worth += chance(right, p) * chance(passed, pass_rate) * delivered(passed, right, ladder)
        assert judge.worth(p, ladder=ladder) == pytest.approx(worth)


@pytest.mark.parametrize("ladder", [False, True])
def test_the_corrected_share_is_unbiased_whichever_answers_are_right_together(ladder):
    """For every pattern of right answers the estimate has, over all that the judge may say, the mean of the truth."""
    judge = sa.Judge(0.2, 0.1)
    for right in itertools.product([0, 1], repeat=3):
        pass_rate, mean, truth = np.where(right, 0.9, 0.2), 0.0, 0.0
        for passed in itertools.product([0, 1], repeat=3):
            own = chance(passed, pass_rate)
            tried = np.cumsum(passed) - passed == 0 if ladder else np.ones(3, bool)
            mean += own * judge.right([passed], [tried], ladder=ladder).right
            truth += own * delivered(passed, right, ladder)
        assert mean == pytest.approx(truth)


def tasks(seed, n=400):
    """Answers of three models, of which two are often right together and one nearly never, and what a judge says."""
    rng = np.random.default_rng(seed)
    easy = rng.random((n, 1)) < 0.7
    right = rng.random((n, 3)) < np.where(easy, [0.95, 0.9, 0.05], [0.1, 0.05, 0.02])
    passed = np.where(right, rng.random(right.shape) > 0.05, rng.random(right.shape) < 0.15)
    return passed, right


def test_errors_are_as_large_as_said_and_a_useless_arm_is_named():
    """200 simulations; with a share of 95 % within two errors, fewer than 90 % has a chance below 0.3 %."""
    inside, named, wrong = 0, 0, 0
    for seed in range(200):
        passed, right = tasks(seed)
        audit_passed, audit_right = tasks(10_000 + seed, 100)
        found = sa.Judge.measured(audit_passed, audit_right).right(passed, arms=["a", "b", "c"])
        truth = np.mean([delivered(*one, False) for one in zip(passed, right, strict=True)])
        inside += abs(found.right - truth) <= 2.0 * found.error
        named += found.worse == ("c",)
        wrong += bool(set(found.worse) - {"c"})
        assert found.claimed > truth + 0.05
    assert inside >= 180
    assert named >= 120
    assert wrong == 0


def test_an_audited_sample_measures_the_judge():
    passed, right = tasks(0, 20_000)
    judge = sa.Judge.measured(passed, right)
    assert judge.false_positive == pytest.approx(0.15, abs=4 * judge.errors[0])
    assert judge.false_negative == pytest.approx(0.05, abs=4 * judge.errors[1])
    errors = [np.sqrt(0.15 * 0.85 / (~right).sum()), np.sqrt(0.05 * 0.95 / right.sum())]
    assert judge.errors == pytest.approx(errors, 0.05)


@pytest.mark.parametrize("ladder", [False, True])
def test_an_agent_says_what_its_decisions_are_really_worth(ladder):
    passed, right = tasks(1, 1000)
    policy = sa.policies.ladder([0.1, 0.2, 0.1], spend=0.3) if ladder else None
    agent = sa.Agent(sa.Problem(3, 1, sa.Coverage(), sa.Subsets(3)), policy, arms=["a", "b", "c"], seed=0)
    share = 0.0
    for z, x in zip(passed, right, strict=True):
        own = agent.ask().action
        tried = np.cumsum(z[own]) - z[own] == 0 if ladder else np.ones(len(own), bool)
        agent.tell(agent.pending[-1], z[own, None].astype(float), seen=tried[:, None])
        share += delivered(z[own][tried], x[own][tried], ladder) / 1000
    said = agent.judged(sa.Judge(0.15, 0.05))
    assert said.n == 1000
    assert abs(said.right - share) <= 3.0 * said.error
    assert said.claimed > share + 0.05
    assert said.worse == (() if ladder else ("c",))
    assert ("without c it would be more" in str(said)) is not ladder


def test_a_judge_refuses_what_does_not_fit():
    for match, make in {
        "give shares whose sum is below 1": lambda: sa.Judge(0.6, 0.4),
        "false_negative": lambda: sa.Judge(0.1, 1.5),
        "say of each answer whether it passed": lambda: sa.Judge(0.1).right([[0.5]]),
        "n_tasks, n_answers": lambda: sa.Judge(0.1).right([[1, 0]], arms=["a"]),
        "10 of each": lambda: sa.Judge.measured([1] * 20, [1] * 15 + [0] * 5),
    }.items():
        with pytest.raises(sa.InvalidArgument, match=match):
            make()
