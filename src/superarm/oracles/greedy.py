import math
from typing import NamedTuple

import numpy as np

from superarm._jit import allocating, component, interpreted, kernel
from superarm.actions import capacity, joins, pins
from superarm.actions.traits import exchange, uniform
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.oracles.base import BatchBuffer, Guarantee, greedy_alpha
from superarm.problem import Problem
from superarm.rewards import gain, join_arm
from superarm.rewards.base import reset_states, transform, transformed
from superarm.streams import Stream


@component
class Greedy(NamedTuple):
    r"""Add the arm with the largest marginal gain until no arm may join.

    .. math:: j_n \in \arg\max_{j \notin A_{n-1}} r(A_{n-1} \cup \{j\}; q)

    For a monotone submodular reward: :math:`\alpha = 1 - (1 - 1/k)^k` on ``Subsets(k)``, 1/2 on a matroid, 1/(p + 1) on
    a p-system (1/3 on a ``Matching``), [FisherNemhauserWolsey1978]_; for a modular one exact on a matroid and 1/p on a
    p-system, [KorteHausmann1978]_; exact for a single item on a matroid. Implements [MerlisMannor2019]_ (section
    Algorithm) after [NemhauserWolseyFisher1978]_. Equal gains go to the arm with the fewest pulls, then the lowest.
    """

    @property
    def greedy(self) -> bool:
        return True

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = pins(problem.actions, candidates, chosen)
        return chosen[:0] if size < 0 else chosen[: grow(problem, q, candidates, chosen, size)]

    @allocating
    def maximize_into(
        self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream, batch: BatchBuffer
    ) -> int:
        size = pins(problem.actions, candidates, batch.chosen)
        return 0 if size < 0 else _grow_into(problem, q, candidates, batch, size)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return greedy_guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> "Greedy":
        return self


@kernel
def grow(problem: Problem, q: Floats, candidates: Candidates, chosen: Ints, size: int) -> int:
    """Add arms to the first ``size`` of ``chosen``, the largest gain first, until none may join; the new size."""
    batch = BatchBuffer(chosen, np.empty(problem.n_items), np.empty(problem.n_arms, np.bool_))
    return _grow_into(problem, q, candidates, batch, size)


@kernel
def _grow_into(problem: Problem, q: Floats, candidates: Candidates, batch: BatchBuffer, size: int) -> int:
    chosen, states, taken = batch
    reward, z = transformed(problem.reward), transform(problem.reward, q)
    reset_states(problem.reward, problem.terms, states)
    for j in range(problem.n_arms):
        taken[j] = not candidates.eligible[j]
    for n in range(size):
        taken[chosen[n]] = True
        join_arm(problem.reward, problem.terms, states, q, chosen[n])
    while size < len(chosen):
        best, most = -1, -np.inf
        for j in range(problem.n_arms):
            if taken[j]:
                continue
            g = gain(reward, problem.terms, states, z, j)
            if g > most or (g == most and candidates.counts[j] < candidates.counts[best]):
                if joins(problem.actions, candidates, chosen, size, j):
                    best, most = j, g
                else:
                    taken[j] = True  # an arm that may not join now may not join later
        if best < 0:
            break
        join_arm(problem.reward, problem.terms, states, q, best)
        chosen[size] = best
        taken[best] = True
        size += 1
    return size


def greedy_guarantee(problem: Problem) -> Guarantee:
    """The guarantee of greedy, by the theorem that applies; alpha = 0 where none does.

    With a single item, gains are ordered as the parameters of the arms are, whatever was chosen before. On a matroid,
    greedy then finds a batch whose n-th largest parameter is, for every n, at least that of any other batch.
    """
    p = exchange(problem.actions)
    if problem.reward.modular:
        return Guarantee(1.0 / p, 1.0)
    if problem.n_items == 1 and problem.actions.matroid:
        return Guarantee(1.0, 1.0)
    if not problem.reward.submodular or p == math.inf:
        return Guarantee(0.0, 1.0)
    return Guarantee(greedy_alpha(problem.k) if uniform(problem.actions) else 1.0 / (p + 1.0), 1.0)
