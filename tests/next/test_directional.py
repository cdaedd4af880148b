"""The directional policies against the old engine, naive code on raw outcomes, and the policies that they contain."""

import math

import numpy as np
import pytest
from scipy import sparse

import superarm as old
from superarm.actions import Subsets
from superarm.actions.base import Actions
from superarm.core.problem import Problem
from superarm.core.tally import Feedback
from superarm.core.directions import two_moment_bound
from superarm.indices import AnglePosterior, KLMoss
from superarm.policies.directional import (
    Covariance,
    DirectionalPolicy,
    Triangle,
    directional_kl_moss,
    directional_kl_ucb,
)
from superarm.policies.index import IndexPolicy
from superarm.rewards import Coverage, Linear, Logistic
from tests.next.side_by_side import Both

WEIGHTS = np.array([0.7, 1.3, 0.45, 1.9])
SPREADS = {Triangle(): old.policies.Triangle(), Covariance(): old.policies.Covariance()}


def independent(seed, p, share=1.0):
    """Outcomes in {0, 0.6, 1} with means near ``p`` (n_arms, n_items), of which a share is seen."""
    rng = np.random.default_rng(seed)

    def draw(t, action):
        x = (rng.random((*action.shape, p.shape[1])) < p[action]) * rng.choice([1.0, 0.6], (*action.shape, 1))
        return x, None if share == 1.0 else rng.random(x.shape) < share

    return draw


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("reward", "weights"), [("Coverage", WEIGHTS), ("Linear", WEIGHTS), ("Coverage", None)])
def test_decides_as_the_old_engine(spread, reward, weights):
    p = np.random.default_rng(1).uniform(0.05, 0.35, (7, 4))
    new_reward, old_reward = (Coverage(), old.Coverage()) if reward == "Coverage" else (Linear(), old.Linear())
    problem = Problem(7, 4, new_reward, Subsets(2), weights)
    before = old.Problem(7, 4, old_reward, old.Subsets(2), weights)
    policies = (old.directional_kl_moss(SPREADS[spread]), directional_kl_moss(spread))
    if reward == "Linear":
        policies = (old.directional_kl_ucb(spread=SPREADS[spread]), directional_kl_ucb(spread=spread))
    Both(*policies, before, problem, 2).play(60, independent(2, p), undo=7)


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_decides_as_the_old_engine_on_sparse_problems_and_where_little_is_seen(share):
    rng = np.random.default_rng(3)
    support = sparse.csr_array(rng.random((8, 6)) < 0.6)
    problem = Problem(8, 6, Coverage(), Subsets(2), rng.uniform(0.5, 2.0, 6), support)
    before = old.Problem(8, 6, old.Coverage(), old.Subsets(2), problem.weights, support)
    p = rng.uniform(0.05, 0.4, (8, problem.support.widest))
    Both(old.directional_kl_ucb(), directional_kl_ucb(), before, problem, 2, share < 1.0).play(
        50, independent(4, p, share), undo=9
    )


def test_decides_as_the_old_engine_with_partial_feedback_pending_pulls_and_excluded_arms():
    p, rng = np.random.default_rng(5).uniform(0.05, 0.35, (6, 4)), np.random.default_rng(6)
    problem = Problem(6, 4, Coverage(), Subsets(2), WEIGHTS)
    before = old.Problem(6, 4, old.Coverage(), old.Subsets(2), WEIGHTS)
    both = Both(old.directional_kl_moss(), directional_kl_moss(), before, problem, 2, True)
    both.play(25, independent(7, p, 0.8))
    for t in range(26, 50):
        ours, theirs = both.choose(t, rng.integers(0, 3, (2, 6)).astype(float), rng.random((2, 6)) < 0.8)
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("shape", ["dense", "sparse"])
def test_decides_as_the_old_engine_after_the_weights_have_changed(shape):
    rng = np.random.default_rng(11)
    support = sparse.csr_array(rng.random((7, 4)) < 0.8) if shape == "sparse" else None
    first, later = np.array([0.7, 0.0, 0.45, 1.9]), np.array([0.4, 1.3, 0.0, 0.9])
    before, after = (
        (
            old.Problem(7, 4, old.Coverage(), old.Subsets(2), w, support),
            Problem(7, 4, Coverage(), Subsets(2), w, support),
        )
        for w in (first, later)
    )
    both = Both(old.directional_kl_ucb(), directional_kl_ucb(), *before, 2)
    p = rng.uniform(0.05, 0.35, (7, both.problem.support.widest))
    both.play(25, independent(12, p))
    (both.old_problem, both.problem), both.old = after, old.directional_kl_ucb().fit(after[0])
    both.play(25, independent(13, p), first=26)


class NoNeighbours(Actions):
    k: int

    def capacity(self, n_arms):
        return self.k

    def start(self, eligible):
        return eligible.copy()

    def joinable(self, free, eligible):
        return free

    def join(self, free, arm):
        return free & (np.abs(np.arange(free.shape[1]) - arm[:, None]) > 1)


def test_dense_and_sparse_decide_alike_on_any_action_set():
    rng = np.random.default_rng(8)
    p, full = rng.uniform(0.1, 0.5, (9, 4)), sparse.csr_array(np.ones((9, 4)))
    runs = []
    for support in (None, full):
        problem, policy = Problem(9, 4, Coverage(), NoNeighbours(3), WEIGHTS, support), directional_kl_moss()
        tally, draw, batches = policy.new_tally(problem, 3), independent(9, p), []
        policy.prepare(problem, tally)
        for t in range(1, 40):
            batches.append(policy.choose(problem, problem.view(tally, t), None))
            policy.learn(problem, tally, None, Feedback(t, batches[-1], draw(t, batches[-1])[0]))
        runs.append(np.array(batches))
    assert (runs[0] == runs[1]).all()


def least_of_formula(m, v, h, x):
    """The minimum over a grid of kappa that is fine at both ends."""
    kappa = np.concatenate([np.geomspace(1e-5, 0.5, 2000), 1.0 - np.geomspace(1e-13, 0.5, 2000)])
    a, share = m - v / (h - m), v / (v + (h - m) ** 2)
    g = share * np.log1p(-kappa * h) + (1.0 - share) * np.log1p(-kappa * a)
    return float(np.min(-np.expm1(g - x) / kappa))


@pytest.mark.parametrize("below_one", [None, 0.0, 2.0**-53, 1e-14, 1e-12, 1e-11, 1e-10, 1e-9, 1.1e-9, 1e-8])
def test_the_bound_is_the_minimum_of_its_formula_and_not_wider_than_lemma_3(below_one):
    rng = np.random.default_rng(1)
    h = rng.uniform(0.05, 1.0, 150) if below_one is None else np.full(150, 1.0 - below_one)
    x, m = 10.0 ** rng.uniform(-6, 1, 150), rng.random(150) ** 2 * h
    v = rng.random(150) * m * (h - m)
    found = two_moment_bound(m, v, h, x)
    least = np.array([least_of_formula(*row) for row in zip(m, v, h, x, strict=True)])
    assert (least * (1.0 - 1e-4) <= found).all()
    assert (found <= least * (1.0 + 1e-9) + 1e-9).all()
    assert (found <= m + np.sqrt(2.0 * v * x) + x + 1e-12).all()


def test_the_bound_does_not_jump_where_the_largest_value_is_1_up_to_rounding():
    h = np.array([1.0, np.nextafter(1.0, 0.0), 1.0 - 1e-12, 1.0 - 1e-10])
    found = two_moment_bound(np.full(4, 0.471), np.full(4, 0.0616), h, np.full(4, 0.32))
    assert found == pytest.approx(0.72201, abs=1e-5)


def naive_bound(rows, c, u, x, spread):
    """The bound of one arm in direction c from its raw outcomes, with nothing from the package."""
    b, n = c.sum(), len(rows)
    sd = rows.std(axis=0)
    peak = u.sum() * (np.ceil(64.0 * np.sqrt((rows @ u / u.sum()).max())) / 64.0) ** 2
    top = np.minimum(1.0, np.minimum(rows.sum(axis=0), np.sqrt((rows**2).sum(axis=0) + 0.5 * n / 2**24)))
    choices = [0.0, *(ci / ui for ci, ui in zip(c, u, strict=True) if ui > 0.0)]
    triangle = min(a * (rows @ u).std() + np.abs(c - a * u) @ sd for a in choices) ** 2
    v = (rows @ c).var() if isinstance(spread, Covariance) else triangle
    h = min(a * peak + np.maximum(0.0, c - a * u) @ top for a in choices)
    m, h, v = (rows @ c).mean() / b, min(1.0, h / b), v / b**2
    if x <= 0.0:
        return b * m
    if h - m < 1e-9 or v < 1e-12:
        return b * (1.0 - (1.0 - m) * math.exp(-x))
    return b * least_of_formula(m, min(v, m * (h - m)), h, x)


@pytest.mark.parametrize("engine", ["numpy", pytest.param("numba", marks=pytest.mark.compiled("kernels"))])
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("law", ["together", "blocks", "shares"])
def test_arms_have_the_largest_naive_bound_with_unequal_weights_and_dependent_items(spread, law, engine):
    # An arm whose items all were 1 at once has the largest value that is possible, up to rounding.
    from superarm.core import ops

    rng = np.random.default_rng(8)
    p = rng.uniform(0.1, 0.5, (6, 4))
    problem, policy = Problem(6, 4, Coverage(), Subsets(3), WEIGHTS), directional_kl_ucb(spread=spread)
    tally, rows = policy.new_tally(problem, 1), [np.empty((0, 4)) for _ in range(6)]
    with ops.engine(engine):
        for t in range(1, 60):
            action = policy.choose(problem, problem.view(tally, t), policy.prepare(problem, tally))
            c, taken = WEIGHTS.copy(), []
            for j in action[0] if t > 10 else []:
                level = math.log(t) + 3.0 * math.log(max(1.0, math.log(t)))
                bounds = {
                    i: naive_bound(rows[i], c, WEIGHTS, level / len(rows[i]), spread)
                    for i in range(6)
                    if i not in taken
                }
                assert bounds[j] >= max(bounds.values()) - 1e-4
                taken.append(j)
                c = c * (1.0 - rows[j].mean(axis=0))
            u = rng.random((3, {"together": 1, "blocks": 2, "shares": 1}[law]))
            outcome = (np.repeat(u, 4 // u.shape[1], 1) < p[action[0]]) * (0.8 if law == "shares" else 1.0)
            policy.learn(problem, tally, None, Feedback(t, action, outcome[None]))
            for j, x in zip(action[0], outcome, strict=True):
                rows[j] = np.vstack([rows[j], x])


def test_one_binary_item_gives_kl_moss_and_rewards_that_are_not_linear_the_index_policy():
    p = np.array([[0.1], [0.3], [0.35], [0.6], [0.02]])
    for problem, items in ((Problem(5, 1, Coverage(), Subsets(1)), 1), (Problem(5, 4, Logistic(0.5), Subsets(2)), 4)):
        chosen = []
        for policy in (directional_kl_moss(), IndexPolicy(KLMoss())):
            rng, tally = np.random.default_rng(3), policy.new_tally(problem, 4)
            memory, batches = policy.prepare(problem, tally), []
            for t in range(1, 80):
                batches.append(policy.choose(problem, problem.view(tally, t), memory))
                u = rng.random((4, problem.k, 1))
                policy.learn(problem, tally, memory, Feedback(t, batches[-1], np.repeat(u < p[batches[-1]], items, 2)))
            chosen.append(np.array(batches))
        assert (chosen[0] == chosen[1]).all()


def test_pinned_arms_come_first_and_a_single_tally_serves_many_views():
    problem, policy = Problem(6, 4, Coverage(), Subsets(3), WEIGHTS), directional_kl_moss()
    tally, draw = policy.new_tally(problem, 1), independent(1, np.full((6, 4), 0.3))
    for t in range(1, 8):
        action = policy.choose(problem, problem.view(tally, t), policy.prepare(problem, tally))
        policy.learn(problem, tally, None, Feedback(t, action, draw(t, action)[0]))
    view = problem.view(tally, 9)
    alone = []
    for j in range(3):
        view.pinned = np.array([[j]])
        alone.append(policy.choose(problem, view, None)[0])
        assert alone[-1][0] == j
    view.counts, view.eligible = np.repeat(view.counts, 3, 0), np.repeat(view.eligible, 3, 0)
    view.pinned, view.keys = np.arange(3)[:, None], np.zeros(3, np.uint64)
    assert policy.choose(problem, view, None).tolist() == np.array(alone).tolist()


def test_sampled_indices_are_refused():
    with pytest.raises(old.InvalidArgument, match="no level"):
        DirectionalPolicy(AnglePosterior())
