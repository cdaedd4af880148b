"""The directional policy against naive code on raw outcomes, convex optimisation, and the policies that it contains."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse

import superarm as sa
from superarm.candidates import Candidates
from superarm.indices import AnglePosterior, KLMoss
from superarm.indices.two_moments import two_moment_bound
from superarm.policies import Covariance, DirectionalPolicy, IndexPolicy, Round, Triangle, choose, learn, prepare
from superarm.policies.directional_bounds import bound_arm, point, raise_roof
from superarm.policies.directions import new_direction
from superarm.policies.traits import empty_tally
from superarm.simulation import seeds
from superarm.core.streams import new_stream
from superarm.core.tally import Feedback

STREAM = new_stream(np.random.SeedSequence(0))
WEIGHTS = np.array([1.0, 2.0, 0.0, 0.5])
PROBLEM = sa.Problem(5, 4, sa.Coverage(), sa.Subsets(2), weights=WEIGHTS)


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
            assert two_moment_bound(y.mean(), y.var(), y.max(), x) >= exact - 1e-5
            assert two_moment_bound(y.mean(), 1.2 * y.var(), min(1.0, 1.1 * y.max()), x) >= exact - 1e-5
    assert compared > 50


def test_two_points_and_constants_have_the_bound_of_their_sample():
    for values, x in (([0.2, 0.2, 0.2, 0.7], 0.3), ([0.4] * 5, 0.2), ([0.0, 0.0, 1.0], 0.1), ([0.1, 0.9], 2.0)):
        y = np.array(values)
        assert two_moment_bound(y.mean(), y.var(), y.max(), x) == pytest.approx(bound_of_sample(y, x), abs=1e-4)


def least_of_formula(m, v, h, x):
    """The minimum over a grid of kappa that is fine at both ends."""
    kappa = np.concatenate([np.geomspace(1e-5, 0.5, 2000), 1.0 - np.geomspace(1e-13, 0.5, 2000)])
    a, share = m - v / (h - m), v / (v + (h - m) ** 2)
    g = share * np.log1p(-kappa * h) + (1.0 - share) * np.log1p(-kappa * a)
    return float(np.min(-np.expm1(g - x) / kappa))


@pytest.mark.parametrize("below_one", [None, 0.0, 2.0**-53, 1e-14, 1e-12, 1e-11, 1e-10, 1e-9, 1.1e-9, 1e-8])
def test_the_bound_is_the_minimum_of_its_formula_and_not_wider_than_lemma_3(below_one):
    rng = np.random.default_rng(1)
    for _ in range(150):
        h = rng.uniform(0.05, 1.0) if below_one is None else 1.0 - below_one
        x, m = float(10.0 ** rng.uniform(-6, 1)), rng.uniform(0.0, 1.0) ** 2 * h
        v = rng.uniform(0.0, m * (h - m))
        least, found = least_of_formula(m, v, h, x), two_moment_bound(m, v, h, x)
        assert least * (1.0 - 1e-4) <= found <= least * (1.0 + 1e-9) + 1e-9
        assert found <= m + math.sqrt(2.0 * v * x) + x + 1e-12


def naive_bound(rows, c, u, x, spread):
    """The bound of one arm in direction c from its raw outcomes, with nothing from the package."""
    b, n = c.sum(), len(rows)
    sd = rows.std(axis=0)
    averages = rows @ u / u.sum()
    peak = u.sum() * (np.ceil(64.0 * np.sqrt(averages.max())) / 64.0) ** 2
    top = np.minimum(1.0, np.minimum(rows.sum(axis=0), np.sqrt((rows**2).sum(axis=0) + 0.5 * n / 2**24)))
    choices = [0.0, *(ci / ui for ci, ui in zip(c, u, strict=True) if ui > 0.0)]
    triangle = min(a * (rows @ u).std() + np.abs(c - a * u) @ sd for a in choices) ** 2
    v = (rows @ c).var() if isinstance(spread, Covariance) else triangle
    h = min(a * peak + np.maximum(0.0, c - a * u) @ top for a in choices)
    m, h, v = (rows @ c).mean() / b, min(1.0, h / b), v / b**2
    if h - m < 1e-9 or v < 1e-12:
        return b * (1.0 - (1.0 - m) * math.exp(-x))
    v = min(v, m * (h - m))
    a, share = m - v / (h - m), v / (v + (h - m) ** 2)

    def value(kappa):
        g = share * math.log(1.0 - kappa * h) + (1.0 - share) * math.log(1.0 - kappa * a)
        return (1.0 - math.exp(g - x)) / kappa

    return (
        b * optimize.minimize_scalar(value, bounds=(1e-9, 1.0 - 1e-12), method="bounded", options={"xatol": 1e-10}).fun
    )


def told(policy, problem, rows):
    """A tally and a memory that have learnt the rows of every arm, (n_arms, n, n_items)."""
    tally = empty_tally(policy, problem)
    memory = prepare(policy, problem, tally)
    for j, outcomes in enumerate(rows):
        for outcome in outcomes:
            one = Feedback(1, np.array([j]), outcome.copy(), np.ones(len(outcome), bool))
            learn(policy, problem, tally, memory, one, STREAM, 1.0)
    return tally, memory


@pytest.mark.parametrize("spread", [Triangle(), Covariance()])
def test_bounds_are_those_of_naive_code_on_raw_outcomes(spread):
    rng = np.random.default_rng(2)
    policy = sa.directional_kl_moss(spread).fit(PROBLEM)
    for _ in range(12):
        rows = [laws(rng, int(rng.integers(1, 40)), 4) for _ in range(5)]
        tally, memory = told(policy, PROBLEM, rows)
        t = int(rng.integers(100, 3000))
        current = Round(t, tally, Candidates(tally.pulls, np.ones(5, bool)))
        states, direction = WEIGHTS * rng.random(4) ** rng.choice([0.0, 1.0]), new_direction(4)
        point(PROBLEM, states, tally, direction)
        for j in range(5):
            x = max(0.0, math.log(t * 0.4 / len(rows[j]))) / len(rows[j])
            naive = naive_bound(rows[j], states, WEIGHTS, x, spread) if x > 0.0 else rows[j].mean(axis=0) @ states
            assert bound_arm(policy, PROBLEM, current, memory, direction, STREAM, j) == pytest.approx(naive, rel=2e-4)


def test_batches_are_grown_by_the_naive_bounds():
    rng = np.random.default_rng(3)
    policy, clear = sa.directional_kl_moss(Covariance()).fit(PROBLEM), 0
    for _ in range(10):
        rows = [laws(rng, int(rng.integers(3, 30)), 4) for _ in range(5)]
        tally, memory = told(policy, PROBLEM, rows)
        current = Round(200, tally, Candidates(tally.pulls, np.ones(5, bool)))
        c, batch, margin = WEIGHTS.copy(), [], math.inf
        for _ in range(2):
            bounds = {
                j: naive_bound(rows[j], c, WEIGHTS, math.log(200 * 0.4 / len(rows[j])) / len(rows[j]), Covariance())
                for j in range(5)
                if j not in batch
            }
            order = sorted(bounds, key=bounds.get, reverse=True)
            margin = min(margin, bounds[order[0]] - bounds[order[1]])
            batch.append(order[0])
            c = c * (1.0 - rows[order[0]].mean(axis=0))
        if margin > 1e-3:
            clear += 1
            assert choose(policy, PROBLEM, current, memory, STREAM).tolist() == batch
    assert clear >= 6


@pytest.mark.parametrize("spread", [Triangle(), Covariance()])
def test_an_agent_with_unequal_weights_and_items_that_come_together_picks_the_largest_naive_bound(spread):
    # An arm whose items all were 1 at once has the largest value that is possible, up to rounding.
    rng, weights = np.random.default_rng(8), np.array([0.7, 1.3, 0.45, 1.9])
    p = rng.uniform(0.1, 0.5, (6, 4))
    agent = sa.Agent(sa.Problem(6, 4, sa.Coverage(), sa.Subsets(3), weights), sa.directional_kl_ucb(spread=spread))
    rows = [np.empty((0, 4)) for _ in range(6)]
    for t in range(1, 41):
        decision, c, taken = agent.ask(), weights.copy(), []
        for j in decision.action if t > 10 else []:
            level = math.log(t) + 3.0 * math.log(max(1.0, math.log(t)))
            bounds = {
                i: naive_bound(rows[i], c, weights, level / len(rows[i]), spread) for i in range(6) if i not in taken
            }
            assert bounds[j] >= max(bounds.values()) - 1e-5
            taken.append(j)
            c = c * (1.0 - rows[j].mean(axis=0))
        outcome = (rng.random((3, 1)) < p[decision.action]).astype(float)
        agent.tell(decision, outcome)
        for j, x in zip(decision.action, outcome, strict=True):
            rows[j] = np.vstack([rows[j], x])


@pytest.mark.parametrize(("items", "environment"), [(1, sa.environments.Bernoulli), (6, sa.environments.Comonotone)])
def test_one_binary_item_or_equal_items_that_agree_give_kl_moss(items, environment):
    p = np.repeat(np.array([[0.1], [0.3], [0.35], [0.6], [0.02]]), items, axis=1)
    instance = sa.Instance(sa.Problem(5, items, sa.Coverage(), sa.Subsets(1)), environment(p))
    policies = {"KL-MOSS": sa.kl_moss(), "directional": sa.directional_kl_moss()}
    results = sa.simulate(instance, policies, 150, replications=2, progress=False)
    assert results.pulls["KL-MOSS"].tolist() == results.pulls["directional"].tolist()
    assert results.regret["KL-MOSS"] == pytest.approx(results.regret["directional"], abs=1e-9)


def test_a_simulated_run_and_an_agent_agree_to_the_bit_over_a_saved_state_and_a_changed_mind():
    instance = sa.instances.random_coverage(n_arms=5, n_items=3, k=2)
    policy = sa.directional_kl_moss(Covariance())
    results = sa.simulate(instance, {"": policy}, 60, replications=1, rounds=[60], progress=False)
    agent, pulls = sa.Agent(instance.problem, policy, seed=seeds(0, 1)[0]), np.zeros(5)
    environment = sa.simulation.begin(
        instance.problem, instance.environment, policy.fit(instance.problem), seeds(0, 1)[0]
    ).streams.environment
    for t in range(1, 61):
        decision = agent.ask()
        outcome = np.empty(6)
        instance.environment.draw(
            instance.problem.support, decision.action.copy(), t, environment, outcome, np.ones(6, bool)
        )
        if t % 10 == 0:
            agent.tell(decision, np.ones((2, 3)))
            agent.untell(decision, np.ones((2, 3)))
        agent.tell(decision, outcome.reshape(2, 3))
        pulls[decision.action] += 1.0
        agent = sa.Agent.from_state(agent.to_state()) if t == 30 else agent
    assert pulls.tolist() == results.pulls[""][0].tolist()


def test_moments_do_not_depend_on_the_order_and_are_taken_back_exactly():
    rng = np.random.default_rng(4)
    policy = sa.directional_kl_moss(Covariance()).fit(PROBLEM)
    rows = [laws(rng, 20, 4) for _ in range(5)]
    tally, memory = told(policy, PROBLEM, rows)
    other, _ = told(policy, PROBLEM, [np.vstack([part[::-1], np.ones((1, 4))]) for part in rows])
    for j in range(5):
        one = Feedback(9, np.array([j]), np.ones(4), np.ones(4, bool))
        learn(policy, PROBLEM, other, prepare(policy, PROBLEM, other), one, STREAM, -1.0)
    assert all(np.array_equal(a, b) for a, b in zip(tally, other, strict=True))
    again = prepare(policy, PROBLEM, other).sample
    assert all(np.array_equal(a, b) for a, b in zip(memory.sample, again, strict=True))
    for part, peak in zip(rows, again.peak, strict=True):  # of the largest value that is left
        assert 0.0 <= peak - (part @ WEIGHTS).max() <= WEIGHTS.sum() / 30.0


def test_partial_feedback_uses_the_pulls_seen_whole_and_all_pulls_for_single_entries():
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1))
    agent = sa.Agent(problem, sa.directional_kl_moss(), seed=1)
    for t in range(30):
        decision = agent.ask()
        agent.tell(decision, [[1.0, 0.0]], [[True, t % 3 > 0]])
    sample = agent.learner.memory.sample
    assert 0.0 < sample.pulls.sum() < agent.tally.pulls.sum() == 30.0
    current = Round(31, agent.tally, Candidates(agent.tally.pulls, np.ones(3, bool)))
    direction = new_direction(2)
    point(problem, problem.weights.copy(), agent.tally, direction)
    for j in range(3):
        n = agent.tally.pulls[j]
        whole = agent.learner.memory.sample.pulls[j]
        missed = agent.tally.missed[2 * j + 1]
        entries = 1.0 - math.expm1(-KLMoss().level(n - missed, 31, 1 / 3)) if n > missed else 2.0
        bound = bound_arm(agent.learner.fitted, problem, current, agent.learner.memory, direction, STREAM, j)
        assert 1.0 <= bound <= entries + 1e-12
        assert whole == n - missed


def test_feedback_from_before_the_policy_is_not_taken_out_of_its_moments():
    agent = sa.Agent(PROBLEM, sa.kl_moss(), seed=2)
    early = agent.ask()
    agent.tell(early, np.ones((2, 4)))
    late = agent.ask()
    agent.change_policy(sa.directional_kl_moss())
    assert agent.tally.moments.size
    assert not agent.tally.moments.any()
    agent.tell(late, np.ones((2, 4)))
    agent = sa.Agent.from_state(agent.to_state())
    agent.untell(early, np.ones((2, 4)))
    assert not agent.tally.moments.any()
    decision = agent.ask()
    agent.tell(decision, np.zeros((2, 4)))
    assert agent.learner.memory.sample.pulls.sum() == 2.0
    agent.untell(decision, np.zeros((2, 4)))
    assert not agent.tally.moments.any()
    agent.change_policy(sa.cts())
    assert not agent.tally.moments.size


def test_growth_keeps_moments_and_new_items_begin_anew():
    thin = sparse.csr_array(np.array([[1, 1, 0], [0, 1, 0]]))
    wide = sparse.csr_array(np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1]]))
    policy = sa.directional_kl_moss(Covariance())
    agent = sa.Agent(sa.Problem(2, 3, sa.Coverage(), sa.Subsets(1), support=thin), policy)
    decisions = [agent.ask() for _ in range(4)]
    for decision in decisions:
        agent.tell(decision, [1.0, 0.5][: 2 - decision.action[0]])
    before = agent.learner.memory.sample
    agent.learner.grow_arms(1, None, wide)
    after = agent.learner.memory.sample
    assert before.pulls.tolist() == after.pulls[:2].tolist()
    assert before.mean.tolist() == after.mean[:3].tolist()
    assert before.covariance.tolist() == [after.covariance[0], after.covariance[3]][: before.covariance.size]
    dense = sa.Agent(PROBLEM, policy)
    decision = dense.ask()
    dense.tell(decision, np.ones((2, 4)))
    dense.learner.grow_items(1, [1.0])
    assert not dense.tally.moments.any()
    dense.untell(decision, np.ones((2, 4)))
    assert not dense.tally.moments.any()
    assert len(dense.ask().action) == 2


def test_a_retired_item_leaves_the_bound_at_least_that_of_the_sample():
    rng = np.random.default_rng(6)
    problem = sa.Problem(3, 4, sa.Coverage(), sa.Subsets(1))
    agent = sa.Agent(problem, sa.directional_kl_moss(), seed=0)
    rows = {j: [] for j in range(3)}
    for _ in range(24):
        decision, outcome = agent.ask(), laws(rng, 1, 4)
        agent.tell(decision, outcome)
        rows[int(decision.action[0])].append(outcome[0])
    agent.learner.retire_items([1, 2])
    weights, direction = agent.problem.weights, new_direction(4)
    assert weights.tolist() == [1.0, 0.0, 0.0, 1.0]
    current = Round(60, agent.tally, Candidates(agent.tally.pulls, np.ones(3, bool)))
    point(agent.problem, weights.copy(), agent.tally, direction)
    for j in range(3):
        x = KLMoss().level(agent.tally.pulls[j], 60, 1 / 3)
        exact = bound_of_sample(np.array(rows[j]) @ weights / 2.0, x) if x > 0.0 else None
        bound = bound_arm(agent.learner.fitted, agent.problem, current, agent.learner.memory, direction, STREAM, j)
        assert exact is None or bound >= 2.0 * exact - 1e-5


def test_a_full_sparse_support_decides_as_a_dense_one():
    p = np.random.default_rng(7).uniform(0.1, 0.6, (5, 4))
    full = sa.Problem(5, 4, sa.Coverage(), sa.Subsets(2), WEIGHTS, support=sparse.csr_array(np.ones((5, 4))))
    for spread in (Triangle(), Covariance()):
        policies = {"": sa.directional_kl_ucb(spread=spread)}
        one, other = (
            sa.simulate(sa.Instance(problem, sa.environments.Bernoulli(p.ravel())), policies, 60, 1, progress=False)
            for problem in (PROBLEM, full)
        )
        assert one.pulls[""].tolist() == other.pulls[""].tolist()


def test_pinned_and_ineligible_arms_and_matroids():
    problem = sa.Problem(6, 2, sa.Coverage(), sa.PartitionMatroid([0, 0, 0, 1, 1, 1], [1, 1]))
    agent = sa.Agent(problem, sa.directional_kl_moss())
    for _ in range(8):
        decision = agent.ask(eligible=[0, 1, 4, 5], pinned=[1])
        assert 1 in decision.action
        assert set(decision.action.tolist()) - {1} <= {4, 5}
        assert len(decision.action) == 2
        agent.tell(decision, np.ones((2, 2)))


def test_other_rewards_and_action_sets_get_bounds_per_entry():
    policy = sa.directional_kl_moss()
    bag = sa.Knapsack([1.0, 1.0, 2.0], 2.0)
    for problem in (
        sa.Problem(3, 2, sa.Logistic(0.5), sa.Subsets(2)),
        sa.Problem(3, 2, sa.Coverage(), bag),
        sa.Problem(3, 2, sa.Coverage(), sa.Explicit([[0, 1], [2]])),
    ):
        fitted = policy.fit(problem)
        assert type(fitted).__name__ != "DirectionalPolicy"
        assert fitted.confidence == KLMoss()
        assert not empty_tally(fitted, problem).moments.size
    for reward in (sa.Coverage(), sa.Linear()):
        assert isinstance(policy.fit(sa.Problem(3, 2, reward, sa.Subsets(2))), DirectionalPolicy)
    assert isinstance(policy.fit(sa.Problem(3, 2, sa.Coverage(), bag)), IndexPolicy)
    assert "not linear" in policy.caveat
    with pytest.raises(sa.InvalidArgument, match="sampled index"):
        DirectionalPolicy(AnglePosterior()).fit(PROBLEM)


def test_windows_forget_moments_too():
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1))
    agent = sa.Agent(problem, sa.sliding_window(sa.directional_kl_moss(), 20, blocks=2), seed=3)
    for _ in range(45):
        agent.tell(agent.ask(), [[1.0, 0.0]])
    agent = sa.Agent.from_state(agent.to_state())
    now = agent.learner.memory.now
    assert now.moments[0 :: now.moments.size // 3].tolist() == now.pulls.tolist()
    assert 0.0 < now.pulls.sum() <= 20.0


@pytest.mark.parametrize("spread", [Triangle(), Covariance()], ids=["triangle", "covariance"])
def test_no_bound_exceeds_the_number_by_which_arms_are_skipped(spread):
    rng = np.random.default_rng(8)
    problem = sa.Problem(6, 5, sa.Coverage(), sa.Subsets(2), weights=rng.uniform(0.2, 2.0, 5))
    agent = sa.Agent(problem, sa.directional_kl_moss(spread), seed=0)
    direction, roof, taken = new_direction(5), np.empty(6), np.zeros(6, bool)
    for t in range(1, 60):
        decision = agent.ask()
        agent.tell(decision, laws(rng, 2, 5))
        current = Round(t, agent.tally, Candidates(agent.tally.pulls, np.ones(6, bool)))
        point(problem, problem.weights * rng.uniform(0.0, 1.0, 5), agent.tally, direction)
        parts = agent.learner.fitted, problem, current, agent.learner.memory, direction
        highest = raise_roof(*parts, taken, roof)
        bounds = np.array([bound_arm(*parts, STREAM, j) for j in range(6)])
        assert np.all(bounds <= roof)
        assert roof[highest] == roof.max()
