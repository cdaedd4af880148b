from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, interpreted, kernel
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.intake import Exact, Intake
from superarm.moments import no_moments
from superarm.oracles import Guarantee
from superarm.parameters import positive
from superarm.policies import traits
from superarm.policies.base import MomentsAsked, Policy, Round, choose, prepare
from superarm.policies.policy_state import PolicyState
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.tally import Feedback, Tally, record, with_moments


class RoundBlocks(NamedTuple):
    """Tallies of the last blocks of rounds, and their weighted sum.

    ``pulls`` (n_blocks, n_arms), ``total``, ``square`` and ``missed`` (n_blocks, n_entries) and ``joint``
    (n_blocks, 3 n_arms) hold block n in row n % n_blocks, and so do ``moments`` and ``products``, empty if the tally
    has none; ``newest`` (1,) is the number of the newest block, -1 before any; ``now`` is their weighted sum.
    """

    pulls: Floats
    total: Floats
    square: Floats
    missed: Floats
    joint: Floats
    moments: Floats
    products: Floats
    newest: Ints
    now: Tally


@component
class Forgetting(NamedTuple):
    r"""Any policy on a tally that forgets, for parameters that change over time.

    Rounds are kept in blocks of ``block`` rounds, and the policy sees

    .. math:: N_j = \sum_b weights_b\,N_j^{(b)}, \qquad \sum X_{ij} = \sum_b weights_b \sum_{\tau \in b} X_{ij}(\tau)

    where b = 0 is the newest block, at time :math:`\min\{t,\ block\sum_b weights_b\}`.
    Equal weights are a sliding window that moves a block at a time, powers of 1/2 a discount, [GarivierMoulines2011]_
    (SW-UCB, D-UCB). Every block is a tally of its own and the weights are powers of two, so forgetting is exact
    and does not depend on the order of feedback. Differs: SW-UCB and D-UCB forget round by round, and a discount never
    forgets completely.

    Feedback counts in the block of the round of its decision; feedback that comes after that block was forgotten
    changes nothing. Past data have no round and count in the newest block. The inner policy runs without devices for
    speed.
    """

    policy: Policy
    block: int
    weights: Floats
    intake: Intake = Exact()

    def _check(self) -> None:
        positive(self, "block")
        halves = np.log2(self.weights)
        if not self.weights.size or (halves > 0.0).any() or (halves != np.round(halves)).any():
            raise InvalidArgument("weights", f"{self.weights}", "give powers of 1/2, newest first", "Forgetting")

    @property
    def caveat(self) -> str:
        return traits.caveat(self.policy)

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> RoundBlocks:
        return empty_blocks(len(self.weights), tally, self.weights)

    def choose(self, problem: Problem, current: Round, memory: RoundBlocks, stream: Stream) -> Ints:
        move_on(memory, self.weights, (current.t - 1) // self.block)
        waiting = current.candidates.counts - current.tally.pulls
        remembered = max(1, int(self.block * self.weights.sum()))
        candidates = Candidates(memory.now.pulls + waiting, current.candidates.eligible)
        recent = Round(min(current.t, remembered), memory.now, candidates)
        return choose(self.policy, problem, recent, prepare(self.policy, problem, memory.now), stream)

    def learn(
        self, problem: Problem, tally: Tally, memory: RoundBlocks, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, self.intake, stream, sign)
        block = (feedback.t - 1) // self.block
        move_on(memory, self.weights, block)
        age = memory.newest[0] - block
        if age < len(self.weights):
            record(
                block_row(memory, block % len(self.weights)), problem.terms.support, feedback, self.intake, stream, sign
            )
            share = sign * self.weights[age]
            record(memory.now, problem.terms.support, feedback, self.intake, stream, share)

    @interpreted
    def save_state(self, memory: RoundBlocks) -> PolicyState:
        """What cannot be computed anew."""
        n, newest = len(self.weights), int(memory.newest[0])
        rows = [(max(newest, 0) - age) % n for age in range(n)]
        return PolicyState(newest, [Tally(*(part.copy() for part in block_row(memory, row))) for row in rows])

    @interpreted
    def restore_state(self, memory: RoundBlocks, held: PolicyState) -> None:
        """Put what was kept into a memory just prepared."""
        memory.newest[0] = held.newest
        for age, tally in enumerate(held.blocks):
            _put(memory, (max(held.newest, 0) - age) % len(self.weights), tally)
        _weigh(memory, self.weights)

    @interpreted
    def age(self, memory: RoundBlocks, t: int) -> int:
        """How many blocks older than the newest the block of round ``t`` is; negative if it has not begun."""
        return int(memory.newest[0]) - (t - 1) // self.block

    @interpreted
    def moments(self, problem: Problem) -> MomentsAsked:
        return traits.moments(self.policy, problem)

    @interpreted
    def fit(self, problem: Problem) -> "Forgetting":
        return self._replace(policy=traits.plain(self.policy, problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.policy.guarantee(problem)


@for_kernels
def empty_blocks(n: int, tally: Tally, weights: Floats) -> RoundBlocks:
    """``n`` blocks of the shape of ``tally``, which itself counts in the first of them."""
    arms, entries = len(tally.pulls), len(tally.total)
    memory = RoundBlocks(
        np.zeros((n, arms)),
        np.zeros((n, entries)),
        np.zeros((n, entries)),
        np.zeros((n, entries)),
        np.zeros((n, 3 * arms)),
        np.zeros((n, tally.moments.size)),
        np.zeros((n, tally.products.size)),
        np.full(1, -1, np.int64),
        Tally(
            np.zeros(arms),
            np.zeros(entries),
            np.zeros(entries),
            np.zeros(entries),
            np.zeros(3 * arms),
            tally.reference,
            np.zeros(tally.moments.size),
            np.zeros(tally.products.size),
        ),
    )
    if tally.pulls.any():
        _put(memory, 0, tally)
        _weigh(memory, weights)
    return memory


@kernel
def block_row(memory: RoundBlocks, row: int) -> Tally:
    return Tally(
        memory.pulls[row],
        memory.total[row],
        memory.square[row],
        memory.missed[row],
        memory.joint[row],
        memory.now.reference,
        memory.moments[row],
        memory.products[row],
    )


def blocks_without_moments(memory: RoundBlocks) -> RoundBlocks:
    """The same blocks, in which moments are not recorded."""
    nothing, now = np.zeros((len(memory.pulls), 0)), with_moments(memory.now, no_moments())
    return memory._replace(moments=nothing, products=nothing, now=now)


@kernel
def _put(memory: RoundBlocks, row: int, tally: Tally) -> None:
    """Let ``row`` hold ``tally``."""
    memory.pulls[row] = tally.pulls
    memory.total[row] = tally.total
    memory.square[row] = tally.square
    memory.missed[row] = 0.0
    memory.joint[row] = 0.0
    if tally.missed.size > 0:
        memory.missed[row] = tally.missed
    if tally.joint.size > 0:
        memory.joint[row] = tally.joint
    memory.moments[row] = 0.0
    memory.products[row] = 0.0
    if tally.moments.size > 0:
        memory.moments[row] = tally.moments
        memory.products[row] = tally.products


@kernel
def move_on(memory: RoundBlocks, weights: Floats, block: int) -> None:
    """Begin the blocks up to ``block``; what was there before any began belongs to the first that does."""
    n, newest = len(memory.pulls), memory.newest[0]
    if block <= newest:
        return
    if newest < 0:
        if block % n != 0:
            _put(memory, block % n, block_row(memory, 0))
            _clear(memory, 0)
    else:
        for begun in range(max(newest + 1, block - n + 1), block + 1):
            _clear(memory, begun % n)
    memory.newest[0] = block
    _weigh(memory, weights)


@kernel
def _clear(memory: RoundBlocks, row: int) -> None:
    memory.pulls[row] = 0.0
    memory.total[row] = 0.0
    memory.square[row] = 0.0
    memory.missed[row] = 0.0
    memory.joint[row] = 0.0
    memory.moments[row] = 0.0
    memory.products[row] = 0.0


@kernel
def _weigh(memory: RoundBlocks, weights: Floats) -> None:
    """Add the blocks up, each with its weight."""
    now = memory.now
    now.pulls[:] = 0.0
    now.total[:] = 0.0
    now.square[:] = 0.0
    now.missed[:] = 0.0
    now.joint[:] = 0.0
    now.moments[:] = 0.0
    now.products[:] = 0.0
    for age in range(len(weights)):
        row = (max(memory.newest[0], 0) - age) % len(weights)
        now.pulls[:] += weights[age] * memory.pulls[row]
        now.total[:] += weights[age] * memory.total[row]
        now.square[:] += weights[age] * memory.square[row]
        now.missed[:] += weights[age] * memory.missed[row]
        now.joint[:] += weights[age] * memory.joint[row]
        now.moments[:] += weights[age] * memory.moments[row]
        now.products[:] += weights[age] * memory.products[row]
