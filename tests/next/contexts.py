"""The same problems with contexts for both engines, and their decisions side by side."""

import numpy as np
from scipy.sparse import csr_array

import superarm as old
from superarm.actions import Subsets
from superarm.context import Context, Features, models
from superarm.core.problem import Problem
from superarm.core.streams import run_keys
from superarm.environments import context_table
from superarm.rewards import Coverage
from superarm.simulation.engine import Run
from superarm.simulation.contextual import advance_run, begin_run
from superarm.simulation.contextual import context_table as old_context_table

N_ARMS, N_ITEMS, K = 5, 3, 2
LEVELS = {"country": ["NO", "SE", "other"]}


def grid(values):
    return np.round(np.asarray(values) * 1024) / 1024


RNG = np.random.default_rng(11)
ARMS = grid(RNG.uniform(-1, 1, (N_ARMS, 2)))
USERS = grid(RNG.uniform(-1, 1, (7, 2)))
SUPPORT = csr_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1]]))


def problems(model, of_model=None, features=None, n_items=N_ITEMS, sparse=False, weights=None, arms=ARMS, **context):
    """The problem of the old engine and that of the new one; ``model`` is a class of ``models`` by name."""
    found = []
    for engine in (old, None):
        kinds = old.models if engine else models
        declared = (old.Features if engine else Features)(**(features or {"d": 2}))
        learnt = getattr(kinds, model)(**(of_model or {}))
        known = arms if model != "Segments" else None
        made = (old.Context if engine else Context)(declared, known, learnt, **context)
        reward, actions = (old.Coverage(), old.Subsets(K)) if engine else (Coverage(), Subsets(K))
        support = SUPPORT if sparse else None
        weights = [1.0, 0.7, 1.3][:n_items] if weights is None else weights
        found.append((old.Problem if engine else Problem)(N_ARMS, n_items, reward, actions, weights, support, made))
    return found


def tables(before, after, contexts, seed=0, largest=0.6, **options):
    """The environment of both engines in which these contexts come."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.0, largest, (len(contexts), after.support.size))
    shape = (
        (len(contexts), N_ARMS, after.n_items)
        if hasattr(before.support, "n_arms") and not after_is_sparse(after)
        else p.shape
    )
    one = old_context_table(before, contexts, p.reshape(shape), **options)
    return one, context_table(after, contexts, p.reshape(shape), **options)


def after_is_sparse(problem):
    return type(problem.support).__name__ == "Sparse"


def old_decisions(problem, environment, policy, horizon, seeds):
    """Decisions (R, horizon, k), padded with -1, and the last states."""
    from superarm.policies.contextual import for_context

    instance, fitted, all_made, runs = (
        old.Instance(problem, environment),
        for_context(policy, problem).fit(problem),
        [],
        [],
    )
    for seed in seeds:
        run, made = begin_run(instance, fitted, seed), []
        for t in range(horizon):
            advance_run(instance, fitted, run, np.array([t, t + 1]), np.zeros(1))
            made.append(run.last.copy())
        all_made.append(made)
        runs.append(run)
    return np.array(all_made), runs


def new_decisions(problem, environment, policy, horizon, seeds):
    run, made = Run(problem, environment, policy, run_keys(seeds)), []
    policy.validate(problem)
    for _ in range(horizon):
        run.play_round()
        made.append(run.last.copy())
    return np.array(made).swapaxes(0, 1), run


def compare(before, after, policies, contexts, horizon=60, replications=2, **options):
    """Both engines make the same decisions and have the same sums at the end; the new run."""
    seeds = np.random.SeedSequence(5).spawn(replications)
    one, other = tables(before, after, contexts, **options)
    theirs, runs = old_decisions(before, one, policies[0], horizon, seeds)
    ours, run = new_decisions(after, other, policies[1], horizon, seeds)
    np.testing.assert_array_equal(ours, theirs)
    earned = [float(r.earned[0]) for r in runs]
    np.testing.assert_allclose(run.earned, earned, rtol=1e-9, atol=1e-9)
    return runs, run
