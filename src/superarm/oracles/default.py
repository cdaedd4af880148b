"""The oracle that suits the problem."""

import math

from superarm.actions.explicit import Explicit
from superarm.core.arrays import Floats, Ints
from superarm.core.tally import View
from superarm.oracles.base import Guarantee, Oracle, held
from superarm.oracles.budgets import GreedyMax, KnapsackScheme, KnapsackTable, PartialEnumeration, has_grid
from superarm.oracles.exhaustive import Exhaustive
from superarm.oracles.greedy import Greedy
from superarm.oracles.heaviest import Linearised, Modular
from superarm.problem import Problem

MAX_ENUMERATED_BATCHES = 5_000
"""Up to this many batches are enumerated where greedy has no guarantee as good as on a matroid."""

MAX_ARMS_FOR_PAIRS = 40
"""Up to this many arms, all pairs are tried under a budget."""


class Default(Oracle):
    """The oracle that suits the problem.

    =============  =====================  ==========================================================
    reward         action set             oracle (alpha)
    =============  =====================  ==========================================================
    own oracle     any                    that of ``reward.oracle(problem)``
    no sum         any                    Exhaustive (1)
    modular        matroid, Matching,     Modular (1): greedy, assignment, one pass over
                   Paths, Explicit        the edges or the batches
    any other      Explicit               Exhaustive (1)
    modular        Knapsack               KnapsackTable (1) on a grid, else KnapsackScheme (0.95)
    submodular     Subsets                Greedy (1 - (1 - 1/k)^k)
    submodular     matroid                Greedy (1/2)
    submodular     the others, small      Exhaustive (1)
    submodular     Knapsack               PartialEnumeration (1 - 1/e), from 40 arms on GreedyMax (1/2)
    submodular     Matching               Greedy (1/3)
    submodular     Paths                  Linearised (0: a heuristic; see the certificate)
    any other      small; large           Exhaustive (1); Greedy (0)
    =============  =====================  ==========================================================

    Greedy for submodular rewards is what [MerlisMannor2019]_ (section Algorithm) proposes.

    >>> from superarm.actions import Knapsack
    >>> from superarm.problem import Problem
    >>> from superarm.rewards import Linear
    >>> Default().resolve(Problem(3, 1, Linear(), Knapsack([1.0, 2.0, 3.0], budget=4.0)))
    KnapsackTable()
    """

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        return self.resolve(problem).maximize(problem, q, view)

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.resolve(problem).guarantee(problem)

    def validate(self, problem: Problem) -> None:
        self.resolve(problem).validate(problem)

    def resolve(self, problem: Problem) -> Oracle:
        """The oracle itself."""
        found: Oracle = held(problem, "_oracle", lambda: _choose(problem))
        return found


def _choose(problem: Problem) -> Oracle:
    reward, actions = problem.reward, problem.actions
    own: Oracle | None = reward.oracle(problem)
    if own is not None or not reward.additive:
        return own or Exhaustive()
    if reward.modular and actions.tractable:
        return Modular()
    if reward.modular and actions.budgeted:
        return KnapsackTable() if has_grid(problem) else KnapsackScheme()
    if reward.submodular and actions.matroid:
        return Greedy()
    if isinstance(actions, Explicit) or actions.n_batches(problem.n_arms) <= MAX_ENUMERATED_BATCHES:
        return Exhaustive()
    return _choose_for_many_batches(problem)


def _choose_for_many_batches(problem: Problem) -> Oracle:
    """The oracle for a reward that is not modular, on an action set of many batches that is not a matroid."""
    actions = problem.actions
    if not problem.reward.submodular:
        return Greedy()
    if actions.budgeted:
        return PartialEnumeration() if problem.n_arms < MAX_ARMS_FOR_PAIRS else GreedyMax()
    return Linearised() if actions.tractable and actions.exchange == math.inf else Greedy()
