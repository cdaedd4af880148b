"""Seeded problems and states in the middle of a run, the same for every contestant."""

from typing import Any, NamedTuple

import numpy as np

import superarm as sa
from superarm.policies import prepare
from superarm.simulation.engine import RunState, advance, begin
from superarm.core.streams import run_streams
from superarm.core.tally import Tally


class State(NamedTuple):
    """A problem, its world, and what has been observed when round ``t`` is over."""

    problem: sa.Problem
    environment: Any
    t: int
    pulls: Any
    total: Any


def parameters(kind: str, n_arms: int, n_items: int, seed: int = 0) -> Any:
    """*iid*: uniform on [0, 0.2]; *clustered*: 20 topics, arms of heavy-tailed strength; *strong*: few large."""
    rng = np.random.default_rng(seed)
    if kind == "iid":
        return rng.uniform(0.0, 0.2, (n_arms, n_items))
    if kind == "clustered":
        topics = rng.dirichlet(np.full(n_items, 0.1), 20)
        return np.clip(topics[rng.integers(0, 20, n_arms)] * rng.pareto(2.0, (n_arms, 1)) * 5.0, 0.0, 1.0)
    return np.where(rng.random((n_arms, n_items)) < 0.05, rng.uniform(0.3, 0.9, (n_arms, n_items)), 0.01)


def played(problem: sa.Problem, p: Any, t: int) -> State:
    """The state after ``t`` rounds of BC-UCB."""
    environment = sa.environments.Bernoulli(p)
    policy = sa.bc_ucb().fit(problem)
    run = begin(problem, environment, policy, np.random.SeedSequence(1))
    advance(problem, environment, policy, run, np.array([0, t]), np.zeros(1))
    return State(problem, environment, t, run.tally.pulls, run.tally.total)


def jumped(problem: sa.Problem, p: Any, t: int, pulls: int) -> State:
    """A state with the same number of pulls for every arm, drawn at once."""
    rng = np.random.default_rng(1)
    counts = np.full(problem.n_arms, float(pulls))
    total = rng.binomial(pulls, p).astype(float).reshape(-1)
    return State(problem, sa.environments.Bernoulli(p), t, counts, total)


def begin_run(state: State, policy: Any) -> RunState:
    """The state as a run of ``policy``, which is fitted already."""
    tally = Tally(state.pulls.copy(), state.total.copy(), state.total.copy(), np.zeros(0))
    memory, chance = prepare(policy, state.problem, tally), run_streams(np.random.SeedSequence(2))
    return RunState(tally, memory, chance, np.zeros(1), np.full(state.problem.k, -1))
