"""Certificates of convergence, computed in a thread from a copy of the counters."""

import asyncio

from superarm.errors import InvalidArgument
from superarm.offline.convergence import Convergence, certify_convergence
from superarm.policies import forgets
from superarm.rewards.traits import additive
from superarm.service.domain.problem import ProblemState
from superarm.tally import Tally

MAX_CERTIFIED_ENTRIES = 200_000
"""Of larger problems no certificate is computed: it would keep a core busy for minutes."""


async def certify_problem(learner: ProblemState, epsilon: float | None, delta: float) -> Convergence | str:
    """The certificate, or why there is none."""
    if learner.contexts is not None:
        return "the problem has contexts: there is a best slate for each of them"
    if forgets(learner.policy):
        return "the policy forgets, because means may change: no slate stays the best one"
    if learner.problem.n_entries > MAX_CERTIFIED_ENTRIES:
        return f"the problem has more than {MAX_CERTIFIED_ENTRIES:,} entries"
    if not additive(learner.problem.reward):
        return "the reward is not a sum over items, so that nothing bounds the value of the best slate"
    tally = Tally(*(part.copy() for part in learner.tally))
    eligible = ~learner.retired
    try:
        return await asyncio.to_thread(certify_convergence, learner.problem, tally, eligible, epsilon, delta)
    except InvalidArgument as error:
        return str(error)
