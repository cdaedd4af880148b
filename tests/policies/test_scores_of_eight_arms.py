"""Scores of entries that are computed for eight arms at a time have the bits of those computed one by one."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as sa
from superarm.context.observations import ContextFeedback
from superarm.context.sums import record_sums
from superarm.policies.contextual import lane_algebra, linear_algebra
from superarm.policies.contextual.ridge import empty_ridge, no_correction, refresh
from superarm.policies.contextual.scoring import score_entries

N_ARMS, N_ITEMS, D = 21, 3, 4
RNG = np.random.default_rng(3)
ARMS = np.round(RNG.uniform(-1, 1, (N_ARMS, 2)) * 1024) / 1024
PAIRS = np.round(RNG.uniform(-1, 1, (N_ARMS, 2)) * 1024) / 1024
USER = np.round(RNG.uniform(-1, 1, D) * 1024) / 1024
IRREGULAR = (RNG.random((N_ARMS, N_ITEMS)) < 0.6) | (np.arange(N_ITEMS) == 0)


class Scores:
    """Upper and lower bounds of all entries after the same observations, for arms in some order."""

    def __init__(self, shared, order, n_items=N_ITEMS, pairs=False, support=None, eligible=None):
        self.order, n = np.asarray(order), len(order)
        arms = ARMS[self.order] if shared is True else None
        declared = sa.Context(
            sa.Features(d=D), arms=arms, model=sa.models.Linear(shared=shared), pairs=2 if pairs else 0
        )
        rows = None if support is None else csr_array(support[self.order].astype(float))
        problem = sa.Problem(n, n_items, sa.Coverage(), sa.Subsets(3), context=declared, support=rows)
        agent = sa.Agent(problem, sa.c2_ucb(0.1), seed=0)
        learner, table = agent.learner, PAIRS[self.order] if pairs else None
        place = np.argsort(self.order)
        before = learner.contexts.encode(problem, USER[::-1], table)
        for t, chosen in enumerate(([0, 9, 20], [3, 17, 8], [1, 2, 16], [0, 4, 19]), 1):
            sizes = [n_items if support is None else int(support[j].sum()) for j in chosen]
            outcome = np.repeat([float((7 * j) % 3 == 0) for j in chosen], sizes)
            ones, seen = np.ones(len(outcome)), np.ones(len(outcome), bool)
            feedback = ContextFeedback(t, place[chosen], outcome, seen, before, ones, np.zeros(0))
            record_sums(learner.tally, learner.fitted.design, problem.terms.support, feedback, 1.0)
        self.ridge = empty_ridge(learner.tally)
        self.ridge.q[:] = self.ridge.low[:] = 7.0
        refresh(self.ridge, learner.tally, no_correction(learner.tally), learner.fitted.ridge)
        mask = np.ones(n, bool) if eligible is None else eligible[self.order]
        encoded = learner.contexts.encode(problem, USER, table)
        current = learner.contexts.current_round(learner, mask, encoded, 5)
        score_entries(learner.fitted.design, problem.terms.support, current, self.ridge, 0.7)
        self.problem = problem

    def of_arm(self, arm):
        """The bounds of the entries of an arm, by its number before arms were put into another order."""
        first, last = self.problem.support.span(int(np.argsort(self.order)[arm]))
        return np.concatenate([self.ridge.q[first:last], self.ridge.low[first:last]])


def test_eight_quadratic_forms_have_the_bits_of_one():
    triangles = np.random.default_rng(0).normal(size=(11, 15))
    u, out = np.random.default_rng(1).normal(size=5), np.zeros(8)
    rows = np.array([10, 0, 3, 3, 7, 1, 9, 4])
    lane_algebra.quadratic_lanes(triangles, rows, u, out)
    assert out.tolist() == [linear_algebra.quadratic(triangles[row], u, 5) for row in rows]


@pytest.mark.parametrize("shared", [True, "arms", False])
@pytest.mark.parametrize("n_items", [1, N_ITEMS])
@pytest.mark.parametrize("pairs", [False, True])
def test_scores_do_not_depend_on_the_place_of_an_arm_among_eight(shared, n_items, pairs):
    forward = Scores(shared, range(N_ARMS), n_items, pairs)  # arms 16 to 20 are scored one by one
    backward = Scores(shared, range(N_ARMS)[::-1], n_items, pairs)  # here arms 0 to 4 are
    for arm in range(N_ARMS):
        assert forward.of_arm(arm).tolist() == backward.of_arm(arm).tolist()


@pytest.mark.parametrize("shared", [True, "arms", False])
def test_scores_are_the_same_in_a_complete_sparse_support(shared):
    dense, sparse = (
        Scores(shared, range(N_ARMS)),
        Scores(shared, range(N_ARMS), support=np.ones((N_ARMS, N_ITEMS), bool)),
    )
    assert dense.ridge.q.tolist() == sparse.ridge.q.tolist()
    assert dense.ridge.low.tolist() == sparse.ridge.low.tolist()


@pytest.mark.parametrize("shared", [True, "arms", False])
def test_arms_with_different_items_are_scored_alike_in_any_order(shared):
    forward, backward = (Scores(shared, order, support=IRREGULAR) for order in (range(N_ARMS), range(N_ARMS)[::-1]))
    for arm in range(N_ARMS):
        assert forward.of_arm(arm).tolist() == backward.of_arm(arm).tolist()


@pytest.mark.parametrize("shared", [True, "arms", False])
def test_only_eligible_arms_are_scored(shared):
    eligible = np.random.default_rng(8).random(N_ARMS) < 0.5
    every, some = Scores(shared, range(N_ARMS)), Scores(shared, range(N_ARMS), eligible=eligible)
    for arm in range(N_ARMS):
        want = every.of_arm(arm) if eligible[arm] else np.full(2 * N_ITEMS, 7.0)
        assert some.of_arm(arm).tolist() == want.tolist()


@pytest.mark.parametrize("pairs", [False, True])
def test_shared_scores_of_many_arms_are_those_of_the_formula(pairs):
    scores = Scores(True, range(N_ARMS), pairs=pairs)
    ridge = scores.ridge
    d = ridge.theta.shape[1]
    inverse = np.zeros((d, d))
    inverse[np.tril_indices(d)] = ridge.inverse[0]
    inverse = inverse + np.tril(inverse, -1).T
    x = np.append(1.0, USER)
    for arm in range(N_ARMS):
        for item in range(N_ITEMS):
            own = np.kron(np.append(1.0, ARMS[arm]), x)
            phi = np.concatenate([own, PAIRS[arm] if pairs else [], np.eye(N_ITEMS)[item]])
            width = 0.7 * np.sqrt(phi @ inverse @ phi)
            want = [phi @ ridge.theta[0] + width, phi @ ridge.theta[0] - width]
            at = arm * N_ITEMS + item
            np.testing.assert_allclose([ridge.q[at], ridge.low[at]], want, rtol=1e-9, atol=1e-12)
