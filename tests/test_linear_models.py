"""Policies on linear models against ridge regression as it is written on paper, and against exact arithmetic."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import superarm as sa
from superarm import contextual
from superarm.context.design import design_of
from superarm.context.sums import MAX_WEIGHT, round_weight, unpack
from superarm.contextual.ridge import score_entries

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
POLICIES = {"c2_ucb": contextual.c2_ucb(0.3), "vac2_ucb": contextual.vac2_ucb(0.05)}


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
        return 4.0 * self.rule.ridge if isinstance(self.rule, contextual.Ellipsoid) else self.rule.ridge

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
        rho, gamma = self.rule.rho, self.rule.ridge
        k = {True: 2 * self.n_items, "arms": self.n_items, False: 1}[self.kind["shared"]]
        if isinstance(self.rule, contextual.Ellipsoid):
            return 2 * rho * (np.sqrt(np.log(((gamma + k * t / d) / gamma) ** d * t**2)) + np.sqrt(gamma))
        log_n = d * np.log(4.0 * d**2 * k**4 * t**4)
        n = np.log(6 * t**2) + log_n + np.log(np.log(3 * t**2) + log_n)
        return 2 * rho * (1 + np.sqrt(gamma) + 4 * np.sqrt(n))

    def weights(self, low, high):
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
        if isinstance(self.rule, contextual.Ellipsoid):
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
        q = agent.learner.memory.ridge.high[0].T
        assert np.allclose(q, np.clip(high, 0, 1), rtol=0, atol=1e-9)
        best = sa.oracles.solve(plain, q, policy.oracle)
        assert plain.value(q, decision.action) >= plain.value(q, best) - 1e-12
        stored = agent._decisions.pending[decision.id].asked.context.weights.reshape(2, n_items)
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
    agent = sa.Agent(task, contextual.comb_lin_ts(0.5), seed=0)
    rule = contextual.VarianceWeighted(0.0, 1.0)  # the estimate alone
    naive = Naive(kind, CONTEXTS[0], rule, N_ITEMS)
    for user, pairs, outcome, seen in visits(20, 2):
        decision = agent.ask(context=user)
        agent.tell(decision, outcome, seen)
        naive.learn(user, pairs, decision.action, outcome, seen, np.full((2, N_ITEMS), 4.0))
    ridge = agent.learner.memory.ridge
    agent.learner.policy.coefficients(task, agent.learner.memory)
    groups = [0, 0] if kind["shared"] is True else [2, 2] if kind["shared"] == "arms" else [7, 8]
    keys = np.arange(1000).astype(np.uint64)
    draws = np.array([ridge.draw(ridge.inverse, 0.5, keys[n : n + 1], 1)[0, groups] for n in range(1000)])
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


def test_weights_are_rounded_down_and_limited():
    found = round_weight(np.array([0.25, 0.23, 0.0, 1e-9]))
    assert found.tolist() == [4.0, 4.25, MAX_WEIGHT, MAX_WEIGHT]


def test_a_new_arm_is_predicted_from_its_features_at_once():
    agent = sa.Agent(problem(KINDS[0], CONTEXTS[0]), POLICIES["vac2_ucb"], seed=0)
    for user, _, outcome, seen in visits(24, 5):
        agent.tell(agent.ask(context=user), outcome, seen)
    agent.add_arms(["twin"], features=[ARMS[3]])
    agent.ask(context=[0.5, 0.25])
    q = agent.learner.memory.ridge.high[0]
    np.testing.assert_array_equal(q[:, 3], q[:, 5])
    with pytest.raises(sa.InvalidArgument, match="give 2 features for each new arm"):
        agent.add_arms(["bare"], features=[[1.0]])


# --- lists: observations further down weigh less

N_LISTED, K, DISCOUNT = 6, 3, 0.75
Z = np.round(np.random.default_rng(5).uniform(-1, 1, (N_LISTED, 2)) * 64) / 64
SHARES = np.array([1.0, 0.5625, 0.3125])  # 1, 9/16, and 81/256 as the nearest multiple of 1/16


def list_problem():
    context = sa.Context(sa.Features(), arms=Z, model=sa.models.Linear(shared=True))
    return sa.Problem(N_LISTED, 1, sa.Coverage(), sa.Subsets(K), context=context)


def test_observations_further_down_weigh_less_in_both_sums():
    agent, rng = sa.Agent(list_problem(), contextual.c3_ucb(0.3, discount=DISCOUNT)), np.random.default_rng(0)
    g, b = np.zeros((3, 3)), np.zeros(3)
    ridge = 4.0 * max(1.0 + z @ z for z in Z)
    for t in range(1, 20):
        decision = agent.ask()
        phi = np.column_stack([np.ones(N_LISTED), Z])
        inverse = np.linalg.inv(g + ridge * np.eye(3))
        width = np.sqrt(np.einsum("nr,rc,nc->n", phi, inverse, phi))
        k = int(np.ceil(sum(DISCOUNT ** (2 * n) for n in range(K))))
        bonus = 2 * 0.3 * (np.sqrt(3 * np.log(1 + k * t / 3) + 2 * np.log(t)) + 1.0)
        expected = np.clip(phi @ inverse @ b + bonus * width, 0.0, 1.0)
        np.testing.assert_allclose(agent.learner.memory.ridge.high[0, 0], expected, atol=1e-9)
        assert (np.diff(expected[decision.action]) <= 1e-12).all()
        outcome, seen = rng.integers(0, 2, (K, 1)).astype(float), np.arange(K)[:, None] <= rng.integers(0, K)
        agent.tell(decision, outcome, seen)
        for place, arm in enumerate(decision.action):
            if seen[place, 0]:
                g += 4.0 * SHARES[place] * np.outer(phi[arm], phi[arm])
                b += 4.0 * SHARES[place] * phi[arm] * outcome[place, 0]
        np.testing.assert_array_equal(agent.tally.regression.precision[0, 0], g[np.tril_indices(3)])
        np.testing.assert_array_equal(agent.tally.regression.response[0, 0], b)


def test_lists_are_learnt_from_as_far_as_they_were_read():
    """C³-UCB: the list has the arms by their optimistic parameters, and what was not seen changes nothing."""
    agent = sa.Agent(list_problem(), contextual.c3_ucb(0.1))
    for n in range(12):
        decision = agent.ask()
        assert (np.diff(agent.learner.memory.ridge.high[0, 0, decision.action]) <= 0.0).all()
        before = agent.tally.regression.precision.copy()
        agent.tell(decision, [[0.0], [1.0], [0.0]], [[n > 0], [n > 0], [False]])
        assert np.array_equal(before, agent.tally.regression.precision) == (n == 0)
    with pytest.raises(sa.InvalidArgument, match=r"LinearPolicy\.discount: 0"):
        contextual.c3_ucb(discount=0.0)


# --- features that depend on one another, or hardly vary

FEW = 4


def solve_exactly(matrix, rhs):
    """The solution of a linear system in fractions, by elimination."""
    n = len(rhs)
    rows = [[Fraction(float(x)) for x in row] + [Fraction(float(b))] for row, b in zip(matrix, rhs, strict=True)]
    for c in range(n):
        for r in range(c + 1, n):
            factor = rows[r][c] / rows[c][c]
            rows[r] = [x - factor * y for x, y in zip(rows[r], rows[c], strict=True)]
    found = [Fraction(0)] * n
    for r in reversed(range(n)):
        found[r] = (rows[r][n] - sum(rows[r][c] * found[c] for c in range(r + 1, n))) / rows[r][r]
    return found


def visit(kind, rng):
    x = rng.uniform(-1, 1)
    if kind == "copies":
        return np.array([x, x, x, -x])
    if kind == "constant":
        return np.array([1.0, 1.0, -1.0, x])
    return np.array([1.0, 1.0 - 2.0**-10 * rng.integers(0, 2), x, 2.0**-10])  # almost copies, and almost 0


@pytest.mark.parametrize("kind", ["copies", "constant", "almost"])
@pytest.mark.parametrize("shared", ["arms", True])
def test_estimates_are_those_of_exact_arithmetic(kind, shared):
    arms = np.array([[1.0, 1.0]] * FEW) if shared is True else None  # features of arms that say nothing
    context = sa.Context(sa.Features(d=4), arms=arms, model=sa.models.Linear(shared=shared))
    problem = sa.Problem(FEW, 1, sa.Linear(), sa.Subsets(1), context=context)
    agent, rng = sa.Agent(problem, contextual.vac2_ucb(0.001, ridge=1e-3), seed=0), np.random.default_rng(5)
    for _ in range(300):
        decision = agent.ask(context=visit(kind, rng))
        agent.tell(decision, [[float(rng.random() < 0.02)]])
    learner, x = agent.learner, visit(kind, np.random.default_rng(6))
    sums, ridge = learner.tally.regression, learner.policy.rule.penalty * design_of(problem).longest
    learner.policy.coefficients(problem, learner.memory)
    given = learner.contexts.contexts(learner.contexts.encode(x))
    memory = learner.memory.ridge
    found = score_entries(design_of(problem), problem.support, given, memory.theta, memory.inverse)
    u = np.append(1.0, np.floor(x * 1024 + 0.5) / 1024)
    phi = np.kron(np.ones(3), u) if shared is True else u
    d = len(phi)
    for arm in range(FEW):
        group = 0 if shared is True else arm
        g = unpack(sums.precision[0], d)[group] + ridge * np.eye(d)
        theta = solve_exactly(g, sums.response[0, group])
        want = float(sum(Fraction(float(a)) * b for a, b in zip(phi, theta, strict=True)))
        square = sum(Fraction(float(a)) * b for a, b in zip(phi, solve_exactly(g, phi), strict=True))
        assert np.linalg.cond(g) > 1e4
        assert found.mean[0, 0, arm] == pytest.approx(want, rel=1e-6, abs=1e-7)
        assert found.bonus(1.0)[0, 0, arm] == pytest.approx(float(square) ** 0.5, rel=1e-6)
