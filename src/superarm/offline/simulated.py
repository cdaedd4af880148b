"""Simulated logs, of which the truth is known: to try estimators out, and to test them."""

from typing import Any

import numpy as np

from superarm.agent import Agent
from superarm.arrays import Floats, Ints
from superarm.environments import respond
from superarm.errors import InvalidArgument
from superarm.offline.inclusion import explore_slates, explored_inclusion, explored_positions
from superarm.offline.log import Log
from superarm.policies.traits import is_policy
from superarm.simulation import Instance
from superarm.streams import run_streams
from superarm.support import Dense


def simulate_log(instance: Instance, logger: Any, n_rounds: int, explore: float = 0.0, seed: int = 0) -> Log:
    """The log that a policy would have made on an instance.

    Parameters
    ----------
    instance
        A problem of any k arms, and its environment.
    logger
        ``"uniform"``, slates drawn uniformly at random; a slate, shown in every round; or a policy, which learns.
    n_rounds
        How many rounds.
    explore
        The share of slots that are filled at random, as the service does it; the log then has all probabilities.
    seed
        The root of all randomness.

    Examples
    --------
    >>> import superarm as sa
    >>> instance = sa.instances.random_coverage(n_arms=6, n_items=3, k=2)
    >>> simulate_log(instance, "uniform", 50)
    Log(50 rounds, 6 arms, 3 items, slates of 2)
    """
    problem = instance.problem
    if not problem.uniform or not isinstance(problem.support, Dense):
        raise InvalidArgument("instance", "its batches are not any k arms of a dense problem", "take Subsets(k)")
    share = 1.0 if isinstance(logger, str) else explore
    if isinstance(logger, str) and logger != "uniform":
        raise InvalidArgument("logger", f"{logger!r}", "give 'uniform', a slate or a policy")
    agent = Agent(problem, logger, seed=seed) if is_policy(logger) else None
    fixed = np.arange(problem.k) if isinstance(logger, str) or agent else np.asarray(logger, np.int64)
    rng, users = np.random.default_rng(seed), run_streams(np.random.SeedSequence(seed)).environment
    kept = _Kept(n_rounds, problem.k, problem.n_items)
    for t in range(1, n_rounds + 1):
        decision = agent.ask() if agent else None
        queue = decision.action if decision else fixed
        slates, chain = explore_slates(problem.n_arms, queue[None, :], share, rng)
        feedback = respond(instance.environment, problem.support, slates[0], t, users)
        kept.add(t - 1, slates[0], chain[0], feedback)
        kept.inclusion[t - 1] = explored_inclusion(problem.n_arms, queue, share)[slates[0]]
        kept.marginal[t - 1] = explored_positions(problem.n_arms, queue, share)[slates[0], np.arange(problem.k)]
        if agent and decision:
            agent.tell(decision, feedback.outcome, feedback.seen, arms=feedback.action.tolist())
    return kept.log(problem)


class _Kept:
    """The arrays of a log that is being made."""

    def __init__(self, n: int, k: int, n_items: int) -> None:
        self.slates = np.zeros((n, k), np.int64)
        self.chain, self.marginal, self.inclusion = np.ones((n, k)), np.ones((n, k)), np.ones((n, k))
        self.outcome, self.seen = np.zeros((n, k, n_items)), np.ones((n, k, n_items), bool)

    def add(self, n: int, slate: Ints, chain: Floats, feedback: Any) -> None:
        self.slates[n], self.chain[n] = slate, chain
        self.outcome[n] = feedback.outcome.reshape(self.outcome.shape[1:])
        self.seen[n] = feedback.seen.reshape(self.seen.shape[1:])

    def log(self, problem: Any) -> Log:
        return Log.from_arrays(
            problem,
            self.slates,
            self.outcome,
            seen=self.seen,
            propensity=self.chain,
            position_propensity=self.marginal,
            inclusion=self.inclusion,
        )


def draw_log(problem: Any, means: Any, queues: Ints, share: float, rng: np.random.Generator, groups: Any = None) -> Log:
    """A log of binary outcomes by a logger that explores around ``queues`` (n, k), drawn all at once.

    ``means`` is a function from slates (n, k) to the mean outcomes (n, k, n_items).
    """
    slates, chain = explore_slates(problem.n_arms, queues, share, rng)
    q = np.asarray(means(slates))
    inclusion, marginal = np.empty(slates.shape), np.empty(slates.shape)
    for queue in np.unique(queues, axis=0):
        own = (queues == queue).all(axis=1)
        inclusion[own] = explored_inclusion(problem.n_arms, queue, share)[slates[own]]
        marginal[own] = explored_positions(problem.n_arms, queue, share)[slates[own], np.arange(len(queue))]
    return Log.from_arrays(
        problem,
        slates,
        (rng.random(q.shape) < q).astype(float),
        propensity=chain,
        position_propensity=marginal,
        inclusion=inclusion,
        groups=groups,
    )
