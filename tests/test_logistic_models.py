"""Policies on logistic models: KL-UCB on one-hot features, and Newton steps as they are written on paper."""

import numpy as np
import pytest

import superarm as sa
from superarm import contextual
from superarm.agent.learner import Learner
from superarm.core.tally import Feedback

N_ARMS, K = 6, 2
P = np.array([0.1, 0.4, 0.25, 0.6, 0.05, 0.5])
CONTINENTS = ["Europe", "Asia", "other"]


def outcomes(seed, n_items=1):
    rng = np.random.default_rng(seed)
    while True:
        yield (rng.random((N_ARMS, n_items)) < P[:, None]).astype(float)


def one_hot(kind, n_items=1):
    """Problems in which every entry has its own coordinate, for one kind of users."""
    if kind == "per entry":
        context = sa.Context(sa.Features(), model=sa.models.Logistic())
    elif kind == "arms":
        model = sa.models.Logistic(shared=True, intercept=False)
        context = sa.Context(sa.Features(), arms=np.eye(N_ARMS), model=model)
    else:
        features = sa.Features(categorical={"continent": CONTINENTS})
        context = sa.Context(features, model=sa.models.Logistic(intercept=False))
    return sa.Problem(N_ARMS, n_items, sa.Coverage(), sa.Subsets(K), context=context)


@pytest.mark.parametrize(("kind", "n_items"), [("per entry", 1), ("per entry", 3), ("arms", 1), ("one continent", 3)])
def test_on_one_hot_features_it_is_kl_ucb_bit_for_bit(kind, n_items):
    """With feedback that comes two decisions late, so that pending decisions count."""
    plain = sa.Problem(N_ARMS, n_items, sa.Coverage(), sa.Subsets(K))
    ours, theirs = sa.Agent(one_hot(kind, n_items), contextual.logistic_kl_ucb()), sa.Agent(plain, sa.kl_ucb())
    assert isinstance(ours.learner.policy, contextual.GroupedPolicy)
    context = {"continent": "Asia"} if kind == "one continent" else {}
    waiting = []
    for _, table in zip(range(60), outcomes(1, n_items), strict=False):
        one, other = ours.ask(context=context), theirs.ask()
        assert one.action.tolist() == other.action.tolist()
        waiting.append((one, other, table[one.action]))
        if len(waiting) > 2:
            one, other, outcome = waiting.pop(0)
            ours.tell(one, outcome)
            theirs.tell(other, outcome)


def test_every_level_of_a_one_hot_feature_has_its_own_estimates():
    """One KL-UCB per level, all with the same clock: the round of the whole."""
    agent, plain = (
        sa.Agent(one_hot("levels"), contextual.logistic_kl_ucb()),
        sa.Problem(N_ARMS, 1, sa.Coverage(), sa.Subsets(K)),
    )
    learners, rng = [Learner(plain, sa.kl_ucb()) for _ in CONTINENTS], np.random.default_rng(0)
    key = np.zeros(1, np.uint64)
    for t, table in zip(range(1, 80), outcomes(2), strict=False):
        n = int(rng.integers(3))
        learner = learners[n]
        decision = agent.ask(context={"continent": CONTINENTS[n]})
        expected = learner.choose(learner.view(t, key))
        assert decision.action.tolist() == expected.tolist()
        agent.tell(decision, table[decision.action])
        learner.apply(Feedback(t, expected[None], table[expected][None]), key)


# ---- free features

ARMS = np.round(np.random.default_rng(5).uniform(-1, 1, (N_ARMS, 2)) * 1024) / 1024
MODELS = [
    sa.models.Logistic(shared=True, prior_mean=0.2),
    sa.models.Logistic(shared="arms", prior_mean=0.2),
    sa.models.Logistic(prior_mean=0.2),
]


def free(model, n_items=2):
    context = sa.Context(sa.Features(d=2), arms=ARMS, model=model)
    return sa.Problem(N_ARMS, n_items, sa.Coverage(), sa.Subsets(K), context=context)


def visits(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        user = np.round(rng.uniform(-1, 1, 2) * 1024) / 1024
        yield user, (rng.random((K, 2)) < 0.3).astype(float), rng.random((K, 2)) < 0.9


def features(model, user, arm, item, rounded=True):
    x = np.concatenate([[1.0], user])
    if model.shared == "all":
        own = np.kron(np.concatenate([[1.0], ARMS[arm]]), x)
        return np.concatenate([np.floor(own * 1024 + 0.5) / 1024 if rounded else own, np.eye(2)[item]])
    return x if model.shared == "entries" else np.concatenate([x, np.eye(2)[item]])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.shared)
def test_rounds_are_those_of_the_naive_reference(model):
    """Each observation enters by a Newton step at the estimate of its decision, as written on paper."""
    policy, offset = contextual.logistic_kl_ucb(), np.log(0.2 / 0.8)
    agent = sa.Agent(free(model), policy)
    longest = {"all": 3.0 * max(1 + a @ a for a in ARMS) + 1.0, "arms": 4.0, "entries": 3.0}[model.shared]
    sums = {}
    for t, (user, outcome, seen) in enumerate(visits(12, 3), start=1):
        encoded = agent.learner.contexts.encode(user)
        q, eta = np.zeros((N_ARMS, 2)), np.zeros((N_ARMS, 2))
        for arm in range(N_ARMS):
            for item in range(2):
                phi = features(model, user, arm, item, rounded=False)
                group = {"all": 0, "arms": arm, "entries": (arm, item)}[model.shared]
                h, b = sums.get(group, (longest * np.eye(len(phi)), np.zeros(len(phi))))
                eta[arm, item] = phi @ np.linalg.solve(h, b)
                beta = np.log(t) + 3.0 * np.log(max(1.0, np.log(t)))
                width = np.sqrt(2.0 * beta * phi @ np.linalg.solve(h, phi))
                q[arm, item] = 1.0 / (1.0 + np.exp(-offset - eta[arm, item] - width))
        learner = agent.learner
        view = learner.view(t, np.zeros(1, np.uint64), context=encoded)
        found = learner.policy.scores(learner.problem, view, learner.memory)[0].T
        assert np.allclose(found, q, rtol=0, atol=1e-3)
        decision = agent.ask(context=user)
        agent.tell(decision, outcome, seen)
        for place, arm in enumerate(decision.action):
            for item in range(2):
                if seen[place, item]:
                    phi = features(model, user, arm, item)
                    group = {"all": 0, "arms": arm, "entries": (arm, item)}[model.shared]
                    h, b = sums.get(group, (longest * np.eye(len(phi)), np.zeros(len(phi))))
                    mean = 1.0 / (1.0 + np.exp(-offset - eta[arm, item]))
                    w = mean * (1.0 - mean)
                    target = w * eta[arm, item] + outcome[place, item] - mean
                    sums[group] = h + w * np.outer(phi, phi), b + target * phi


def test_a_wrong_prior_or_policy_is_refused():
    with pytest.raises(sa.InvalidArgument, match=r"LogisticModel\.prior_mean: 1"):
        sa.models.Logistic(prior_mean=1.0)
    with pytest.raises(sa.InvalidArgument, match="rho: 0"):
        contextual.logistic_ts(rho=0)
    with pytest.raises(sa.InvalidArgument, match="LinearPolicy does not learn the model LogisticModel"):
        sa.Agent(free(MODELS[0]), contextual.vac2_ucb())
