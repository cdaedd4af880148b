"""The event that the guardrail changed over, written after the first decision that it concerns."""

import contextlib

from superarm.service.domain.control import guard_of
from superarm.service.domain.events import Guarded
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import RequestError
from superarm.service.runtime.clock import now_ms
from superarm.service.runtime.coordinator import Coordinator


async def note_guard(coordinator: Coordinator, tenant: str, name: str) -> None:
    """Write that the guardrail changed over, if it has. The decision stands even if this cannot be written now."""
    with contextlib.suppress(RequestError):
        await coordinator.change(tenant, name, _plan)


def _plan(learner: ProblemState) -> Guarded | None:
    guard = guard_of(learner)
    if guard is None or guard.holds != learner.guarded:
        return None
    return Guarded(now_ms(), not guard.holds, learner.t, guard.earned, guard.needed)
