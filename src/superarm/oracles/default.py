from typing import NamedTuple

from superarm._jit import component, interpreted
from superarm.actions import Explicit
from superarm.actions.traits import budgeted, exchange, tractable, uniform
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.oracles.base import Guarantee, Oracle, maximize
from superarm.oracles.budgets import find_grid
from superarm.oracles.exhaustive import Exhaustive
from superarm.oracles.greedy import Greedy
from superarm.oracles.greedy_max import GreedyMax
from superarm.oracles.imm import IMM
from superarm.oracles.knapsack_scheme import KnapsackScheme
from superarm.oracles.knapsack_table import KnapsackTable
from superarm.oracles.lazy import LazyGreedy
from superarm.oracles.linearised import Linearised
from superarm.oracles.modular import Modular
from superarm.oracles.partial_enumeration import PartialEnumeration
from superarm.oracles.ranged import RangedGreedy, suits_ranges
from superarm.problem import Problem
from superarm.rewards import Spread
from superarm.streams import Stream
from superarm.support import Sparse

MAX_ENUMERATED_BATCHES = 5_000
"""Up to this many batches are enumerated where greedy has no guarantee as good as on a matroid."""

LAZY_FROM_ENTRIES = 50_000
"""From this many entries on, ``LazyGreedy`` or ``RangedGreedy`` takes the place of ``Greedy``."""

MAX_ARMS_FOR_PAIRS = 40
"""Up to this many arms, all pairs are tried under a budget."""


@component
class Default(NamedTuple):
    """The oracle that suits the problem, chosen by ``fit`` before anything is compiled.

    =============  =====================  ==========================================================
    reward         action set             oracle (alpha)
    =============  =====================  ==========================================================
    Spread         Subsets                IMM (1 - 1/e - 1/2, with probability 1 - 1/n)
    any            Explicit               Exhaustive (1)
    modular        matroid, Matching,     Modular (1): greedy, assignment, one pass over
                   Paths                  the edges
    modular        Knapsack               KnapsackTable (1) on a grid, else KnapsackScheme (0.95)
    submodular     Subsets                Greedy, lazy if large (1 - (1 - 1/k)^k)
    submodular     matroid                Greedy, lazy if large (1/2)
    submodular     the others, small      Exhaustive (1)
    submodular     Knapsack               PartialEnumeration (1 - 1/e), from 40 arms on GreedyMax (1/2)
    submodular     Matching               Greedy, lazy if large (1/3)
    submodular     Paths                  Linearised (0: a heuristic; see the certificate)
    any other      small; large           Exhaustive (1); Greedy (0)
    =============  =====================  ==========================================================

    Greedy for submodular rewards is what [MerlisMannor2019]_ (section Algorithm) proposes.

    >>> import superarm as sa
    >>> bag = sa.Knapsack([1.0, 2.0, 3.0], budget=4.0)
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=bag)
    >>> type(Default().fit(problem)).__name__
    'KnapsackTable'
    """

    @interpreted
    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        return maximize(self.fit(problem), problem, q, candidates, stream)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.fit(problem).guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> Oracle:
        actions = problem.actions
        if isinstance(actions, Explicit) or isinstance(problem.reward, Spread):
            return IMM().fit(problem) if uniform(actions) else Exhaustive().fit(problem)
        if problem.reward.modular and tractable(actions):
            return Modular()
        if problem.reward.modular and budgeted(actions):
            return KnapsackScheme() if find_grid(problem) is None else KnapsackTable().fit(problem)
        if problem.reward.submodular and actions.matroid:
            return _greedy(problem)
        if actions.n_batches(problem.n_arms) <= MAX_ENUMERATED_BATCHES:
            return Exhaustive().fit(problem)
        return _for_large(problem)


def _for_large(problem: Problem) -> Oracle:
    """The oracle for a reward that is not modular, on an action set of many batches that is not a matroid."""
    if not problem.reward.submodular:
        return Greedy()
    if budgeted(problem.actions):
        return PartialEnumeration() if problem.n_arms < MAX_ARMS_FOR_PAIRS else GreedyMax()
    if exchange(problem.actions) < float("inf"):
        return _greedy(problem)
    return Linearised() if tractable(problem.actions) else Greedy()


def _greedy(problem: Problem) -> Oracle:
    large = problem.n_entries >= LAZY_FROM_ENTRIES or isinstance(problem.support, Sparse)
    if not large:
        return Greedy()
    return RangedGreedy().fit(problem) if suits_ranges(problem) else LazyGreedy().fit(problem)
