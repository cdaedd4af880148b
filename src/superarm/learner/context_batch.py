"""Several batches for contexts by one compiled call, each pending for the next."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.actions import capacity
from superarm.arrays import Bools, Floats, Ints
from superarm.candidates import Candidates
from superarm.context import EncodedContext
from superarm.context.observations import ContextFeedback, ContextRound
from superarm.context.sums import add_precision
from superarm.policies import Policy, choose
from superarm.policies.base import fill_decision_weights, linearises
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import span

if TYPE_CHECKING:
    from superarm.learner.learner import Learner


class ContextQueue(NamedTuple):
    """Contexts of decisions that are made one after the other, one row each; ``t`` counts those of their segments."""

    t: Ints
    segment: Ints
    x: Floats
    pairs: Floats


class ContextBatches(NamedTuple):
    """Batches (n, k), -1 where one is shorter, and the weights and shifts of their observations, as far as there are.

    The first ``sizes[n]`` weights and shifts of row n are those of batch n. ``pending`` is the precision of all
    decisions without feedback, these included.
    """

    arms: Ints
    sizes: Ints
    weights: Floats
    shifts: Floats
    pending: Floats


@kernel
def choose_each_context(
    policy: Policy, problem: Problem, design: Any, current: ContextRound, queue: ContextQueue, memory: Any, keys: Any
) -> ContextBatches:
    """One batch per context and stream key (uint64), for round ``current.round`` and those after it.

    ``current.candidates.counts`` holds all segments; it and ``current.pending`` grow as batches are chosen. ``design``
    is that of a regression, or None.
    """
    n, support = len(keys), problem.terms.support
    n_arms, k = problem.n_arms, capacity(problem.actions, problem.n_arms)
    widest = 0
    for j in range(n_arms):
        first, last = span(support, j)
        widest = max(widest, last - first)
    room = k * widest if current.pending.size > 0 else 0
    found = ContextBatches(
        np.full((n, k), -1, np.int64),
        np.zeros(n, np.int64),
        np.zeros((n, room)),
        np.zeros((n, room if linearises(policy) else 0)),
        current.pending,
    )
    seen = np.ones(room, np.bool_)
    for o in range(n):
        key, segment = keys[o : o + 1], queue.segment[o]
        context = EncodedContext(segment, queue.x[o], queue.pairs[o])
        counts = current.candidates.counts[segment * n_arms : (segment + 1) * n_arms]
        candidates = Candidates(counts, current.candidates.eligible)
        now: Any = ContextRound(queue.t[o], current.tally, candidates, context, found.pending, current.round + o)
        action = choose(policy, problem, now, memory, Stream(key, key.copy()))
        for place in range(len(action)):
            found.arms[o, place] = action[place]
            counts[action[place]] += 1.0
            if room > 0:
                first, last = span(support, action[place])
                found.sizes[o] += last - first
        size = found.sizes[o]
        weights, shifts = found.weights[o, :size], found.shifts[o, : min(size, found.shifts.shape[1])]
        fill_decision_weights(policy, memory, support, action, weights, shifts)
        if design is not None:
            made = ContextFeedback(0, action, weights, seen[:size], context, weights, shifts)
            add_precision(found.pending, design, support, made, 1.0)
    return found


def choose_in_contexts(
    learner: "Learner", t: int, eligible: Bools, keys: Any, encoded: Sequence[EncodedContext]
) -> tuple[ContextQueue, ContextBatches]:
    """Batches for round ``t`` and those after it, one per context and stream key (uint64), each pending for the next.

    They are those that ``Learner.choose`` gives one after the other, and the last one is kept for ``Contexts.decide``.
    """
    contexts = learner.contexts
    assert contexts is not None
    segments = [context.segment for context in encoded]
    queue = ContextQueue(
        np.array(contexts.next_decisions(segments), np.int64),
        np.array(segments, np.int64),
        np.stack([context.x for context in encoded]),
        np.stack([context.pairs for context in encoded]),
    )
    counts = Candidates(learner.tally.pulls + learner.pending, eligible)
    tally: Any = learner.tally
    current = ContextRound(0, tally, counts, encoded[0], contexts.pending.copy(), t)
    fitted, problem, memory = learner.fitted, learner.problem, learner.memory_at(t + len(keys) - 1)
    contexts.keep_choice(fitted, memory)
    return queue, contexts.choose_each(fitted, problem, contexts.design, current, queue, memory, keys)
