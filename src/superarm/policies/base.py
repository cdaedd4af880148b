"""The contract of policies, which choose the next batch.

A policy sees the problem and the tally, never the environment. ``prepare`` derives its memory from the tally,
``choose`` returns a batch, and ``learn`` records feedback. The memory can always be computed again from the tally.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import allocating, kernel, lean, shared, verb
from superarm._renamed import old_fields
from superarm.actions import Actions, cover
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.context.sums import round_share
from superarm.oracles import Guarantee
from superarm.oracles.base import BatchBuffer
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import span
from superarm.tally import Feedback, Tally


@old_fields(ranks="candidates")
class Round(NamedTuple):
    """What a policy sees when it chooses: the round ``t`` >= 1, the tally, and the candidates.

    ``candidates.counts`` are the tally's pulls plus the pending ones. They count in the confidence radius, so that many
    decisions before any feedback differ; means are computed from observed outcomes alone.
    """

    t: int
    tally: Tally
    candidates: Candidates


class MomentsAsked(NamedTuple):
    """What a policy asks of the tally beyond the sums of every entry: see :class:`superarm.moments.Moments`."""

    recorded: bool
    products: bool


NO_MOMENTS = MomentsAsked(False, False)


class Policy(Protocol):
    """Chooses the next batch."""

    def prepare(self, problem: Problem, tally: Tally) -> Any:
        """The policy's memory of ``tally``: a NamedTuple of arrays."""
        ...

    def choose(self, problem: Problem, current: Round, memory: Any, stream: Stream) -> Ints:
        """The arms to play, in the order of picking."""
        ...

    def learn(
        self, problem: Problem, tally: Tally, memory: Any, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        """Record feedback (``sign=1.0``), or take it back (``sign=-1.0``), and bring the memory up to date."""
        ...

    def fit(self, problem: Problem) -> "Policy":
        """The policy made ready for this problem."""
        ...

    def guarantee(self, problem: Problem) -> Guarantee:
        """What the policy's oracle promises on this problem."""
        ...


class PolicyHooks(Protocol):
    """Methods and attributes that a policy may define beyond :class:`Policy`.

    The functions of ``traits`` and ``policy_state`` return them, or their defaults for a policy without them.
    """

    @property
    def intake(self) -> Any:
        """How outcomes are recorded, an ``Intake``: as they are, by default."""
        ...

    def plain(self, problem: Problem) -> Policy:
        """The policy made ready for this problem without devices for speed; what ``fit`` returns, by default."""
        ...

    def save_state(self, memory: Any) -> Any:
        """The part of the memory that cannot be computed again from the tally, a ``PolicyState``; none by default."""
        ...

    def restore_state(self, memory: Any, held: Any) -> None:
        """Put the state ``held``, which ``save_state`` returned, into a memory that ``prepare`` has just made."""
        ...

    def age(self, memory: Any, t: int) -> int:
        """How many blocks of rounds ago round ``t`` was, for policies that forget."""
        ...

    def moments(self, problem: Problem) -> "MomentsAsked":
        """Which moments of the items of an arm the tally has to hold for the policy; none by default."""
        ...

    def fill_weights(self, memory: Any, support: Any, action: Ints, weights: Any, shifts: Any) -> None:
        """Write the weights that observations of ``action``'s entries will have, as of the last choice; else none.

        ``shifts`` (empty unless the policy ``linearises``) are what is added to outcomes, ``ContextFeedback.shifts``.

        They are stored with the decision, so that its feedback counts the same whenever it comes.
        """
        ...

    def position_share(self, position: int) -> float:
        """The share of its weight that an observation at that position of the batch has, from 0; 1 by default."""
        ...

    def linearises(self) -> bool:
        """Whether outcomes enter the regression with shifts, as those of logistic models; False by default."""
        ...

    def parameters(self, problem: Problem, current: Any, memory: Any, stream: Stream) -> Any:
        """The estimates of all entries, and the parameters at which the oracle chooses; plain Python."""
        ...

    def coefficients(self, problem: Problem, tally: Any, memory: Any) -> Any:
        """The parameter vectors of a regression, (n_groups, d); plain Python, for explanations."""
        ...

    def choose_into(self, problem: Problem, current: Any, memory: Any, stream: Stream, batch: BatchBuffer) -> int:
        """As ``choose``; writes the batch into ``batch.chosen`` and returns its size, so that no array is made."""
        ...

    def refit(self, problem: Problem, memory: Any, t: int) -> None:
        """Estimate anew what is due after the choice of round ``t``, in a simulation; nothing by default."""
        ...

    def plan_refit(self, problem: Problem, memory: Any, t: int) -> Any:
        """What ``refit`` would estimate, a ``Refit``, or None if nothing is due; plain Python."""
        ...

    def take_refit(self, problem: Problem, memory: Any, refit: Any) -> None:
        """Take on what ``plan_refit`` returned, here or elsewhere; plain Python."""
        ...

    def learns_from(self, model: Any) -> bool:
        """Whether the policy reads the contexts of problems with that model; a policy without it reads none."""
        ...

    def keep_late(self, problem: Problem, memory: Any, feedback: Any, frame: int, sign: float) -> None:
        """Keep what was observed of a decision of an earlier frame; only policies that keep observations."""
        ...

    def without_refits(self) -> Policy:
        """The policy that keeps no observations, for policies that keep some."""
        ...

    @property
    def any_actions(self) -> bool:
        """Whether a memory serves any action set of the problem; False by default."""
        ...

    @property
    def caveat(self) -> str:
        """What the policy assumes that may not hold, in a sentence for reports; empty if there is nothing."""
        ...


@lean
def _without_weights(policy: Any, memory: Any, support: Any, action: Ints, weights: Any, shifts: Any) -> None:
    pass


@lean
def _linear(policy: Any) -> bool:
    return False


@lean
def _without_refits(policy: Any, problem: Any, memory: Any, t: int) -> None:
    pass


@lean
def _all_alike(policy: Any, position: int) -> float:
    return 1.0


position_share: verb[..., float] = verb(PolicyHooks.position_share, default=_all_alike)
refit: verb[..., None] = verb(PolicyHooks.refit, default=_without_refits)
fill_weights: verb[..., None] = verb(PolicyHooks.fill_weights, default=_without_weights)
linearises: verb[..., bool] = verb(PolicyHooks.linearises, default=_linear)
prepare = verb(Policy.prepare)
choose = verb(Policy.choose)


@allocating
def _choose_and_copy(
    policy: Any, problem: Problem, current: Any, memory: Any, stream: Stream, batch: BatchBuffer
) -> int:
    action, chosen = choose(policy, problem, current, memory, stream), batch.chosen
    for n in range(len(action)):
        chosen[n] = action[n]
    return len(action)


choose_into: verb[..., int] = verb(PolicyHooks.choose_into, default=_choose_and_copy)
learn = verb(Policy.learn, allocates=True)


@kernel
def fill_decision_weights(
    policy: Any, memory: Any, support: Any, action: Ints, weights: Floats, shifts: Floats
) -> None:
    """Write the weights of a decision's observations: those of ``fill_weights``, less by the arms' positions."""
    fill_weights(policy, memory, support, action, weights, shifts)
    at = 0
    for position in range(len(action)):
        first, last = span(support, action[position])
        share = position_share(policy, position)
        if share < 1.0:
            for o in range(at, min(at + last - first, len(weights))):
                weights[o] = round_share(weights[o] * share)
        at += last - first


@lean
def any_unsampled(candidates: Candidates) -> bool:
    """Whether an eligible arm was never pulled."""
    for j in range(len(candidates.counts)):
        if candidates.counts[j] == 0.0 and candidates.eligible[j]:
            return True
    return False


@allocating
def write_first_batch(actions: Actions, candidates: Candidates, chosen: Ints) -> int:
    """Write the first batch into ``chosen`` and return its size."""
    action = first_batch(actions, candidates)
    for n in range(len(action)):
        chosen[n] = action[n]
    return len(action)


@shared
def first_batch(actions: Actions, candidates: Candidates) -> Ints:
    """A batch with as many unsampled arms as possible; empty if there are none, or no playable batch contains one."""
    if not any_unsampled(candidates):
        return np.empty(0, np.int64)
    action = cover(actions, candidates)
    for j in action:
        if candidates.counts[j] == 0.0:
            return action
    return action[:0]
