"""A request for an explanation of a decision."""

import asyncio

from superarm.agent.explanations import Explanation
from superarm.service.domain.compilation import kernel_kind
from superarm.service.domain.explanation import compile_explanation, explain_record
from superarm.service.domain.ledger import Key
from superarm.service.runtime.coordinator import Coordinator

_compiled: set[object] = set()


async def explain(coordinator: Coordinator, key: Key, most: int) -> Explanation:
    """Why the slate of a decision was chosen; computed in a thread, while nobody else uses the problem."""
    record = await coordinator.record(key)
    problem = (key[0], record.asked.problem)
    learner = await coordinator.learner(*problem)
    kind = kernel_kind(learner)
    if kind not in _compiled:  # before the problem is closed to others: compiling takes seconds
        await asyncio.to_thread(compile_explanation, learner.as_created(learner.settings))
        _compiled.add(kind)
    async with coordinator.gates.close(problem):
        return await asyncio.to_thread(explain_record, learner, record, most)
