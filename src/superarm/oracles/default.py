from typing import NamedTuple

from superarm._jit import component, interpreted
from superarm.actions import Explicit, Ranks
from superarm.arrays import Floats, Ints
from superarm.noise import Noise
from superarm.oracles.base import Guarantee, Oracle, maximize
from superarm.oracles.exhaustive import Exhaustive
from superarm.oracles.greedy import Greedy
from superarm.oracles.lazy import LazyGreedy
from superarm.oracles.modular import Modular
from superarm.problem import Problem
from superarm.support import Sparse

FEW = 5_000
"""Up to this many batches are enumerated where no approximation is known."""


@component
class Default(NamedTuple):
    """The oracle that suits the problem: chosen by ``fit``, before anything is compiled.

    Exhaustive for ``Explicit`` batches; sorting for modular rewards; greedy for submodular ones (lazily when the
    support is sparse), as [MerlisMannor2019]_ (section Algorithm) proposes; otherwise exhaustive while the
    batches are few, and greedy without a guarantee beyond.
    """

    @interpreted
    def maximize(self, problem: Problem, q: Floats, ranks: Ranks, noise: Noise) -> Ints:
        return maximize(self.fit(problem), problem, q, ranks, noise)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.fit(problem).guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> Oracle:
        if isinstance(problem.actions, Explicit):
            return Exhaustive().fit(problem)
        if problem.reward.modular and problem.actions.matroid:
            return Modular()
        if problem.reward.submodular and problem.actions.matroid:
            return LazyGreedy() if isinstance(problem.support, Sparse) else Greedy()
        if problem.actions.n_batches(problem.n_arms) <= FEW:
            return Exhaustive().fit(problem)
        return Greedy()
