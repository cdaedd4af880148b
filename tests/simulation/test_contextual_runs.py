"""Simulation with contexts: regret against the best batch for each context, and contexts that come equally often."""

import itertools

import numpy as np
import pytest

import superarm as sa
from superarm.core.streams import run_keys
from superarm.environments import context_table
from superarm.simulation import seeds

N_ARMS, N_ITEMS, K = 5, 2, 2
RNG = np.random.default_rng(3)
COUNTRIES = ["NO", "SE", "DK"]
CONTEXTS = [{"country": c, "age": a} for c, a in itertools.product(COUNTRIES, (10, 40, 90))]
P = np.round(RNG.uniform(0.0, 0.6, (len(CONTEXTS), N_ARMS, N_ITEMS)), 3)
FEATURES = sa.Features(numeric={"age": (0, 100)}, categorical={"country": COUNTRIES})
ARMS = np.round(RNG.uniform(-1, 1, (N_ARMS, 2)), 2)
PLAIN = sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K))


def make(model, replay=False):
    problem = sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K), context=sa.Context(FEATURES, ARMS, model))
    return sa.Instance(problem, context_table(problem, CONTEXTS, P, replay))


def test_regret_is_against_the_best_batch_for_each_context():
    instance, size = make(sa.models.Segments()), {"horizon": 60, "replications": 3, "progress": False}
    found, exact = (
        sa.simulate(instance, {"x": sa.kl_ucb()}, target=target, **size) for target in ("oracle", "optimal")
    )
    best = [max(instance.problem.value(p, batch) for batch in itertools.combinations(range(N_ARMS), K)) for p in P]
    assert np.allclose(instance.environment.best_worth, best, rtol=0.05)  # greedy is not exact
    assert np.isclose(exact.targets["x"].value, np.mean(best))
    gap = np.mean(best) - instance.environment.best_worth.mean()
    assert np.allclose(exact.regret["x"] - found.regret["x"], gap * found.rounds)
    assert (np.diff(found.regret["x"], axis=1) > -1e-9).all() or gap > 0.0


def test_contexts_depend_on_the_round_alone_and_come_equally_often():
    """8,100 rounds: each of nine contexts comes 900 times, off by six standard deviations with probability 1e-8."""
    environment, keys = make(sa.models.Segments()).environment, run_keys(seeds(1, 1)).environment
    rows = [int(environment.rows(t, keys)[0]) for t in range(1, 8101)]
    counts = np.bincount(rows, minlength=9)
    assert np.abs(counts - 900).max() < 6 * np.sqrt(8100 * (1 / 9) * (8 / 9))
    both = run_keys([*seeds(2, 1), *seeds(1, 1)]).environment
    assert rows[:50] == [int(environment.rows(t, both)[1]) for t in range(1, 51)]
    replayed = make(sa.models.Segments(), replay=True).environment
    assert [int(replayed.rows(t, keys)[0]) for t in range(1, 20)] == [(t - 1) % 9 for t in range(1, 20)]


def test_what_does_not_fit_is_refused():
    instance, size = make(sa.models.Linear(shared=True)), {"horizon": 5, "replications": 1, "progress": False}
    with pytest.raises(sa.InvalidArgument, match="IndexPolicy does not read features"):
        sa.simulate(instance, {"KL-UCB": sa.kl_ucb()}, **size)
    with pytest.raises(sa.InvalidArgument, match="it has no context"):
        context_table(PLAIN, CONTEXTS, P)
    with pytest.raises(sa.InvalidArgument, match="has contexts and the problem none"):
        sa.Instance(PLAIN, instance.environment)
    with pytest.raises(sa.InvalidArgument, match="the problem has"):
        sa.simulate(
            sa.Instance(instance.problem, sa.environments.Bernoulli(P[0])), {"a": sa.contextual.c2_ucb()}, **size
        )
    running = sa.Context(sa.Features(numeric=["age"]), ARMS, sa.models.Linear(shared=True))
    with pytest.raises(sa.InvalidArgument, match="numeric ones without a range"):
        context_table(sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K), context=running), [{"age": 1}], P[:1])
