"""Simulation with contexts: the same bits as an agent, and regret against the best batch for each context."""

import itertools

import numpy as np
import pytest

import superarm as sa
from superarm.environments import draw
from superarm.environments.context_table import ContextTable
from superarm.policies.contextual import for_context
from superarm.simulation import context_table, seeds
from superarm.simulation.contextual import advance_run, begin_run
from superarm.core.streams import run_streams

N_ARMS, N_ITEMS, K = 5, 2, 2
RNG = np.random.default_rng(3)
COUNTRIES = ["NO", "SE", "DK"]
CONTEXTS = [{"country": c, "age": a} for c, a in itertools.product(COUNTRIES, (10, 40, 90))]
P = np.round(RNG.uniform(0.0, 0.6, (len(CONTEXTS), N_ARMS, N_ITEMS)), 3)
FEATURES = sa.Features(numeric={"age": (0, 100)}, categorical={"country": COUNTRIES})
ARMS = np.round(RNG.uniform(-1, 1, (N_ARMS, 2)), 2)
GAMES = {
    "kl_ucb": (sa.kl_ucb(), sa.models.Segments(), False, False),
    "cts": (sa.cts(), sa.models.Segments(pooling=4.0), True, False),
    "vac2_ucb": (sa.contextual.vac2_ucb(), sa.models.Linear(shared=True), False, False),
    "c2_ucb": (sa.contextual.c2_ucb(0.2)._replace(discount=0.75), sa.models.Linear(shared="arms"), True, True),
    "logistic_kl_ucb": (sa.contextual.logistic_kl_ucb(ridge=2**-6), sa.models.Logistic(shared=True, prior_mean=0.2), False, True),
    "logistic_ts": (sa.contextual.logistic_ts(ridge=2**-6), sa.models.Logistic(), True, False),
    "comb_lin_ts": (sa.contextual.comb_lin_ts(), sa.models.Linear(), False, True),
    "window": (sa.policies.sliding_window(sa.contextual.vac2_ucb(0.1), 8, 4), sa.models.Linear(shared=True), False, True),
    "window of segments": (sa.policies.sliding_window(sa.kl_ucb(), 12, 4), sa.models.Segments(), False, False),
    "one-hot features": (sa.contextual.logistic_kl_ucb(), sa.models.Logistic(intercept=False), False, False),
}
PLAIN_GAMES = {  # their kernels are those of the games above
    "discount": (sa.policies.discounted(sa.contextual.logistic_ts(), 6), sa.models.Logistic(shared="arms"), True, False),
}
ONE_HOT = sa.Features(categorical={"country": COUNTRIES})


def game(name):
    policy, model, replay, cascade = {**GAMES, **PLAIN_GAMES}[name]
    one_hot = name == "one-hot features"
    declared = sa.Context(ONE_HOT, model=model) if one_hot else sa.Context(FEATURES, arms=ARMS, model=model)
    problem = sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K), context=declared)
    return sa.Instance(problem, context_table(problem, contexts_of(name), P, replay, cascade)), policy


def contexts_of(name):
    """The contexts of a game; of several with one country, the encoded features are the same."""
    return [{"country": each["country"]} for each in CONTEXTS] if name == "one-hot features" else CONTEXTS


@pytest.mark.parametrize("name", sorted(GAMES | PLAIN_GAMES))
def test_a_run_is_that_of_an_agent(name):
    """The agent is asked with the contexts as users give them, and told what the environment draws."""
    instance, policy = game(name)
    horizon, seed = 40, seeds(7, 1)[0]
    ready = for_context(policy, instance.problem).fit(instance.problem)
    run = begin_run(instance, ready, seed)
    advance_run(instance, ready, run, np.array([0, horizon]), np.zeros(1))
    agent, stream = sa.Agent(instance.problem, policy, seed), run_streams(seed).environment
    environment: ContextTable = instance.environment
    missed, earned = 0.0, 0.0
    for t in range(1, horizon + 1):
        row = environment.pick_context(t, stream)
        decision = agent.ask(context=contexts_of(name)[row])
        outcome, seen = np.zeros(K * N_ITEMS), np.ones(K * N_ITEMS, bool)
        draw(environment, instance.problem.support, decision.action, t, stream, outcome, seen)
        missed += (~seen).sum()
        earned += instance.problem.value(P[row], decision.action) - environment.best[row]
        agent.tell(decision, outcome.reshape(K, N_ITEMS), seen.reshape(K, N_ITEMS))
    assert all(np.array_equal(a, b) or not a.size for a, b in zip(agent.tally, run.tally, strict=True))
    assert (missed > 0) == environment.cascade
    average = environment.best.mean() * horizon
    assert np.isclose(run.earned[0] - average, earned, rtol=0, atol=1e-9)


def test_regret_is_against_the_best_batch_for_each_context():
    instance, policy = game("kl_ucb")
    results = sa.simulate(instance, {"KL-UCB": policy}, horizon=60, replications=3, progress=False)
    best = [max(instance.problem.value(p, batch) for batch in itertools.combinations(range(N_ARMS), K)) for p in P]
    assert np.allclose(instance.environment.best, best, rtol=0.05)  # greedy is not exact
    exact = sa.simulate(instance, {"KL-UCB": policy}, horizon=60, replications=3, target="optimal", progress=False)
    assert np.isclose(exact.targets["KL-UCB"].value, np.mean(best))
    gap = np.mean(best) - instance.environment.best.mean()
    assert np.allclose(exact.regret["KL-UCB"] - results.regret["KL-UCB"], gap * results.rounds)
    assert (np.diff(results.regret["KL-UCB"], axis=1) > -1e-9).all() or gap > 0.0


def test_contexts_depend_on_the_round_alone_and_come_equally_often():
    """8,100 rounds: each of nine contexts comes 900 times, off by six standard deviations with probability 1e-8."""
    environment = game("kl_ucb")[0].environment
    stream = run_streams(np.random.SeedSequence(1)).environment
    rows = [environment.pick_context(t, stream) for t in range(1, 8101)]
    assert rows[:50] == [environment.pick_context(t, stream) for t in range(1, 51)]
    counts = np.bincount(rows, minlength=9)
    assert np.abs(counts - 900).max() < 6 * np.sqrt(8100 * (1 / 9) * (8 / 9))
    replayed = game("cts")[0].environment
    assert [replayed.pick_context(t, stream) for t in range(1, 20)] == [(t - 1) % 9 for t in range(1, 20)]


def test_what_does_not_fit_is_refused():
    instance, _ = game("vac2_ucb")
    with pytest.raises(sa.InvalidArgument, match="IndexPolicy does not read features"):
        sa.simulate(instance, {"KL-UCB": sa.kl_ucb()}, horizon=5, replications=1, progress=False)
    plain = sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K))
    with pytest.raises(sa.InvalidArgument, match="it has no context"):
        context_table(plain, CONTEXTS, P)
    with pytest.raises(sa.InvalidArgument, match="the environment has contexts and the problem none"):
        sa.simulate(
            sa.Instance(plain, instance.environment), {"a": sa.kl_ucb()}, horizon=5, replications=1, progress=False
        )
    running = sa.Context(sa.Features(numeric=["age"]), arms=ARMS, model=sa.models.Linear(shared=True))
    with pytest.raises(sa.InvalidArgument, match="numeric ones without a range"):
        context_table(plain.with_context(running), [{"age": 1}], P[:1])


def digest(name):
    """The sums and the earned reward of a short run, to the bit: ``tests/modes`` plays it in both modes."""
    instance, policy = game(name)
    ready = for_context(policy, instance.problem).fit(instance.problem)
    run = begin_run(instance, ready, np.random.SeedSequence(2))
    advance_run(instance, ready, run, np.array([0, 40]), np.zeros(1))
    return [values.tobytes().hex() for values in (*run.tally, run.earned)]
