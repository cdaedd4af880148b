"""Any policy for contexts on a tally that forgets: windows and discounts, after [GarivierMoulines2011]_."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.contextual.base import ContextPolicy
from superarm.contextual.segments import segment_rows
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.streams import round_keys
from superarm.core.tally import Feedback, Tally, View
from superarm.oracles.base import Guarantee
from superarm.policies.forgetting import Forgetting, RoundBlocks

if TYPE_CHECKING:
    from superarm.core.problem import Problem


class ContextForgetting(ContextPolicy):
    """A policy for contexts on a tally that forgets: as ``Forgetting``, with its blocks.

    After [GarivierMoulines2011]_, block by block. A window counts rounds of all users, not those of a segment. Every
    choice estimates anew from the weighted sum of the blocks. Numeric features need ranges: the sums of earlier frames
    have no rounds.

    Parameters
    ----------
    policy
        A policy for contexts; one on logistic models without refits.
    block
        How many rounds a block has.
    weights
        The weight of each block, newest first: powers of 1/2.
    """

    policy: Any
    block: int
    weights: Any

    def check(self) -> None:
        self.require_family("policy", ContextPolicy, "vac2_ucb()")
        plain = Forgetting(self.policy, self.block, self.weights)
        self.convert("block", plain.block)
        self.convert("weights", plain.weights)

    @property
    def _plain(self) -> Forgetting:
        return Forgetting(self.policy, self.block, self.weights)

    @property
    def rounding(self) -> str:  # type: ignore[override]
        """How the policy on the recent tally records outcomes."""
        return self.policy.rounding

    @property
    def caveat(self) -> str:  # type: ignore[override]
        return str(self.policy.caveat)

    def validate(self, problem: "Problem") -> None:
        self.policy.validate(problem)
        if self.policy.own_memory:
            wrong = f"{self.policy.policy!r} keeps a memory of its own in each segment"
            raise InvalidArgument("policy", wrong, "leave out the window or discount", "Forgetting")
        context = problem.context
        if context.features.standardised and context.dimension(problem.n_items):
            wrong = f"{context.features.standardised[0]!r} is standardised, and the policy forgets"
            raise InvalidArgument("policy", wrong, "give the feature a range, or take a policy that does not forget")

    def new_tally(self, problem: "Problem", replications: int, partial: bool = False) -> Tally:
        return self.policy.new_tally(problem, replications, partial)

    def prepare(self, problem: "Problem", tally: Tally) -> RoundBlocks:
        return RoundBlocks(tally, self.weights)

    def choose(self, problem: "Problem", view: View, memory: RoundBlocks) -> Ints:
        recent = self.recent_view(problem, view, memory)
        memory.memory = (self.policy.prepare(problem, recent.tally),)
        return self.policy.choose(problem, recent, memory.memory[0])

    def recent_view(self, problem: "Problem", view: View, memory: RoundBlocks) -> View:
        """What the policy on the recent tally sees, after the blocks that are too old are forgotten."""
        memory.move_on((view.t - 1) // self.block)
        rows, now = segment_rows(problem, view.context, view.tally), memory.now
        remembered = max(1, int(self.block * self.weights.sum()))
        given = replace(view.context, t=np.minimum(view.context.t, remembered))
        counts = now.pulls[rows] + (view.counts - view.tally.pulls[rows])
        keys = round_keys(view.keys, view.t)
        return View(min(view.t, remembered), now, keys, counts, view.eligible, view.pinned, given)

    def weigh(self, problem: "Problem", view: View, memory: RoundBlocks, action: Ints) -> Any:
        return self.policy.weigh(problem, view, memory.memory[0], action)

    def learn(
        self, problem: "Problem", tally: Tally, memory: RoundBlocks, feedback: Feedback, sign: float = 1.0
    ) -> None:
        scratch = self.policy.prepare(problem, tally)
        self.policy.learn(problem, tally, scratch, feedback, sign)
        block = (feedback.t - 1) // self.block
        memory.move_on(block)
        age = memory.newest - block
        if age < len(self.weights):
            row = memory.blocks[block % len(self.weights)]
            self.policy.learn(problem, row, scratch, feedback, sign)
            self.policy.learn(problem, memory.now, scratch, feedback, sign * float(self.weights[age]))

    def age(self, memory: RoundBlocks, t: int) -> int:
        """How many blocks older than the newest the block of round ``t`` is; negative if it has not begun."""
        return self._plain.age(memory, t)

    def save_state(self, memory: RoundBlocks) -> dict[str, Any]:
        return self._plain.save_state(memory)

    def restore_state(self, memory: RoundBlocks, held: dict[str, Any]) -> None:
        self._plain.restore_state(memory, held)

    def estimates(self, problem: "Problem", view: View, memory: RoundBlocks) -> tuple[Floats, Floats]:
        recent = self.recent_view(problem, view, memory)
        return self.policy.estimates(problem, recent, self.policy.prepare(problem, recent.tally))

    def coefficients(self, problem: "Problem", tally: Tally, memory: RoundBlocks) -> Floats:
        return self.policy.coefficients(problem, memory.now, self.policy.prepare(problem, memory.now))

    def guarantee(self, problem: "Problem") -> Guarantee:
        return self.policy.guarantee(problem)
