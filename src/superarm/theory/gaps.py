r"""The gaps of an instance: for each arm, how far suboptimal batches with it are below the target.

.. math:: \Delta_A = \alpha r_{\max} - r(A; p), \qquad
          \Delta_{j,\min} = \min_{A \ni j,\, \Delta_A > 0} \Delta_A, \qquad
          \Delta_{j,\max} = \max_{A \ni j,\, \Delta_A > 0} \Delta_A

[MerlisMannor2019]_ (section Preliminaries).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from superarm.actions import Explicit, Subsets
from superarm.actions.explicit import tabulate
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.oracles import Default
from superarm.oracles.subset_search import ROUNDING, SearchRecord, SubsetSearch
from superarm.problem import Problem
from superarm.simulation.instances import Instance
from superarm.simulation.regret import Bracket, optimum

MAX_ENUMERATED_BATCHES = 500_000
"""Up to this many batches are enumerated; for more, subsets are searched by branch and bound."""

MAX_NODES = 20_000_000
"""A search stops after this many nodes, and the gaps are bracketed instead."""

CELLS = 1 << 20
"""So many item states are held at once: 8 MB."""

Method: TypeAlias = Literal["enumeration", "search", "bracket"]


@dataclass(frozen=True)
class Gaps:
    r"""The gaps of an instance, exact or bracketed.

    Attributes
    ----------
    alpha
        The share of the optimum that the oracle guarantees; gaps are measured from ``alpha * r_max``.
    r_max
        The value of the best batch.
    minimum, maximum
        :math:`\Delta_{j,\min}` and :math:`\Delta_{j,\max}`, (n_arms,); NaN for an arm in no suboptimal batch. If
        bracketed, a lower bound of the smallest and an upper bound of the largest gap.
    found
        The smallest gap of each arm among the batches that were evaluated, (n_arms,): equal to ``minimum`` if exact.
    method
        ``enumeration`` (every batch was tried), ``search`` (branch and bound, run to its end) or ``bracket``.
    nodes
        How many batches and incomplete batches were visited.
    """

    alpha: float
    r_max: Bracket
    minimum: Floats
    maximum: Floats
    found: Floats
    method: Method
    nodes: int

    @property
    def exact(self) -> bool:
        """Whether every number is exact (to a relative 1e-12)."""
        return self.method != "bracket"

    @property
    def target(self) -> float:
        r""":math:`\alpha r_{\max}`, from which gaps are measured."""
        return self.alpha * self.r_max.high

    @property
    def suboptimal(self) -> Bools:
        """Which arms belong to some suboptimal batch, (n_arms,)."""
        return ~np.isnan(self.maximum)

    @property
    def largest(self) -> float:
        r""":math:`\Delta_{\max}`; 0 if every batch is optimal."""
        return float(np.nanmax(self.maximum)) if self.suboptimal.any() else 0.0

    @property
    def smallest(self) -> float:
        r""":math:`\min_j \Delta_{j,\min}`; infinite if every batch is optimal."""
        return float(np.nanmin(self.minimum)) if self.suboptimal.any() else float("inf")

    def __str__(self) -> str:
        how = {
            "enumeration": f"exact, by enumeration of {self.nodes} batches",
            "search": f"exact, by branch and bound over {self.nodes} nodes",
            "bracket": f"NOT exact: the smallest are bounded from below, after {self.nodes} nodes",
        }[self.method]
        if not self.suboptimal.any():
            return f"r_max {self.r_max.high:.6g}, alpha {self.alpha:.6g}, no batch is worth less than that ({how})"
        return (
            f"r_max {self.r_max.high:.6g}, alpha {self.alpha:.6g}, gaps from {self.smallest:.6g} to "
            f"{self.largest:.6g} over {int(self.suboptimal.sum())} of {len(self.minimum)} arms ({how})"
        )


def gaps(instance: Instance, alpha: float | None = None, nodes: int = MAX_NODES) -> Gaps:
    r"""The gaps of every arm of ``instance``.

    Exact by enumeration if there are few batches, exact by branch and bound for ``Subsets`` if ``nodes`` suffice,
    otherwise bracketed (``method`` says so). ``alpha`` is by default what the problem's default oracle guarantees.
    Batches are those that the action set lists: complete ones, except that ``Explicit`` keeps every listed batch, also
    one that another batch contains. A reward that more arms can lower, such as ``Conjunctive``, needs few batches: only
    enumeration is exact for it. Implements [MerlisMannor2019]_
    (section Preliminaries). Differs: values closer to the target than a relative 1e-12 count as equal to it; an arm in
    no suboptimal batch has no gap (NaN), which the paper leaves undefined.

    >>> from superarm import environments
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> from superarm.rewards import Linear
    >>> from superarm.simulation.instances import Instance
    >>> problem = Problem(n_arms=3, n_items=1, reward=Linear(), actions=Subsets(1))
    >>> gaps(Instance(problem, environments.Bernoulli([[0.5], [0.25], [0.125]]))).minimum
    array([  nan, 0.25 , 0.375])
    """
    problem, p = instance.problem, instance.p
    few = problem.actions.n_batches(problem.n_arms) <= MAX_ENUMERATED_BATCHES
    if instance.environment.own_reward or not problem.reward.additive:
        raise InvalidArgument("instance", "its reward is not a sum over items", "gaps are for such rewards only")
    if not few and not problem.reward.monotone:
        raise InvalidArgument(
            "instance", f"more arms can lower its reward, and it has more than {MAX_ENUMERATED_BATCHES} batches",
            "give an instance with fewer batches, which are enumerated",
        )  # fmt: skip
    alpha = _check_alpha(instance, alpha)
    if few:
        return _enumerate_gaps(instance, alpha)
    if isinstance(problem.actions, Subsets):
        return _search_gaps(SubsetSearch(problem, p, nodes), alpha)
    r_max = optimum(problem, p)
    top = np.full(problem.n_arms, alpha * r_max.high)
    return Gaps(alpha, r_max, np.zeros(problem.n_arms), top, top.copy(), "bracket", 0)


def _check_alpha(instance: Instance, alpha: float | None) -> float:
    if alpha is None:
        alpha = Default().guarantee(instance.problem).alpha
        if alpha == 0.0:
            raise InvalidArgument(
                "alpha", "no oracle has a guarantee here", "give the share of the optimum to measure gaps from"
            )
    if not 0.0 < alpha <= 1.0:
        raise InvalidArgument("alpha", f"{alpha}", "give a number in (0, 1]")
    return float(alpha)


def list_batches(problem: Problem) -> Ints:
    """Every batch of the action set, one per row, padded with -1: (n_batches, k)."""
    if isinstance(problem.actions, Explicit):
        return problem.actions.table
    return tabulate(problem.actions.batches(problem.n_arms))


def batch_values(problem: Problem, p: Floats, table: Ints) -> Floats:
    """r(A; p) of every row of ``table``, (n_batches,)."""
    q, step = problem.entries(p), max(1, CELLS // problem.n_items)
    return np.concatenate([problem.values(q, table[n : n + step]) for n in range(0, len(table), step)])


def _enumerate_gaps(instance: Instance, alpha: float) -> Gaps:
    problem = instance.problem
    table = list_batches(problem)
    value = batch_values(problem, instance.p, table)
    best = float(value.max())
    under = value < _ceiling(alpha, best)
    below, lowest = np.full(problem.n_arms + 1, -np.inf), np.full(problem.n_arms + 1, np.inf)  # the last is of -1
    np.maximum.at(below, table[under], value[under, None])
    np.minimum.at(lowest, table[under], value[under, None])
    least, most = _gaps_below(alpha * best, below[:-1], lowest[:-1])
    return Gaps(alpha, Bracket(best, best), least, most, least, "enumeration", len(table))


def _ceiling(alpha: float, r_max: float) -> float:
    """Values below this have a gap; values above it are equal to the target up to rounding."""
    return alpha * r_max - ROUNDING * abs(r_max)


def _gaps_below(target: float, below: Floats, lowest: Floats) -> tuple[Floats, Floats]:
    return tuple(np.where(np.isfinite(v), target - v, np.nan) for v in (below, lowest))  # type: ignore[return-value]


def _search_gaps(tree: SubsetSearch, alpha: float) -> Gaps:
    n_arms, top = tree.problem.n_arms, SearchRecord()
    done = tree.search(np.inf, -1, top)
    if not done:
        return _bracket_gaps(tree, alpha, top.below)
    r_max, ceiling = top.below, _ceiling(alpha, top.below)
    below, lowest = np.full(n_arms, -np.inf), np.full(n_arms, np.inf)
    for j in range(n_arms):
        record = SearchRecord(below[j], tree.descend(j))
        if not tree.search(ceiling, j, record):
            return _bracket_gaps(tree, alpha, r_max)
        if record.lowest < ceiling:
            below[j], lowest[j] = record.below, record.lowest
        below[record.batch] = np.maximum(below[record.batch], below[j])  # it holds for all arms of the batch
    least, most = _gaps_below(alpha * r_max, below, lowest)
    return Gaps(alpha, Bracket(r_max, r_max), least, most, least, "search", tree.nodes)


def _bracket_gaps(tree: SubsetSearch, alpha: float, found: float) -> Gaps:
    """What holds without a finished search: no bound of the smallest gaps, and relaxations of the largest."""
    n_arms = tree.problem.n_arms
    high = max(found, tree.relaxation(-1, tree.large[0]))
    lowest = np.array([tree.relaxation(j, tree.small[0]) for j in range(n_arms)])
    least_seen = np.array([tree.descend(j) for j in range(n_arms)])
    target = alpha * high
    return Gaps(
        alpha, Bracket(found, high), np.zeros(n_arms), target - lowest, target - least_seen, "bracket", tree.nodes
    )
