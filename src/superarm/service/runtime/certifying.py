"""Certificates of convergence, computed in a thread from a copy of the counters, one at a time."""

import asyncio
from typing import TYPE_CHECKING

from superarm.core.arrays import Bools
from superarm.core.errors import InvalidArgument
from superarm.core.problem import Problem
from superarm.core.tally import Tally
from superarm.offline import Convergence, certify_convergence
from superarm.offline.estimators.targets import forgets
from superarm.service.domain.problem import ProblemState

if TYPE_CHECKING:
    from superarm.service.runtime.coordinator import Coordinator

MAX_CERTIFIED_ENTRIES = 1_000_000
"""Of larger problems no certificate is computed. One of this size took 7 s of a core: ``benchmarks.certificate``."""


class Certifier:
    """Computes certificates; further ones wait, so that threads are left for decisions of large problems."""

    def __init__(self, coordinator: "Coordinator") -> None:
        self._coordinator, self._turn = coordinator, asyncio.Lock()

    async def certify(self, tenant: str, name: str, epsilon: float | None, delta: float) -> Convergence | str:
        """The certificate of a problem, or why there is none."""
        state = await self._coordinator.find(tenant, name)
        if (reason := _reason_against(state)) is not None:
            return reason
        async with self._turn:
            counters = await self._coordinator.read(tenant, name, _copy_counters)
            try:
                return await asyncio.to_thread(certify_convergence, *counters, epsilon, delta)
            except InvalidArgument as error:
                return str(error)


def _reason_against(learner: ProblemState) -> str | None:
    """Why there is no certificate of a problem; None if there is one."""
    if learner.contexts is not None:
        return "the problem has contexts: there is a best slate for each of them"
    if forgets(learner.policy):
        return "the policy forgets, because means may change: no slate stays the best one"
    if learner.problem.n_entries > MAX_CERTIFIED_ENTRIES:
        return f"the problem has more than {MAX_CERTIFIED_ENTRIES:,} entries"
    if not learner.problem.reward.additive:
        return "the reward is not a sum over items, so that nothing bounds the value of the best slate"
    return None


def _copy_counters(learner: ProblemState) -> tuple[Problem, Tally, Bools]:
    """The problem as it is now, its counters, and which arms are not retired."""
    tally = learner.tally.like()
    tally.add(learner.tally)
    return learner.problem, tally, ~learner.retired
