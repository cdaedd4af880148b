"""The sums of regressions are exact in any order, and estimates follow from them alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from superarm import contextual as new
from superarm.actions import Subsets
from superarm.context import Context, Contexts, EncodedContext, Features, Frames, models
from superarm.context.design import design_of
from superarm.context.sums import add_precision, unpack
from superarm.core.ops import engine
from superarm.core.streams import run_keys
from superarm.core.tally import Feedback
from superarm.environments import context_table
from superarm.indices import KL
from superarm.policies import IndexPolicy
from superarm.problem import Problem
from superarm.rewards import Coverage
from superarm.simulation.engine import Run
from tests.contexts import ARMS, N_ARMS, N_ITEMS, SUPPORT, USERS, K, grid

SHARINGS = [True, "arms", False]


def make(model, sparse=False, pairs=0, n_items=N_ITEMS, interactions=True, features=None):
    context = Context(features or Features(d=2), ARMS, model, interactions, pairs)
    support = SUPPORT if sparse else None
    return Problem(N_ARMS, n_items, Coverage(), Subsets(K), support=support, context=context)


def feedbacks(problem, n, logistic, seed=0, replications=1):
    """Feedback of ``n`` rounds with random contexts, batches, outcomes and weights."""
    rng, found, width = np.random.default_rng(seed), [], problem.support.widest
    for t in range(1, n + 1):
        action = np.array([rng.permutation(N_ARMS)[:K] for _ in range(replications)])
        shape = (replications, K, width)
        x = np.concatenate([np.ones((replications, 1)), grid(rng.uniform(-1, 1, (replications, 2)))], 1)
        pairs = grid(rng.uniform(-1, 1, (replications, N_ARMS, problem.context.pairs)))
        contexts = Contexts(np.zeros(replications, int), x, pairs, np.full(replications, t))
        if logistic:
            weights, shifts = rng.integers(1, 1025, shape) / 4096, rng.integers(-4096, 4096, shape) / 4096
        else:
            weights, shifts = rng.integers(1, 16385, shape) / 4, None
        contexts = replace(contexts, weights=weights, shifts=shifts)
        found.append(Feedback(t, action, rng.random(shape), rng.random(shape) < 0.8, contexts))
    return found


def assert_equal_arrays(found, expected):
    assert found.keys() == expected.keys()
    for name, part in expected.items():
        np.testing.assert_array_equal(found[name], part, name)


def naive_features(problem, given, arm, item, sharing):
    """The features of an entry of replication 0, as the documentation of ``Context`` writes them."""
    x, z = given.x[0], np.concatenate([[1.0], ARMS[arm]]) if sharing is True else np.ones(1)
    if problem.context.interactions or sharing is not True:
        own = np.floor(np.outer(z, x) * 1024 + 0.5).reshape(-1) / 1024
    else:
        own = np.concatenate([x, z[1:]])
    item_part = np.eye(problem.n_items)[item] if sharing is not False and problem.n_items > 1 else []
    return np.concatenate([own, given.pairs[0, arm], item_part])


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"pairs": 2}, {"interactions": False}], ids=str)
@pytest.mark.parametrize("logistic", [False, True])
def test_sums_are_those_of_the_definition(sharing, options, logistic):
    problem = make((models.Logistic if logistic else models.Linear)(shared=sharing), **options)
    policy = new.logistic_kl_ucb() if logistic else new.c2_ucb()
    memory, told = policy.new_memory(problem, 1), feedbacks(problem, 6, logistic)
    d, sums = problem.context.dimension(problem.n_items), {}
    matrix = SUPPORT.toarray() if options.get("sparse") else np.ones((N_ARMS, N_ITEMS))
    for one in told:
        memory.learn(one)
        for k, arm in enumerate(one.action[0].tolist()):
            for place, item in enumerate(np.flatnonzero(matrix[arm])):
                if one.seen[0, k, place]:
                    phi = naive_features(problem, one.context, arm, item, sharing)
                    weight, x = one.context.weights[0, k, place], np.floor(one.outcome[0, k, place] * 4096 + 0.5) / 4096
                    share = x + one.context.shifts[0, k, place] if logistic else weight * x
                    key = {True: 0, "arms": arm, False: int(matrix[:arm].sum()) + place}[sharing]
                    a, b = sums.setdefault(key, (np.zeros((d, d)), np.zeros(d)))
                    a += weight * np.outer(phi, phi)
                    b += share * phi
    found = memory.tally.regression
    full = unpack(found.precision[0], d)
    assert sorted(sums) == np.flatnonzero(full.any((1, 2))).tolist()
    for key, (a, b) in sums.items():
        np.testing.assert_array_equal(full[key], a)
        np.testing.assert_array_equal(found.response[0, key], b)


@pytest.mark.parametrize("sharing", SHARINGS)
@given(seed=st.integers(0, 99), order=st.permutations(range(8)), cut=st.integers(0, 8), logistic=st.booleans())
@settings(max_examples=12, deadline=None)
def test_sums_are_exact_in_any_order_merged_and_undone(sharing, seed, order, cut, logistic):
    problem = make((models.Logistic if logistic else models.Linear)(shared=sharing))
    policy = new.logistic_kl_ucb(0.1, ridge=0.01) if logistic else new.vac2_ucb()
    told = feedbacks(problem, 12, logistic, seed)

    def learnt(*parts):
        memory = policy.new_memory(problem, 1)
        for some, sign in parts:
            for one in some:
                memory.learn(one, sign)
        return memory

    memory = learnt((told[:8], 1.0))
    undone = learnt((told[8:], 1.0), ([told[n] for n in order], 1.0), (told[8:], -1.0))
    merged = policy.new_memory(problem, 1)
    for some in (told[:cut], told[cut:8]):
        merged.tally.add(learnt((some, 1.0)).tally)
    assert_equal_arrays(undone.to_arrays(), memory.to_arrays())
    assert_equal_arrays(merged.tally.to_arrays(), memory.tally.to_arrays())
    np.testing.assert_array_equal(policy.coefficients(problem, undone), policy.coefficients(problem, memory))


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("model", [models.Linear, models.Logistic])
def test_a_restored_memory_is_that_of_the_live_agent(model, sharing):
    """Also after observations were dropped for want of room, feedback was undone, and refits were taken."""
    logistic = model is models.Logistic
    problem = make(model(shared=sharing, **({"kept": 40} if logistic else {})))
    policy = new.logistic_kl_ucb(0.1, ridge=0.01) if logistic else new.c2_ucb(0.1)
    memory, told = policy.new_memory(problem, 1), feedbacks(problem, 20, logistic)
    for n in np.random.default_rng(3).permutation(20).tolist():
        memory.learn(told[n])
        policy.coefficients(problem, memory)
        if (plan := memory.plan(12)) is not None:
            memory.accept(plan)
    memory.learn(told[2], -1.0)
    again = policy.new_memory(problem, 1).from_arrays(memory.to_arrays())
    if logistic:
        assert memory.logits.kept[0].limit < 20
        assert memory.logits.kept[0].until.any()
    np.testing.assert_array_equal(policy.coefficients(problem, memory), policy.coefficients(problem, again))
    assert_equal_arrays(again.to_arrays(), memory.to_arrays())


@pytest.mark.parametrize("sharing", SHARINGS)
def test_pending_decisions_narrow_the_intervals_as_if_they_were_observed(sharing):
    problem, policy = make(models.Linear(shared=sharing), pairs=1), new.c2_ucb(0.2)
    memory, told = policy.new_memory(problem, 1), feedbacks(problem, 9, False)
    for one in told[:6]:
        memory.learn(one)
    sums, ridge = memory.tally.regression, memory.ridge
    pending = np.zeros_like(sums.precision)
    view = problem.view(memory.tally, 7)
    for one in told[6:]:
        add_precision(pending, (design_of(problem), problem.support), one.action, one.context, 1.0)
        view.context = replace(told[0].context, pending=pending.copy())
        q = policy.scores(problem, view, memory)
        whole = unpack(sums.precision + pending, ridge.theta.shape[2])
        whole += policy.rule.penalty * design_of(problem).longest * np.eye(whole.shape[-1])
        np.testing.assert_allclose(ridge.widen(sums, 1.0, view.context.pending), np.linalg.inv(whole), atol=1e-12)
        fresh = policy.new_memory(problem, 1).from_arrays(memory.to_arrays())
        np.testing.assert_array_equal(policy.scores(problem, view, fresh), q)
    view.context = replace(told[0].context, pending=None)
    assert (policy.scores(problem, view, memory) >= q).all()


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("sparse", [False, True])
def test_many_contexts_on_one_tally_are_scored_as_one_by_one(sharing, sparse):
    problem, policy = make(models.Linear(shared=sharing), sparse, pairs=2), new.vac2_ucb(0.1)
    memory = policy.new_memory(problem, 1)
    for one in feedbacks(problem, 6, False):
        memory.learn(one)
    many = feedbacks(problem, 1, False, 5, replications=4)[0].context
    view = problem.view(memory.tally, 7)
    view.context = many
    together = policy.scores(problem, view, memory)
    for r in range(4):
        view.context = replace(many, x=many.x[r : r + 1], pairs=many.pairs[r : r + 1])
        np.testing.assert_array_equal(policy.scores(problem, view, memory)[0], together[r])


def test_a_refit_is_the_estimate_of_maximum_likelihood():
    problem, policy = make(models.Logistic(shared=True, prior_mean=0.3)), new.logistic_kl_ucb(ridge=0.02)
    memory = policy.new_memory(problem, 1)
    for one in feedbacks(problem, 30, True):
        memory.learn(one)
    plan, kept = memory.plan(30), memory.logits.kept[0]
    assert plan["0.groups"].tolist() == [0]
    phi, _ = kept.features(kept.rows)
    offset, ridge = policy.likelihood(problem)

    def loss(theta):
        eta = offset + phi @ theta
        return np.logaddexp(0.0, eta).sum() - kept.rows[:, 4] @ eta + 0.5 * ridge * theta @ theta

    best = minimize(loss, np.zeros(phi.shape[1]), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(plan["0.points"][0], best.x, atol=1e-6)
    memory.accept(plan)
    np.testing.assert_allclose(policy.coefficients(problem, memory)[0, 0], best.x, atol=1e-5)
    assert memory.plan(31) is None


def test_sums_of_earlier_frames_are_those_of_their_features_in_the_present_one():
    """Exact up to the rounding of features: the map of a frame is linear in the features."""
    features = Features(numeric=["age"], categorical={"country": ["NO", "SE"]})
    problem, policy = make(models.Linear(shared=True), features=features), new.c2_ucb()
    history, memory = new.ContextHistory(problem), policy.new_memory(problem, 1)
    frames, ages = history.frames, (30.0, 50.0, 34.0, 46.0)
    for age in ages:
        frames.count({"age": age})
    history.begin_frame(memory, frames.moments.frame(1))
    action, weights = np.array([2, 0]), np.full((1, 2, N_ITEMS), 4.0)

    def tell(frame, memory, sign=1.0):
        given = problem.context.encode({"age": 41.0, "country": "NO"}, frame, N_ARMS)
        contexts = replace(Contexts.of([given], [1], N_ARMS, frame.version), weights=weights)
        memory.learn(Feedback(1, action[None], np.ones((1, 2, N_ITEMS)), None, contexts), sign)

    tell(frames.frame, memory)
    first, before = frames.frame, memory.tally.regression.precision.copy()
    for age in (90.0, 20.0, 70.0):
        frames.count({"age": age})
    history.begin_frame(memory, frames.moments.frame(2))
    direct = policy.new_memory(problem, 1)
    direct.carry(frames)
    tell(frames.frame, direct)
    carried = memory.tally.regression.precision.copy()
    np.testing.assert_allclose(carried, direct.tally.regression.precision, atol=0.02)
    tell(first, memory)
    tell(first, memory, -1.0)
    np.testing.assert_array_equal(memory.tally.regression.precision, carried)
    assert np.abs(before - carried).max() > 0.1
    again = Frames(problem.context)
    again.from_plain(frames.to_plain())
    assert (again.frame, again.frames) == (frames.frame, frames.frames)


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("items", [(1, 3), (2, 3), (3, 3)])
def test_what_is_known_grows_with_arms_and_items(sharing, items):
    """What was learnt of three arms is, among five arms and more items, as if it had been learnt there."""
    small, large = (
        Problem(
            n_arms,
            n_items,
            Coverage(),
            Subsets(K),
            context=Context(Features(d=2), ARMS[:n_arms], models.Logistic(shared=sharing, kept=9)),
        )
        for n_arms, n_items in ((3, items[0]), (N_ARMS, items[1]))
    )
    policy, history, room = new.logistic_kl_ucb(), new.ContextHistory(small), ((0, 0), (0, 0), (0, items[1] - items[0]))
    memory, other = (policy.new_memory(problem, 1) for problem in (small, large))
    for one in feedbacks(small, 8, True):
        one.action %= 3
        there = replace(
            one.context, **{part: np.pad(getattr(one.context, part), room) for part in ("weights", "shifts")}
        )
        memory.learn(one)
        other.learn(Feedback(one.t, one.action, np.pad(one.outcome, room), np.pad(one.seen, room), there))
    before = copy.deepcopy(memory.to_arrays())
    grown = memory.grown(large, 8)
    assert_equal_arrays(memory.to_arrays(), before)
    history.pending[...] = memory.tally.regression.precision
    history.grow(large)
    sums, learnt = grown.tally.regression, other.tally.regression
    np.testing.assert_array_equal(history.pending, sums.precision)
    d, told_apart = design_of(small).d, bool(design_of(small).n_item) == bool(design_of(large).n_item)
    full, there = (unpack(one.precision[0], design_of(large).d) for one in (sums, learnt))
    np.testing.assert_array_equal(full[:, :d, :d], there[:, :d, :d])
    np.testing.assert_array_equal(sums.response[..., :d], learnt.response[..., :d])
    assert len(memory.logits.kept[0].rows)
    if told_apart:
        assert_equal_arrays(grown.to_arrays(), other.to_arrays())
    else:  # items were not told apart when these observations came
        assert not full[:, d:].any()
        assert not sums.response[..., d:].any()
        assert not len(grown.logits.kept[0].rows)
    assert grown.logits.kept[0].point.shape == learnt.response[0].shape


def play(problem, policy, horizon, replications, seed=1):
    p = np.random.default_rng(0).uniform(0, 0.5, (len(USERS), N_ARMS, N_ITEMS))
    environment = context_table(problem, list(USERS), p)
    run = Run(problem, environment, policy, run_keys(np.random.SeedSequence(seed).spawn(5)[:replications]))
    made = []
    for _ in range(horizon):
        run.play_round()
        made.append(run.last)
    return np.array(made), run


@pytest.mark.parametrize("model", [models.Linear, models.Logistic])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_replications_do_not_know_of_one_another(model, sharing):
    problem = make(model(shared=sharing))
    policy = new.comb_lin_ts() if model is models.Linear else new.logistic_ts(0.5, 0.05)
    together, _ = play(problem, policy, 30, 3)
    alone, _ = play(problem, policy, 30, 1)
    np.testing.assert_array_equal(together[:, :1], alone)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_kernels_decide_as_numpy(sharing):
    problem, policy = make(models.Logistic(shared=sharing)), new.logistic_ts(0.5, 0.05)
    found = []
    for mode in ("numpy", "numba"):
        with engine(mode):
            made, run = play(problem, policy, 40, 2)
            found.append((made, run.memory.logits.theta, run.memory.logits.inverse))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_explanation_adds_up_to_the_estimate():
    problem, policy = make(models.Linear(shared=True), pairs=1, n_items=1), new.c2_ucb()
    history, memory = new.ContextHistory(problem), policy.new_memory(problem, 1)
    for one in feedbacks(problem, 5, False):
        memory.learn(one)
    view = problem.view(memory.tally, 6)
    encoded = EncodedContext(0, np.array([1.0, 0.25, -0.5]), grid(np.linspace(-1, 1, N_ARMS)))
    view.context = history.contexts(encoded)
    estimates, optimistic = policy.estimates(problem, view, memory)
    action = policy.choose(problem, view, memory)[0]
    made = history.decide(encoded, policy.weigh(problem, view, memory, action[None]), action)
    effects = history.effects(policy, memory, made, 3)
    assert list(effects)[:3] == ["intercept", "0", "1"]
    np.testing.assert_allclose(sum(effects.values()), estimates[0, 0, 3], atol=1e-3)
    assert (optimistic >= np.clip(estimates, 0, 1)).all()


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("policy", [new.comb_lin_ts(), new.c2_ucb(0.2)], ids=["comb_lin_ts", "c2_ucb"])
def test_many_decisions_on_one_tally_are_those_made_one_by_one(sharing, policy):
    problem = make(models.Linear(shared=sharing), pairs=1)
    memory = policy.new_memory(problem, 1)
    for one in feedbacks(problem, 6, False):
        memory.learn(one)
    many, keys = feedbacks(problem, 1, False, 5, replications=16)[0].context, np.arange(16, dtype=np.uint64)

    def choose(some):
        n = len(keys[some])
        view = replace(
            problem.view(memory.tally, 7),
            keys=keys[some],
            context=replace(many, x=many.x[some], pairs=many.pairs[some]),
        )
        view.counts, view.eligible = np.repeat(memory.tally.pulls, n, 0), np.ones((n, N_ARMS), bool)
        view.pinned = np.empty((n, 0), np.int64)
        return policy.choose(problem, view, memory), policy.weigh(problem, view, memory, view.pinned[:, :0]).weights

    together, _ = choose(slice(None))
    assert len({tuple(batch) for batch in together.tolist()}) > 1
    for r in range(4):
        np.testing.assert_array_equal(choose(slice(r, r + 1))[0][0], together[r])


def test_many_decisions_on_the_tally_of_all_segments():
    context = Context(Features(categorical={"country": ["NO", "SE", "DK"]}), model=models.Segments(pooling=1.0))
    problem = Problem(N_ARMS, 1, Coverage(), Subsets(K), context=context)
    policy = new.for_context(IndexPolicy(KL(0.5)), problem)
    memory, rng = policy.new_memory(problem, 1), np.random.default_rng(2)

    def contexts(segments, t):
        n = len(segments)
        return Contexts(np.array(segments), np.zeros((n, 0)), np.zeros((n, N_ARMS, 0)), np.array(t))

    for t in range(30):
        action = rng.permutation(N_ARMS)[:K][None]
        told = Feedback(t, action, rng.random((1, K, 1)), None, contexts([int(rng.integers(3))], [t]))
        memory.learn(told)

    def choose(segments, t):
        n = len(segments)
        view = problem.view(memory.tally, 31)
        view.counts, view.eligible = memory.tally.pulls[segments], np.ones((n, N_ARMS), bool)
        view.keys, view.pinned, view.context = view.keys[:n], np.empty((n, 0), np.int64), contexts(segments, t)
        return policy.choose(problem, view, memory)

    together = choose([2, 0, 1], [9, 12, 9])
    for n, (segment, t) in enumerate([(2, 9), (0, 12), (1, 9)]):
        np.testing.assert_array_equal(choose([segment], [t])[0], together[n])
    fresh = policy.new_memory(problem, 1).from_arrays(memory.to_arrays())
    np.testing.assert_array_equal(fresh.sums().total, memory.sums().total)
