r"""Starting from a list: what learning has cost, and how much of the list may be replaced now.

An arm is worth the weighted mean of its estimated parameters. A list is charged with what it would have earned in the
visits so far, at today's estimates, and credited with what the batches that were shown earned, at the same estimates:

.. math:: room = \sum_j N_j\,worth_j - (1 - loss)\,visits \sum_{j \in list} worth_j

A batch replaces arms of the list, or of the best batch at the estimates, only while the room suffices. The worth of the
arms of the list is increased by one standard deviation on both sides: a listed arm that was unlucky early, and is shown
no more for that reason, does not make the list look poor for good. After conservative bandits, [WuEtAl2016]_. What room
the draw does not use is spent on trials of the arms that are known least.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.actions.base import total_worth
from superarm.core.arrays import Floats, Ints
from superarm.core.tally import View

if TYPE_CHECKING:
    from superarm.core.problem import Problem
    from superarm.policies.pooling import Posterior

KNOWN = 3.0
"""An arm is known once one as good as the worst of the batch would have had so many events."""

TRIAL_LOSS = 0.02
"""Trials may cost so large a share of what the list would have earned."""


class Account:
    """The account of a list in R decisions: ``listed`` (R, K) are its batches.

    ``worth`` (R, n_arms) are those of the arms in this decision, ``counts`` (R, n_arms) their pulls in all segments,
    ``due`` (R,) what the list would have earned by now, and ``room`` (R,) what learning may still cost.
    """

    def __init__(
        self, problem: "Problem", view: View, memory: Any, whole: "Posterior", ranking: tuple[int, ...], loss: float
    ) -> None:
        self.problem, self.view, self.rows, n = problem, view, np.arange(len(view)), memory.n_segments
        segment = np.zeros(len(view), np.int64) if n == 1 else view.context.segment
        worth = _worth(problem, whole, n)
        top = list(ranking[: problem.k])
        worth[:, :, top] *= 1.0 + 1.0 / np.sqrt(whole.shape[:, None, top])
        worth = np.broadcast_to(worth, (len(view), *worth.shape[1:]))
        pulls = np.broadcast_to(memory.tally.pulls.reshape(-1, n, problem.n_arms), worth.shape).copy()
        pulls[self.rows, segment] = view.counts
        self.worth, self.counts = worth[self.rows, segment], _add(pulls.swapaxes(1, 2))
        self.listed = self._list(ranking)
        visits = _add(pulls) / problem.k
        visits[self.rows, segment] += 1.0
        of_list = np.stack([total_worth(worth[:, s], self.listed) for s in range(n)], 1)
        self.due = _add(visits * of_list)
        self.room = _add(_add(pulls * worth)) - (1.0 - loss) * self.due
        self.spare = max(0.0, loss - TRIAL_LOSS) * self.due

    def _list(self, ranking: tuple[int, ...]) -> Ints:
        """The batches of the list: the first eligible arms of the ranking, then the best of the others."""
        order = self.worth / (1.0 + self.worth.max())
        order[:, list(ranking)] = 1.0 + np.arange(len(ranking), 0, -1)
        return self.problem.actions.heaviest(order, self.view)

    def keep(self, base: Ints, drawn: Ints, places: int) -> Ints:
        """The batch ``base`` with arms of ``drawn`` in at most so many ``places``, as far as the room suffices."""
        room = self.room + total_worth(self.worth, base)
        if not self.problem.actions.uniform:  # arms cannot be exchanged one by one
            change = total_worth(self.worth, drawn) - total_worth(self.worth, base)
            return np.where((room + change >= 0.0)[:, None], drawn, base)
        out, rows = base.copy(), self.rows
        value = self._values(out)
        value[(out[:, :, None] == drawn[:, None, :]).any(2)] = np.inf
        left = np.full(len(out), places)
        for arm in drawn.T:
            worst = value.argmin(1)
            after = room - value[rows, worst] + self.worth[rows, arm]
            go = (arm >= 0) & ~(out == arm[:, None]).any(1) & (left > 0) & (after >= 0.0)
            room, left = np.where(go, after, room), left - go
            out[rows[go], worst[go]], value[rows[go], worst[go]] = arm[go], np.inf
        return self._try_unknown(out, room, left == places)

    def _values(self, batch: Ints) -> Floats:
        """The worth of the arms of a batch (R, K), infinite where none may be replaced."""
        value = np.where(batch < 0, np.inf, np.take_along_axis(self.worth, np.maximum(batch, 0), 1))
        value[:, : self.view.pinned.shape[1]] = np.inf
        return value

    def _try_unknown(self, out: Ints, room: Floats, idle: Any) -> Ints:
        """Where the draw changed nothing (``idle``), put the arm that is known least in the place of the worst."""
        rows, free = self.rows, self.view.eligible.copy()
        np.put_along_axis(free, np.maximum(out, 0), False, 1)
        least = np.where(free, self.counts - self.worth / (1.0 + self.worth.max()), np.inf).argmin(1)
        value = self._values(out)
        worst = value.argmin(1)
        low = value[rows, worst]
        go = idle & free[rows, least] & (self.counts[rows, least] * low < KNOWN)
        go &= room - low + self.worth[rows, least] >= self.spare
        out[rows[go], worst[go]] = least[go]
        return out


def _worth(problem: "Problem", whole: "Posterior", n_segments: int) -> Floats:
    """The weighted mean over items of the estimates of each arm, (R, n_segments, n_arms)."""
    means, weights = whole.means(), problem.weights / problem.weights.sum()
    if n_segments > 1:
        means = means.reshape(-1, problem.n_items, problem.n_arms)
    worth = problem.support.sum_items(means * problem.support.by_item(weights[None]))
    return worth.reshape(-1, n_segments, problem.n_arms)


def _add(x: Floats) -> Floats:
    """The sum over the last axis, from the first to the last."""
    return np.cumsum(x, -1)[..., -1]
