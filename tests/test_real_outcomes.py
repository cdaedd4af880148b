"""Outcomes that are no shares: exact sums, the best batch also of negative worth, and CombLinTS against a twin."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import superarm as sa
from superarm import actions as sets
from superarm.contextual import comb_lin_ts
from superarm.core.streams import run_keys
from superarm.core.support import Dense
from superarm.core.tally import Feedback, Tally
from superarm.describe import build, describe
from superarm.gym import SetBandit
from superarm.simulation.contextual_instances import linear_paths
from superarm.simulation.engine import Run
from superarm.testing import check_environment
from superarm.theory.upper.kl_ucb import upper_bound_kl

KEYS = run_keys(sa.simulation.seeds(1, 2))
GRAPH = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3)]
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
SETS = [
    sets.Subsets(3),
    sets.Paths(4, GRAPH, 0, 3),
    sets.Explicit([[0, 1], [2, 3, 4], [5, 0]]),
    sets.PartitionMatroid("aabbcc", {"a": 1, "b": 2, "c": 1}),
    sets.SpanningTrees(4, SQUARE),
    sets.Slots([[0, 1, 5], [1, 2, 3], [3, 4, 5]]),
    sets.Pinned(sets.Subsets(3), [4]),
]


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_the_best_batch_is_found_among_worths_of_any_sign(actions):
    """Against all batches."""
    problem = sa.Problem(6, 1, sa.Linear(), actions, bounds=None)
    rng = np.random.default_rng(1)
    for _ in range(40):
        p = rng.normal(-0.5, 2.0, 6)
        best = max(p[list(batch)].sum() for batch in actions.batches(6))
        found = sa.oracles.solve(problem, p[:, None])
        assert p[found].sum() == pytest.approx(best)
        assert problem.value(p[:, None], found) == pytest.approx(best)


def test_sets_whose_best_batch_needs_worths_above_0_are_refused():
    for actions in (sets.Knapsack([1.0, 2.0, 3.0, 2.0, 1.0, 1.5], 4.0), sets.Matching(3, 3, [(0, 0), (1, 1), (2, 2)])):
        n = 6 if isinstance(actions, sets.Knapsack) else 3
        with pytest.raises(sa.InvalidArgument, match="can be worth less than 0"):
            sa.Problem(n, 1, sa.Linear(), actions, bounds=(-1, 1))
        assert sa.Problem(n, 1, sa.Linear(), actions, bounds=(0, 7)).unit == 8.0


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order_and_are_taken_back_exactly(outcomes, random):
    def tell(tally, given, sign=1.0):
        for x in given:
            tally.record(Feedback(1, np.array([[0]]), np.array([[[x]]])), sign)
        return tally

    shuffled = random.sample(outcomes, len(outcomes))
    one, other = (tell(Tally(Dense(1, 1), 1, unit=1024.0), given) for given in (outcomes, shuffled))
    assert one.total == other.total
    assert one.square == other.square
    assert (one.total * 2**14 % 1, one.square * 16 % 1) == (0, 0)  # so that 2^29 of them are added exactly
    assert one.mean.item() == pytest.approx(np.mean(outcomes), abs=2**-14)
    assert one.deviation.item() == pytest.approx(np.std(outcomes), abs=0.3)  # squares are rounded to 1/16
    empty = tell(one, shuffled, -1.0)
    assert [part.item() for part in (empty.total, empty.square, empty.pulls)] == [0.0] * 3


def test_bounds_are_part_of_a_problem_and_usual_ones_leave_it_as_it_was():
    def make(**more):
        return sa.Problem(3, 1, sa.Linear(), sa.Subsets(2), **more)

    assert "bounds" not in make().parameters()
    assert make(bounds=(0, 1)) == make()
    assert build(describe(make(bounds=None))).bounds == (-1024.0, 1024.0)
    assert make(bounds=(-3, 5)).changed(weights=[2.0]).bounds == (-3.0, 5.0)
    past = make(bounds=(-3, 5)).past([0, 0, 1], [[-2.5], [1.0], [4.0]])
    assert past.mean[0, 0].tolist() == [-0.75, 4.0, 0.0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sa.Problem(3, 1, sa.Coverage(), sa.Subsets(2), bounds=None), "a reward of outcomes in"),
        (lambda: sa.Problem(3, 1, sa.Linear(), sa.Subsets(2), bounds=(1, 0)), "low < high"),
        (lambda: sa.Problem(3, reward=sa.Total(), actions=sa.Subsets(2), bounds=None), "a reward of outcomes in"),
        (lambda: sa.Agent(_gaussian().problem), "an agent takes those in"),
        (lambda: sa.simulate(_gaussian(), {"KL": sa.kl_ucb()}, 5), "needs outcomes in"),
        (lambda: sa.simulate(_gaussian(), {"CTS": sa.cts()}, 5), "needs outcomes in"),
        (lambda: sa.Instance(_gaussian(0.0).problem, sa.environments.Gaussian([[0.0], [0.0], [2000.0]])), "bounds"),
        (
            lambda: sa.Instance(sa.instances.top_arms([0.1, 0.2], 1).problem, sa.environments.Gaussian([[0], [0]])),
            "None",
        ),
        (lambda: sa.theory.bounds(_gaussian(), sa.policies.comb_ucb1(), 100), "the theorems are about outcomes in"),
        (lambda: upper_bound_kl(_gaussian(), 100), "the theorems are about outcomes in"),
        (lambda: SetBandit(_gaussian()), "give an instance with outcomes in"),
        (lambda: Run(_gaussian().problem, _gaussian().environment, sa.kl_ucb(), KEYS), "needs outcomes in"),
        (lambda: _gaussian().problem.prior([[0.5]] * 3, 2), "give past"),
        (lambda: _gaussian().problem.past([0], [[5000.0]]), "give values in"),
    ],
)
def test_what_needs_outcomes_in_0_to_1_says_so(call, said):
    with pytest.raises(sa.InvalidArgument, match=said):
        call()


def _gaussian(best=2.0):
    problem = sa.Problem(3, 1, sa.Linear(), sa.Subsets(2), bounds=None)
    return sa.Instance(problem, sa.environments.Gaussian([[-1.0], [0.5], [best]]))


def test_gaussian_outcomes_have_their_means_and_deviation():
    """10,000 outcomes: each mean within six standard errors, which fails falsely with probability below 1e-8."""
    problem = _gaussian().problem
    environment = sa.environments.Gaussian([[-1.0], [0.5], [2.0]], deviation=3.0)
    check_environment(environment, problem)
    keys = np.arange(10_000).astype(np.uint64)
    outcome = environment.draw(problem, np.tile([2, 0], (10_000, 1)), 7, keys).outcome[..., 0]
    assert outcome.mean(0) == pytest.approx([2.0, -1.0], abs=6 * 3.0 / 100.0)
    assert outcome.std(0) == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize(
    "policy", [sa.policies.comb_ucb1(12.0), sa.policies.bg_cts(2, 1.0), sa.policies.llr(2)], ids=repr
)
def test_policies_find_the_best_arms_of_gaussian_outcomes(policy):
    """Regret is below a tenth of that of a random batch."""
    results = sa.simulate(_gaussian(), {"own": policy, "random": sa.uniform()}, 1500, 5, progress=False)
    assert results.regret["own"][:, -1].mean() < 0.1 * results.regret["random"][:, -1].mean()


def test_comb_lin_ts_is_the_posterior_of_the_paper():
    """Against N(A⁻¹ b, A⁻¹) with A = I / λ² + Σ φφᵀ / σ² and b = Σ φ x / σ², written out; and its draws against it."""
    instance = linear_paths(2, d=3, prior=2.0, noise=0.5, seed=4)
    problem, noise, prior = instance.problem, 0.5, 16.0
    policy = sa.contextual.comb_lin_ts(noise=noise, prior=prior)
    memory, arms = policy.new_memory(problem, 600), problem.context.arms
    keys, view_keys = np.full(600, 5, np.uint64), np.arange(600).astype(np.uint64)
    precision, response = np.eye(3) / prior**2, np.zeros(3)
    for t, batch in enumerate(itertools.islice(problem.actions.batches(12), 4), 1):
        action = np.tile(batch, (600, 1))
        given = instance.environment.contexts(problem, t, keys)
        outcome = instance.environment.draw(problem, action, t, keys).outcome
        view = problem.view(memory.tally, t, view_keys)
        view.context = given
        policy.choose(problem, view, memory)
        memory.learn(Feedback(t, action, outcome, context=policy.weigh(problem, view, memory, action)))
        for arm, x in zip(batch, outcome[0, :, 0], strict=True):
            precision += np.outer(arms[arm], arms[arm]) / noise**2
            response += arms[arm] * x / noise**2
    mean, covariance = np.linalg.solve(precision, response), np.linalg.inv(precision)
    assert policy.coefficients(problem, memory)[0, 0] == pytest.approx(mean, rel=1e-3, abs=2e-3)
    view = problem.view(memory.tally, 5, view_keys)
    view.context = instance.environment.contexts(problem, 5, keys)
    scores = policy.scores(problem, view, memory)[:, 0]
    expected = np.sqrt(np.einsum("ja,ab,jb->j", arms, covariance, arms))
    assert scores.mean(0) == pytest.approx(arms @ mean, abs=5 * expected.max() / np.sqrt(600))
    assert scores.std(0) == pytest.approx(expected, rel=0.2)
    assert comb_lin_ts(noise=0.5, prior=2.0).rule.ridge_for(7.0) == comb_lin_ts(ridge=0.25).rule.ridge_for(1.0)


def test_features_of_arms_alone_need_no_contexts_of_the_environment():
    instance = linear_paths(2, d=3, seed=1)
    policy = {"CombLinTS": sa.contextual.comb_lin_ts(noise=1.0, prior=80.0)}
    results = sa.simulate(instance, policy, 60, 4, progress=False)
    later = results.regret["CombLinTS"][:, -1] - results.regret["CombLinTS"][:, len(results.rounds) // 2]
    assert (later < 0.1 * results.regret["CombLinTS"][:, -1]).all()
