r"""Starting from a list: what learning has cost, and how much of the list may be replaced now.

An arm is worth the weighted mean of its estimated parameters. A list is charged with what it would have earned in the
visits so far, at today's estimates, and credited with what the batches that were shown earned, at the same estimates:

.. math:: room = \sum_j N_j\,worth_j - (1 - loss)\,visits \sum_{j \in list} worth_j

N_j and visits count what the policy decided while the list was this one: past data and decisions beside an earlier list
sharpen the estimates, and neither charge nor credit the account. In the visits in which an arm was shown that is sold
out now, the list is charged with that arm, not with the one in its place. An arm that stands in for one of the list is
worth as much as the worst of the list until it is known. Where arms off the list have earned less than estimated, what
they have really earned counts, less what may be luck. What lists lose that cannot be improved is measured,
and not proved: ``python -m dev.benchmarks.best_list``.

A batch replaces arms of the list, or of the best batch at the estimates, only while the room suffices. The worth of the
arms of the list is increased by one standard deviation on both sides: a listed arm that was unlucky early, and is shown
no more for that reason, does not make the list look poor for good. After conservative bandits, [WuEtAl2016]_. What room
the draw does not use is spent on trials of arms that are not known yet. Whatever the room, arms off the list have one
place in fifty, later fewer, so that a list that earns next to nothing does not stop learning and a misleading ranking
is found out. Later, learning may cost half of what the best batch promises beyond the list: little where the list is
nearly the best. The best batch is that at the estimates with arms of the list raised, and all others lowered, by one
standard deviation: while clicks are few, the estimates themselves favour arms that were lucky.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.actions.base import total_worth
from superarm.core import streams
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.tally import View
from superarm.policies.pooling import TOGETHER
from superarm.problem import Problem

if TYPE_CHECKING:
    from superarm.policies.pooling import Posterior

TRIALS = 3.0
"""Of t decisions so many times the root of t, in the mean, show an arm that is not known, whatever the account says.
With 8, lists that are nearly the best are followed at a loss; with none, a ranking that is upside down is believed for
good. Measured on shops for development."""

PLACES = 3
"""With fewer places trials are made in fewer decisions, so that they take no more than a third of all places: the best
arm, alone in its batch, must be shown to become known."""

KNOWN = 3.0
"""An arm is known once one as good as the worst of the batch would have had so many events."""

TRIAL_LOSS, TRIAL_DECISIONS = 0.02, 1000
"""Trials may cost so large a share of what the list would have earned in so many decisions."""


CLOSE = 0.03
"""Luck is looked for where arms off the list earned at most such a share of what the list would have: arms that earned
more are close to it. With a luck of 1, shops with rare clicks learn nothing in 5,000 visits; with 0, a third of lists
that cannot be improved lose more than 5 % at some time."""


def trial_loss(t: Floats) -> Floats:
    """The share of what the list would have earned in ``t`` (R,) decisions that trials may cost.

    It falls with the square root: in the long run a list that cannot be improved costs next to nothing to follow, and
    trials never end.
    """
    return TRIAL_LOSS * np.minimum(1.0, np.sqrt(TRIAL_DECISIONS / t))


class Account:
    """The account of a list in R decisions: ``listed`` (R, K) are its batches.

    ``worth`` (R, n_arms) are those of the arms in this decision, ``counts`` (R, n_arms) their pulls in all segments,
    ``own`` those of them that the policy decided while the list was this one, and ``t`` (R,) the number of the decision
    among all of its own. ``due`` (R,) is what the list would have earned by now, ``balance`` (R,) what was earned
    beyond it, and ``luck`` (R,) how much of that may be chance. ``poor`` (R, 1) says that fewer than ``KNOWN`` events
    were seen, so that nothing is known to earn.
    """

    def __init__(  # luck: so many standard deviations of what arms off the list earned are not believed
        self, problem: Problem, view: View, memory: Any, whole: "Posterior", ranking: tuple[int, ...], luck: float
    ):
        self.problem, self.view, self.rows, n = problem, view, np.arange(len(view)), memory.n_segments
        segment = np.zeros(len(view), np.int64) if n == 1 else view.context.segment
        means, weights, top = whole.means(), problem.weights / problem.weights.sum(), list(ranking[: problem.k])
        worth = _worth(problem, means, weights, n)
        worth[:, :, top] *= 1.0 + 1.0 / np.sqrt(whole.shape[:, None, top])
        worth = np.broadcast_to(worth, (len(view), *worth.shape[1:])).copy()
        sums = memory.tally.pulls, memory.tally.given, memory.tally.before
        pulls, given, before = (np.broadcast_to(x.reshape(-1, n, problem.n_arms), worth.shape) for x in sums)
        waiting, pulls = view.counts - pulls[self.rows, segment], pulls.copy()
        pulls[self.rows, segment] = view.counts
        self.worth, self.counts = worth[self.rows, segment], _add(pulls.swapaxes(1, 2))
        self.t = 1.0 + np.maximum(_add(_add(pulls - given)), 0.0) / problem.k
        pulls = np.maximum(pulls - given - before, 0.0)
        self.own = _add(pulls.swapaxes(1, 2))
        self.listed = self._list(ranking)
        self._trust(worth, top)
        visits = _add(pulls) / problem.k
        visits[self.rows, segment] += 1.0
        of_list = np.stack([total_worth(worth[:, s], self.listed) for s in range(n)], 1)
        self.due = _add(visits * of_list) + self._missed(worth, pulls, of_list, top)
        seen = _seen(whole, np.tile(weights, n))
        self.earned, self.dispersion = seen(whole.observed.total), whole.prior.dispersion
        self.poor = (_add(self.earned) < KNOWN * self.dispersion)[:, None]
        surprise = (self.earned - seen(whole.observed.n * means)) * self.own / np.maximum(self.counts, 1.0)
        surprise[:, top] = 0.0
        credit = pulls * worth
        self.balance = _add(_add(credit)) + np.minimum(_add(surprise), 0.0) - self.due
        credit[:, :, top] = 0.0
        waiting[:, top] = 0.0
        self.luck = _add(waiting * self.worth / np.sqrt(whole.shape))
        believed = np.minimum(_add(_add(credit)), CLOSE * self.due)
        next_ones = -(-problem.k // 3) / problem.k * total_worth(self.worth, self.listed)
        self.luck += luck * np.sqrt(self.dispersion * (believed + next_ones))

    def _list(self, ranking: tuple[int, ...]) -> Ints:
        """The batches of the list: the first eligible arms of the ranking, then the best of the others."""
        order = self.worth / (1.0 + self.worth.max())
        order[:, list(ranking)] = 1.0 + np.arange(len(ranking), 0, -1)
        return self.problem.actions.heaviest(order, self.view)

    def _trust(self, worth: Floats, top: list[int]) -> None:
        """Let an arm that stands in for one of the list be worth as much as the worst of it, until it is known."""
        first = np.zeros(self.problem.n_arms, bool)
        first[top] = True
        arms, rows = np.maximum(self.listed, 0), self.rows[:, None]
        there, instead = first[arms] & (self.listed >= 0), ~first[arms] & (self.listed >= 0)
        for part in (*worth.swapaxes(0, 1), self.worth):
            of_list = part[rows, arms]
            low = np.where(there.any(1), np.where(there, of_list, np.inf).min(1), 0.0)[:, None]
            raised = np.where(self.counts[rows, arms] * low < KNOWN, np.maximum(of_list, low), of_list)
            part[rows, arms] = np.where(instead, raised, of_list)

    def _missed(self, worth: Floats, pulls: Floats, of_list: Floats, top: list[int]) -> Floats:
        """What the first arms of the ranking that are not there now were worth beyond those in their places, (R,).

        In the visits in which they were shown the list had them, too: it is charged with them.
        """
        gone = ~self.view.eligible[:, top]
        there = np.where(gone[:, None], 0.0, worth[:, :, top])
        instead = (of_list - _add(there)) / np.maximum(gone.sum(1), 1)[:, None]
        return _add(_add(np.where(gone[:, None], pulls[:, :, top] * (worth[:, :, top] - instead[:, :, None]), 0.0)))

    def overdrawn(self, batch: Ints, loss: Floats) -> Bools:
        """Whether more than the share ``loss`` (R,) is lost with this batch, so that the list itself is due, (R,)."""
        return self.balance + loss * self.due + total_worth(self.worth, batch) < 0.0

    def promise(self, means: Floats, batch: Ints) -> Floats:
        """By which share of what the list is worth the estimates of entries say that a batch exceeds it, (R,)."""
        worth = _worth(self.problem, means, self.problem.weights / self.problem.weights.sum(), 1)[:, 0]
        return np.maximum(total_worth(worth, batch) / total_worth(self.worth, self.listed) - 1.0, 0.0)

    def careful(self, own: "Posterior") -> Floats:
        """The means of entries, those of the list raised and all others lowered by a standard deviation.

        At these the best batch is the list until it is known that another one is better.
        """
        sign = np.full(self.worth.shape, -1.0)
        _put(sign, self.listed, self.listed >= 0, 1.0)
        factor = np.maximum(0.0, 1.0 + self.problem.support.by_arm(sign) * own.spread())
        return np.minimum(own.means() * factor, 0.999)

    def trial_due(self, later: Bools, loss: Floats) -> Bools:
        """Whether this decision shows an arm that is not known, whatever the account says, (R, 1).

        All do until other arms had a share of the places that cannot cost much: ``trial_loss``, or ``loss`` while
        nothing is known to earn. The ``later`` ones do by chance, too, if arms can be exchanged one by one.
        """
        shown = _add(self.own)
        others = shown - _add(np.take_along_axis(self.own, np.maximum(self.listed, 0), 1) * (self.listed >= 0))
        least = np.where(self.poor[:, 0], loss, np.minimum(loss, trial_loss(self.t)))
        often = np.minimum(TRIALS * (np.sqrt(self.t) - np.sqrt(self.t - 1.0)), max(self.problem.k, PLACES) * least)
        chance = later * often * self.problem.actions.uniform
        due: Bools = streams.shared_uniform(self.view.keys, self.view.t, 3)[:, 2] < chance
        return (due | (others + 1.0 <= least * shown))[:, None]

    def keep(self, base: Ints, drawn: Ints, places: Ints, loss: Floats) -> Ints:
        """The batch ``base`` with arms of ``drawn`` in at most so many ``places``, as far as the room suffices.

        Learning may have cost the share ``loss`` (R,) of what the list would have earned.
        """
        room, spare = self.balance + loss * self.due, np.maximum(0.0, loss - trial_loss(self.t)) * self.due
        later = np.where(places < self.problem.k, 0.0, self.luck)  # trials cost little then
        room = room - self.luck + total_worth(self.worth, base)
        if not self.problem.actions.uniform:  # arms cannot be exchanged one by one
            drawn = self._near(base, drawn, places)
            change = total_worth(self.worth, drawn) - total_worth(self.worth, base)
            return np.where((room + change >= 0.0)[:, None], drawn, base)
        out, rows = base.copy(), self.rows
        value = self._values(out)
        value[(out[:, :, None] == drawn[:, None, :]).any(2)] = np.inf
        left = places.copy()
        for arm in drawn.T:
            worst = value.argmin(1)
            after = room - value[rows, worst] + self.worth[rows, arm]
            go = (arm >= 0) & ~(out == arm[:, None]).any(1) & (left > 0) & (after >= 0.0)
            room, left = np.where(go, after, room), left - go
            out[rows[go], worst[go]], value[rows[go], worst[go]] = arm[go], np.inf
        seldom = streams.shared_uniform(self.view.keys, self.view.t, 4)[:, 3] < self.problem.k / PLACES
        return self._try_unknown(out, room + later - spare, (left == places) & seldom)

    def trial(self, base: Ints, drawn: Ints) -> Ints:
        """The batch ``base`` with an arm in its worst place that is not known, if there is one, or one of ``drawn``."""
        if not self.problem.actions.uniform:
            return self._near(base, drawn, np.ones(len(base), np.int64))
        return self._try_unknown(base.copy(), np.full(len(base), np.inf), np.ones(len(base), bool))

    def _near(self, base: Ints, drawn: Ints, places: Ints) -> Ints:
        """A batch with at most so many ``places`` unlike ``base``: with the first arms of ``drawn``, as rules allow."""
        if (places >= base.shape[1]).all():
            return drawn
        new = (drawn >= 0) & ~(drawn[:, :, None] == base[:, None, :]).any(2)
        new &= np.cumsum(new, 1) <= places[:, None]
        order = np.zeros_like(self.worth)
        _put(order, base, base >= 0, 1.0)
        _put(order, drawn, new, 1.5)  # so that no arm of base makes room but for one
        near = self.problem.actions.heaviest(order, self.view)
        kept = (base[:, :, None] == near[:, None, :]).any(2) & (base >= 0)
        return np.where((kept.sum(1) >= (base >= 0).sum(1) - places)[:, None], near, base)

    def _values(self, batch: Ints) -> Floats:
        """The worth of the arms of a batch (R, K), infinite where none may be replaced."""
        value = np.where(batch < 0, np.inf, np.take_along_axis(self.worth, np.maximum(batch, 0), 1))
        value[:, : self.view.pinned.shape[1]] = np.inf
        return value

    def _try_unknown(self, out: Ints, room: Floats, idle: Any) -> Ints:
        """Where the draw changed nothing (``idle``), put one of the arms that are not known in the worst place.

        It is the best if each of them had begun with one event, at the worth of the arm in that place: whatever the
        ranking and other arms say of it, so that a misleading ranking is found out.
        """
        rows, value = self.rows, self._values(out)
        worst = value.argmin(1)
        low = value[rows, worst]
        pulls = self.dispersion / low  # in which the arm in that place has one event
        unknown = self.view.eligible & (self.counts < KNOWN * pulls[:, None])
        np.put_along_axis(unknown, np.maximum(out, 0), False, 1)
        hopes = (self.dispersion[:, None] + self.earned) / (pulls[:, None] + self.counts)
        best = np.where(unknown, hopes, -1.0).argmax(1)
        go = idle & unknown[rows, best] & (room - low + self.worth[rows, best] >= 0.0)
        out[rows[go], worst[go]] = best[go]
        return out


def _put(x: Floats, arms: Ints, where: Any, value: float) -> None:
    """Write ``value`` to the places ``arms`` (R, K) of ``x`` (R, n_arms)."""
    rows, places = np.nonzero(where)
    x[rows, arms[rows, places]] = value


def _worth(problem: Problem, means: Floats, weights: Floats, n_segments: int) -> Floats:
    """The weighted mean over items of the estimates of each arm, (R, n_segments, n_arms)."""
    if n_segments > 1:
        means = means.reshape(-1, problem.n_items, problem.n_arms)
    worth = problem.support.sum_items(means * problem.support.by_item(weights[None]))
    return worth.reshape(-1, n_segments, problem.n_arms)


def _seen(whole: "Posterior", weights: Floats) -> Any:
    """A function that sums something of entries that was seen to that of arms, (R, n_arms).

    What is seen of one item is what the visitor gave; of all items together, each has its weight.
    """
    support, alone = whole.observed.support, whole.prior.together[:, None] < TOGETHER
    by_item = support.by_item(np.where(alone, 1.0, weights))
    return lambda entries: support.sum_items(entries * by_item)


def _add(x: Floats) -> Floats:
    """The sum over the last axis, from the first to the last."""
    return np.cumsum(x, -1)[..., -1]
