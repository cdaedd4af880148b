"""The family of environments: they draw the outcome of an action.

Random numbers come from a stream that is set to (round, arm), so policies that play the same arm in the same round see
the same outcome, whatever else they play.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import allocating, kernel, lean, verb
from superarm._renamed import old_keywords
from superarm.arrays import Bools, Floats, Ints
from superarm.streams import Stream, later_state, number_at, seek
from superarm.support import Support, span
from superarm.tally import Feedback

_1 = np.uint64(1)


class Environment(Protocol):
    """An environment: it draws the outcomes of batches, and knows the true means."""

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        """Write the outcome of round ``t``, one row per arm in the order of ``action``.

        ``seen`` is filled with True before the call; an environment that hides entries sets them to False, and is
        ``partial``.
        """
        ...

    def means(self, t: int) -> Floats:
        """The true parameters of round ``t``, (n_arms, n_items) or (n_entries,): for regret only."""
        ...


class AnswerBuffer(NamedTuple):
    """Buffers for an answer: ``outcome`` and ``seen``, flat, and the ``observed`` arms, if not those of the batch."""

    outcome: Floats
    seen: Bools
    observed: Ints


class EnvironmentHooks(Protocol):
    """Methods that an environment may define beyond :class:`Environment`; ``traits`` and the verbs have the defaults.

    They are for environments that hide entries, that show other arms than those of the batch, whose expected reward is
    not that of the problem at the means, or whose means change.
    """

    partial: bool
    """Whether some entries of an answer may not be seen; False by default."""

    free_samples: int
    """How often every arm is shown before the first round; 0 by default."""

    has_own_reward: bool
    """Whether ``expected_reward`` differs from the problem's reward; by default, whether the method is defined."""

    def answer(self, support: Support, action: Ints, t: int, stream: Stream, sheet: AnswerBuffer) -> int:
        """Fill ``sheet`` for round ``t``; return how many arms were observed, or -1 if they are those of ``action``."""
        ...

    def max_answer_entries(self, support: Support, n_arms: int, k: int) -> int:
        """The most entries that an answer to ``k`` of ``n_arms`` arms can have."""
        ...

    def expected_reward(self, weights: Floats, support: Support, action: Ints, t: int, default: float) -> float:
        """The true expected reward of ``action``; ``default`` is the problem's reward at the means."""
        ...

    def best(self, problem: Any) -> tuple[float, float] | None:
        """Lower and upper bound of the best expected reward on ``problem``; plain Python."""
        ...

    def pick_context(self, t: int, stream: Stream) -> int:
        """The number of the context of round ``t``, for environments with contexts."""
        ...

    def context(self, row: int) -> Any:
        """The context of that number, an ``EncodedContext``."""
        ...

    def changes(self, horizon: int) -> Ints:
        """The rounds up to ``horizon`` from which other means hold, increasing from 1; plain Python."""
        ...


@allocating
def _draw_batch(environment: Any, support: Support, action: Ints, t: int, stream: Stream, sheet: AnswerBuffer) -> int:
    draw(environment, support, action, t, stream, sheet.outcome, sheet.seen)
    return -1


@kernel
def _max_batch_entries(environment: Any, support: Support, n_arms: int, k: int) -> int:
    most = 0
    for j in range(n_arms):
        first, last = span(support, j)
        most = max(most, last - first)
    return most * k


@lean
def _default_reward(environment: Any, weights: Floats, support: Support, action: Ints, t: int, default: float) -> float:
    return default


@lean
def flip_arm(support: Support, p: Floats, arm: int, t: int, stream: Stream, outcome: Floats, at: int) -> int:
    """Write binary outcomes of ``arm`` from ``outcome[at]`` on, 1 with probabilities ``p``; return where they end."""
    seek(stream, t, arm)
    first, last = span(support, arm)
    state, entry, place = stream.state[0], np.uint64(first), np.uint64(at)
    for o in range(np.uint64(last - first)):  # independent of one another, so that they are drawn in vector registers
        outcome[place + o] = 1.0 if number_at(later_state(state, o + _1)) < p[entry + o] else 0.0
    stream.state[0] = later_state(state, last - first)
    return at + last - first


@lean
def flip(support: Support, p: Floats, action: Ints, t: int, stream: Stream, outcome: Floats) -> None:
    """Write binary outcomes of all arms of ``action``, 1 with probabilities ``p`` (n_entries,)."""
    at = 0
    for j in action:
        at = flip_arm(support, p, j, t, stream, outcome, at)


draw = verb(Environment.draw)
means = verb(Environment.means)
answer: verb[..., int] = verb(EnvironmentHooks.answer, default=_draw_batch, allocates=True)
max_answer_entries: verb[..., int] = verb(EnvironmentHooks.max_answer_entries, default=_max_batch_entries)
pick_context: verb[..., int] = verb(EnvironmentHooks.pick_context)
context: verb[..., Any] = verb(EnvironmentHooks.context)
expected_reward: verb[..., float] = verb(EnvironmentHooks.expected_reward, default=_default_reward, allocates=True)


@old_keywords(noise="stream")
def respond(environment: Environment, support: Support, action: Ints, t: int, stream: Stream) -> Feedback:
    """Draw the feedback to ``action`` in round ``t``, for an ``Agent`` or a tally.

    >>> from superarm.environments import Cascade
    >>> from superarm.streams import new_stream
    >>> from superarm.support import Dense
    >>> environment, users = Cascade([[1.0], [0.5], [0.0]]), new_stream(np.random.SeedSequence(0))
    >>> respond(environment, Dense(3, 1), np.array([2, 0, 1]), 1, users).seen
    array([ True,  True, False])
    """
    most = max_answer_entries(environment, support, support.n_arms, len(action))
    sheet = AnswerBuffer(np.zeros(most), np.ones(most, bool), np.empty(support.n_arms, np.int64))
    n = answer(environment, support, action, t, stream, sheet)
    arms = action if n < 0 else sheet.observed[:n].copy()
    size = sum(last - first for first, last in (span(support, int(j)) for j in arms))
    return Feedback(t, arms, sheet.outcome[:size].copy(), sheet.seen[:size].copy())
