"""Any policy for contexts on a tally that forgets: windows and discounts, after [GarivierMoulines2011]_."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.next.contextual.base import ContextPolicy
from superarm.next.contextual.segments import segment_rows
from superarm.next.core.streams import round_keys
from superarm.next.core.tally import Feedback, Tally, View
from superarm.next.oracles.base import Guarantee

if TYPE_CHECKING:
    from superarm.next.core.problem import Problem


class Blocks:
    """Tallies of the last blocks of rounds, block n in place n % n_blocks, and their weighted sum ``now``.

    ``newest`` is the number of the newest block, -1 before any. ``memory`` is that of the policy, as of its last
    choice; ``scratch`` is one that is not used for choices.
    """

    def __init__(self, tally: Tally, weights: Floats) -> None:
        self.weights, self.newest = weights, -1
        self.tallies = [tally.like() for _ in weights]
        self.memory: Any = None
        self.scratch: Any = None
        if tally.pulls.any():
            self.tallies[0].add(tally)
        self.weigh()

    def move_on(self, block: int) -> None:
        """Begin the blocks up to ``block``; what was there before any began belongs to the first that does."""
        if block <= self.newest:
            return
        n, tallies = len(self.tallies), self.tallies
        if self.newest < 0:
            tallies[block % n], tallies[0] = tallies[0], tallies[block % n]
        else:
            for begun in range(max(self.newest + 1, block - n + 1), block + 1):
                tallies[begun % n] = tallies[0].like()
        self.newest = block
        self.weigh()

    def newest_first(self) -> list[Tally]:
        """The tallies of the blocks, the newest first."""
        return [self.tallies[(max(self.newest, 0) - age) % len(self.tallies)] for age in range(len(self.tallies))]

    def weigh(self) -> None:
        """Add the blocks up, each with its weight."""
        self.now = self.tallies[0].like()
        for tally, weight in zip(self.newest_first(), self.weights, strict=True):
            self.now.add(tally, float(weight))


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

    policy: ContextPolicy
    block: int
    weights: Any

    def check(self) -> None:
        self.require_family("policy", ContextPolicy, "vac2_ucb()")
        self.require("block", self.block >= 1, "give a number of rounds >= 1")
        self.convert("weights", np.array(self.weights, float))
        halves = np.log2(self.weights)
        powers = self.weights.size > 0 and bool((halves <= 0.0).all() and (halves == np.round(halves)).all())
        self.require("weights", powers, "give powers of 1/2, newest first")

    @property
    def rounding(self) -> str:  # type: ignore[override]
        """How the policy on the recent tally records outcomes."""
        return self.policy.rounding

    @property
    def caveat(self) -> str:  # type: ignore[override]
        return str(self.policy.caveat)

    def validate(self, problem: "Problem") -> None:
        self.policy.validate(problem)
        context = problem.context
        if context.features.standardised and context.dimension(problem.n_items):
            wrong = f"{context.features.standardised[0]!r} is standardised, and the policy forgets"
            raise InvalidArgument("policy", wrong, "give the feature a range, or take a policy that does not forget")

    def new_tally(self, problem: "Problem", replications: int, partial: bool = False) -> Tally:
        return self.policy.new_tally(problem, replications, partial)

    def prepare(self, problem: "Problem", tally: Tally) -> Blocks:
        return Blocks(tally, self.weights)

    def choose(self, problem: "Problem", view: View, memory: Blocks) -> Ints:
        recent = self.recent_view(problem, view, memory)
        memory.memory = self.policy.prepare(problem, recent.tally)
        return self.policy.choose(problem, recent, memory.memory)

    def recent_view(self, problem: "Problem", view: View, memory: Blocks) -> View:
        """What the policy on the recent tally sees, after the blocks that are too old are forgotten."""
        memory.move_on((view.t - 1) // self.block)
        rows, now = segment_rows(problem, view.context, view.tally), memory.now
        remembered = max(1, int(self.block * self.weights.sum()))
        given = replace(view.context, t=np.minimum(view.context.t, remembered))
        counts = now.pulls[rows] + (view.counts - view.tally.pulls[rows])
        keys = round_keys(view.keys, view.t)
        return View(min(view.t, remembered), now, keys, counts, view.eligible, view.pinned, given)

    def weigh(self, problem: "Problem", view: View, memory: Blocks, action: Ints) -> Any:
        return self.policy.weigh(problem, view, memory.memory, action)

    def learn(self, problem: "Problem", tally: Tally, memory: Blocks, feedback: Feedback, sign: float = 1.0) -> None:
        if memory.scratch is None:
            memory.scratch = self.policy.prepare(problem, tally)
        self.policy.learn(problem, tally, memory.scratch, feedback, sign)
        block = (feedback.t - 1) // self.block
        memory.move_on(block)
        age = memory.newest - block
        if age < len(self.weights):
            row = memory.tallies[block % len(self.weights)]
            self.policy.learn(problem, row, memory.scratch, feedback, sign)
            self.policy.learn(problem, memory.now, memory.scratch, feedback, sign * float(self.weights[age]))
            memory.now.refresh()

    def age(self, memory: Blocks, t: int) -> int:
        """How many blocks older than the newest the block of round ``t`` is; negative if it has not begun."""
        return memory.newest - (t - 1) // self.block

    def save_state(self, memory: Blocks) -> dict[str, Any]:
        """The number of the newest block, and the tallies of all, newest first."""
        return {"newest": memory.newest, "blocks": memory.newest_first()}

    def restore_state(self, memory: Blocks, held: dict[str, Any]) -> None:
        memory.newest, n = held["newest"], len(memory.tallies)
        for age, tally in enumerate(held["blocks"]):
            memory.tallies[(max(memory.newest, 0) - age) % n] = tally
        memory.weigh()

    def estimates(self, problem: "Problem", view: View, memory: Blocks) -> tuple[Floats, Floats]:
        recent = self.recent_view(problem, view, memory)
        return self.policy.estimates(problem, recent, self.policy.prepare(problem, recent.tally))

    def coefficients(self, problem: "Problem", tally: Tally, memory: Blocks) -> Floats:
        return self.policy.coefficients(problem, memory.now, self.policy.prepare(problem, memory.now))

    def guarantee(self, problem: "Problem") -> Guarantee:
        return self.policy.guarantee(problem)
