"""Any policy for contexts on a tally that forgets: windows and discounts, after [GarivierMoulines2011]_."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import component, for_kernels, interpreted, kernel, verb
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.context.observations import ContextRound, ContextTally
from superarm.errors import InvalidArgument
from superarm.intake import Intake
from superarm.oracles import Guarantee
from superarm.parameters import positive
from superarm.policies import traits
from superarm.policies.base import Policy, choose, fill_weights, learn, linearises, position_share, prepare
from superarm.policies.forgetting import Forgetting, RoundBlocks, block_row, empty_blocks, move_on
from superarm.policies.policy_state import PolicyState
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import Support, span
from superarm.tally import Tally


class TallyLayout(Protocol):
    """How the tally of a model is kept in blocks, which hold plain tallies."""

    def flatten(self, tally: Any) -> Tally:
        """The tally as a plain one; it shares its memory."""
        ...

    def unflatten(self, tally: Tally, like: Any) -> Any:
        """The tally that ``flatten`` made plain, in the shape of ``like``; it shares its memory."""
        ...


@component
class SegmentLayout(NamedTuple):
    """Segments have plain tallies, one after the other."""

    def flatten(self, tally: Any) -> Tally:
        return tally  # type: ignore[no-any-return]

    def unflatten(self, tally: Tally, like: Any) -> Any:
        return tally


@component
class RegressionLayout(NamedTuple):
    """The precision and the response of a regression, flat, are in the place of moments and products."""

    def flatten(self, tally: Any) -> Tally:
        return Tally(
            tally.pulls,
            tally.total,
            tally.square,
            tally.missed,
            tally.joint,
            tally.reference,
            tally.precision.reshape(-1),
            tally.response.reshape(-1),
        )

    def unflatten(self, tally: Tally, like: Any) -> Any:
        none = np.zeros(0)
        return ContextTally(
            tally.pulls,
            tally.total,
            tally.square,
            tally.missed,
            tally.joint,
            tally.reference,
            none,
            none,
            tally.moments.reshape(like.precision.shape),
            tally.products.reshape(like.response.shape),
        )


flatten = verb(TallyLayout.flatten)
unflatten = verb(TallyLayout.unflatten)


class ContextBlocks(NamedTuple):
    """Blocks of rounds, and the weights and shifts of all entries as of the last choice.

    ``shape`` is a tally of the problem, in the shape of which blocks are saved.
    """

    blocks: RoundBlocks
    weights: Floats
    shifts: Floats
    shape: Any


@component
class ContextForgetting(NamedTuple):
    """A policy for contexts on a tally that forgets: as :class:`superarm.policies.Forgetting`, with its blocks.

    After [GarivierMoulines2011]_, block by block. A window counts rounds of all users, not those of a segment. Every
    choice estimates anew from the weighted sum of the blocks. Numeric features need ranges: the sums of earlier frames
    have no rounds.
    """

    policy: Policy
    block: int
    weights: Floats
    layout: TallyLayout = RegressionLayout()

    def _check(self) -> None:
        positive(self, "block")

    @property
    def caveat(self) -> str:
        return traits.caveat(self.policy)

    @property
    def intake(self) -> Intake:
        """How the policy on the recent tally records outcomes."""
        return traits.intake(self.policy)

    @for_kernels
    def prepare(self, problem: Problem, tally: Any) -> ContextBlocks:
        blocks = empty_blocks(len(self.weights), flatten(self.layout, tally), self.weights)
        entries = len(tally.total)
        shifts = np.zeros(entries if linearises(self.policy) else 0)
        return ContextBlocks(blocks, np.zeros(entries), shifts, tally)

    def choose(self, problem: Problem, current: ContextRound, memory: ContextBlocks, stream: Stream) -> Ints:
        recent = _recent_round(self, problem, current, memory)
        inner = prepare(self.policy, problem, recent.tally)
        action = choose(self.policy, problem, recent, inner, stream)
        everyone, support = np.arange(problem.n_arms), problem.terms.support
        fill_weights(self.policy, inner, support, everyone, memory.weights, memory.shifts)
        return action

    def learn(
        self,
        problem: Problem,
        tally: Any,
        memory: ContextBlocks,
        feedback: Any,
        stream: Stream,
        sign: float,
    ) -> None:
        blocks, n = memory.blocks, len(self.weights)
        inner = prepare(self.policy, problem, tally)
        learn(self.policy, problem, tally, inner, feedback, stream, sign)
        block = (feedback.t - 1) // self.block
        move_on(blocks, self.weights, block)
        age = blocks.newest[0] - block
        if age < n:
            row = unflatten(self.layout, block_row(blocks, block % n), tally)
            learn(self.policy, problem, row, inner, feedback, stream, sign)
            now = unflatten(self.layout, blocks.now, tally)
            learn(self.policy, problem, now, inner, feedback, stream, sign * self.weights[age])

    def fill_weights(
        self, memory: ContextBlocks, support: Support, action: Ints, weights: Floats, shifts: Floats
    ) -> None:
        at = 0
        for j in action:
            first, last = span(support, j)
            for e in range(first, last):
                if at < len(weights):
                    weights[at] = memory.weights[e]
                if at < len(shifts):
                    shifts[at] = memory.shifts[e]
                at += 1

    def position_share(self, position: int) -> float:
        return float(position_share(self.policy, position))

    def linearises(self) -> bool:
        return bool(linearises(self.policy))

    @interpreted
    def parameters(self, problem: Problem, current: ContextRound, memory: ContextBlocks, stream: Stream) -> Any:
        """Those of the policy on what is remembered."""
        if not traits.explains(self.policy):
            wrong = f"{type(self.policy).__name__} chooses batches by other things than parameters of entries"
            raise InvalidArgument(
                "policy", wrong, "explain decisions of policies on segments, linear or logistic models"
            )
        hooks: Any = self.policy
        recent = _recent_round(self, problem, current, memory)
        return hooks.parameters(problem, recent, prepare(self.policy, problem, recent.tally), stream)

    @interpreted
    def coefficients(self, problem: Problem, tally: Any, memory: ContextBlocks) -> Floats:
        """The parameter vectors, from what is remembered."""
        hooks: Any = self.policy
        now = unflatten(self.layout, memory.blocks.now, tally)
        found: Floats = hooks.coefficients(problem, now, prepare(self.policy, problem, now))
        return found

    @interpreted
    def save_state(self, memory: ContextBlocks) -> PolicyState:
        """What cannot be computed anew."""
        blocks, n = memory.blocks, len(self.weights)
        newest = int(blocks.newest[0])
        rows = [(max(newest, 0) - age) % n for age in range(n)]
        tallies = [Tally(*(part.copy() for part in block_row(blocks, row))) for row in rows]
        return PolicyState(newest, [unflatten(self.layout, tally, memory.shape) for tally in tallies])

    @interpreted
    def restore_state(self, memory: ContextBlocks, held: PolicyState) -> None:
        """Put what was kept into a memory just prepared."""
        flat = held.changed(self.layout.flatten)
        Forgetting(self.policy, self.block, self.weights).restore_state(memory.blocks, flat)

    @interpreted
    def age(self, memory: ContextBlocks, t: int) -> int:
        """How many blocks older than the newest the block of round ``t`` is; negative if it has not begun."""
        return int(memory.blocks.newest[0]) - (t - 1) // self.block

    @interpreted
    def record_as(self, intake: Intake) -> "ContextForgetting":
        """The same policy, recording outcomes in another way."""
        inner: Any = self.policy
        return self._replace(policy=inner._replace(intake=intake))

    @interpreted
    def learns_from(self, model: Any) -> bool:
        """Whether the policy reads contexts of this model."""
        return traits.learns_from(self.policy, model)

    @interpreted
    def fit(self, problem: Problem) -> "ContextForgetting":
        context = problem.context
        if context is not None and context.features.standardised and context.dimension(problem.n_items):
            wrong = f"{context.features.standardised[0]!r} is standardised, and the policy forgets"
            raise InvalidArgument("policy", wrong, "give the feature a range, or take a policy that does not forget")
        return self._replace(policy=traits.without_refits(traits.plain(self.policy, problem)))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.policy.guarantee(problem)


@kernel
def _recent_round(
    forgetting: ContextForgetting, problem: Problem, current: ContextRound, memory: ContextBlocks
) -> Any:  # a ContextRound, of which the Protocol of policies does not know
    """What the policy on the recent tally sees, after the blocks that are too old are forgotten."""
    move_on(memory.blocks, forgetting.weights, (current.round - 1) // forgetting.block)
    first = current.context.segment * problem.n_arms
    own = slice(first, first + problem.n_arms)
    waiting = current.candidates.counts - current.tally.pulls[own]
    now = unflatten(forgetting.layout, memory.blocks.now, current.tally)
    remembered = max(1, int(forgetting.block * forgetting.weights.sum()))
    candidates = Candidates(memory.blocks.now.pulls[own] + waiting, current.candidates.eligible)
    return ContextRound(min(current.t, remembered), now, candidates, current.context, current.pending, current.round)
