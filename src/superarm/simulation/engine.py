"""The simulation loop: rounds in Python, replications inside the arrays."""

from typing import Any

import numpy as np

from superarm.contextual.catalog import for_context
from superarm.core import streams
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.ops import kernels_allowed, op
from superarm.core.tally import Feedback, Tally, View
from superarm.core.totals import whole_feedback
from superarm.environments.base import Answer, Environment
from superarm.policies.base import Policy, choose_batches, require_outcomes
from superarm.problem import Problem

_AFTER_ALL_ROUNDS = 1 << 62
"""A round number that no run reaches."""


class Run:
    """Runs in progress: R replications of one policy on one instance, with their expected reward so far (R,)."""

    def __init__(
        self,
        problem: Problem,
        environment: Environment,
        policy: Policy[Any],
        keys: streams.RunKeys,
        fuse: bool = True,
    ) -> None:
        policy = for_context(policy, problem)
        require_outcomes(policy, problem)
        self.problem, self.environment, self.policy, self.keys = problem, environment, policy, keys
        self.t, self.fuse, replications = 0, fuse, len(keys.policy)
        self.memory = policy.new_memory(problem, replications, environment.partial)
        self._give_free_samples()
        self.earned = np.zeros(replications)
        self.eligible = np.ones((replications, problem.n_arms), bool)
        self.pinned = np.tile(np.array(problem.actions.pins, np.int64), (replications, 1))
        self.last: Ints = np.full((replications, problem.k), -1)
        self.clock = np.zeros((replications, 1 if problem.context is None else problem.context.n_segments), np.int64)

    @property
    def tally(self) -> Tally:
        """The sums of all observations."""
        return self.memory.tally

    def advance(self, until: int) -> None:
        """Play the rounds up to ``until``."""
        while self.t < until:
            if self._can_play_on(until):
                self._play_on(until)
            else:
                self.play_round()

    def _can_play_on(self, until: int) -> bool:
        """Whether one kernel can play the rounds up to ``until``; compiling it pays for many rounds only."""
        fused = self.policy.fused(self.problem, self.environment) is not None and self.memory.only_sums
        return self.fuse and fused and kernels_allowed() and bool(self.tally.pulls.min() > 0.0)

    def _play_on(self, until: int) -> None:
        problem, tally, rounds = self.problem, self.tally, np.arange(self.t + 1.0, until + 1.0)
        policy: Any = self.policy
        numerator = np.ascontiguousarray(policy.index.numerator(rounds))
        statistics = (tally.pulls, tally.total, tally.square, tally.missed, tally.mean, tally.deviation)
        game = (self.keys.environment, self.t, self.environment.means(problem, 1), problem.weights)
        kind = policy.fused(problem, self.environment)
        op("play", 1 << 60)(kind, numerator, *game, *statistics, self.eligible, self.last, self.earned)
        self.t = until

    def play_round(self) -> Feedback:
        """Choose a batch, draw its outcome, learn from it, and add up the expected reward."""
        self.t += 1
        problem, environment, memory, t = self.problem, self.environment, self.memory, self.t
        given = None if problem.context is None else self._next_context()
        memory.advance(t)
        tally = memory.tally
        counts = tally.pulls if given is None else self._counts(given.segment)
        view = View(t, tally, self.keys.policy, counts, self.eligible, self.pinned, given)
        self.last = choose_batches(self.policy, problem, view, memory)
        answer: Any = environment.draw(problem, self.last, t, self.keys.environment)
        if not isinstance(answer, Answer):
            wrong = f"draw of {type(environment).__name__} returned {type(answer).__name__}"
            raise InvalidArgument("environment", wrong, "return Answer(outcome)")
        feedback = self._feedback(self.last, answer)
        if given is not None:
            feedback.context = self.policy.weigh(problem, view, memory, self.last)
        if (plan := memory.plan(t)) is not None:
            memory.accept(plan)
        memory.learn(feedback)
        self.earned += environment.worth(problem, self.last, t, self.keys.environment)
        return feedback

    def _next_context(self) -> Any:
        """The contexts of the round, each counted as a decision of its segment."""
        given = self.environment.contexts(self.problem, self.t, self.keys.environment)
        if given is None:
            raise InvalidArgument("environment", "it has no contexts, and the problem has", "use context_table(…)")
        rows = np.arange(len(self.clock))
        self.clock[rows, given.segment] += 1
        given.t = self.clock[rows, given.segment]
        return given

    def _counts(self, segment: Ints) -> Floats:
        """The pulls of the arms in each replication's segment, (R, n_arms)."""
        n_segments = self.clock.shape[1]
        return self.tally.pulls if n_segments == 1 else self.tally.pulls[np.arange(len(segment)) * n_segments + segment]

    def _feedback(self, action: Ints, answer: Any) -> Feedback:
        if answer.total is not None:
            return whole_feedback(self.t, action, answer.total)
        arms = action if answer.observed is None else answer.observed
        outcome = answer.outcome
        if self.policy.rounding == "coin":
            outcome = streams.coins(self.keys.rounding, self.t, arms, outcome)
        return self.problem.shared(Feedback(self.t, arms, outcome, answer.seen))

    def _give_free_samples(self) -> None:
        """Observe every arm alone, so that no other arm hides it, in round 0 and in rounds that no run reaches."""
        samples = self.tally.like()
        for n in range(int(self.environment.free_samples)):
            t = 0 if n == 0 else _AFTER_ALL_ROUNDS + n
            for j in range(self.problem.n_arms):
                arm = np.full((len(self.keys.policy), 1), j)
                answer = self.environment.draw(self.problem, arm, t, self.keys.environment)
                samples.record(Feedback(t, arm, answer.outcome, answer.seen))
        if self.environment.free_samples:
            self.memory.warm(samples, 1)
