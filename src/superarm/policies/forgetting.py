"""Forgetting: any policy on the last blocks of rounds, for means that change; sliding windows and discounts."""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import Floats, Ints, count, floats
from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.core.streams import round_keys
from superarm.core.tally import Feedback, Tally, View
from superarm.policies.base import Policy
from superarm.policies.pooled import Pool
from superarm.policies.wrappers import Wrapper

if TYPE_CHECKING:
    from superarm.core.problem import Problem


class RoundBlocks:
    """Tallies of the last blocks of rounds, and their weighted sum.

    ``blocks`` has block n at place n % n_blocks; ``newest`` is the number of the newest block, -1 before any; ``now``
    is their weighted sum, and ``memory`` a tuple of the memory of ``policy`` of it, None until it is asked for;
    ``held`` is what the policy saved of a memory that is not there yet.
    """

    memory: Any = None

    def __init__(self, tally: Tally, weights: Floats, policy: Policy | None = None) -> None:
        self.policy, self.weights, self.newest, self.now = policy, weights, -1, tally.like()
        self.held: dict[str, Any] = {}
        self.blocks = [tally.like() for _ in weights]
        self.blocks[0].add(tally)
        self.weigh()

    def ages(self) -> list[Tally]:
        """The tallies of the blocks, newest first."""
        return [self.blocks[(max(self.newest, 0) - age) % len(self.blocks)] for age in range(len(self.blocks))]

    def move_on(self, block: int) -> None:
        """Begin the blocks up to ``block``; what was there before any began belongs to the first that does."""
        n = len(self.blocks)
        if block <= self.newest:
            return
        if self.newest < 0:
            self.blocks[0], self.blocks[block % n] = self.blocks[block % n], self.blocks[0]
        else:
            for begun in range(max(self.newest + 1, block - n + 1), block + 1):
                self.blocks[begun % n] = self.now.like()
        self.newest = block
        self.weigh()

    def weigh(self) -> None:
        """Add the blocks up, each with its weight."""
        sums = self.now.like()
        for weight, tally in zip(self.weights.tolist(), self.ages(), strict=True):
            sums.add(tally, weight)
        if self.memory is not None and self.policy is not None:
            self.held = self.policy.save_state(self.memory[0]) or {}
        self.now, self.memory = sums, None


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

    policy: Policy
    block: int
    weights: Any
    shares_segments = False

    def check(self) -> None:
        super().check()
        self.convert("block", count(self.block, "block", 1))
        self.convert("weights", floats(self.weights, "weights", low=0.0, high=1.0))
        with np.errstate(all="ignore"):
            halves = np.log2(self.weights)
        if not self.weights.size or not (np.isfinite(halves) & (halves == np.round(halves))).all():
            raise InvalidArgument("weights", f"{self.weights}", "give powers of 1/2, newest first", "Forgetting")
        if isinstance(self.policy, Forgetting):
            remedy = "take one that learns from the tally alone, as kl_ucb()"
            raise InvalidArgument("policy", f"{self.policy!r} keeps a memory of its own", remedy, "Forgetting")

    def prepare(self, problem: "Problem", tally: Tally) -> RoundBlocks:
        self.policy.prepare(problem, tally)  # it may attach moments
        return RoundBlocks(tally, self.weights, self.policy)

    def choose(self, problem: "Problem", view: View, memory: RoundBlocks) -> Ints:
        memory.move_on((view.t - 1) // self.block)
        counts = memory.now.pulls + (view.counts - view.tally.pulls)
        t = min(view.t, self._remembered)
        keys = round_keys(view.keys, view.t)  # the time that the policy sees stays the same in the end
        recent = View(t, memory.now, keys, counts, view.eligible, view.pinned, view.context)
        return self.policy.choose(problem, recent, self._memory(problem, memory))

    def _memory(self, problem: "Problem", memory: RoundBlocks) -> Any:
        """The policy's memory of the weighted sum."""
        if memory.memory is None:
            memory.memory = (self.policy.prepare(problem, memory.now),)
            self.policy.restore_state(memory.memory[0], memory.held)
        return memory.memory[0]

    def refit(self, problem: "Problem", memory: RoundBlocks, t: int) -> None:
        """Let the policy refit as it does, and after every block."""
        inner = self._memory(problem, memory)
        self.policy.refit(problem, inner, t)
        if isinstance(inner, Pool):
            inner.due = min(inner.due, t + self.block)

    @property
    def _remembered(self) -> int:
        """How many rounds count, each by its weight."""
        return max(1, int(self.block * self.weights.sum()))

    def learn(
        self, problem: "Problem", tally: Tally, memory: RoundBlocks, feedback: Feedback, sign: float = 1.0
    ) -> None:
        tally.record(feedback, sign)
        block = (feedback.t - 1) // self.block
        memory.move_on(block)
        age = memory.newest - block
        if age < len(self.weights):
            memory.blocks[block % len(self.weights)].record(feedback, sign)
            share = sign * float(self.weights[age])
            if memory.memory is None:
                memory.now.record(feedback, share)
            else:
                self.policy.learn(problem, memory.now, memory.memory[0], feedback, share)

    def age(self, memory: RoundBlocks, t: int) -> int:
        """How many blocks older than the newest the block of round ``t`` is; negative if it has not begun."""
        return memory.newest - (t - 1) // self.block

    def save_state(self, memory: RoundBlocks) -> dict[str, Any]:
        """The number of the newest block, the tallies of the last blocks, newest first, and what the policy keeps."""
        kept = memory.held if memory.memory is None else self.policy.save_state(memory.memory[0]) or {}
        return {"newest": memory.newest, "blocks": memory.ages(), **kept}

    def restore_state(self, memory: RoundBlocks, held: dict[str, Any]) -> None:
        memory.newest = int(held["newest"])
        for age, tally in enumerate(held["blocks"]):
            place = (max(memory.newest, 0) - age) % len(memory.blocks)
            memory.blocks[place] = memory.now.like()
            memory.blocks[place].add(tally if tally.support == memory.now.support else tally.grown(memory.now.support))
        memory.weigh()
        memory.held = {name: value for name, value in held.items() if name not in ("newest", "blocks")}


@named
def sliding_window(policy: Policy, window: int, blocks: int = 16) -> Forgetting:
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
def discounted(policy: Policy, half_life: int) -> Forgetting:
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
