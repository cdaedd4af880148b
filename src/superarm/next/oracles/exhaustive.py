"""Every batch, one after the other."""

from typing import TYPE_CHECKING

import numpy as np

from superarm.arrays import Bools, Floats, Ints
from superarm.errors import InvalidArgument
from superarm.next.actions.base import joinable_after, pack, take_rows
from superarm.next.actions.explicit import Explicit, best_batches, tabulate
from superarm.next.core.support import Dense
from superarm.next.oracles.base import Guarantee, Oracle, held

if TYPE_CHECKING:
    from superarm.next.core.problem import Problem
    from superarm.next.core.tally import View

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

    def maximize(self, problem: "Problem", q: Floats, view: "View") -> Ints:
        table = _table(problem)
        values = _values(problem, np.broadcast_to(q, (len(view), *q.shape[1:])), table)
        out = best_batches(table, _where_pinned(values, table, view), view)
        padded = np.concatenate([view.eligible, np.ones((len(view), 1), bool)], axis=1)
        for r in np.flatnonzero(~view.eligible.all(1)):
            whole = padded[r, table].all(1)
            own, parts = values[[r]].copy(), table.copy()
            own[0, ~whole] = -np.inf
            if not problem.actions.whole:
                parts[~whole], own[0, ~whole] = _eligible_parts(
                    problem, q[[r % len(q)]], view.eligible[r], parts[~whole]
                )
            one = take_rows(view, [r])
            out[r] = best_batches(parts, _where_pinned(own, parts, one), one)[0]
        return out

    def guarantee(self, problem: "Problem") -> Guarantee:
        return Guarantee(1.0)

    def validate(self, problem: "Problem") -> None:
        n = problem.actions.n_batches(problem.n_arms)
        if not isinstance(problem.actions, Explicit) and n > MAX_LISTED_BATCHES:
            remedy = f"at most {MAX_LISTED_BATCHES} can be; take Greedy()"
            raise InvalidArgument("oracle", f"{n:.3g} batches to evaluate", remedy)


def _table(problem: "Problem") -> Ints:
    """Every batch that no other batch contains, one per row, padded with -1 to (n_batches, K)."""

    def make() -> Ints:
        if isinstance(problem.actions, Explicit):
            return problem.actions.table
        table = tabulate(problem.actions.batches(problem.n_arms))
        return np.pad(table, ((0, 0), (0, problem.k - table.shape[1])), constant_values=-1)

    return held(problem, "_batches", make)


def _values(problem: "Problem", q: Floats, table: Ints) -> Floats:
    """The value of every listed batch in every replication, (R, B)."""
    if not (isinstance(problem.support, Dense) and problem.reward.additive):
        return np.array([problem.values(row[None], table) for row in q])
    step = max(1, _CELLS // q[:, :, 0].size)
    return np.concatenate([_dense_values(problem, q, table[n : n + step]) for n in range(0, len(table), step)], axis=1)


def _dense_values(problem: "Problem", q: Floats, table: Ints) -> Floats:
    """The same from the item states of all batches at once, (R, n_items, B)."""
    reward, weights = problem.reward, problem.weights[None, :, None]
    support = Dense(problem.n_items, len(table))
    states = np.array(reward.start(np.broadcast_to(weights, support.shape(len(q)))), float)
    value = support.sum_items(reward.worth(weights, states))
    for arm in table.T:
        part, there = q[:, :, arm], arm >= 0
        value = value + support.sum_items(np.where(there, reward.gain(weights, states, part), 0.0))
        states = np.where(there, reward.join(states, part), states)
    return value


def _eligible_parts(problem: "Problem", q: Floats, eligible: Bools, table: Ints) -> tuple[Ints, Floats]:
    """The eligible parts of the batches ``table``, and their values; -inf where another arm could join."""
    parts = pack(np.where((table >= 0) & eligible[table], table, -1))
    open_to = joinable_after(problem.actions, parts, np.repeat(eligible[None], len(parts), 0)).any(1)
    return parts, np.where(open_to | (parts < 0).all(1), -np.inf, problem.values(q, parts))


def _where_pinned(values: Floats, table: Ints, view: "View") -> Floats:
    """The values (R, B) of batches with all pinned arms; -inf for the others."""
    for arm in view.pinned.T:
        values = np.where((table == arm[:, None, None]).any(2), values, -np.inf)
    return values
