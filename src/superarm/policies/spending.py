"""A ladder that keeps a mean spend: arms are tried until one succeeds, and the price of a success is learnt."""

from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints, floats
from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense
from superarm.core.tally import Feedback, Tally, View, round_to_grid
from superarm.oracles.heaviest import expected_costs, ladder_order, ladders_around
from superarm.policies.base import Policy
from superarm.policies.memory import Memory
from superarm.problem import Problem

SUCCESS, TRIES = 0.15, 8.0
"""An arm that was never tried is expected to succeed so often, and that counts as so many tries. Chosen on simulated
worlds, as are the other constants here: a low expectation keeps dear arms for the tasks on which cheap ones failed."""

PRICE_TRIES = 4.0
"""As many tries the price list counts as, where costs are learnt."""

CATCH_UP = 50.0
"""In about so many decisions the account is brought back to zero. Faster, it shortens ladders that are worth their cost
after each dear task."""


class SpendMemory(Memory):
    """The sums; what every arm was paid in rounds after ``begun``, an exact account; and what its calls were billed.

    ``paid``, ``bills`` and ``calls`` (R, n_arms) are exact sums. The first two are in units of ``scale``; bills outlive
    a change of prices, in proportion.
    """

    by_row = ("paid", "bills", "calls")

    def __init__(self, policy: Any, problem: Problem, rows: int = 1, partial: bool = False) -> None:
        self.paid, self.bills, self.calls = (np.zeros((rows, problem.n_arms)) for _ in range(3))
        super().__init__(policy, problem, rows, partial)

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
        np.add.at(self.paid, (rows, action), weight * np.where(here & seen[:, :, 0], round_to_grid(cost), 0.0))

    def warm(self, past: Tally, t: int, weight: float = 1.0) -> None:
        """Past data were paid by others: the account begins after them."""
        super().warm(past, t, weight)
        self.begun, self.paid = max(t, int(self.tally.pulls.max())), np.zeros_like(self.paid)
        if self.problem.n_items > 1:
            seen = np.broadcast_to(past.counts(past.pulls), past.total.shape)[:, 1]
            self.calls, self.bills = self.calls + weight * seen, self.bills + weight * (seen - past.total[:, 1])

    def inherit(self, old: Memory, t: int) -> None:
        super().inherit(old, t)
        now, was = self.policy.costs, old.policy.costs if isinstance(old, SpendMemory) else None
        if now is not None and was is not None:
            change = np.ones(len(now))
            change[: len(was)] = now[: len(was)] * old.policy.scale / (was * self.policy.scale)
            self.calls, self.bills = old.calls.copy(), round_to_grid(old.bills * change)  # type: ignore[attr-defined]

    def spent(self) -> Floats:
        """What was paid since the account began, (R,)."""
        paid: Floats = np.cumsum(self.paid, 1)[:, -1]
        return self.policy.scale * paid  # type: ignore[no-any-return]


class SpendLadder(Policy[SpendMemory]):
    r"""A ladder with a mean spend: of all lists within what may be spent now, the one that succeeds most often.

    .. math:: \max_A\ 1 - \prod_{j \in A}(1 - q_j) \quad\text{where}\quad
              \sum_n c_{a_n} \prod_{m < n}(1 - q_{a_m}) \le spend + balance / 50

    :math:`balance = spend \cdot (t - 1) - paid` is what earlier decisions might have spent, less what they did. The
    best lists for all multipliers :math:`\mu` (a success is worth :math:`1/\mu`) have the arms with
    :math:`q_j > \mu c_j`, in the order of q / c, [ZhouEtAl2018]_ (Theorem 1). The least :math:`\mu` that the right side
    allows is taken, and the next list where spend and balance pay for all of it. q is the posterior mean
    :math:`(1.2 + S_j)/(8 + N_j)` over the tasks that reached the arm: the first decisions begin with the cheapest arm,
    and a dear one is tried where cheap ones failed.
    Pending decisions count with what they are expected to cost. No regret bound is known.

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
            raise InvalidArgument("scale", wrong, remedy, "ladder")

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

    def balance(self, problem: Problem, view: View, memory: SpendMemory) -> Floats:
        """What earlier decisions might have spent, less what they did and pending ones are expected to, (R,)."""
        p, c = self.beliefs(problem, memory)
        due, waiting = np.zeros(len(p)), np.maximum(view.counts - memory.tally.pulls, 0.0)
        for r in np.flatnonzero(waiting.any(1)):  # as if all pending ladders had these arms, in the present order
            held = [j for j in ladder_order(p[r], c[r]).tolist() if waiting[r, j]]
            due[r] = expected_costs(p[r], c[r] * waiting[r], held)[-1]
        return self.spend * (view.t - 1 - max(memory.begun, 0)) - memory.spent() - due

    def choose(self, problem: Problem, view: View, memory: SpendMemory) -> Ints:
        (p, c), balance = self.beliefs(problem, memory), self.balance(problem, view, memory)
        out = np.full((len(view), problem.k), -1)
        for r in range(len(view)):
            held = view.pinned[r].tolist()
            free = view.eligible[r].copy()
            free[held] = False
            now = self.spend + balance[r] / CATCH_UP
            batch, above = ladders_around(p[r], c[r], free, problem.k - len(held), now)
            if above and expected_costs(p[r], c[r], above)[-1] <= self.spend + balance[r]:
                batch = above
            if not batch and not held and free.any():
                batch = [int(np.where(free, c[r], np.inf).argmin())]
            out[r, : len(held) + len(batch)] = held + batch
        return out

    def estimates(self, problem: Problem, view: View, memory: SpendMemory) -> tuple[Floats, Floats]:
        p, c = self.beliefs(problem, memory)
        saving = [1.0 - c / self.scale] if problem.n_items > 1 else []
        return memory.tally.mean, np.stack([p, *saving], 1)
