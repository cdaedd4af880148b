"""Policies on linear models against a naive NumPy reference, and the exactness of their sums."""

import itertools
import json

import numpy as np
import pytest

import superarm as sa
from superarm.context.sums import MAX_WEIGHT, round_weight
from superarm.learner import Learner
from superarm.core.tally import merge

N_ARMS, N_ITEMS = 5, 3
RNG = np.random.default_rng(11)
ARMS = np.round(RNG.uniform(-1, 1, (N_ARMS, 2)) * 1024) / 1024
KINDS = [
    {"shared": True},
    {"shared": "arms"},
    {"shared": False},
    {"shared": True, "intercept": False},
]
CONTEXTS = [{"interactions": True, "pairs": 0}, {"interactions": False, "pairs": 0}, {"interactions": True, "pairs": 2}]
POLICIES = {"c2_ucb": sa.c2_ucb(0.3), "vac2_ucb": sa.vac2_ucb(0.05)}


def problem(kind, context, n_items=N_ITEMS):
    declared = sa.Context(sa.Features(d=2), arms=ARMS, model=sa.models.Linear(**kind), **context)
    return sa.Problem(N_ARMS, n_items, sa.Coverage(), sa.Subsets(2), context=declared)


def visits(n, seed=0, pairs=0, n_items=N_ITEMS):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        user = np.round(rng.uniform(-1, 1, 2) * 1024) / 1024
        table = np.round(rng.uniform(-1, 1, (N_ARMS, pairs)) * 1024) / 1024 if pairs else None
        yield user, table, (rng.random((2, n_items)) < 0.3).astype(float), rng.random((2, n_items)) < 0.9


class Naive:
    """Ridge regression as it is written on paper: one dense matrix per parameter vector."""

    def __init__(self, kind, context, rule, n_items):
        self.kind, self.context, self.rule, self.n_items = kind, context, rule, n_items
        self.sums = {}  # of each group, the sums of weight * features * features and of weight * features * outcome
        arms = self.arm_vectors()
        one = 1.0 if kind.get("intercept", True) else 0.0
        arm_length = max(v @ v for v in arms)
        own = (2 + one) * arm_length if self.crossed else (2 + one) + arm_length - 1
        self.ridge = self.penalty() * (own + context["pairs"] + (1.0 if self.indicators() else 0.0))

    @property
    def crossed(self):
        return self.context["interactions"] or self.kind["shared"] is not True

    def indicators(self):
        return self.n_items > 1 and self.kind["shared"] is not False

    def arm_vectors(self):
        if self.kind["shared"] is not True:
            return np.ones((N_ARMS, 1))
        keep = self.kind.get("intercept", True) or not self.context["interactions"]
        return np.concatenate([np.ones((N_ARMS, 1 if keep else 0)), ARMS], axis=1)

    def penalty(self):
        return 4.0 * self.rule.gamma if isinstance(self.rule, sa.policies.contextual.Ellipsoid) else self.rule.gamma

    def features(self, user, pairs, arm, item, rounded):
        x = np.concatenate([np.ones(1 if self.kind.get("intercept", True) else 0), user])
        a = self.arm_vectors()[arm]
        own = np.kron(a, x) if self.crossed else np.concatenate([x, a[1:]])
        if rounded:
            own = np.floor(own * 1024 + 0.5) / 1024
        indicator = np.eye(self.n_items)[item] if self.indicators() else []
        return np.concatenate([own, [] if pairs is None else pairs[arm], indicator])

    def group(self, arm, item):
        return {True: 0, "arms": arm, False: (arm, item)}[self.kind["shared"]]

    def bounds(self, user, pairs, t, rounded=False):
        """Lower and upper confidence bounds of every entry, not clipped."""
        low, high = np.zeros((N_ARMS, self.n_items)), np.zeros((N_ARMS, self.n_items))
        for arm, item in itertools.product(range(N_ARMS), range(self.n_items)):
            phi = self.features(user, pairs, arm, item, rounded)
            g, b = self.regression(arm, item, len(phi))
            width = np.sqrt(phi @ np.linalg.solve(g, phi)) * self.radius(len(phi), t)
            mean = phi @ np.linalg.solve(g, b)
            low[arm, item], high[arm, item] = mean - width, mean + width
        return low, high

    def regression(self, arm, item, d):
        squares, products = self.sums.get(self.group(arm, item), (0.0, np.zeros(d)))
        return self.ridge * np.eye(d) + squares, products

    def radius(self, d, t):
        rho, gamma = self.rule.rho, self.rule.gamma
        k = {True: 2 * self.n_items, "arms": self.n_items, False: 1}[self.kind["shared"]]
        if isinstance(self.rule, sa.policies.contextual.Ellipsoid):
            return 2 * rho * (np.sqrt(np.log(((gamma + k * t / d) / gamma) ** d * t**2)) + np.sqrt(gamma))
        log_n = d * np.log(4.0 * d**2 * k**4 * t**4)
        n = np.log(6 * t**2) + log_n + np.log(np.log(3 * t**2) + log_n)
        return 2 * rho * (1 + np.sqrt(gamma) + 4 * np.sqrt(n))

    def weights(self, low, high):
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
        if isinstance(self.rule, sa.policies.contextual.Ellipsoid):
            return np.full(low.shape, 4.0)
        grid = [np.linspace(a, b, 2001) for a, b in zip(low.reshape(-1), high.reshape(-1), strict=True)]
        largest = np.array([np.max(g * (1 - g)) for g in grid]).reshape(low.shape)
        return np.minimum(1.0 / np.maximum(largest, 1e-12), 4096.0)

    def learn(self, user, pairs, action, outcome, seen, weights):
        for n, arm in enumerate(action):
            for item in range(self.n_items):
                if seen[n, item]:
                    phi, weight = self.features(user, pairs, arm, item, True), weights[n, item]
                    squares, products = self.sums.get(self.group(arm, item), (0.0, 0.0))
                    more = squares + weight * np.outer(phi, phi), products + weight * phi * outcome[n, item]
                    self.sums[self.group(arm, item)] = more


@pytest.mark.parametrize("name", sorted(POLICIES))
@pytest.mark.parametrize("context", CONTEXTS, ids=["crossed", "added", "pairs"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("n_items", [1, 3])
def test_rounds_are_those_of_the_naive_reference(kind, context, name, n_items):
    policy, task = POLICIES[name], problem(kind, context, n_items)
    agent, naive = sa.Agent(task, policy, seed=0), Naive(kind, context, policy.rule, n_items)
    plain = sa.Problem(N_ARMS, n_items, sa.Coverage(), sa.Subsets(2))
    shared = kind["shared"] is True
    for t, (user, pairs, outcome, seen) in enumerate(visits(9, 1, context["pairs"], n_items), start=1):
        decision = agent.ask(context=user, pairs=pairs)
        low, high = naive.bounds(user, pairs, t, rounded=not shared)
        q = agent.learner.memory.q.reshape(N_ARMS, n_items)
        assert np.allclose(q, np.clip(high, 0, 1), rtol=0, atol=1e-9)
        best = sa.solve(plain, q, policy.oracle)
        assert plain.value(q, decision.action) >= plain.value(q, best) - 1e-12
        stored = agent._decisions.pending[decision.id].context.weights.reshape(2, n_items)
        exact = naive.weights(low, high)[decision.action]
        assert (stored <= exact + 1e-4).all()
        assert (stored > exact - 0.26).all()
        assert (stored * 4 == np.round(stored * 4)).all()
        agent.tell(decision, outcome, seen)
        naive.learn(user, pairs, decision.action, outcome, seen, stored)


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_draws_have_the_posterior_of_the_naive_reference(kind):
    """Mean and covariance of 1,000 draws of two entries; off by six standard errors with probability below 1e-7."""
    task = problem(kind, CONTEXTS[0])
    agent = sa.Agent(task, sa.comb_lin_ts(0.5), seed=0)
    rule = sa.policies.contextual.VarianceWeighted(0.0, 1.0)  # its ridge for gamma=1 is that of prior=1
    naive = Naive(kind, CONTEXTS[0], rule, N_ITEMS)
    for user, pairs, outcome, seen in visits(20, 2):
        decision = agent.ask(context=user)
        agent.tell(decision, outcome, seen)
        naive.learn(user, pairs, decision.action, outcome, seen, np.full((2, N_ITEMS), 4.0))
    from superarm.policies.contextual.ridge import draw_parameters, no_correction, refresh

    memory = agent.learner.memory
    refresh(memory, agent.tally, no_correction(agent.tally), agent.learner.fitted.ridge)
    stream = agent._choosing
    groups = [0, 0] if kind["shared"] is True else [2, 2] if kind["shared"] == "arms" else [7, 8]
    draws = np.array([draw_parameters(memory.theta, memory.inverse, 0.5, stream)[groups] for _ in range(1000)])
    user = np.array([0.25, -0.5])
    arms_items = [(2, 1), (2, 2)]
    phi = [naive.features(user, None, arm, item, False) for arm, item in arms_items]
    values = np.stack([draws[:, n] @ f for n, f in enumerate(phi)])
    low, _ = naive.bounds(user, None, 1)
    means = [low[arm, item] for arm, item in arms_items]  # rho = 0: the bounds are the estimate
    spread = []
    for (arm, item), f in zip(arms_items, phi, strict=True):
        g, _ = naive.regression(arm, item, len(f))
        spread.append(0.5 * np.sqrt(f @ np.linalg.solve(g, f)))
    for n in range(2):
        assert abs(values[n].mean() - means[n]) < 6 * spread[n] / np.sqrt(1000)
        assert abs(values[n].var() / spread[n] ** 2 - 1) < 6 * np.sqrt(2 / 1000)
    correlation = np.corrcoef(values)[0, 1]
    if kind["shared"] is False:
        assert abs(correlation) < 6 / np.sqrt(1000)
    else:
        assert correlation > 0.2  # one draw for all entries that share a parameter vector


# ---- exactness


def learnt(kind, name, order, n=24):
    """An agent that asked for ``n`` decisions and was then told all outcomes in the given order."""
    agent = sa.Agent(problem(kind, CONTEXTS[0]), POLICIES[name], seed=0)
    asked = [(agent.ask(context=user), outcome, seen) for user, _, outcome, seen in visits(n, 5)]
    for place in order(n):
        agent.tell(*asked[place])
    return agent, asked


@pytest.mark.parametrize("name", sorted(POLICIES))
@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_the_order_of_feedback_does_not_matter(kind, name):
    first, _ = learnt(kind, name, range)
    second, _ = learnt(kind, name, lambda n: np.random.default_rng(9).permutation(n))
    assert all(np.array_equal(a, b) for a, b in zip(first.tally, second.tally, strict=True))
    user = [0.5, 0.25]
    assert first.ask(context=user).action.tolist() == second.ask(context=user).action.tolist()
    assert np.array_equal(first.learner.memory.q, second.learner.memory.q)


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_tallies_of_parts_add_up_to_the_whole(kind):
    whole, _ = learnt(kind, "vac2_ucb", range)
    parts = [
        learnt(kind, "vac2_ucb", order)[0].tally for order in (lambda n: range(n // 2), lambda n: range(n // 2, n))
    ]
    assert all(np.array_equal(a, b) for a, b in zip(whole.tally, merge(*parts), strict=True))


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_undone_feedback_leaves_nothing(kind):
    agent, asked = learnt(kind, "vac2_ucb", range)
    for told in asked:
        agent.untell(*told)
    for values in (*agent.tally[:8], agent.tally.precision, agent.tally.response):
        assert not values.any()
    for decision, _, _ in asked:
        agent.cancel(decision)
    assert not agent.learner.contexts.pending.any()
    assert not agent.learner.pending.any()


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_saved_agents_continue_bit_for_bit(kind):
    agent, _ = learnt(kind, "vac2_ucb", lambda n: range(0, n, 2))
    agent.change_policy(sa.comb_lin_ts())
    copy = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    for user, _, outcome, seen in visits(8, 6):
        one, other = agent.ask(context=user), copy.ask(context=user)
        assert one.action.tolist() == other.action.tolist()
        assert np.array_equal(agent.learner.memory.q, copy.learner.memory.q)
        agent.tell(one, outcome, seen)
        copy.tell(other, outcome, seen)


def test_pending_decisions_narrow_the_width_and_leave_the_estimate():
    agent, _ = learnt({"shared": True}, "c2_ucb", range)
    user = [0.5, 0.25]
    before = agent.ask(context=user)
    first = agent.learner.memory.q.copy()
    theta = agent.learner.memory.theta.copy()
    agent.ask(context=user)
    second = agent.learner.memory.q.copy()
    assert np.array_equal(theta, agent.learner.memory.theta)
    played = np.repeat(np.isin(np.arange(N_ARMS), before.action), N_ITEMS)
    assert (second[played] < first[played]).all()


def test_weights_are_rounded_down_and_limited():
    assert round_weight(0.25) == 4.0
    assert round_weight(0.23) == 4.25
    assert round_weight(0.0) == MAX_WEIGHT
    assert round_weight(1e-9) == MAX_WEIGHT


# ---- growth


def test_a_new_arm_is_predicted_from_its_features_at_once():
    agent, _ = learnt({"shared": True}, "vac2_ucb", range)
    agent.add_arms(["twin"], features=[ARMS[3]])
    agent.ask(context=[0.5, 0.25])
    q = agent.learner.memory.q.reshape(N_ARMS + 1, N_ITEMS)
    assert np.array_equal(q[3], q[5])
    with pytest.raises(sa.InvalidArgument, match="give 2 features for each new arm"):
        agent.add_arms(["bare"], features=[[1.0]])


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_growth_keeps_what_was_learnt(kind):
    """Predictions of old arms do not change when an arm comes; old decisions can be told and undone after it."""
    agent, asked = learnt(kind, "vac2_ucb", lambda n: range(n - 2))
    agent.ask(context=[0.5, 0.25], id="before")
    before = agent.learner.memory.q.reshape(N_ARMS, N_ITEMS).copy()
    agent.cancel("before")
    agent.add_arms(1, features=[[0.25, 0.5]])
    agent.ask(context=[0.5, 0.25], id="after")
    agent.cancel("after")
    assert np.allclose(agent.learner.memory.q.reshape(N_ARMS + 1, N_ITEMS)[:N_ARMS], before, rtol=0, atol=1e-2)
    agent.add_items(1)
    state = json.dumps(agent.to_state()["tally"])
    for told in asked[-2:]:
        agent.tell(*told)
    for told in asked[-2:]:
        agent.untell(*told)
    assert json.dumps(agent.to_state()["tally"]) == state
    for decision in agent.pending:
        agent.cancel(decision)
    assert not agent.learner.contexts.pending.any()


# ---- standardised features


def frames(n, order=range):
    features = sa.Features(numeric=["age"], categorical={"country": ["NO", "SE"]})
    context = sa.Context(features, arms=ARMS, model=sa.models.Linear(shared=True))
    task = sa.Problem(N_ARMS, 2, sa.Coverage(), sa.Subsets(2), context=context)
    agent, rng = sa.Agent(task, sa.c2_ucb(0.1), seed=0), np.random.default_rng(4)
    asked = []
    for _ in range(n):
        user = {"age": float(rng.integers(20, 60)), "country": str(rng.choice(["NO", "SE"]))}
        asked.append((user, agent.ask(context=user), rng.random((2, 2)).round(2)))
    for place in order(n):
        agent.tell(*asked[place][1:])
    return agent, asked


def test_sums_are_carried_to_a_new_frame():
    """After the last change of frame, the estimate is that of a regression on features in that frame."""
    agent, asked = frames(70)
    contexts = agent.learner.contexts
    assert contexts.frames.frame.version == 2
    center, scale = contexts.frames.frame.places["age"]
    assert np.isclose(center, np.mean([user["age"] for user, _, _ in asked[:64]]))
    fitted = agent.learner.fitted
    g, b = fitted.ridge * np.eye(14), np.zeros(14)
    for n, (user, decision, outcome) in enumerate(asked):
        first = contexts.frames.frames[1].places["age"]
        age = (user["age"] - center) / scale
        if n < 16:
            age = 0.0  # nothing was known of the scale
        elif n < 64:  # clipped in the frame of that time
            age = (np.clip((user["age"] - first[0]) / first[1], -1, 1) * first[1] + first[0] - center) / scale
        x = np.array([1.0, age, user["country"] == "NO", user["country"] == "SE"])
        for place, arm in enumerate(decision.action):
            for item in range(2):
                phi = np.concatenate([np.kron(np.concatenate([[1.0], ARMS[arm]]), x), np.eye(2)[item]])
                g += 4.0 * np.outer(phi, phi)
                b += 4.0 * phi * outcome[place, item]
    from superarm.policies.contextual.ridge import no_correction, refresh

    refresh(agent.learner.memory, agent.tally, no_correction(agent.tally), fitted.ridge)
    assert np.allclose(agent.learner.memory.theta[0], np.linalg.solve(g, b), rtol=0, atol=2e-3)


def test_feedback_across_frames_is_exact_in_any_order():
    first, asked = frames(70)
    second, _ = frames(70, lambda n: np.random.default_rng(1).permutation(n))
    assert all(np.array_equal(a, b) for a, b in zip(first.tally, second.tally, strict=True))
    copy = sa.Agent.from_state(json.loads(json.dumps(first.to_state())))
    assert all(np.array_equal(a, b) for a, b in zip(first.tally, copy.tally, strict=True))
    for _, decision, outcome in asked:
        copy.untell(decision, outcome)
    assert not any(values.any() for values in (copy.tally.precision, copy.tally.response))


def test_learners_refuse_a_tally_of_another_kind():
    task = problem({"shared": True}, CONTEXTS[0])
    with pytest.raises(sa.InvalidArgument, match="made for another problem"):
        Learner(task, sa.c2_ucb()).warm_start(task.past([0], [[1, 0, 0]]))
