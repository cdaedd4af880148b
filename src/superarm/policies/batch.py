"""Policies with one exploration bonus for the whole batch: ESCB and ESCB-delta."""

import math
from typing import Any, ClassVar

import numpy as np

from superarm.actions.base import Actions, add_arms
from superarm.core.arrays import Floats, Ints
from superarm.core.component import Component, named
from superarm.core.errors import InvalidArgument
from superarm.core.numeric import log
from superarm.core.support import Dense
from superarm.core.tally import Tally, View
from superarm.oracles.base import Guarantee
from superarm.policies.base import Policy, try_every_arm
from superarm.policies.memory import Memory
from superarm.problem import Problem

MAX_ENUMERATED_BATCHES = 5_000
"""The most batches that are all looked at."""


def most_missed(tally: Tally) -> Floats:
    """In how many pulls of each arm its entry that was seen least was not seen, (R, n_arms)."""
    if not tally.partial:
        return np.zeros(tally.pulls.shape)
    if isinstance(tally.support, Dense):
        return tally.missed.max(1)
    rows, places = tally.missed, tally.support.row_entries
    return np.where(places >= 0, rows[:, places], 0.0).max(2, initial=0.0)


def refuse_oracle(oracle: Any, policy: str) -> None:
    """Say why a policy with one bonus per batch takes no oracle, if one was given."""
    if oracle is not None:
        problem = f"{oracle!r} maximises a reward at given parameters, and {policy} adds a bonus to the batch's reward"
        raise InvalidArgument("oracle", problem, "leave it out: the policy searches by itself", policy)


# --- searches for the batch with the largest sum plus the root of a sum ---


def batch_table(problem: Problem) -> Ints | None:
    """Every batch (n_batches, K), padded with -1; None if there are more than ``MAX_ENUMERATED_BATCHES``."""
    if problem.actions.n_batches(problem.n_arms) > MAX_ENUMERATED_BATCHES:
        return None
    batches = list(problem.actions.batches(problem.n_arms))
    table = np.full((len(batches), problem.k), -1)
    for row, batch in zip(table, batches, strict=True):
        row[: len(batch)] = batch
    return table


def search_batches(problem: Problem, worth: Floats, spread: Floats, view: View, table: Ints | None) -> Ints:
    r"""A batch with large :math:`\sum_{j \in A} worth_j + \sqrt{\sum_{j \in A} spread_j}`; both are (R, n_arms).

    Every batch of ``table`` is looked at, as [CombesEtAl2015]_ define ESCB; without a table, ``_ascend`` approximates.
    Where arms are excluded, the eligible part of a batch competes if no eligible arm could join it.
    """
    if table is None:
        return _ascend(problem, worth, spread, view)
    if view.eligible.all() and not view.pinned.shape[1]:
        return _best(worth, spread, view.counts, table)
    out = np.full((len(view), problem.k), -1)
    for r in range(len(view)):
        found = _playable(problem.actions, view.eligible[r], view.pinned[r], table)
        if len(found):
            out[r] = _best(worth[r : r + 1], spread[r : r + 1], view.counts[r : r + 1], found)[0]
    return out


def search_guarantee(problem: Problem) -> Guarantee:
    """What share of the greatest value ``search_batches`` reaches, [PerraultPerchetValko2019]_."""
    if problem.actions.n_batches(problem.n_arms) <= MAX_ENUMERATED_BATCHES:
        return Guarantee(1.0)
    return Guarantee(1.0 - 1.0 / math.e if problem.actions.uniform else 1.0 / (problem.actions.exchange + 1.0))


def _best(worth: Floats, spread: Floats, counts: Floats, table: Ints) -> Ints:
    """The best row of ``table`` in each replication; equal values go to that with the least-pulled arm, then the first.

    Sums run from the first arm of a batch to the last.
    """
    total, square, fewest = (np.full((len(worth), len(table)), x) for x in (0.0, 0.0, np.inf))
    for arm in table.T:
        there = arm >= 0
        total += np.where(there, worth[:, arm], 0.0)
        square += np.where(there, spread[:, arm], 0.0)
        fewest = np.minimum(fewest, np.where(there, counts[:, arm], np.inf))
    value = total + np.sqrt(square)
    most = value.max(1)[:, None]
    return table[np.where(value == most, fewest, np.inf).argmin(1)]


def _playable(actions: Actions, eligible: Any, pinned: Ints, table: Ints) -> Ints:
    """The eligible parts of batches that no eligible arm could join and that have the pinned arms, which come first."""
    there = (table >= 0) & eligible[table]
    first = (table[:, :, None] == pinned).any(2)
    order = np.argsort(np.where(there, np.where(first, 0, 1), 2), 1, kind="stable")
    rows = np.take_along_axis(np.where(there, table, -1), order, 1)
    rows = rows[(first & there).sum(1) == len(pinned)]
    if not len(rows):
        return rows
    rows[:, : len(pinned)] = pinned
    eligible = np.repeat(eligible[None], len(rows), 0)
    state, free, whole = actions.start(eligible), eligible.copy(), rows[:, 0] >= 0
    for arm in rows.T:
        at = np.flatnonzero(arm >= 0)
        whole[at] &= actions.joinable(state, eligible)[at, arm[at]]
        free[at, arm[at]] = False
        state = actions.join(state, arm)
    return rows[whole & ~(free & actions.joinable(state, eligible)).any(1)]


def _ascend(problem: Problem, worth: Floats, spread: Floats, view: View, rounds: int = 3) -> Ints:
    r"""Greedy, then heaviest batches for the tangent of the root, ``rounds`` times; the best of these.

    .. math:: v(j) = worth_j + \frac{spread_j}{2\sqrt{\sum_{i \in A} spread_i}}

    The sum plus a root of a sum is monotone submodular, so greedy reaches :math:`1 - 1/e` on ``Subsets``, 1/2 on a
    matroid and 1/(p + 1) on a p-system of the greatest value, [PerraultPerchetValko2019]_; elsewhere nothing is
    promised.
    """
    wide, rows = np.zeros((len(view), 1)), np.arange(len(view))

    def gains() -> Floats:
        return worth + np.sqrt(wide + spread) - np.sqrt(wide)

    def joined(arm: Ints) -> None:
        wide[:, 0] += np.where(arm >= 0, spread[rows, arm], 0.0)

    action = best = add_arms(problem.actions, view, gains, joined)
    most, going = _value(worth, spread, best), np.ones(len(view), bool)
    for _ in range(rounds):
        root = np.sqrt(_total(spread, action))
        going = going & (root > 0.0)
        if not going.any():
            break
        action = problem.actions.heaviest(worth + spread / (2.0 * np.where(going, root, 1.0))[:, None], view)
        value = _value(worth, spread, action)
        going = going & (value > most)
        best, most = np.where(going[:, None], action, best), np.where(going, value, most)
    return best


def _total(part: Floats, action: Ints) -> Any:
    return np.cumsum(np.where(action >= 0, np.take_along_axis(part, action, 1), 0.0), 1)[:, -1]


def _value(worth: Floats, spread: Floats, action: Ints) -> Any:
    return _total(worth, action) + np.sqrt(_total(spread, action))


def arm_worths(problem: Problem, q: Floats) -> Floats:
    """What each arm is worth alone at the entries ``q``, (R, n_arms)."""
    return problem.reward.gains(problem, problem.reward.empty_states(problem, len(q)), q)


class TableMemory(Memory):
    """The sums, and the table of all batches, if there are not too many."""

    _made: tuple[Any, Any] = None, None

    @property
    def table(self) -> Ints | None:
        """Every batch of the problem; None if there are too many."""
        if self._made[0] is not self.problem:
            self._made = self.problem, batch_table(self.problem)
        return self._made[1]


class SetBonus(Policy[TableMemory]):
    r"""One bonus for the whole batch: for modular rewards and independent arms.

    .. math:: A_t \in \arg\max_A \sum_{j \in A} \hat r_j + \sqrt{\frac{f(t)}{2} \sum_{j \in A} \frac{b_j^2}{N_j}},
              \qquad f(t) = \log t + c\,k \log\log t

    where :math:`\hat r_j` is what arm j is worth at its empirical means and :math:`b_j` the most it can be worth (1
    with one item of weight 1). Implements ESCB-2 of [CombesEtAl2015]_ (section 3), their ``c = 4``. The search is
    exact while there are at most 5,000 batches, and an approximation beyond. An arm counts the pulls of its entry that
    was seen least, and is worth all it can be while an entry was never seen.
    """

    c: float = 4.0
    remembers = TableMemory
    whole_batches = True
    caveat = "Its bonus assumes that arms are independent."

    @property
    def consistent(self) -> Any:  # type: ignore[override]
        return "independent" if self.c >= 4.0 else False

    def check(self) -> None:
        self.require("c", 0.0 <= self.c < math.inf, "give a finite number >= 0")

    def validate(self, problem: Problem) -> None:
        if not problem.reward.modular:
            raise InvalidArgument("policy", "escb needs a modular reward", "take kl_ucb(), or the reward Linear()")

    def choose(self, problem: Problem, view: View, memory: TableMemory) -> Ints:
        return try_every_arm(problem, view, lambda: self._search(problem, view, memory.table))

    def _search(self, problem: Problem, view: View, table: Ints | None) -> Ints:
        tally, missed = view.tally, most_missed(view.tally)
        reach = arm_worths(problem, np.ones_like(tally.mean))
        worth = np.where(tally.pulls <= missed, reach, arm_worths(problem, tally.mean))
        f = log(float(view.t))
        if view.t > 2:
            f += self.c * problem.k * log(f)
        spread = 0.5 * f * reach * reach / np.maximum(view.counts - missed, 1.0)
        return search_batches(problem, np.broadcast_to(worth, spread.shape), spread, view, table)

    def guarantee(self, problem: Problem) -> Guarantee:
        return search_guarantee(problem)


# --- bonuses for rewards of any shape ---


class Bonus(Component):
    """The bonus of a batch under construction, for :class:`BatchPolicy`."""

    caveat: ClassVar[str] = ""

    def validate(self, problem: Problem) -> None:
        """Raise ``InvalidArgument`` if the bonus is not defined for this problem."""

    def room(self, problem: Problem, replications: int) -> Floats:
        """What is kept of empty batches, (R, …)."""
        raise NotImplementedError

    def bonus(self, problem: Problem, view: View, mean: Floats, states: Floats, room: Floats) -> Any:
        """The bonus of the batch with each arm, (R, n_arms); ``states`` and ``room`` are those of the batch without."""
        raise NotImplementedError

    def extend(self, problem: Problem, view: View, mean: Any, states: Any, room: Any, arm: Ints) -> None:
        """Turn ``room`` into that of the batch with ``arm`` (R,); ``states`` is still that of the batch without it."""
        raise NotImplementedError


class Delta(Bonus):
    r"""The standard deviation of the estimated reward, by the delta method: ESCB-delta.

    .. math:: \sqrt{2\rho\log t\ Var(A)}, \qquad Var(A) = \sum_{j \in A}\sum_i
              \Bigl(\frac{\partial r(A; \hat p)}{\partial p_{ij}}\Bigr)^2
              \frac{\tilde p_{ij}(1 - \tilde p_{ij})}{N_{ij}}

    with :math:`\tilde p = (S + 1)/(N + 2)`.

    The bonus of [CombesEtAl2015]_ (ESCB-2) for a reward that is not linear. The state of an item is a function of a sum
    over arms, so one more arm scales the derivatives in all others by the same number, and a candidate costs as much
    as its entries. Assumes that arms and items are independent: the variances are added.
    """

    rho: float = 1.0
    caveat = "Its bonus adds up variances: it assumes that arms and the items of an arm are independent."

    def check(self) -> None:
        self.require("rho", 0.0 < self.rho < math.inf, "give a finite number > 0")

    def room(self, problem: Problem, replications: int) -> Floats:
        return np.zeros((replications, problem.n_items))  # the variance of each item

    def bonus(self, problem: Problem, view: View, mean: Floats, states: Floats, room: Floats) -> Any:
        fade, own = _changes(problem, view, mean, states)
        more = problem.support.sum_items((fade - 1.0) * problem.support.by_item(room) + own)
        variance = np.maximum(0.0, np.cumsum(room, 1)[:, -1:] + more)
        return np.sqrt(2.0 * self.rho * log(float(view.t)) * variance)

    def extend(self, problem: Problem, view: View, mean: Any, states: Any, room: Any, arm: Ints) -> None:
        fade, own = _changes(problem, view, mean, states)
        problem.support.join(room, fade, arm, lambda variance, scale: variance * scale)
        problem.support.join(room, own, arm, lambda variance, new: variance + new)


def _changes(problem: Problem, view: View, mean: Floats, states: Floats) -> tuple[Floats, Floats]:
    """What each arm does to the variances of its items: it scales those of the others, and adds its own; entries."""
    support, reward, tally = problem.support, problem.reward, view.tally
    weight, state = support.by_item(problem.weights[None]), support.by_item(states)
    n, told = np.maximum(1.0, tally.counts(view.counts)), tally.counts(tally.pulls)
    smooth = (tally.total + 1.0) / (told + 2.0)
    slope, fades = reward.derivative(weight, state, mean), []
    for earlier in (state, support.by_item(reward.empty_states(problem, len(states)))):
        before, after = (reward.derivative(weight, part, 0.0) for part in (earlier, reward.join(earlier, mean)))
        blank = np.ones(np.broadcast_shapes(after.shape, before.shape)) * float(reward.modular)
        fades.append(np.divide(after, before, out=blank, where=before > 0.0))
    # In a state in which nothing more can be gained, an arm scales as in the empty one: what it scales may be above 0.
    ratio = np.where(reward.derivative(weight, state, 0.0) > 0.0, *fades)
    own = slope * slope * smooth * (1.0 - smooth) / n
    return np.broadcast_to(ratio * ratio, own.shape), own


class BatchPolicy(Policy[Memory]):
    r"""The batch with the largest empirical reward plus one joint bonus, grown greedily: for rewards of any shape.

    .. math:: A_t \approx \arg\max_A\ r(A; \hat p) + bonus(A)

    After ESCB of [CombesEtAl2015]_ (Algorithm 1), where r is a sum and the search is exact. Each arm that joins is the
    one with the largest value of the batch with it, as in [NemhauserWolseyFisher1978]_; equal values go to the arm with
    fewest pulls. An entry that was never seen, though its arm was pulled, counts as 1. The bonus is
    :class:`Delta`.
    """

    bonus: Bonus
    whole_batches = True

    def check(self) -> None:
        self.require_family("bonus", Bonus, "Delta()")

    @property
    def caveat(self) -> str:  # type: ignore[override]
        return self.bonus.caveat

    def validate(self, problem: Problem) -> None:
        self.bonus.validate(problem)

    def choose(self, problem: Problem, view: View, memory: Memory) -> Ints:
        return try_every_arm(problem, view, lambda: self._grow(problem, view))

    def _grow(self, problem: Problem, view: View) -> Ints:
        reward, unknown = problem.reward, view.tally.unknown()
        mean = view.tally.mean if unknown is None else np.where(unknown, 1.0, view.tally.mean)
        states, room = reward.empty_states(problem, len(view)), self.bonus.room(problem, len(view))

        def gains() -> Any:
            return reward.gains(problem, states, mean) + self.bonus.bonus(problem, view, mean, states, room)

        def joined(arm: Ints) -> None:
            self.bonus.extend(problem, view, mean, states, room, arm)
            problem.support.join(states, mean, arm, reward.join)

        return add_arms(problem.actions, view, gains, joined)


# --- by name ---


@named
def escb(c: float = 4.0, oracle: None = None) -> SetBonus:
    r"""ESCB-2: one bonus :math:`\sqrt{f(t)/2\,\sum_{j \in A} 1/N_j}` per batch: modular rewards, independent arms.

    Implements [CombesEtAl2015]_ (section 3) with :math:`f = \log t + c\,k\log\log t`. The best batch is found exactly
    if there are at most 5,000 batches, and approximately otherwise. It takes no ``oracle``: the bonus of a batch is no
    sum over its arms.

    ``c`` is the constant of the exploration; the theorem has 4.

    >>> escb()
    escb(c=4)
    """
    refuse_oracle(oracle, "escb")
    return SetBonus(c)


@named
def escb_delta(rho: float = 1.0, oracle: None = None) -> BatchPolicy:
    r"""ESCB for any differentiable reward: one bonus :math:`\sqrt{2\rho\log t\,Var(A)}` per batch, by the delta method.

    After [CombesEtAl2015]_. Caveat: it assumes that arms and the items of an arm are independent. It takes no
    ``oracle``: batches are grown greedily, by their reward plus their bonus.

    ``rho`` scales the exploration.

    >>> escb_delta().bonus
    Delta(rho=1)
    """
    refuse_oracle(oracle, "escb_delta")
    return BatchPolicy(Delta(rho))
