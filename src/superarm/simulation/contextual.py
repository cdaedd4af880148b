"""Simulation with contexts: the loop, and tables of contexts with their means.

Regret is measured against the best batch for each context. Contexts of a round depend on the seed and the round alone,
so every policy meets the same ones.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.actions import capacity
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.context import Frame
from superarm.context.observations import ContextFeedback, ContextRound
from superarm.context.sums import empty_context_tally
from superarm.environments import context, draw, max_answer_entries, pick_context
from superarm.environments.context_table import ContextTable
from superarm.environments.traits import has_contexts, partial
from superarm.errors import InvalidArgument
from superarm.oracles import Default, solve
from superarm.policies import Policy, choose, learn, prepare
from superarm.policies.base import fill_decision_weights, linearises, refit
from superarm.problem import Problem
from superarm.rewards import clear_batch, initial_states, join_batch, value_of_states
from superarm.simulation.engine import RunState, advance, begin
from superarm.simulation.instances import Instance
from superarm.streams import RunStreams, run_streams, seek
from superarm.tally import allow_missing


class ContextRunState(NamedTuple):
    """A run with contexts in progress: as ``RunState``, and the decisions of each segment so far, (n_segments,)."""

    tally: Any
    memory: Any
    streams: RunStreams
    earned: Floats
    last: Ints
    clock: Ints


def context_table(
    problem: Problem, contexts: Sequence[Any], p: Any, replay: bool = False, cascade: bool = False
) -> ContextTable:
    """The environment in which these contexts come, with the parameters ``p`` of each, (n_contexts, n_arms, n_items).

    Parameters
    ----------
    problem
        A problem with a context.
    contexts
        Contexts as ``Agent.ask`` takes them, without standardised features.
    p
        The true parameters of each context.
    replay, cascade
        As in :class:`superarm.environments.ContextTable`.

    Examples
    --------
    >>> import superarm as sa
    >>> declared = sa.Context(sa.Features(categorical={"country": ["NO", "SE"]}))
    >>> problem = sa.Problem(3, 1, sa.Coverage(), sa.Subsets(1), context=declared)
    >>> p = [[[0.1], [0.2], [0.3]], [[0.3], [0.2], [0.1]]]
    >>> environment = context_table(problem, [{"country": "NO"}, {"country": "SE"}], p)
    >>> instance = sa.Instance(problem, environment)
    >>> results = sa.simulate(instance, {"KL-UCB": sa.kl_ucb()}, horizon=100, replications=2, progress=False)
    >>> results.regret["KL-UCB"].shape[0]
    2
    """
    declared = problem.context
    if declared is None:
        raise InvalidArgument("problem", "it has no context", "give Problem(…, context=Context(…))")
    if declared.features.standardised or declared.pairs:
        wrong = "it has features of pairs, or numeric ones without a range"
        raise InvalidArgument("problem", wrong, "simulate with features of users that have ranges")
    encoded = [declared.encode(given, Frame(), problem.n_arms) for given in contexts]
    flat = np.array([problem.entries(one) for one in p])
    best = [problem.value(one, solve(problem, one, Default())) for one in flat]
    x, segments = np.array([one.x for one in encoded]), np.array([one.segment for one in encoded])
    return ContextTable(x, segments, flat, np.array(best), replay, cascade)


def begin_run(instance: Instance, policy: Policy, seed: np.random.SeedSequence) -> Any:
    """The state of a run before its first round."""
    problem, environment = instance.problem, instance.environment
    if not has_contexts(environment):
        return begin(problem, environment, policy, seed)
    if problem.context is None:
        raise InvalidArgument("problem", "the environment has contexts and the problem none", "declare a context")
    tally: Any = empty_context_tally(problem.context, problem.support)
    if partial(environment):
        tally = allow_missing(tally)
    memory, clock = prepare(policy, problem, tally), np.zeros(problem.context.n_segments, np.int64)
    return ContextRunState(tally, memory, run_streams(seed), np.zeros(1), np.full(problem.k, -1), clock)


def advance_run(instance: Instance, policy: Policy, run: Any, rounds: Ints, earned: Floats) -> None:
    """Play rounds ``rounds[0] + 1`` to ``rounds[-1]``; write the expected reward up to each of ``rounds[1:]``."""
    if isinstance(run, RunState):
        advance(instance.problem, instance.environment, policy, run, rounds, earned)
    else:
        environment: Any = instance.environment
        advance_contexts(instance.problem, environment, policy, run, rounds, earned)


@kernel
def advance_contexts(
    problem: Problem, environment: ContextTable, policy: Any, run: ContextRunState, rounds: Ints, earned: Floats
) -> None:
    """As ``advance``, with a context in every round.

    From the expected reward of a round is subtracted by how much the best batch of its context is worth more than that
    of an average context: regret against the average is then regret against the best batch for each context.
    """
    support, terms = problem.terms.support, problem.terms
    room = max_answer_entries(environment, support, problem.n_arms, capacity(problem.actions, problem.n_arms))
    outcome, seen, weights = np.empty(room), np.ones(room, np.bool_), np.zeros(room)
    shifts = np.zeros(room if linearises(policy) else 0)
    eligible, no_pending = np.ones(problem.n_arms, np.bool_), np.zeros((0, 0))
    states = initial_states(problem.reward, terms)
    nothing, average = value_of_states(problem.reward, terms, states), environment.best.mean()
    for checkpoint in range(1, len(rounds)):
        for t in range(rounds[checkpoint - 1] + 1, rounds[checkpoint] + 1):
            row = pick_context(environment, t, run.streams.environment)
            given = context(environment, row)
            run.clock[given.segment] += 1
            first = given.segment * problem.n_arms
            candidates = Candidates(run.tally.pulls[first : first + problem.n_arms], eligible)
            current: Any = ContextRound(run.clock[given.segment], run.tally, candidates, given, no_pending, t)
            seek(run.streams.policy, t, 0)
            action = choose(policy, problem, current, run.memory, run.streams.policy)
            seen[:] = True
            draw(environment, support, action, t, run.streams.environment, outcome, seen)
            fill_decision_weights(policy, run.memory, support, action, weights, shifts)
            refit(policy, problem, run.memory, t)
            feedback: Any = ContextFeedback(t, action, outcome, seen, given, weights, shifts)
            learn(policy, problem, run.tally, run.memory, feedback, run.streams.rounding, 1.0)
            value = nothing + join_batch(problem.reward, terms, states, environment.p[row], action)
            run.earned[0] += value - (environment.best[row] - average)
            clear_batch(problem.reward, terms, states, action)
        earned[checkpoint - 1] = run.earned[0]
        run.last[:] = -1
        run.last[: len(action)] = action
