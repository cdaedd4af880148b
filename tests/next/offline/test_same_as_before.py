"""Logs, estimates, intervals and recommendations of the array engine are those of the old one, on the same logs."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as old
from superarm.offline.inclusion import explore_slates
from superarm.offline.simulated import simulate_log as old_simulate_log
from tests.next import names as sa

REWARDS = [("Coverage", ()), ("Linear", ()), ("Conjunctive", ()), ("Logistic", (0.7,)), ("Logistic", (3.0,))]


def pair(reward="Coverage", parameters=(), hidden=0.0, support=None, context=None, n=60, seed=3):
    """The same log in both engines: 5 arms, 3 items, slates of 2, two groups."""
    rng = np.random.default_rng(seed)
    slates, chain = explore_slates(5, np.tile([1, 3], (n, 1)), 0.6, rng)
    weights, p = rng.uniform(0.5, 2.0, 3), rng.uniform(0.1, 0.8, (5, 3))
    outcome, groups = (rng.random((n, 2, 3)) < p[slates]).astype(float), rng.integers(0, 2, n)
    seen = rng.random((n, 2, 3)) >= hidden
    if support is not None:
        seen &= support.toarray()[slates] > 0
    inclusion, marginal = old.offline.explored_inclusion(5, [1, 3], 0.6), old.offline.explored_positions(5, [1, 3], 0.6)
    known = {
        "seen": seen, "propensity": chain, "inclusion": inclusion[slates],
        "position_propensity": marginal[slates, np.arange(2)],
        "groups": [f"country={'NO' if g else 'SE'}" for g in groups],
    }  # fmt: skip
    made = []
    for names, own in ((old, context and context[0]), (sa, context and context[1])):
        problem = names.Problem(
            5, 3, getattr(names, reward)(*parameters), names.Subsets(2), weights=weights, support=support, context=own
        )
        made.append(names.offline.Log.from_arrays(problem, slates, outcome, **known))
    return made


def assert_same(found, was):
    for name in ("value", "low", "high", "effective", "difference", "baseline_value", "approximate"):
        mine, theirs = getattr(found, name), getattr(was, name)
        if theirs is None or isinstance(theirs, float):
            assert mine == (theirs if theirs is None else pytest.approx(theirs, rel=1e-9, abs=1e-9, nan_ok=True)), name
        else:
            ends = [[getattr(one, end) for end in ("value", "low", "high")] for one in (mine, theirs)]
            assert ends[0] == pytest.approx(ends[1], rel=1e-9, abs=1e-9, nan_ok=True), name
    assert (found.method, found.verdict, found.slate) == (was.method, was.verdict, was.slate)
    assert found.warnings == was.warnings


@pytest.mark.parametrize("method", list(sa.offline.METHODS))
@pytest.mark.parametrize(("reward", "parameters"), REWARDS)
def test_every_method_on_slates_and_the_logged_ones(reward, parameters, method):
    before, now = pair(reward, parameters, hidden=0.1)
    np.testing.assert_allclose(now.slot_rewards, before.slot_rewards, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(now.rewards, before.rewards, rtol=1e-9)
    for target, baseline in (([1, 3], "logged"), ({"country=NO": [0, 1], "country=SE": [2, 4]}, [0, 1])):
        assert_same(now.value(target, baseline, method), before.value(target, baseline, method))
    assert_same(now.value("logged", [1, 2], method), before.value("logged", [1, 2], method))


@pytest.mark.parametrize("method", ["intervals", "direct", "one_step", "cascade_dr"])
def test_a_sparse_problem(method):
    support = csr_array(np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 0]]))
    before, now = pair(support=support)
    np.testing.assert_array_equal(now.entries, before.entries)
    np.testing.assert_array_equal(now.tally.total[0], before.tally.total)
    assert_same(now.value([1, 3], "logged", method), before.value([1, 3], "logged", method))
    assert now.check().pulls.tolist() == before.check().pulls.tolist()


@pytest.mark.parametrize("method", ["intervals", "replay"])
@pytest.mark.parametrize("name", ["kl_ucb", "follow_the_leader", "window"])
def test_policies(name, method):
    policies = [
        names.sliding_window(names.kl_ucb(), 20, 4) if name == "window" else getattr(names, name)()
        for names in (old, sa)
    ]
    before, now = pair(n=40)
    was, found = (log.value(policy, method=method) for log, policy in zip((before, now), policies, strict=True))
    assert (found.value, found.slate) == (pytest.approx(was.value, rel=1e-9, nan_ok=True), was.slate)


@pytest.mark.parametrize("window", [False, True])
def test_policies_in_segments(window):
    features = {"categorical": {"country": ["NO", "SE"]}}
    contexts = (old.Context(old.Features(**features)), sa.Context(sa.Features(**features)))
    before, now = pair(context=contexts, n=40)
    policies = [names.sliding_window(names.kl_ucb(), 16, 4) if window else names.kl_ucb() for names in (old, sa)]
    was, found = (log.value(policy, method="direct") for log, policy in zip((before, now), policies, strict=True))
    assert found.value == pytest.approx(was.value, rel=1e-9)


@pytest.mark.parametrize(("reward", "parameters"), REWARDS)
def test_what_to_ship_and_whether_it_is_known(reward, parameters):
    before, now = pair(reward, parameters)
    was, found = before.best(), now.best()
    assert found.arms == was.arms
    for name in ("value", "low", "high", "alpha", "shortfall"):
        assert getattr(found, name) == pytest.approx(getattr(was, name), rel=1e-9), name
    was, found = (
        names.offline.certify_convergence(log.problem, log.tally, np.ones(5, bool))
        for names, log in ((old, before), (sa, now))
    )
    assert found[1:] == pytest.approx(was[1:], rel=1e-9)
    assert now.assumption_test.p_value == pytest.approx(before.assumption_test.p_value, rel=1e-9)


@pytest.mark.parametrize("logger", ["uniform", "slate", "kl_ucb"])
def test_simulated_logs(logger):
    logs = [
        simulate(
            names.instances.random_coverage(5, 2, 2, high=0.6),
            [3, 1] if logger == "slate" else names.kl_ucb() if logger == "kl_ucb" else logger,
            30, explore=0.3, seed=4,
        )
        for names, simulate in ((old, old_simulate_log), (sa, sa.offline.simulate_log))
    ]  # fmt: skip
    for name, mine, theirs in zip(logs[0].rows._fields, logs[1].rows, logs[0].rows, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=name)
