"""Estimates and optimistic parameters of all entries, and the effects of features, as a learner estimates them now."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from superarm.arrays import Floats
from superarm.context import Context
from superarm.context.design import PER_ARM, SHARED, Design, fill_own_features, own_size
from superarm.context.encoding import name_coordinates
from superarm.errors import InvalidArgument
from superarm.learner.contexts import DecisionContext
from superarm.learner.learner import Learner
from superarm.policies import restore_memory, traits
from superarm.streams import Stream
from superarm.support import span


def entry_estimates(learner: Learner, t: int, context: DecisionContext | None, stream: Stream) -> tuple[Floats, Floats]:
    """The estimate of every entry, and the parameter at which the oracle would choose; (n_entries,) each."""
    policy = traits.plain(learner.policy, learner.problem)
    if not traits.explains(policy):
        wrong = f"{type(learner.policy).__name__} chooses batches by other things than parameters of entries"
        raise InvalidArgument("policy", wrong, "explain decisions of index policies and of policies on linear models")
    if learner.contexts is None or context is None:
        current = learner.current_round(t, learner.playable())
    else:
        current = learner.contexts.current_round(learner, learner.playable(), context.encoded, t, context.t)
    memory = restore_memory(policy, learner.problem, learner.tally, learner.state)
    hooks: Any = policy
    estimate, optimistic = hooks.parameters(learner.problem, current, memory, stream)
    return np.array(estimate), np.array(optimistic)


def feature_effects(
    learner: Learner, context: DecisionContext | None, arm: int, most: int, words: Mapping[str, list[str]]
) -> tuple[tuple[str, float], ...]:
    """The features of a regression that change the estimates of ``arm`` most, with their effects on its mean.

    ``words`` are those of the context's hashed features.
    """
    contexts = learner.contexts
    if contexts is None or contexts.design is None or context is None or context.frame != contexts.frames.frame.version:
        return ()
    policy: Any = traits.plain(learner.policy, learner.problem)
    memory = restore_memory(policy, learner.problem, learner.tally, learner.state)
    theta = policy.coefficients(learner.problem, learner.tally, memory)
    u = np.zeros(own_size(contexts.design))
    fill_own_features(contexts.design, context.encoded, arm, u)
    first, last = span(learner.problem.support, arm)
    groups = {SHARED: [0], PER_ARM: [arm]}.get(contexts.design.sharing, range(first, last))
    effects = np.mean([theta[g][: len(u)] * u for g in groups], axis=0)
    order = np.argsort(-np.abs(effects), kind="stable")[:most]
    names = feature_names(contexts.context, contexts.design, words)
    return tuple((names[n], float(effects[n])) for n in order if effects[n] != 0.0)


def feature_names(context: Context, design: Design, words: Mapping[str, list[str]]) -> list[str]:
    """The names of the coordinates of an entry's features that do not indicate its item.

    >>> import superarm as sa
    >>> from superarm.context.design import make_design
    >>> context = sa.Context(sa.Features(numeric=["age"]), arms=[[1.0], [0.5]], model=sa.models.Linear(shared=True))
    >>> feature_names(context, make_design(context, 2, 1), {})
    ['intercept', 'age', 'arm feature 0', 'age × arm feature 0']
    """
    own_names = name_coordinates(context.features, words)
    user = (["intercept"] if design.n_user > len(own_names) else []) + own_names
    declared = context.arm_features.coordinates or [f"arm feature {n}" for n in range(context.arms.shape[1])]
    arm = (["intercept"] if design.arms.shape[1] > len(declared) or design.sharing != SHARED else []) + declared
    arm = arm[: design.arms.shape[1]]
    own = [_product(a, b) for b in arm for a in user] if design.crossed else user + arm[1:]
    return own + [f"pair feature {n}" for n in range(design.n_pair)]


def _product(user: str, arm: str) -> str:
    parts = [name for name in (user, arm) if name != "intercept"]
    return " × ".join(parts) or "intercept"
