"""Small problems with contexts, and the decisions of policies on them."""

import numpy as np
from scipy.sparse import csr_array

from superarm.actions import Subsets
from superarm.context import Context, Features, models
from superarm.core.streams import run_keys
from superarm.environments import context_table
from superarm.problem import Problem
from superarm.rewards import Coverage
from superarm.simulation.engine import Run
from tests.recorded import write

N_ARMS, N_ITEMS, K = 5, 3, 2
LEVELS = {"country": ["NO", "SE", "other"]}
COUNTRIES = [{"country": country} for country in ("NO", "SE", "DK")]


def grid(values):
    return np.round(np.asarray(values) * 1024) / 1024


RNG = np.random.default_rng(11)
ARMS = grid(RNG.uniform(-1, 1, (N_ARMS, 2)))
USERS = grid(RNG.uniform(-1, 1, (7, 2)))
SUPPORT = csr_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1]]))


def problem_of(model, of_model=None, features=None, n_items=N_ITEMS, sparse=False, arms=ARMS, **context):
    """A problem with a context; ``model`` is a class of ``models`` by name."""
    learnt = getattr(models, model)(**(of_model or {}))
    known = arms if model != "Segments" else None
    made = Context(Features(**(features or {"d": 2})), known, learnt, **context)
    weights = [1.0, 0.7, 1.3][:n_items]
    return Problem(N_ARMS, n_items, Coverage(), Subsets(K), weights, SUPPORT if sparse else None, made)


def table_of(problem, contexts, sparse=False, **options):
    """The environment in which these contexts come, with random parameters up to 0.6."""
    p = np.random.default_rng(0).uniform(0.0, 0.6, (len(contexts), problem.support.size))
    return context_table(problem, contexts, p if sparse else p.reshape(len(contexts), N_ARMS, -1), **options)


def replay(problem, policy, contexts, expected, horizon=60, sparse=False, **options):
    """Two replications make the recorded decisions, (R, horizon, K); the run at its end."""
    policy.validate(problem)
    environment = table_of(problem, contexts, sparse, **options)
    run, made = Run(problem, environment, policy, run_keys(np.random.SeedSequence(5).spawn(2))), []
    for _ in range(horizon):
        run.play_round()
        made.append(run.last.copy())
    assert write(np.array(made).swapaxes(0, 1)) == expected
    return run
