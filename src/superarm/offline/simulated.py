"""Simulated logs, of which the truth is known: to try estimators out, and to test them."""

from typing import Any

import numpy as np

from superarm.agent import Learner
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.streams import run_keys
from superarm.core.support import Dense
from superarm.core.tally import Feedback
from superarm.environments import Answer
from superarm.offline.inclusion import explore_slates, explored_inclusion, explored_positions
from superarm.offline.log import Log
from superarm.policies import Policy
from superarm.simulation.instances import Instance


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
    >>> from superarm.simulation import instances
    >>> instance = instances.random_coverage(n_arms=6, n_items=3, k=2)
    >>> simulate_log(instance, "uniform", 50)
    Log(50 rounds, 6 arms, 3 items, slates of 2)
    """
    problem, environment = instance.problem, instance.environment
    if not problem.actions.uniform or not isinstance(problem.support, Dense):
        raise InvalidArgument("instance", "its batches are not any k arms of a dense problem", "take Subsets(k)")
    share = 1.0 if isinstance(logger, str) else explore
    if isinstance(logger, str) and logger != "uniform":
        raise InvalidArgument("logger", f"{logger!r}", "give 'uniform', a slate or a policy")
    keys = run_keys([np.random.SeedSequence(seed)])
    learner = Learner(problem, logger) if isinstance(logger, Policy) else None
    fixed = np.arange(problem.k) if isinstance(logger, str) or learner else np.asarray(logger, np.int64)
    rng, kept = np.random.default_rng(seed), _Kept(n_rounds, problem.k, problem.n_items)
    for t in range(1, n_rounds + 1):
        queue = learner.choose(learner.view(t, keys.policy)) if learner else fixed
        slates, chain = explore_slates(problem.n_arms, queue[None, :], share, rng)
        answer = environment.draw(problem, slates, t, keys.environment)
        kept.add(t - 1, slates[0], chain[0], answer)
        kept.inclusion[t - 1] = explored_inclusion(problem.n_arms, queue, share)[slates[0]]
        kept.marginal[t - 1] = explored_positions(problem.n_arms, queue, share)[slates[0], np.arange(problem.k)]
        if learner:
            learner.pend(queue, t)
            learner.unpend(queue)
            learner.apply(Feedback(t, slates, answer.outcome, answer.seen), keys.rounding)
    return kept.log(problem)


class _Kept:
    """The arrays of a log that is being made."""

    def __init__(self, n: int, k: int, n_items: int) -> None:
        self.slates = np.zeros((n, k), np.int64)
        self.chain, self.marginal, self.inclusion = np.ones((n, k)), np.ones((n, k)), np.ones((n, k))
        self.outcome, self.seen = np.zeros((n, k, n_items)), np.ones((n, k, n_items), bool)

    def add(self, n: int, slate: Ints, chain: Floats, answer: Answer) -> None:
        self.slates[n], self.chain[n], self.outcome[n] = slate, chain, answer.outcome[0]
        if answer.seen is not None:
            self.seen[n] = answer.seen[0]

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
