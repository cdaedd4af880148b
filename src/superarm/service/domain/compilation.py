"""Choosing and learning once, so that all kernels are compiled before a request needs them."""

from typing import Any

import numpy as np
from msgspec.structs import replace

from superarm import learner as library
from superarm.actions import Actions, Pinned, Subsets
from superarm.core.problem import Problem
from superarm.core.streams import Stream
from superarm.policies import Forgetting, Policy, prepare
from superarm.service.domain.components import POLICIES
from superarm.service.domain.decision import advance_record, open_record
from superarm.service.domain.events import ALL, Asked, Changed, Created, Told
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import joinable_arms
from superarm.service.domain.spec import ProblemSpec, to_problem


def kernel_kind(state: ProblemState) -> tuple[object, ...]:
    """What decides which kernels a problem needs: problems of one kind need the same."""
    problem, policy, context = state.problem, state.policy, state.problem.context
    inner = type(policy.policy) if isinstance(policy, Forgetting) else None
    parts = (problem.reward, problem.actions, problem.support, policy, context and context.model)
    return state.settings.policy.name, inner, *(type(part) for part in parts)


def compile_kernels(created: Created) -> None:
    """Choose and learn with the policy of a problem, on a small one where that is possible."""
    spec = created.spec
    small = _shrunk(spec)
    trial = ProblemState(replace(created, spec=small))
    learner = trial.learner
    if spec.context is None:
        fitted = learner.policy.fit(to_problem(spec))
        if _types(fitted) != _types(learner.fitted):  # a large problem may have one of its own
            learner.fitted = fitted
            learner.memory = prepare(learner.fitted, learner.problem, learner.tally)
    for t in (1, 2, 3):  # unsampled arms first, then by the index
        asked = ask_once(trial, t)
        action = asked.action
        trial.move(None, open_record(asked))
        trial.move(open_record(asked), advance_record(open_record(asked), Told(0, [(arm, ALL, 1.0) for arm in action])))
        trial.history.flush(trial.problem)
        learner.pending[:] += 1.0


def _types(part: Any) -> Any:
    """The type of a component with those of its parts, which decide what is compiled.

    A policy of the same types is not taken from another problem: it may list the batches of that one.
    """
    return (type(part), *map(_types, part)) if isinstance(part, tuple) else type(part)


def ask_once(trial: ProblemState, t: int) -> Asked:
    """A decision for round ``t``, with some context where the problem has one."""
    context, n_items = None, trial.problem.n_items
    if trial.contexts is None:
        action = tuple(trial.choose([str(t)], ~trial.retired)[0])
    else:
        given = sample_context(trial.problem)
        encoded = trial.contexts.encode(given, None)
        action = tuple(trial.choose_around(str(t), ~trial.retired, None, encoded))
        context = trial.contexts.store(action, encoded, given)
    return Asked(0, "", str(t), "", t, action, n_items, 1, widths=trial.widths(action), context=context)


def sample_context(problem: Problem) -> Any:
    """Some context that the problem takes."""
    assert problem.context is not None
    features = problem.context.features
    return np.zeros(features.d) if features.d else {name: levels[0] for name, levels in features.levels.items()}


def _shrunk(spec: ProblemSpec) -> ProblemSpec:
    """The same problem with few arms and items, where nothing of it refers to the others."""
    if spec.context is not None or POLICIES[spec.settings.policy.name].whole_batches:  # these keep tables of batches
        return spec
    if spec.actions is not None or spec.batches is not None or spec.support is not None or spec.reward.name == "spread":
        return spec
    return replace(spec, arms=spec.arms[: spec.k + 1], items=spec.items[:2], weights=None)


def compile_actions(problem: Problem, policy: Policy, actions: Actions) -> None:
    """Choose once with an action set, on a learner of its own."""
    everyone, key = np.ones(problem.n_arms, bool), np.zeros(1, np.uint64)
    learner, stream = library.Learner(problem, policy), Stream(key, key.copy())
    context = problem.context
    pairs = np.zeros((problem.n_arms, context.pairs)) if context is not None and context.pairs else None
    encoded = None
    if learner.contexts is not None:
        encoded = learner.contexts.encode(problem, sample_context(problem), pairs)
    learner.choose(1, everyone, stream, actions, context=encoded)
    if actions.matroid and not isinstance(actions, Subsets):
        joinable_arms(actions.actions if isinstance(actions, Pinned) else actions, [], everyone)


def compile_for_event(event: Any, learner: ProblemState | None) -> None:
    """Compile what a problem of another worker needs, before its first decision needs it."""
    if isinstance(event, Created):
        compile_kernels(event)
    elif isinstance(event, Changed) and learner is not None:
        compile_kernels(learner.as_created(event.settings))
