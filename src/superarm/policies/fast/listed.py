from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, interpreted, kernel
from superarm.actions import Explicit, all_eligible
from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.indices import Index, monotone
from superarm.intake import Exact, Intake
from superarm.oracles import Guarantee
from superarm.policies.base import Round, any_unsampled, first_batch
from superarm.policies.scoring import ArmView, estimate_all, score_arm, update_estimates
from superarm.problem import Problem
from superarm.rewards import value
from superarm.streams import Stream
from superarm.tally import Feedback, Tally

_SLACK = 1.0 + 1e-9
"""Indices grow with t up to rounding; a value computed for later, times this, is a bound in floating point too."""

_LONGEST = 8
"""A bound is carried over at most t / 8 rounds: the logarithm hardly moves meanwhile."""


class ListedMemory(NamedTuple):
    """Estimates as in an index policy, and for each batch a value that it cannot exceed until a later round.

    ``bound``, ``until`` and ``stride`` are (n_batches,); ``version`` (n_arms,) counts what was learnt of an arm, and
    ``noted`` (2, n_batches, k) is version and pulls of the batch's arms when its bound was computed: the bound serves
    while nothing was learnt of them and none of their pulls was taken back. ``last`` (1,) is the batch played last.
    """

    mean: Floats
    deviation: Floats
    q: Floats
    bound: Floats
    until: Ints
    stride: Ints
    version: Floats
    noted: Floats
    last: Ints


@component
class Screened(NamedTuple):
    r"""An index policy on listed batches that looks only at batches that could win: the same decisions, bit for bit.

    While nothing is learnt of an arm its level grows with t, its score with the level and the reward with the scores.
    So the value of a batch computed as if it were round :math:`t' > t` bounds its value until :math:`t'`, and a batch
    whose bound lies below the best value found is passed over. Decides as :class:`IndexPolicy` with
    :class:`Exhaustive` does, for any index that does not sample; [MerlisMannor2019]_ (Algorithm 1) with its
    :math:`Oracle(q)` evaluated lazily.
    """

    confidence: Index
    table: Ints = np.zeros((0, 0), np.int64)
    sizes: Ints = np.zeros(0, np.int64)
    intake: Intake = Exact()

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> ListedMemory:
        entries, n = len(tally.total), len(self.sizes)
        memory = ListedMemory(
            np.zeros(entries), np.zeros(entries), np.zeros(entries), np.zeros(n), np.zeros(n, np.int64),
            np.ones(n, np.int64), np.zeros(problem.n_arms), np.zeros((2, n, self.table.shape[1])),
            np.zeros(1, np.int64),
        )  # fmt: skip
        if tally.pulls.any():
            estimate_all(tally, problem.terms.support, memory)
        return memory

    def choose(self, problem: Problem, current: Round, memory: ListedMemory, stream: Stream) -> Ints:
        if any_unsampled(current.candidates):
            action = first_batch(problem.actions, current.candidates)
            if len(action) > 0:
                return action
        best, most, fewest = -1, -np.inf, np.inf
        last = memory.last[0]
        for n in range(-1, len(self.sizes)):  # the last winner first: it is likely to win again
            row = last if n < 0 else n
            if n == last or (
                memory.until[row] >= current.t
                and memory.bound[row] < most
                and _holds(self.table, memory.version, memory.noted, current.candidates.counts, row)
            ):
                continue
            action = self.table[row, : self.sizes[row]]
            if not all_eligible(action, current.candidates):
                continue
            r = _worth(self.confidence, problem, current, memory, action, current.t, stream)
            pulls = np.inf
            for j in action:
                pulls = min(pulls, current.candidates.counts[j])
            if r > most or (r == most and (pulls < fewest or (pulls == fewest and row < best))):
                best, most, fewest = row, r, pulls
            elif r < most:
                _bound_later(self.confidence, problem, current, memory, row, action, stream)
                _adjust_stride(memory, row, most, current.t)
        memory.last[0] = max(0, best)
        return self.table[best, : self.sizes[best]].copy() if best >= 0 else np.empty(0, np.int64)

    def learn(
        self, problem: Problem, tally: Tally, memory: ListedMemory, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, self.intake, stream, sign, memory)
        for j in feedback.action:
            memory.version[j] += 1.0

    @interpreted
    def fit(self, problem: Problem) -> "Screened":
        if not isinstance(problem.actions, Explicit):
            raise InvalidArgument("policy", "batches are not listed", "Screened needs Explicit actions", "Screened")
        if not monotone(self.confidence):
            raise InvalidArgument(
                "confidence", f"{type(self.confidence).__name__} is sampled, or does not say that it is monotone",
                "take the plain policy", "Screened",
            )  # fmt: skip
        return self._replace(table=problem.actions.table, sizes=problem.actions.sizes)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0, 1.0)


@kernel
def _holds(table: Ints, version: Floats, noted: Floats, pulls: Floats, row: int) -> bool:
    """Whether the bound of batch ``row`` still serves: nothing learnt of its arms, and no pull taken back."""
    for place in range(table.shape[1]):
        j = table[row, place]
        if j >= 0 and (version[j] != noted[0, row, place] or pulls[j] < noted[1, row, place]):
            return False
    return True


@kernel
def _worth(
    confidence: Index, problem: Problem, current: Round, memory: ListedMemory, action: Ints, t: int, stream: Stream
) -> float:
    """The value of ``action`` as if it were round ``t``, exactly as an index policy computes it."""
    for j in action:
        score_arm(confidence, problem, current.tally, memory, ArmView(j, current.candidates.counts[j], t, 1.0), stream)
    return value(problem.reward, problem.terms, memory.q, action)


@kernel
def _bound_later(
    confidence: Index, problem: Problem, current: Round, memory: ListedMemory, row: int, action: Ints, stream: Stream
) -> None:
    """Note how much the losing batch ``row``, ``action``, can be worth until a later round."""
    ahead = current.t + memory.stride[row]
    memory.bound[row] = _worth(confidence, problem, current, memory, action, ahead, stream) * _SLACK
    memory.until[row] = ahead
    for place in range(len(action)):
        memory.noted[0, row, place] = memory.version[action[place]]
        memory.noted[1, row, place] = current.candidates.counts[action[place]]


@kernel
def _adjust_stride(memory: ListedMemory, row: int, most: float, t: int) -> None:
    """Bound ``row`` for more rounds next time if its bound lies below ``most``, the best value; else for fewer."""
    if memory.bound[row] < most:
        memory.stride[row] = min(2 * memory.stride[row], max(1, t // _LONGEST))
    else:
        memory.stride[row] = max(1, memory.stride[row] // 2)
