"""What the page shows of the past, without a decision that was erased.

Counts are corrected exactly. Sums of rewards are corrected up to rounding, by the reward that the decision has now. The
spread of rewards that intervals of a comparison are made of cannot be taken back, so these intervals stay as wide as
they were. What was computed when the problem had other items, or of decisions about some items only, stays.
"""

from typing import Any

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.history import History, has_known_reward, rewards_of


def erase_from_history(history: History, before: DecisionRecord, problem: Any, share: float) -> None:
    """Take a decision, as it was before it was erased, out of a history."""
    asked = before.asked
    history.count_decision(asked, share, -1)
    if history.last is not None and history.last.t == asked.t:
        history.last = None
    if before.closed not in ("complete", "expired"):
        return
    history.flush(problem)
    history.complete -= before.closed == "complete"
    history.expired -= before.closed == "expired"
    if not has_known_reward(before, problem):
        history.unvalued -= 1
    elif asked.items is None:
        (value,) = rewards_of([before], problem)
        for moments in history.moments_of(before):
            if not moments.n:
                continue  # it finished before rewards were kept by version
            moments.n -= 1
            moments.total -= value
            moments.square -= value * value
        history.lift.take_back(asked, value)
