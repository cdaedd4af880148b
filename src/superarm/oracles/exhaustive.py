"""Every batch, one after the other."""

import numpy as np

from superarm.actions.base import joinable_after, pack, take_rows
from superarm.actions.explicit import Explicit, best_batches, tabulate
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.tally import View
from superarm.oracles.base import Guarantee, Oracle, held
from superarm.problem import Problem

MAX_LISTED_BATCHES = 2_000_000
"""The largest number of batches that ``Exhaustive`` lists."""

_CELLS = 1 << 20
"""So many item states are held at once: 8 MB."""


class Exhaustive(Oracle):
    """Evaluate every batch: exact, for explicit action sets and small problems.

    If arms are excluded, the eligible part of each batch is evaluated, unless another arm could join it. Equal values
    go to the batch whose least-pulled arm has the fewest pulls, then to the first. The plain definition of Oracle(q) in
    [MerlisMannor2019]_ (section Algorithm) with alpha = beta = 1.
    """

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        table = _table(problem)
        values = np.broadcast_to(_values(problem, q, table), (len(view), len(table)))
        out = best_batches(table, values, view)
        padded = np.concatenate([view.eligible, np.ones((len(view), 1), bool)], axis=1)
        for r in np.flatnonzero(~view.eligible.all(1)):
            whole = padded[r, table].all(1)
            own, parts = values[[r]].copy(), table.copy()
            own[0, ~whole] = -np.inf
            if not problem.actions.whole:
                parts[~whole], own[0, ~whole] = _eligible_parts(
                    problem, q[[r % len(q)]], view.eligible[r], parts[~whole]
                )
            out[r] = best_batches(parts, own, take_rows(view, [r]))[0]
        return out

    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0)

    def validate(self, problem: Problem) -> None:
        n = problem.actions.n_batches(problem.n_arms)
        if not isinstance(problem.actions, Explicit) and n > MAX_LISTED_BATCHES:
            remedy = f"at most {MAX_LISTED_BATCHES} can be; take Greedy()"
            raise InvalidArgument("oracle", f"{n:.3g} batches to evaluate", remedy)


def _table(problem: Problem) -> Ints:
    """Every batch that no other batch contains, one per row, padded with -1 to (n_batches, K)."""

    def make() -> Ints:
        if isinstance(problem.actions, Explicit):
            return problem.actions.table
        table = tabulate(problem.actions.batches(problem.n_arms))
        return np.pad(table, ((0, 0), (0, problem.k - table.shape[1])), constant_values=-1)

    return held(problem, "_batches", make)


def _values(problem: Problem, q: Floats, table: Ints) -> Floats:
    """The value of every listed batch in every replication, (R, B): to a replication, batches are replications."""
    step = max(1, _CELLS // problem.n_items)
    parts = [table[first : first + step] for first in range(0, len(table), step)]
    return np.array([np.concatenate([problem.values(row[None], part) for part in parts]) for row in q])


def _eligible_parts(problem: Problem, q: Floats, eligible: Bools, table: Ints) -> tuple[Ints, Floats]:
    """The eligible parts of the batches ``table``, and their values; -inf where another arm could join."""
    parts = pack(np.where((table >= 0) & eligible[table], table, -1))
    open_to = joinable_after(problem.actions, parts, np.repeat(eligible[None], len(parts), 0)).any(1)
    return parts, np.where(open_to | (parts < 0).all(1), -np.inf, problem.values(q, parts))
