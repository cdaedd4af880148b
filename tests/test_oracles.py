"""Every oracle on random small problems, against trying every batch."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from superarm import actions as sets
from superarm import oracles, rewards
from superarm.actions.base import take_rows
from superarm.agent import recommend
from superarm.core.errors import InvalidArgument
from superarm.core.streams import uniform
from superarm.environments import Bernoulli
from superarm.oracles import greedy
from superarm.oracles.budgets import find_grid
from superarm.problem import Problem
from superarm.simulation import Instance
from tests.action_sets import ALL, KINDS, arms, playable, random_set, random_view

ORACLES = [
    oracles.Default(),
    oracles.Greedy(),
    oracles.Modular(),
    oracles.TopArms(),
    oracles.Reversed(),
    oracles.Exhaustive(),
    oracles.LocalSearch(),
    oracles.LocalSearch(oracles.ContinuousGreedy(3)),
    oracles.ContinuousGreedy(4),
    oracles.Linearised(),
    oracles.KnapsackTable(),
    oracles.KnapsackScheme(0.2),
    oracles.GreedyMax(),
    oracles.PartialEnumeration(),
    oracles.StochasticGreedy(0.2),
]
REWARDS = {
    "Linear": rewards.Linear(),
    "Coverage": rewards.Coverage(),
    "Logistic": rewards.Logistic(0.5),
    "Conjunctive": rewards.Conjunctive(),
}


class Failing(oracles.Oracle):
    """Another oracle that returns a random batch instead of its own with probability 1 - beta."""

    oracle: oracles.Oracle
    beta: float

    def maximize(self, problem, q, view):
        numbers = uniform(view.keys, view.t, np.arange(problem.n_arms), 2)
        own, random = self.oracle.maximize(problem, q, view), problem.actions.sample(view, numbers[:, :, 1])
        return np.where(numbers[:, :1, 0] < self.beta, own, random)

    def guarantee(self, problem):
        inner = self.oracle.guarantee(problem)
        return oracles.Guarantee(inner.alpha, inner.beta * self.beta)


def fits(oracle, problem):
    try:
        oracle.validate(problem)
    except InvalidArgument:
        return False
    return True


def instances(kind, reward, n_draws, sparse=False):
    """Random problems, parameters (3, n_arms, n_items), a view of three replications, and what may be played."""
    for n in range(n_draws):
        rng = np.random.default_rng([n, len(kind), len(reward), sparse])
        actions, n_arms, may_play = random_set(kind, rng)
        m = int(rng.integers(1, 4))
        support = csr_array(rng.random((n_arms, m)) < 0.8) if sparse else None
        problem = Problem(n_arms, m, REWARDS[reward], actions, rng.uniform(0.1, 2.0, m), support)
        p = rng.random((3, problem.n_entries) if sparse else (3, n_arms, m))
        view = random_view(problem, rng, rows=3, share=(0.8, 1.0), distinct=True)
        yield problem, p, view, may_play


def entries(problem, p):
    """Parameters of each replication as entries."""
    return np.concatenate([problem.entries(row) for row in p])


def naive_greedy(problem, p, counts, known):
    """Add the arm of the largest gain that some playable batch allows; ties to fewest pulls, then the lowest number."""
    chosen = list(problem.actions.pins) if known else []
    while True:
        free = {j for batch in known for j in batch if {*chosen, j} <= set(batch)} - set(chosen)
        if not free:
            return chosen
        chosen.append(min(free, key=lambda j: (-round(problem.gain(p, chosen, j), 12), counts[j])))


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("kind", ALL)
def test_batches_are_playable_and_as_good_as_promised(kind, reward):
    for problem, p, view, may_play in instances(kind, reward, 3 if reward == "Coverage" else 1):
        q = entries(problem, p)
        known = [playable(may_play, problem.n_arms, row) for row in view.eligible]
        for oracle in ORACLES:
            if not fits(oracle, problem):
                continue
            found, promise = oracle.maximize(problem, q, view), oracle.guarantee(problem)
            for r in range(3):
                batch = arms(found[r])
                if not known[r]:
                    assert not batch, oracle
                    continue
                assert tuple(sorted(batch)) in known[r], oracle
                value = problem.value(p[r], batch)
                comparable = [b for b in known[r] if problem.reward.monotone or len(b) == len(batch)]
                best = max(problem.value(p[r], b) for b in comparable)
                if problem.reward.monotone or problem.actions.matroid:
                    assert promise.beta < 1.0 or value >= promise.alpha * best - 1e-9, oracle
                if isinstance(oracle, oracles.Greedy):
                    assert batch == naive_greedy(problem, p[r], view.counts[r], known[r])
                if reward != "Conjunctive":
                    proof = oracles.certify(problem, p[r], batch, np.flatnonzero(view.eligible[r]))
                    assert proof.value == pytest.approx(value, abs=1e-9)
                    assert proof.bound >= best - 1e-9, oracle
                    assert proof.measured_alpha <= value / best + 1e-9 if best > 0.0 else proof.measured_alpha == 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reward", ["Linear", "Coverage"])
def test_replications_do_not_see_each_other_and_may_share_parameters(kind, reward):
    for ours, p, view, _ in instances(kind, reward, 1):
        q = entries(ours, p)
        shared = np.repeat(q[:1], 3, 0)
        for oracle in ORACLES:
            if not fits(oracle, ours):
                continue
            together = oracle.maximize(ours, q, view)
            assert together.shape == (3, ours.k)
            for r in range(3):
                alone = oracle.maximize(ours, q[[r]], take_rows(view, [r]))
                np.testing.assert_array_equal(together[[r]], alone, repr(oracle))
            np.testing.assert_array_equal(oracle.maximize(ours, q[:1], view), oracle.maximize(ours, shared, view))


NOT_SHARED = [kind for kind in KINDS if kind != "copies"]
"""Kinds for problems with a sparse support, which copies do not go with."""


@pytest.mark.parametrize("kind", NOT_SHARED)
def test_sparse_problems_and_exact_search(kind):
    for sparse, p, view, _ in instances(kind, "Coverage", 2, sparse=True):
        q = entries(sparse, p)
        full = np.zeros((3, sparse.n_arms, sparse.n_items))
        full[:, sparse.support.arm_of, sparse.support.items] = p
        dense = sparse.changed(support=None)
        for oracle in ORACLES:
            if fits(oracle, sparse):
                found = oracle.maximize(sparse, q, view)
                if not isinstance(oracle, oracles.ContinuousGreedy | oracles.LocalSearch):  # sums in another order
                    np.testing.assert_array_equal(
                        found, oracle.maximize(dense, entries(dense, full), view), repr(oracle)
                    )
        best = max(sparse.value(p[0], batch) for batch in sparse.actions.batches(sparse.n_arms))
        assert best == pytest.approx(max(dense.value(full[0], b) for b in dense.actions.batches(dense.n_arms)))
        found = oracles.exact(sparse, p[0])
        assert found.certificate == pytest.approx((best, best))
        assert found.guarantee == oracles.Guarantee(1.0)
        assert sparse.value(p[0], found.action) == pytest.approx(best)


@pytest.mark.parametrize("kind", NOT_SHARED)
@pytest.mark.parametrize("reward", ["Linear", "Coverage", "Logistic"])
def test_lazy_greedy_picks_as_greedy_does(kind, reward, monkeypatch):
    monkeypatch.setattr(greedy, "LAZY_FROM_ENTRIES", 0)
    monkeypatch.setattr(greedy, "_FIRST_ARMS", 1)
    for ours, p, view, _ in instances(kind, reward, 6, sparse=True):
        for numbers in (p, np.round(2.0 * p) / 2.0):  # without and with ties
            q = entries(ours, numbers)
            np.testing.assert_array_equal(
                oracles.Greedy().maximize(ours, q, view), greedy.greedy_by_steps(ours, q, view)
            )


@pytest.mark.parametrize("kind", [k for k in ALL if k.startswith("pinned")])
def test_exact_search_respects_pinned_arms(kind):
    for ours, p, _, _ in instances(kind, "Coverage", 2):
        best = max(ours.value(p[0], batch) for batch in ours.actions.batches(ours.n_arms))
        found = oracles.exact(ours, p[0])
        assert set(ours.actions.pins) <= set(found.action.tolist())
        assert found.certificate == pytest.approx((best, best))


def test_a_knapsack_of_many_arms_and_paths_of_many_batches():
    rng = np.random.default_rng(0)
    many = Problem(60, 2, rewards.Coverage(), sets.Knapsack(rng.integers(1, 9, 60), 20))
    assert oracles.Default().resolve(many) == oracles.GreedyMax()
    few = Problem(30, 2, rewards.Coverage(), sets.Knapsack(rng.integers(1, 9, 30), 20))
    assert oracles.Default().resolve(few) == oracles.PartialEnumeration()
    steps = [(n, n + 1) for n in range(14) for _ in range(2)]
    ways = Problem(28, 2, rewards.Coverage(), sets.Paths(15, steps, 0, 14))
    assert oracles.Default().resolve(ways) == oracles.Linearised()
    p = rng.random((28, 2)) * 0.1
    assert oracles.certify(ways, p, oracles.solve(ways, p, oracles.Default())).measured_alpha > 0.75
    assert find_grid(Problem(3, 1, rewards.Linear(), sets.Knapsack([0.1234, 1.0, 1.0], 2.0))) is None


def test_stochastic_greedy_keeps_its_promise_on_average_and_repeats_itself():
    rng = np.random.default_rng(0)
    problem = Problem(12, 4, rewards.Coverage(), sets.Subsets(3))
    p = rng.random((12, 4)) * 0.4
    oracle = oracles.StochasticGreedy(0.3)
    view = random_view(problem, rng, rows=400, share=(1.0,))
    batches = oracle.maximize(problem, problem.entries(p), view)
    best = max(problem.value(p, batch) for batch in problem.actions.batches(12))
    assert len(np.unique(batches, axis=0)) > 5
    assert problem.values(problem.entries(p), batches).mean() >= oracle.expected_alpha() * best
    np.testing.assert_array_equal(batches, oracle.maximize(problem, problem.entries(p), view))


def test_an_oracle_that_fails_now_and_then():
    rng = np.random.default_rng(0)
    problem = Problem(8, 2, rewards.Linear(), sets.Subsets(3))
    view = random_view(problem, rng, rows=1000, share=(1.0,))
    p = rng.random((8, 2))
    best = oracles.solve(problem, p, oracles.Modular())
    found = Failing(oracles.Modular(), 0.7).maximize(problem, problem.entries(p), view)
    share = (found == best).all(1).mean()
    assert abs(share - 0.7 - 0.3 / 336) < 0.07  # five standard deviations
    assert Failing(oracles.Modular(), 0.7).guarantee(problem) == (1.0, 0.7)


def test_search_stops_in_time_and_reports_the_gap():
    rng = np.random.default_rng(0)
    problem = Problem(90, 40, rewards.Coverage(), sets.Subsets(15))
    p = rng.uniform(0.0, 0.3, (90, 40))  # all alike: nothing is ruled out early
    found = oracles.exact(problem, p, seconds=0.05)
    assert found.guarantee.alpha == 0.0
    assert found.certificate.gap > 0.0
    loose = oracles.exact(problem, p, seconds=30.0, gap=0.5)
    assert loose.certificate.value >= 0.5 * loose.certificate.bound


WRONG = [
    lambda: oracles.exact(Problem(3, 1, rewards.Logistic(5.0), sets.Subsets(1)), np.zeros((3, 1))),
    lambda: oracles.exact(Problem(3, 1, rewards.Coverage(), sets.Subsets(1)), np.zeros((3, 1)), seconds=0.0),
    lambda: oracles.ContinuousGreedy(0),
    lambda: oracles.StochasticGreedy(0.9),
    lambda: oracles.KnapsackScheme(1.0),
    lambda: oracles.LocalSearch(step=1.0),
    lambda: oracles.Linearised(rounds=0),
    lambda: oracles.Linearised(start=oracles.Greedy),
    lambda: oracles.Exhaustive().validate(Problem(60, 1, rewards.Coverage(), sets.Subsets(20))),
]


@pytest.mark.parametrize("make", WRONG)
def test_wrong_arguments_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()


class _Pairs(rewards.Linear):
    """The square of the sum: no sum over items, so that it brings an oracle."""

    additive = False
    triggers = True

    def values(self, problem, q, action):
        return super().values(problem, q, action) ** 2

    def oracle(self, problem):
        return oracles.Modular() if isinstance(problem.actions, sets.Subsets) else None


def test_a_reward_of_one_s_own_may_say_what_maximises_it():
    listed = sets.Explicit([[0, 1], [2, 3]])
    free, rigid = (Problem(4, 1, _Pairs(), actions) for actions in (sets.Subsets(2), listed))
    p = [[0.1], [0.7], [0.4], [0.2]]
    assert oracles.Default().resolve(free) == oracles.Modular()
    assert oracles.Default().resolve(rigid) == oracles.Exhaustive()
    assert [sorted(oracles.solve(problem, p).tolist()) for problem in (free, rigid)] == [[1, 2], [0, 1]]
    with pytest.raises(InvalidArgument, match="own_reward"):
        Instance(free, Bernoulli(p))
    assert recommend(free).name == "bcucb_t"
