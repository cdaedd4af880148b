"""Forgetting: any policy on the last blocks of rounds, for means that change; sliding windows and discounts."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from superarm.core.arrays import Floats, Ints, count, floats
from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.core.streams import round_keys
from superarm.core.tally import Feedback, Tally, View
from superarm.policies.base import Policy
from superarm.policies.memory import NEVER, Arrays, Memory, inside, record_rows, segment_rows, under
from superarm.policies.wrappers import Wrapper
from superarm.problem import Problem


class BlockMemory(Memory):
    """The sums of all rounds; those of the last blocks of rounds, newest first; and the memory of the policy.

    ``newest`` is the number of the newest block, -1 before any. The memory of the policy, ``inner``, has the weighted
    sum of the blocks. Feedback for decisions of rounds before ``since`` counts for round ``since``.
    """

    divisible = False

    def __init__(self, policy: Any, problem: Problem, replications: int = 1, partial: bool = False) -> None:
        self.policy, self.problem, self.newest, self.since = policy, problem, -1, -1
        self.inner: Memory = policy.policy.new_memory(problem, replications, partial)
        self.n_segments = 1 if problem.context is None else problem.context.n_segments
        self.tally = self.inner.tally.like()
        self.blocks = [self.tally.like() for _ in policy.weights]
        self._weigh()

    @property
    def begun(self) -> int:  # type: ignore[override]
        """That of the policy's memory."""
        return self.inner.begun

    def _weigh(self) -> None:
        """Add the blocks up, each with its weight, for the policy."""
        sums = self.tally.like()
        for weight, block in zip(self.policy.weights.tolist(), self.blocks, strict=True):
            sums.add(block, weight)
        self.inner.refill(sums)

    def age(self, t: int) -> int:
        """How many blocks older than the newest the block of round ``t`` is; negative if it has not begun."""
        return self.newest - (t - 1) // self.policy.block

    def advance(self, t: int) -> None:
        """Begin the blocks up to that of round ``t``; what was there before any belongs to the first that begins."""
        steps, n = -self.age(t), len(self.blocks)
        if steps <= 0:
            return
        if self.newest >= 0:
            self.blocks = [self.tally.like() for _ in range(min(steps, n))] + self.blocks[: max(n - steps, 0)]
        self.newest += steps
        self._weigh()

    def at(self, t: int) -> Self:
        if self.age(t) >= 0:
            return self
        new = copy(self)
        new.inner = copy(self.inner)  # whose sums are replaced, not changed
        new.advance(t)
        return new

    def learn(self, feedback: Feedback, weight: float = 1.0) -> None:
        t = max(feedback.t, self.since)
        self.advance(t)
        age, known = self.age(t), feedback.t > self.begun
        record_rows(self.tally, feedback, self.n_segments, weight, known)
        if age < len(self.blocks):
            record_rows(self.blocks[age], feedback, self.n_segments, weight, known)
            self.inner.learn(feedback, weight * float(self.policy.weights[age]))

    def warm(self, past: Tally, t: int, weight: float = 1.0) -> None:
        self.advance(t)
        age = self.age(t)
        self.tally.add(past, weight)
        if age < len(self.blocks):
            self.blocks[age].add(past, weight)
            self.inner.warm(past, t, weight * float(self.policy.weights[age]))

    def inherit(self, old: Memory, t: int) -> None:
        """Equal blocks of rounds stay; otherwise what was observed before counts for round ``t``."""
        self.tally.take_over(old.tally, t)
        self.blocks = [self.tally.like() for _ in self.blocks]
        if isinstance(old, BlockMemory) and self._alike(old):
            self.newest, self.since = old.newest, old.since
            for mine, its in zip(self.blocks, old.blocks, strict=True):
                mine.take_over(its, t)
            self.inner.inherit(old.inner, t)
        else:
            self.since = t
            self.advance(t)
            self.inner.inherit(old, t)
            self.blocks[0].take_over(old.tally, t)
        self._weigh()

    def _alike(self, old: "BlockMemory") -> bool:
        mine, its = self.policy, old.policy
        return bool(mine.block == its.block and len(mine.weights) == len(its.weights))

    @property
    def due(self) -> int:  # type: ignore[override]
        """That of the policy's memory."""
        return self.inner.due

    def plan(self, t: int, within: int = NEVER) -> Arrays | None:
        """What the policy plans, at least once in a block."""
        return self.inner.plan(t, min(within, self.policy.block))

    def accept(self, plan: Arrays) -> None:
        self.inner.accept(plan)

    def on(self, problem: Problem) -> Self:
        part = super().on(problem)
        part.inner = self.inner.on(problem)
        return part

    def grown(self, problem: Problem, t: int) -> Self:
        new = copy(self)
        new.problem, new.inner = problem, self.inner.grown(problem, t)
        new.tally, new.blocks = self.tally.grown(problem), [block.grown(problem) for block in self.blocks]
        return new

    def beside(self) -> Arrays:
        """The blocks, and what the policy has beside its weighted sum of them."""
        own = {"newest": np.array(float(self.newest)), "since": np.array(float(self.since))}
        for age, block in enumerate(self.blocks):
            own |= under(f"block {age}", block.to_arrays()) if block.pulls.any() else {}
        return own | under("inner", self.inner.beside())

    def take_beside(self, arrays: Mapping[str, Any]) -> None:
        self.newest, self.since = int(arrays["newest"]), int(arrays["since"])
        stored = [inside(arrays, f"block {age}") for age in range(len(self.blocks))]
        like = self.tally.like()
        self.blocks = [like.from_arrays(block) if block else like.like() for block in stored]
        self._weigh()
        self.inner.take_beside(inside(arrays, "inner"))


class Forgetting(Wrapper):
    r"""Any policy on a tally that forgets, for parameters that change over time.

    Rounds are kept in blocks of ``block`` rounds, and the policy sees

    .. math:: N_j = \sum_b weights_b\,N_j^{(b)}, \qquad \sum X_{ij} = \sum_b weights_b \sum_{\tau \in b} X_{ij}(\tau)

    where b = 0 is the newest block, at time :math:`\min\{t,\ block\sum_b weights_b\}`.
    Equal weights are a sliding window that moves a block at a time, powers of 1/2 a discount, [GarivierMoulines2011]_
    (SW-UCB, D-UCB). Every block is a tally of its own and the weights are powers of two, so forgetting is exact
    and does not depend on the order of feedback. Differs: SW-UCB and D-UCB forget round by round, and a discount never
    forgets completely.

    Feedback counts in the block of the round of its decision; feedback that comes after that block was forgotten
    changes nothing. Past data have no round and count in the newest block.

    Parameters
    ----------
    policy
        The policy; what it keeps beside the tally begins anew with every block, but for what it fits.
    block
        How many rounds a block has.
    weights
        The weights of the blocks, newest first: powers of 1/2.
    """

    policy: Policy[Any]
    block: int
    weights: Any
    forgets = True

    def check(self) -> None:
        super().check()
        self.convert("block", count(self.block, "block", 1))
        self.convert("weights", floats(self.weights, "weights", low=0.0, high=1.0))
        with np.errstate(all="ignore"):
            halves = np.log2(self.weights)
        if not self.weights.size or not (np.isfinite(halves) & (halves == np.round(halves))).all():
            raise InvalidArgument("weights", f"{self.weights}", "give powers of 1/2, newest first", "Forgetting")
        if self.policy.forgets or self.policy.counts_decisions:
            remedy = "take one that learns from the tally alone, as kl_ucb()"
            raise InvalidArgument("policy", f"{self.policy!r} keeps a memory of its own", remedy, "Forgetting")

    def validate(self, problem: Problem) -> None:
        super().validate(problem)
        context = problem.context
        if context is not None and context.features.standardised and context.dimension(problem.n_items):
            wrong = f"{context.features.standardised[0]!r} is standardised, and the policy forgets"
            raise InvalidArgument("policy", wrong, "give the feature a range, or take a policy that does not forget")

    def new_memory(self, problem: Problem, replications: int, partial: bool = False) -> BlockMemory:
        return BlockMemory(self, problem, replications, partial)

    def choose(self, problem: Problem, view: View, memory: BlockMemory) -> Ints:
        memory = memory.at(view.t)
        return self.policy.choose(problem, self.recent(view, memory), memory.inner)

    def recent(self, view: View, memory: BlockMemory) -> View:
        """What the policy sees: the weighted sum of the blocks, at the time that they count for."""
        now, tally, remembered = memory.inner.tally, memory.tally, max(1, int(self.block * self.weights.sum()))
        given = view.context
        rows: Any = slice(None)
        if given is not None:
            rows = segment_rows(given, memory.n_segments, len(tally))
            given = replace(given, t=np.minimum(given.t, remembered))
        counts = now.pulls[rows] + (view.counts - tally.pulls[rows])
        keys = round_keys(view.keys, view.t)  # the time that the policy sees stays the same in the end
        return View(min(view.t, remembered), now, keys, counts, view.eligible, view.pinned, given)

    def weigh(self, problem: Problem, view: View, memory: BlockMemory, action: Ints) -> Any:
        return self.policy.weigh(problem, view, memory.inner, action)

    def estimates(self, problem: Problem, view: View, memory: BlockMemory) -> tuple[Floats, Floats]:
        return self.policy.estimates(problem, self.recent(view, memory), memory.inner)

    def coefficients(self, problem: Problem, memory: BlockMemory) -> Floats:
        return self.policy.coefficients(problem, memory.inner)


@named
def sliding_window(policy: Policy[Any], window: int, blocks: int = 16) -> Forgetting:
    """Any policy on the last ``window`` rounds alone, for means that change. After [GarivierMoulines2011]_ (SW-UCB).

    The window moves by ``window / blocks`` rounds at a time. Sums are exact; the memory is that of ``blocks`` tallies.

    Parameters
    ----------
    policy
        The policy.
    window
        How many rounds are remembered, at most.
    blocks
        In how many blocks they are kept.

    Examples
    --------
    >>> from superarm.policies.directional import directional_kl_moss
    >>> sliding_window(directional_kl_moss(), window=1600).block
    100
    """
    count(window, "window", 1)
    count(blocks, "blocks", 1)
    return Forgetting(policy, -(-window // blocks), np.ones(blocks))


@named
def discounted(policy: Policy[Any], half_life: int) -> Forgetting:
    """Any policy on a tally in which weights halve every ``half_life`` rounds, for means that change.

    After [GarivierMoulines2011]_ (D-UCB), in steps of ``half_life`` rounds and exact; rounds older than eight
    half-lives have no weight. The weights of all rounds add up to about twice ``half_life``.

    Parameters
    ----------
    policy
        The policy.
    half_life
        After how many rounds an observation counts half.

    Examples
    --------
    >>> from superarm.policies.directional import directional_kl_moss
    >>> discounted(directional_kl_moss(), half_life=500).weights[:3].tolist()
    [1.0, 0.5, 0.25]
    """
    count(half_life, "half_life", 1)
    return Forgetting(policy, half_life, 0.5 ** np.arange(8.0))
