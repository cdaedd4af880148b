"""Which round feedback counts for, under policies that forget."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.policies import PolicyState, block_age, forgets, learn
from superarm.streams import Stream, new_stream, round_key
from superarm.tally import Feedback, Tally, merge

if TYPE_CHECKING:
    from superarm.learner.learner import Learner

_NOBODY = new_stream(np.random.SeedSequence(0))


class CountedRounds(NamedTuple):
    """The round that feedback counts for, under a policy that forgets.

    Decisions of versions before ``first`` count for round ``since``, later ones for the round they were made in. So the
    state of the policy depends on which feedback there is, and not on the order in which it came: what was observed
    before the policy was taken on, and what comes later of decisions made before, count for one round.
    """

    first: int = 0
    since: int = 0

    def round_of(self, learner: "Learner", t: int, version: int) -> int:
        """The round that feedback about a decision of round ``t`` and of that version counts for."""
        return self.since if version < self.first and forgets(learner.fitted) else t

    def place(self, learner: "Learner", feedback: Feedback, version: int) -> Feedback:
        """Feedback about a decision of that version, with the round that it counts for."""
        t = self.round_of(learner, feedback.t, version)
        return feedback if t == feedback.t else feedback._replace(t=t)

    def begins_block(self, learner: "Learner", t: int) -> bool:
        """Whether choosing for round ``t`` would forget something."""
        return learner.forgets and block_age(learner.fitted, learner.memory, t) < 0

    def advance(self, learner: "Learner", t: int) -> None:
        """Let time go on to round ``t``: what is too old for it is forgotten."""
        if self.begins_block(learner, t):
            nothing: Any = Feedback(t, np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool))
            if learner.contexts is not None:
                nothing = learner.contexts.nothing(t)
            learn(learner.fitted, learner.problem, learner.tally, learner.memory, nothing, _NOBODY, 1.0)

    def with_past(self, learner: "Learner", tally: Tally, t: int) -> PolicyState | None:
        """The policy's state beside the tally with past data added to the block of round ``t``."""
        if not forgets(learner.fitted):
            return learner.state
        self.advance(learner, t)
        state, age = learner.state, block_age(learner.fitted, learner.memory, t)
        if state is not None and age < len(state.blocks):
            state.blocks[age] = merge(state.blocks[age], tally)
        return state


def stream_as_of(stream: Stream, t: int, counted: int) -> Stream:
    """The stream whose numbers in round ``counted`` are those of ``stream`` in round ``t``."""
    if t == counted:
        return stream
    key = stream.key ^ round_key(t) ^ round_key(counted)
    return Stream(key, key.copy())
