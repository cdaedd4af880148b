"""Directional policies against recorded decisions, naive code on raw outcomes, and the policies that they contain."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse

from superarm.actions import Subsets
from superarm.core.directions import two_moment_bound
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Feedback
from superarm.indices import GaussianSample, KLMoss
from superarm.policies.directional import (
    Covariance,
    DirectionalPolicy,
    Triangle,
    directional_kl_moss,
    directional_kl_ucb,
)
from superarm.policies.index import IndexPolicy
from superarm.problem import Problem
from superarm.rewards import Coverage, Linear, Logistic
from tests.action_sets import NoNeighbours
from tests.recorded import Replay, independent, recorded

WEIGHTS = np.array([0.7, 1.3, 0.45, 1.9])
SPREADS = [Triangle(), Covariance()]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("reward", "weights"), [("Coverage", WEIGHTS), ("Linear", WEIGHTS), ("Coverage", None)])
def test_decides_as_recorded(spread, reward, weights, request):
    p = np.random.default_rng(1).uniform(0.05, 0.35, (7, 4))
    problem = Problem(7, 4, Coverage() if reward == "Coverage" else Linear(), Subsets(2), weights)
    policy = directional_kl_moss(spread) if reward == "Coverage" else directional_kl_ucb(spread=spread)
    Replay(policy, problem, recorded(request)).play(60, independent(2, p), undo=7)


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_decides_as_recorded_on_sparse_problems_and_where_little_is_seen(share, request):
    rng = np.random.default_rng(3)
    support = sparse.csr_array(rng.random((8, 6)) < 0.6)
    problem = Problem(8, 6, Coverage(), Subsets(2), rng.uniform(0.5, 2.0, 6), support)
    p = rng.uniform(0.05, 0.4, (8, problem.support.widest))
    replay = Replay(directional_kl_ucb(), problem, recorded(request), partial=share < 1.0)
    replay.play(50, independent(4, p, share), undo=9)


def test_decides_as_recorded_with_partial_feedback_pending_pulls_and_excluded_arms(request):
    p, rng = np.random.default_rng(5).uniform(0.05, 0.35, (6, 4)), np.random.default_rng(6)
    problem = Problem(6, 4, Coverage(), Subsets(2), WEIGHTS)
    replay = Replay(directional_kl_moss(), problem, recorded(request), partial=True)
    replay.play(25, independent(7, p, 0.8))
    for t in range(26, 50):
        replay.choose(t, rng.integers(0, 3, (2, 6)).astype(float), rng.random((2, 6)) < 0.8)


@pytest.mark.parametrize("shape", ["dense", "sparse"])
def test_decides_as_recorded_after_the_weights_have_changed(shape, request):
    rng = np.random.default_rng(11)
    support = sparse.csr_array(rng.random((7, 4)) < 0.8) if shape == "sparse" else None
    first, later = np.array([0.7, 0.0, 0.45, 1.9]), np.array([0.4, 1.3, 0.0, 0.9])
    before, after = (Problem(7, 4, Coverage(), Subsets(2), w, support) for w in (first, later))
    replay = Replay(directional_kl_ucb(), before, recorded(request))
    p = rng.uniform(0.05, 0.35, (7, before.support.widest))
    replay.play(25, independent(12, p))
    replay.problem = after
    replay.play(25, independent(13, p), first=26)


def test_dense_and_sparse_decide_alike_on_any_action_set():
    rng = np.random.default_rng(8)
    p, full = rng.uniform(0.1, 0.5, (9, 4)), sparse.csr_array(np.ones((9, 4)))
    runs = []
    for support in (None, full):
        problem, policy = Problem(9, 4, Coverage(), NoNeighbours(3), WEIGHTS, support), directional_kl_moss()
        memory, draw, batches = policy.new_memory(problem, 3), independent(9, p), []
        for t in range(1, 40):
            batches.append(policy.choose(problem, problem.view(memory.tally, t), memory))
            memory.learn(Feedback(t, batches[-1], draw(t, batches[-1])[0]))
        runs.append(np.array(batches))
    assert (runs[0] == runs[1]).all()


def laws(rng, n, items):
    """Pulls of one arm: items that agree, that differ, in blocks, inside [0, 1], or nearly constant."""
    u = rng.random((n, 1)) if rng.random() < 0.4 else rng.random((n, items))
    x = (u < rng.uniform(0.05, 0.9, items)) * rng.choice([1.0, 0.6], (1, items))
    return np.where(rng.random() < 0.3, 0.3 + 0.1 * rng.random((n, items)), x)


def bound_of_sample(y, x):
    """The kl_inf index of a sample in [0, 1] by its definition: the largest mean of a law at divergence at most x."""
    n = len(y)
    points = np.append(y, 1.0)

    def slack(q):
        return x - np.mean(np.log(1.0 / (n * np.maximum(q[:-1], 1e-300))))

    start = np.append(np.full(n, (1.0 - 1e-6) / n), 1e-6)
    found = optimize.minimize(
        lambda q: -points @ q,
        start,
        jac=lambda q: -points,
        bounds=[(1e-12, 1.0)] * (n + 1),
        constraints=[{"type": "ineq", "fun": slack}, {"type": "eq", "fun": lambda q: q.sum() - 1.0}],
        options={"maxiter": 300, "ftol": 1e-12},
    )
    return -found.fun if found.success and slack(found.x) > -1e-7 else None


def test_the_bound_is_never_below_that_of_the_sample_by_convex_optimisation():
    rng, compared = np.random.default_rng(0), 0
    for _ in range(60):
        y, x = laws(rng, int(rng.integers(2, 9)), 3).mean(axis=1), float(rng.choice([0.02, 0.2, 1.0]))
        exact = bound_of_sample(y, x)
        if exact is not None:
            compared += 1
            assert bound_of(y.mean(), y.var(), y.max(), x) >= exact - 1e-5
            assert bound_of(y.mean(), 1.2 * y.var(), min(1.0, 1.1 * y.max()), x) >= exact - 1e-5
    assert compared > 50


def test_two_points_and_constants_have_the_bound_of_their_sample():
    for values, x in (([0.2, 0.2, 0.2, 0.7], 0.3), ([0.4] * 5, 0.2), ([0.0, 0.0, 1.0], 0.1), ([0.1, 0.9], 2.0)):
        y = np.array(values)
        assert bound_of(y.mean(), y.var(), y.max(), x) == pytest.approx(bound_of_sample(y, x), abs=1e-4)


def bound_of(*moments):
    return two_moment_bound(*(np.array([float(x)]) for x in moments))[0]


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


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("law", ["together", "blocks", "shares"])
def test_arms_have_the_largest_naive_bound_with_unequal_weights_and_dependent_items(spread, law, engine):
    # An arm whose items all were 1 at once has the largest value that is possible, up to rounding.
    from superarm.core import ops

    rng = np.random.default_rng(8)
    p = rng.uniform(0.1, 0.5, (6, 4))
    problem, policy = Problem(6, 4, Coverage(), Subsets(3), WEIGHTS), directional_kl_ucb(spread=spread)
    memory, rows = policy.new_memory(problem, 1), [np.empty((0, 4)) for _ in range(6)]
    with ops.engine(engine):
        for t in range(1, 60):
            action = policy.choose(problem, problem.view(memory.tally, t), memory)
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
            memory.learn(Feedback(t, action, outcome[None]))
            for j, x in zip(action[0], outcome, strict=True):
                rows[j] = np.vstack([rows[j], x])


def test_one_binary_item_gives_kl_moss_and_rewards_that_are_not_linear_the_index_policy():
    p = np.array([[0.1], [0.3], [0.35], [0.6], [0.02]])
    for problem, items in ((Problem(5, 1, Coverage(), Subsets(1)), 1), (Problem(5, 4, Logistic(0.5), Subsets(2)), 4)):
        chosen = []
        for policy in (directional_kl_moss(), IndexPolicy(KLMoss())):
            rng, memory, batches = np.random.default_rng(3), policy.new_memory(problem, 4), []
            for t in range(1, 80):
                batches.append(policy.choose(problem, problem.view(memory.tally, t), memory))
                u = rng.random((4, problem.k, 1))
                memory.learn(Feedback(t, batches[-1], np.repeat(u < p[batches[-1]], items, 2)))
            chosen.append(np.array(batches))
        assert (chosen[0] == chosen[1]).all()


def test_pinned_arms_come_first_and_a_single_tally_serves_many_views():
    problem, policy = Problem(6, 4, Coverage(), Subsets(3), WEIGHTS), directional_kl_moss()
    memory, draw = policy.new_memory(problem, 1), independent(1, np.full((6, 4), 0.3))
    for t in range(1, 8):
        action = policy.choose(problem, problem.view(memory.tally, t), memory)
        memory.learn(Feedback(t, action, draw(t, action)[0]))
    view = problem.view(memory.tally, 9)
    alone = []
    for j in range(3):
        view.pinned = np.array([[j]])
        alone.append(policy.choose(problem, view, memory)[0])
        assert alone[-1][0] == j
    view.counts, view.eligible = np.repeat(view.counts, 3, 0), np.repeat(view.eligible, 3, 0)
    view.pinned, view.keys = np.arange(3)[:, None], np.zeros(3, np.uint64)
    assert policy.choose(problem, view, memory).tolist() == np.array(alone).tolist()


def test_sampled_indices_are_refused():
    with pytest.raises(InvalidArgument, match="no level"):
        DirectionalPolicy(GaussianSample())
