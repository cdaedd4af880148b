"""Refits of logistic models: maximum likelihood by SciPy, any order, undoing, saving, growth, frames and simulation."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize

import superarm as sa
from superarm.context import frames
from superarm.learner.state import policy_state_to_plain
from superarm.simulation import context_table
from superarm.simulation.contextual import advance_run, begin_run

N_ARMS, K, N_ITEMS, PRIOR = 5, 2, 2, 0.2
RIDGE = 0.02
Z = np.round(np.random.default_rng(5).uniform(-1, 1, (N_ARMS, 2)) * 1024) / 1024
SHARED, ARMS, ENTRIES = (sa.models.Logistic(shared=shared, prior_mean=PRIOR) for shared in (True, "arms", False))
MODELS = pytest.mark.parametrize("model", [SHARED, ARMS, ENTRIES], ids=lambda model: model.shared)


def make_problem(model, features=None, n_items=N_ITEMS):
    declared = sa.Features(d=2) if features is None else features
    context = sa.Context(declared, arms=Z, model=model)
    return sa.Problem(N_ARMS, n_items, sa.Coverage(), sa.Subsets(K), context=context)


def make_agent(model, policy=None):
    return sa.Agent(make_problem(model), sa.logistic_kl_ucb(ridge=RIDGE) if policy is None else policy, seed=1)


def visits(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        user = np.round(rng.uniform(-1, 1, 2) * 1024) / 1024
        yield user, (rng.random((K, N_ITEMS)) < 0.1 + 0.4 * (user[0] > 0)).astype(float), rng.random((K, N_ITEMS)) < 0.9


def entry_features(model, user, arm, item):
    x = np.concatenate([[1.0], user])
    if model.shared == "all":
        own = np.floor(np.kron(np.concatenate([[1.0], Z[arm]]), x) * 1024 + 0.5) / 1024
        return 0, np.concatenate([own, np.eye(N_ITEMS)[item]])
    if model.shared == "arms":
        return arm, np.concatenate([x, np.eye(N_ITEMS)[item]])
    return arm * N_ITEMS + item, x


def maximise_likelihood(rows, ridge):
    """SciPy's minimum of the penalised loss of rows (features, outcome)."""
    phi, x = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])

    def loss(theta):
        eta = np.log(PRIOR / (1.0 - PRIOR)) + phi @ theta
        value = np.logaddexp(0.0, eta).sum() - x @ eta + 0.5 * ridge * theta @ theta
        return value, phi.T @ (1.0 / (1.0 + np.exp(-eta)) - x) + ridge * theta

    found = minimize(loss, np.zeros(phi.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.x


@MODELS
def test_a_refit_is_the_maximum_of_the_likelihood(model):
    agent, rows, refits = make_agent(model), {}, 0
    ridge = agent.learner.fitted.ridge
    for user, outcome, seen in visits(45, 3):
        decision = agent.ask(context=user)
        kept = agent.learner.memory.kept
        for group in np.flatnonzero(kept.until == decision.t):
            refits += 1
            expected = maximise_likelihood(rows[group], ridge)
            np.testing.assert_allclose(kept.point[group], expected, atol=2e-5)
            estimate = agent.learner.fitted.coefficients(agent.problem, agent.tally, agent.learner.memory)[group]
            np.testing.assert_allclose(estimate, expected, atol=2e-5)
        agent.tell(decision, outcome, seen)
        for place, arm in enumerate(decision.action):
            for item in np.flatnonzero(seen[place]):
                group, phi = entry_features(model, user, arm, item)
                rows.setdefault(group, []).append((phi, outcome[place, item]))
    assert refits >= 4
    trace = {g: sum(0.25 * phi @ phi for phi, _ in found) for g, found in rows.items()}
    for group, at_most in trace.items():  # weights are at most 1/4: there are no more doublings than that allows
        assert kept.information[group, 1] <= at_most


def test_between_refits_the_estimate_stays_close_to_maximum_likelihood():
    """One arm, 400 decisions: within a tenth of the standard error of SciPy's estimate."""
    context = sa.Context(sa.Features(d=1), model=sa.models.Logistic(prior_mean=PRIOR))
    rng, rows = np.random.default_rng(0), []
    agent = sa.Agent(sa.Problem(1, 1, sa.Coverage(), sa.Subsets(1), context=context), sa.logistic_ts())
    for n in range(400):
        x = np.round(rng.uniform(-1, 1) * 1024) / 1024
        outcome = float(rng.random() < 1.0 / (1.0 + np.exp(2.0 - 1.5 * x)))
        agent.tell(agent.ask(context=[x]), [[outcome]])
        rows.append((np.array([1.0, x]), outcome))
        if n in (50, 200, 399):
            theta = agent.learner.fitted.coefficients(agent.problem, agent.tally, agent.learner.memory)[0]
            expected = maximise_likelihood(rows, agent.learner.fitted.ridge)
            phi = np.array([row[0] for row in rows])
            mean = 1.0 / (1.0 + np.exp(-np.log(PRIOR / (1.0 - PRIOR)) - phi @ expected))
            errors = np.sqrt(np.diag(np.linalg.inv(phi.T * (mean * (1.0 - mean)) @ phi)))
            assert (np.abs(theta - expected) < 0.1 * errors).all()


@MODELS
def test_order_undoing_and_saving_are_exact(model):
    agents = [make_agent(model) for _ in range(2)]
    told = list(visits(24, 4))
    for first in range(0, 24, 8):
        made = [[agent.ask(context=user) for user, *_ in told[first : first + 8]] for agent in agents]
        for place in range(8):
            agents[0].tell(made[0][place], *told[first + place][1:])
        for place in np.random.default_rng(first).permutation(8):
            outcome, seen = told[first + place][1:]
            agents[1].tell(made[1][place], 1.0 - outcome, seen)
            agents[1].untell(made[1][place], 1.0 - outcome, seen)
            agents[1].tell(made[1][place], outcome, seen)
        agents[1] = sa.Agent.from_state(json.loads(json.dumps(agents[1].to_state())))
        plain = [policy_state_to_plain(agent.learner.state) for agent in agents]
        assert plain[0] == plain[1]
        assert agents[0].learner.memory.kept.until.any() == (first > 0)
        for part in ("precision", "response", "information"):
            one, other = (getattr(agent.learner.memory.kept, part) for agent in agents)
            np.testing.assert_array_equal(one, other)


def test_the_observations_of_the_first_rounds_are_kept_in_any_order():
    told, states = list(visits(16, 4)), []
    for order in (range(16), reversed(range(16)), np.random.default_rng(0).permutation(16)):
        agent = make_agent(SHARED._replace(kept=13))
        made = [agent.ask(context=user) for user, *_ in told]
        for place in order:
            agent.tell(made[place], told[place][1], np.ones((K, N_ITEMS), bool))
        states.append(agent.learner.state.kept)
        assert states[-1].rows[:, 0].tolist() == [1.0] * 4 + [2.0] * 4 + [3.0] * 4
        assert states[-1].bounds[0] == 4.0
    for other in states[1:]:
        np.testing.assert_array_equal(states[0].rows, other.rows)


def test_new_arms_and_items_leave_points_and_observations_in_place():
    agent = make_agent(ENTRIES)
    for user, outcome, seen in visits(40, 3):
        agent.tell(agent.ask(context=user), outcome, seen)
    before = agent.learner.memory.kept
    agent.add_arms(1, features=[[0.5, 0.5]])
    agent.add_items(1)
    after = agent.learner.memory.kept
    shape = (N_ARMS + 1, N_ITEMS + 1, -1)
    for name in ("point", "until", "information", "precision", "response"):
        grown = getattr(after, name).reshape(shape)[:N_ARMS, :N_ITEMS]
        np.testing.assert_array_equal(grown, getattr(before, name).reshape(N_ARMS, N_ITEMS, -1))
    assert before.until.any()
    for user, outcome, _ in visits(3, 9):
        agent.tell(agent.ask(context=user), np.pad(outcome, ((0, 0), (0, 1))))


def test_observations_of_earlier_frames_take_part_in_refits(monkeypatch):
    """The corrected sums are those of the relinearised observations, with features carried to the last frame."""
    monkeypatch.setattr(frames, "FIRST_FRAME", 4)
    model = sa.models.Logistic(shared=True, prior_mean=PRIOR)
    problem = make_problem(model, sa.Features(numeric=["age"]), 1)
    agent, rng, waiting = sa.Agent(problem, sa.logistic_kl_ucb(ridge=RIDGE), seed=1), np.random.default_rng(2), []
    for _ in range(40):
        decision = agent.ask(context={"age": float(np.round(rng.normal(40.0, 10.0), 1))})
        waiting.append((decision, (rng.random((K, 1)) < 0.3).astype(float)))
        if len(waiting) > 3:
            agent.tell(*waiting.pop(0))
    frame = agent.learner.contexts.frames
    assert frame.frame.version == 2
    learner, kept = agent.learner, agent.learner.memory.kept
    rows = learner.state.kept.rows
    assert set(rows[:, 3]) == {0.0, 1.0, 2.0}
    precision, response = np.zeros((6, 6)), np.zeros(6)
    for t, arm, _, version, outcome, weight, shift, one, x in rows:
        old, new = frame.frames[int(version)].places, frame.frame.places["age"]
        z = np.concatenate([[1.0], Z[int(arm)]])
        u = np.floor(np.kron(z, [one, x]) * 1024 + 0.5) / 1024
        if old:
            (center, scale), (new_center, new_scale) = old["age"], new
            u[1::2] = u[1::2] * scale / new_scale + u[::2] * (center - new_center) / new_scale
        now = weight, shift
        if t <= kept.until[0]:
            eta = u @ kept.point[0]
            mean = 1.0 / (1.0 + np.exp(-np.log(PRIOR / (1.0 - PRIOR)) - eta))
            now = mean * (1.0 - mean), mean * (1.0 - mean) * eta - mean
        precision += now[0] * np.outer(u, u)
        response += (outcome + now[1]) * u
    assert kept.until[0] > 16
    lower = np.tril_indices(6)
    np.testing.assert_allclose((learner.tally.precision + kept.precision)[0], precision[lower], atol=1e-5)
    np.testing.assert_allclose((learner.tally.response + kept.response)[0], response, atol=1e-5)
    copy = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    np.testing.assert_array_equal(copy.learner.memory.kept.precision, kept.precision)


@MODELS
@pytest.mark.parametrize("policy", [sa.logistic_kl_ucb(ridge=RIDGE), sa.logistic_ts(ridge=RIDGE)], ids=["ucb", "ts"])
def test_a_simulated_run_is_that_of_the_agent(model, policy):
    problem, rng = make_problem(model), np.random.default_rng(3)
    users = [np.round(rng.uniform(-1, 1, 2) * 1024) / 1024 for _ in range(8)]
    environment = context_table(problem, users, rng.uniform(0.05, 0.6, (8, N_ARMS, N_ITEMS)), replay=True)
    instance, seed = sa.Instance(problem, environment), np.random.SeedSequence(4)
    fitted = policy.fit(problem)
    run = begin_run(instance, fitted, seed)
    agent = sa.Agent(problem, policy)
    agent._choosing = run.streams.policy
    for t in range(1, 31):
        before = run.tally.total.copy()
        advance_run(instance, fitted, run, np.array([t - 1, t]), np.zeros(1))
        decision = agent.ask(context=users[(t - 1) % 8])
        assert decision.action.tolist() == run.last.tolist()
        drawn = (run.tally.total - before).reshape(N_ARMS, N_ITEMS)
        agent.tell(decision, drawn[decision.action])
    assert run.memory.kept.until.any()
    np.testing.assert_array_equal(run.memory.kept.point, agent.learner.memory.kept.point)
    np.testing.assert_array_equal(run.memory.kept.precision, agent.learner.memory.kept.precision)
    np.testing.assert_array_equal(run.tally.response, agent.tally.response)


def test_a_policy_that_forgets_keeps_no_observations():
    agent = make_agent(SHARED, sa.sliding_window(sa.logistic_kl_ucb(ridge=RIDGE), 8, 4))
    for user, outcome, seen in visits(20, 3):
        agent.tell(agent.ask(context=user), outcome, seen)
    assert agent.learner.fitted.policy.kept == 0
    assert agent.learner.state.kept is None


def test_a_wrong_number_of_observations_is_refused():
    with pytest.raises(sa.InvalidArgument, match=r"LogisticModel\.kept: -1"):
        sa.models.Logistic(kept=-1)


def test_a_batch_around_a_pinned_arm_is_chosen_by_the_same_estimates():
    agent = make_agent(SHARED)
    for user, outcome, seen in visits(30, 3):
        agent.tell(agent.ask(context=user), outcome, seen)
    point = agent.learner.memory.kept.point.copy()
    decision = agent.ask(context=np.zeros(2), pinned=[4])
    assert 4 in decision.action
    assert np.array_equal(agent.learner.memory.kept.point, point) or agent.learner.memory.kept.until[0] == decision.t
