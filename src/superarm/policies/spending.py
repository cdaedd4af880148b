"""Ladders and sets that keep a mean spend: the price of a success is learnt, and what calls cost."""

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from superarm.core.arrays import Bools, Floats, Ints, floats
from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense
from superarm.core.tally import Feedback, Tally, View, round_to_grid
from superarm.oracles.heaviest import expected_costs, ladder_order, ladders_around
from superarm.policies.base import Policy
from superarm.policies.memory import Arrays, Memory
from superarm.problem import Problem

SUCCESS, TRIES = 0.15, 8.0
"""An arm that was never tried is expected to succeed so often, and that counts as so many tries. Chosen on simulated
worlds, as are the other constants here: a low expectation keeps dear arms for the tasks on which cheap ones failed."""

PRICE_TRIES = 4.0
"""As many tries the price list counts as, where costs are learnt."""

CATCH_UP, CATCH_UP_SET = 25.0, 100.0
"""In about so many decisions the account is brought back to zero. Faster, it shortens ladders that are worth their cost
after each dear task; sets, whose arms all run, vary less."""

WINDOW, MOST = 50, 1.45
"""In so many decisions in a row no ladder may begin that could bring the sum above so many times the spend."""

BILL = 3.0
"""So many times what is expected may a bill be, where costs are learnt: for the same task all are high."""

UNCOUNTED, MANY = 0.01, 100
"""From so large a share of bills that reach the scale on, of so many or more, the policy warns."""


class SpendMemory(Memory):
    """The sums; what arms were paid by this policy, an exact account; and what their calls were billed.

    ``paid``, ``bills`` and ``calls`` (R, n_arms) are exact sums. The first two are in units of ``scale``; bills outlive
    a change of prices, in proportion. ``whole`` counts the bills that reached the scale. ``recent`` (R, WINDOW, 2) has
    what the last decisions were paid, and how many rows of feedback there were about each, in turn.

    ``newest`` is the last round. ``since`` is how many rounds had passed before the account began, or had no decision
    since, as those that past data make up; the last such gap was ``gap`` rounds after round ``left``. ``credit`` is
    what earlier spends allowed more than the present one.
    """

    divisible = False
    by_row = ("paid", "bills", "calls", "whole", "recent")
    account = ("since", "gap", "left", "newest", "credit")

    def __init__(self, policy: Any, problem: Problem, rows: int = 1, partial: bool = False) -> None:
        self.paid, self.bills, self.calls, self.whole = (np.zeros((rows, problem.n_arms)) for _ in range(4))
        self.recent = np.zeros((rows, WINDOW, 2))
        self.since = self.gap = self.left = self.newest = 0
        self.credit = 0.0
        super().__init__(policy, problem, rows, partial)

    def decisions(self, t: int) -> int:
        """How many decisions of this account there were up to round ``t``."""
        return t - self.since + (self.gap if t <= self.left else 0)

    def advance(self, t: int) -> None:
        if t <= self.newest:
            return
        if t > self.newest + 1:
            self.gap, self.left = t - self.newest - 1, self.newest
            self.since += self.gap
        self.newest = t
        self.recent[:, self.decisions(t) % WINDOW] = 0.0

    def note(self, feedback: Feedback, weight: float) -> None:
        x, action = feedback.outcome, feedback.action
        seen = np.ones(x.shape, bool) if feedback.seen is None else feedback.seen
        cost: Any = 0.0 if self.policy.costs is None else self.policy.costs[action] / self.policy.scale
        rows, here = np.arange(len(action))[:, None], action >= 0
        if x.shape[2] > 1:
            told = here & seen[:, :, 1]
            cost = np.where(told, 1.0 - x[:, :, 1], cost)
            np.add.at(self.calls, (rows, action), weight * told)
            np.add.at(self.bills, (rows, action), weight * np.where(told, round_to_grid(cost), 0.0))
            np.add.at(self.whole, (rows, action), weight * (told & (x[:, :, 1] <= 0.0)))
        tried = here & seen[:, :, 0]
        paid = weight * np.where(tried, round_to_grid(cost), 0.0)
        np.add.at(self.paid, (rows, action), paid)
        n, newest = self.decisions(feedback.t), self.decisions(self.newest)
        if newest - WINDOW < n <= newest:
            self.recent[:, n % WINDOW] += np.stack([np.cumsum(paid, 1)[:, -1], weight * tried.sum(1)], 1)

    def warm(self, past: Tally, t: int, weight: float = 1.0) -> None:
        """Past data were paid by others, but tell what calls are billed."""
        super().warm(past, t, weight)
        if self.problem.n_items > 1:
            seen = np.broadcast_to(past.counts(past.pulls), past.total.shape)[:, 1]
            self.calls, self.bills = self.calls + weight * seen, self.bills + weight * (seen - past.total[:, 1])

    def inherit(self, old: Memory, t: int) -> None:
        """The account of an older ladder goes on: what it saved or owes is kept, in money."""
        super().inherit(old, t)
        self.since = self.newest = t
        if not isinstance(old, SpendMemory):
            return
        self.begun = old.begun
        for name in (*self.by_row, *self.account):
            setattr(self, name, copy(getattr(old, name)))
        self.credit += (old.policy.spend - self.policy.spend) * old.decisions(old.newest)
        unit, prices, was = old.policy.scale / self.policy.scale, self.policy.costs, old.policy.costs
        change = np.ones(self.problem.n_arms)
        if prices is not None and was is not None:
            change[: len(was)] = prices[: len(was)] / was
        self.paid, self.bills = round_to_grid(self.paid * unit), round_to_grid(self.bills * unit * change)
        self.recent[:, :, 0] = round_to_grid(self.recent[:, :, 0] * unit)

    def grown(self, problem: Problem, t: int) -> Self:
        new = super().grown(problem, t)
        new.recent = self.recent.copy()  # of any shape, it has no place for arms
        return new

    def beside(self) -> Arrays:
        return super().beside() | {name: np.array(float(getattr(self, name))) for name in self.account}

    def take_beside(self, arrays: Mapping[str, Any]) -> None:
        if "newest" not in arrays:  # of an older version, which had no windows: the account begins anew
            arrays = self.beside() | dict(arrays) | {"paid": self.paid}
        super().take_beside(arrays)
        for name in self.account:
            setattr(self, name, type(getattr(self, name))(arrays[name]))

    def spent(self) -> Floats:
        """What was paid since the account began, (R,)."""
        paid: Floats = np.cumsum(self.paid, 1)[:, -1]
        return self.policy.scale * paid

    def number(self, t: int) -> int:
        """The number of the decision of round ``t``, which is the newest or comes next."""
        return self.decisions(self.newest) + (t > self.newest)

    def last(self, t: int) -> tuple[Floats, Ints]:
        """What the last decisions before round ``t`` paid, newest first, (R, WINDOW - 1), and how many wait, (R,)."""
        n = self.number(t) - np.arange(1, WINDOW)
        paid, rows = self.recent[:, n % WINDOW].transpose(2, 0, 1)
        return self.policy.scale * paid * (n > 0), ((n > 0) & (rows <= 0.0)).sum(1)


class SpendLadder(Policy[SpendMemory]):
    r"""A ladder with a mean spend: of all lists within what may be spent now, the one that succeeds most often.

    .. math:: \max_A\ 1 - \prod_{j \in A}(1 - q_j) \quad\text{where}\quad
              \sum_n c_{a_n} \prod_{m < n}(1 - q_{a_m}) \le spend + balance / 25

    :math:`balance = spend \cdot (t - 1) - paid` is what earlier decisions might have spent, less what they did. The
    best lists for all multipliers :math:`\mu` (a success is worth :math:`1/\mu`) have the arms with
    :math:`q_j > \mu c_j`, in the order of q / c, [ZhouEtAl2018]_ (Theorem 1). The least :math:`\mu` that the right side
    allows is taken, and the next list where spend and balance pay for all of it. q is the posterior mean
    :math:`(1.2 + S_j)/(8 + N_j)` over the tasks that reached the arm: the first decisions begin with the cheapest arm,
    and a dear one is tried where cheap ones failed.
    Pending decisions count with what they are expected to cost. No regret bound is known.

    A list ends before the arm with which all of it could bring 50 decisions in a row above 1.45 times the spend, if the
    decisions after it took the cheapest arm. Where costs are known and feedback is in, that is a bound: a cheapest arm
    that costs at most the spend can always follow. Where they are learnt, a bill counts as three times what is
    expected, and a single one can be larger. Account and windows go on when prices, spend, arms or past data change.

    Parameters
    ----------
    spend
        What a decision may cost in the mean. One decision may cost more.
    costs
        What it costs to try each arm, (n_arms,). If the problem has a second item, costs are learnt: its outcome is the
        share of ``scale`` that a try did *not* cost, and ``costs``, if given, is what to expect at first.
    scale
        The largest bill of one try, where costs are learnt: what is above it is not counted as spent.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> from superarm.agent import Agent
    >>> from superarm.rewards import Coverage
    >>> problem = Problem(n_arms=3, n_items=1, reward=Coverage(), actions=Subsets(3))
    >>> agent = Agent(problem, SpendLadder(0.2, [0.5, 0.1, 0.15]), arms=["large", "small", "medium"])
    >>> agent.ask().arms
    ('small',)
    """

    spend: float
    costs: Any = None
    scale: float = 1.0
    remembers = SpendMemory
    catch_up: ClassVar[float] = CATCH_UP
    cascade = True
    counts_decisions = True
    caveat = (
        "Its prior suits arms of which most succeed less often where others failed; no regret bound is known for it."
    )

    def check(self) -> None:
        self.require("spend", 0.0 < self.spend < np.inf, "give a finite number > 0")
        self.require("scale", 0.0 < self.scale < np.inf, "give a finite number > 0")
        if self.costs is not None:
            costs = floats(self.costs, "costs", low=0.0, high=np.finfo(float).max)
            self.convert("costs", costs)
            if not (costs > 0.0).all() or (costs > self.spend).all():
                wrong = "a cost is 0" if not (costs > 0.0).all() else f"all are above the spend of {self.spend:g}"
                raise InvalidArgument("costs", wrong, "give costs > 0, and spend at least the least", "SpendLadder")

    def validate(self, problem: Problem) -> None:
        items = (1, 2) if self.costs is not None else (2,)
        dense = isinstance(problem.support, Dense) and problem.actions.uniform
        if problem.n_items not in items or not dense or len(problem.actions.pins):
            remedy = "give Subsets(k) with one item, or with two, success and saving, to learn costs"
            raise InvalidArgument("policy", f"{problem.actions!r}, {problem.n_items} items", remedy, "SpendLadder")
        if self.costs is not None and self.costs.shape != (problem.n_arms,):
            remedy = f"give {problem.n_arms}, one per arm; agent.change_prices(…) adds arms with their prices"
            raise InvalidArgument("costs", f"shape {self.costs.shape}", remedy)
        if self.costs is not None and problem.n_items == 2 and self.costs.max() > self.scale:
            wrong = f"{self.scale:g}, and the dearest arm costs {self.costs.max():g}"
            remedy = "give the largest bill of a call: what a bill has above it is not counted as spent"
            raise InvalidArgument("scale", wrong, remedy, type(self).__name__)

    def beliefs(self, problem: Problem, memory: SpendMemory) -> tuple[Floats, Floats]:
        """What to expect of each arm: how often it succeeds, and what it costs, (R, n_arms) each."""
        tally = memory.tally
        n = np.broadcast_to(tally.counts(tally.pulls), tally.total.shape)
        p = (SUCCESS * TRIES + tally.total[:, 0]) / (TRIES + np.maximum(n[:, 0], 0.0))
        if problem.n_items == 1:
            return p, np.broadcast_to(self.costs, p.shape)
        calls, bills = np.maximum(memory.calls, 0.0), self.scale * np.maximum(memory.bills, 0.0)
        listed = self.costs
        if listed is None:
            sums, tries = (np.cumsum(part, 1)[:, -1:] for part in (bills, calls))
            listed = (0.5 * self.scale + sums) / (1.0 + tries)
        return p, (PRICE_TRIES * listed + bills) / (PRICE_TRIES + calls)

    def around(self, p: Floats, c: Floats, free: Bools, k: int, money: float) -> tuple[list[int], list[int]]:
        """The best list within ``money`` in the mean, and the next dearer one."""
        return ladders_around(p, c, free, k, money)

    def price(self, p: Floats, c: Floats, batch: list[int]) -> float:
        """What a list costs in the mean."""
        return float(expected_costs(p, c, batch)[-1])

    def due(self, view: View, memory: SpendMemory, p: Floats, c: Floats) -> Floats:
        """What pending decisions are expected to cost, (R,), as if all ladders had these arms in the present order."""
        due, waiting = np.zeros(len(p)), np.maximum(view.counts - memory.tally.pulls, 0.0)
        for r in np.flatnonzero(waiting.any(1)):
            held = [j for j in ladder_order(p[r], c[r]).tolist() if waiting[r, j]]
            due[r] = self.price(p[r], c[r] * waiting[r], held)
        return due

    def room(self, view: View, memory: SpendMemory, due: Floats, cheapest: Floats) -> Floats:
        """What this decision may cost at most, (R,), so that no window that it is in passes its limit.

        The decisions after it, as many as the window has room for, take the cheapest arm. Of what pending decisions
        will cost, those of the window have their share.
        """
        last, waiting = memory.last(view.t)
        most = np.maximum((view.counts - memory.tally.pulls).max(1), 1.0)
        paid = np.cumsum(np.pad(last, ((0, 0), (1, 0))), 1)
        after = np.arange(WINDOW - 1, -1, -1.0)
        limit = MOST * WINDOW * self.spend - due * np.minimum(waiting / most, 1.0)
        return (limit[:, None] - paid - after * cheapest[:, None]).min(1)

    def choose(self, problem: Problem, view: View, memory: SpendMemory) -> Ints:
        p, c = self.beliefs(problem, memory)
        due = self.due(view, memory, p, c)
        balance = self.spend * (memory.number(view.t) - 1) + memory.credit - memory.spent() - due
        room = self.room(view, memory, due, np.where(view.eligible, c, np.inf).min(1))
        worst = c if problem.n_items == 1 else BILL * c
        out = np.full((len(view), problem.k), -1)
        for r in range(len(view)):
            held = view.pinned[r].tolist()
            free = view.eligible[r].copy()
            free[held] = False
            now = self.spend + balance[r] / self.catch_up
            batch, above = self.around(p[r], c[r], free, problem.k - len(held), now)
            if above and self.price(p[r], c[r], above) <= self.spend + balance[r]:
                batch = above
            batch = batch[: int((np.cumsum(worst[r, batch]) <= room[r]).sum())]
            if not batch and not held and free.any():
                batch = [int(np.where(free, c[r], np.inf).argmin())]
            out[r, : len(held) + len(batch)] = held + batch
        return out

    def warning(self, memory: SpendMemory) -> str:
        n, whole = float(memory.calls.sum()), float(memory.whole.sum())
        if n < MANY or whole <= UNCOUNTED * n:
            return ""
        return (
            f"{whole:g} of {n:g} calls saved nothing: their bills reached the scale of {self.scale:g}, and what is "
            "above it is not counted as spent; take a larger scale, the largest bill of a call"
        )

    def estimates(self, problem: Problem, view: View, memory: SpendMemory) -> tuple[Floats, Floats]:
        p, c = self.beliefs(problem, memory)
        saving = [1.0 - c / self.scale] if problem.n_items > 1 else []
        return memory.tally.mean, np.stack([p, *saving], 1)


class SpendSet(SpendLadder):
    r"""A set with a mean spend: arms that run at once, and all of which are paid.

    As :class:`SpendLadder`, with :math:`\sum_j c_j \le spend + balance / 100` in place of what a ladder costs: the
    first arms by q / c, and one more where spend and balance pay for it. q is the posterior mean over all tasks on
    which the arm ran, so the first decisions take the cheapest arms that fit. It needs two arms or more in a batch: of
    single arms it would take the one that succeeds most often per cost.

    >>> from superarm.actions import Subsets
    >>> from superarm.agent import Agent
    >>> from superarm.rewards import Coverage
    >>> problem = Problem(n_arms=3, n_items=1, reward=Coverage(), actions=Subsets(3))
    >>> Agent(problem, SpendSet(0.3, [0.5, 0.1, 0.15]), arms=["large", "small", "medium"]).ask().arms
    ('small', 'medium')
    """

    catch_up = CATCH_UP_SET
    cascade = False
    caveat = "It takes successes for independent; no regret bound is known for it."

    def validate(self, problem: Problem) -> None:
        super().validate(problem)
        if problem.k == 1 < problem.n_arms:
            wrong = "batches have one arm, and it would take the one that succeeds most often per cost"
            raise InvalidArgument("policy", wrong, "give Subsets(k) with k > 1, or another policy", "SpendSet")

    def around(self, p: Floats, c: Floats, free: Bools, k: int, money: float) -> tuple[list[int], list[int]]:
        order = [j for j in ladder_order(p, c).tolist() if free[j]][:k]
        n = int((np.cumsum(c[order]) <= money).sum())
        return order[:n], order[: n + 1]

    def price(self, p: Floats, c: Floats, batch: list[int]) -> float:
        return float(c[batch].sum())
