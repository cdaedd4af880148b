"""What docs/theory/lower-bounds.md states of the default policy: upper bounds, draws alone, and both."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma

import superarm as sa
from dev.benchmarks.locks import play
from superarm.policies.pooling import Observed, Posterior, Prior


def posterior_of(pulls, clicks, alpha, mean):
    """One item, a prior of ``alpha`` events around ``mean`` for every arm, and a tally; with the policy and all."""
    problem, policy = sa.Problem(len(pulls), 1, sa.Linear(), sa.Subsets(1)), sa.pooled_thompson(optimism=0.0)
    memory = policy.new_memory(problem, 1)
    shown = np.repeat(np.arange(len(pulls)), pulls)
    outcome = np.concatenate([np.arange(n) < s for n, s in zip(pulls, clicks, strict=True)]).astype(float)
    memory.warm(problem.past(shown, outcome[:, None]), 1)
    one = np.ones(1)
    memory.prior, memory.due = (
        Prior(one, one, one[:, None], np.inf * one, alpha * one, np.log(mean) * one[:, None]),
        10**9,
    )
    return problem, policy, memory


def test_bounds_are_those_of_the_formula_and_seldom_exceeded():
    pulls, clicks = [400, 40, 4, 0], [30, 1, 1, 0]
    _, _, memory = posterior_of(pulls, clicks, 2.0, 0.05)
    found = Posterior(Observed.of(memory.tally, memory.known), memory.prior).upper(memory.tally.pulls)[0, 0]
    for j, (n, s) in enumerate(zip(pulls, clicks, strict=True)):
        a, b = 2.0 + s, 2.0 / 0.05 + n
        x = max(0.0, np.log(111.0 / max(n, 1))) / a
        assert found[j] == pytest.approx(a / b * (1.0 + np.sqrt(2.0 * x) + x), rel=1e-12)
        assert gamma.sf(found[j], a, scale=1.0 / b) <= max(n, 1) / 111.0 or n >= 111


@given(a=st.floats(0.01, 1e4), level=st.floats(0.0, 40.0))
def test_a_bound_holds_its_level(a, level):
    """Step 1 of Theorem 1, and the tail that ``Posterior.upper`` states."""
    x = level / a
    u = 1.0 + np.sqrt(2.0 * x) + x
    assert a * (u - 1.0 - np.log(u)) >= level * (1.0 - 1e-6) - 1e-9
    assert gamma.sf(a * u, a) <= np.exp(-level) * (1.0 + 1e-9)


@pytest.mark.parametrize("unlucky", [20, 40])
def test_draws_alone_leave_an_unlucky_arm_for_as_long_as_the_proposition_says(unlucky):
    """The chance that an arm without a click is tried again, in 20,000 decisions: four standard errors."""
    problem, policy, memory = posterior_of([unlucky, 100_000], [0, 8_000], 1.0, 0.1)
    keys = np.random.default_rng(1).integers(0, 2**63, 20_000).astype(np.uint64)
    many = memory.take(np.zeros(len(keys), int))
    tried = (policy.choose(problem, problem.view(many.tally, 9, keys), many)[:, 0] == 0).mean()
    chance = gamma.sf(2.0 * 0.08 * (10.0 + unlucky), 2.0)  # the other arm's draws hardly vary
    assert tried == pytest.approx(chance, abs=4.0 * np.sqrt(chance / len(keys)) + 0.02 * chance)


def test_decisions_at_bounds_find_the_best_arm_after_an_unlucky_start():
    """60 pulls without a click, 3,000 decisions: 8 of 20 runs play it for a tenth of the time, else none."""
    regret = {share: play(sa.pooled_thompson(optimism=share), 60, 20, 3_000, 5).sum(1) for share in (0.0, 0.5)}
    assert (regret[0.0] < 54.0).sum() <= 1
    assert (regret[0.5] < 54.0).sum() >= 4


def test_what_shows_several_items_or_starts_from_a_list_is_decided_by_draws():
    """The share of bounds changes nothing there, to the last bit."""
    instance = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
    for settings in ({}, {"baseline": [3, 1, 2], "caution": (0.025, 0.05, 10, 0.6)}):
        policies = {str(share): sa.pooled_thompson(optimism=share, **settings) for share in (0.0, 1.0)}
        pulls = sa.simulate(instance, policies, 80, 3, seed=1, progress=False).pulls
        np.testing.assert_array_equal(pulls["0.0"], pulls["1.0"])
