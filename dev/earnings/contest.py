"""The contest: a policy serves the visitors of a shop, click by click, and its earnings are counted at the truth."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dev.earnings.shops import Shop
from superarm.context.context import Contexts
from superarm.contextual.catalog import for_context
from superarm.core import streams
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.tally import Feedback, View
from superarm.policies.base import Policy
from superarm.policies.memory import Memory
from superarm.simulation.replicate import seeds

LIST = "the list"


@dataclass(frozen=True)
class Way:
    """How a shop is run: what it tells of the outcomes (R, k, n_items), whether it sends its list of every phase, and
    whether a log of what is told is kept.
    """

    tell: Callable[[Floats], Floats] = lambda outcome: outcome
    follows: bool = False
    logs: bool = False


PLAIN = Way()


@dataclass
class Earnings:
    """What a policy, the list and the best slate earn at each visit, in expectation: (R, n_visits) each."""

    policy: Floats
    present: Floats
    best: Floats


class ServedShop:
    """A shop's visitors in turn, for all draws at once, each served by its own run of the policy.

    What is shown counts as not clicked at once; a click replaces that when it is told, exactly. An ``Agent`` with
    ``silence=0.0`` makes the same decisions. All draws have the same sequence of segments and of delays.
    """

    def __init__(self, shop: Shop, policy: Policy[Any] | None, visits: int, seed: int = 0, way: Way = PLAIN) -> None:
        self.shop, self.kind, self.problem, self.visits = shop, shop.kind, shop.problem, visits
        self.keys = streams.run_keys(seeds(seed, len(shop)))
        self.policy: Any = None if policy is None else for_context(policy, self.problem)
        self.way = way
        self.rows, shares = np.arange(len(shop)), np.cumsum(self.kind.shares)
        shared = streams.run_keys([streams.seed_sequence(seed)]).environment
        u = np.array([streams.shared_uniform(shared, t, 2)[0] for t in range(1, visits + 1)])
        self.segments = np.minimum(np.searchsorted(shares, u[:, 0]), len(shares) - 1)
        late = -np.log(1.0 - u[:, 1]) * self.kind.delay / 4.0
        self.delays = 1 + np.minimum(late.astype(np.int64), max(self.kind.delay - 1, 0))
        self.clock, self.phase = np.zeros(len(shares), np.int64), -1
        self.told: dict[int, list[tuple[Feedback, Feedback]]] = {}
        self._packed = np.empty(0) if shop.people is None else np.packbits(shop.people, axis=1)
        self.log: list[tuple[int, Ints, Floats]] = []  # with ``way.logs``, the phase, slates and outcomes of each visit
        if self.policy is not None:
            self.memory: Memory = self.policy.new_memory(self.problem, len(shop), self.kind.form == "items")

    def run(self) -> Earnings:
        """Serve all visitors."""
        earned = Earnings(*(np.empty((len(self.shop), self.visits)) for _ in range(3)))
        for t in range(1, self.visits + 1):
            self._enter_phase((t - 1) * self.shop.means.shape[1] // self.visits)
            segment = int(self.segments[t - 1])
            slates = self.serve(t, segment)
            earned.policy[:, t - 1] = self._value(slates, segment)
            earned.present[:, t - 1] = self._list_value[:, segment]
            earned.best[:, t - 1] = self._best_value[:, segment]
        return earned

    def serve(self, t: int, segment: int) -> Ints:
        """Learn what is told at visit ``t``, and choose the slates (R, k) of the visitor, who then answers."""
        if self.policy is None:
            return self._list
        policy, memory = self.policy, self.memory
        self._hear(t)
        memory.advance(t)
        view = self._view(t, segment)
        slates: Ints = policy.choose(self.problem, view, memory)
        if (plan := memory.plan(t)) is not None:
            memory.accept(plan)
        self._answer(t, segment, slates, view.context)
        return slates

    def _hear(self, t: int) -> None:
        """Learn the clicks that are told at visit ``t``, in place of silence."""
        for silent, clicked in self.told.pop(t, ()):
            self.memory.learn(silent, -1.0)
            self.memory.learn(clicked)

    def _view(self, t: int, segment: int) -> View:
        context, counts = None, self.memory.tally.pulls
        if self.kind.form == "context":
            self.clock[segment] += 1
            n, arms = len(self.shop), self.problem.n_arms
            times = np.full(n, self.clock[segment])
            context = Contexts(np.full(n, segment), np.zeros((n, 0)), np.zeros((n, arms, 0)), times)
            counts = counts[segment :: len(self.kind.shares)]
        pinned = np.empty((len(self.shop), 0), np.int64)
        return View(t, self.memory.tally, self.keys.policy, counts, self._for_sale, pinned, context)

    def _answer(self, t: int, segment: int, slates: Ints, context: Any) -> None:
        """The visitors look at the slates; what they click is told later, or never."""
        outcome, seen = self.outcome(t, segment, slates)
        if self.policy.rounding == "coin":
            outcome = streams.coins(self.keys.rounding, t, slates, outcome)
        outcome[self.lost(t)] = 0.0
        outcome = self.way.tell(outcome)
        if self.way.logs:
            self.log.append((self.phase, slates, outcome[:, :, 0].copy()))
        if not self.kind.delay:
            self.memory.learn(Feedback(t, slates, outcome, seen, context))
            return
        silent = Feedback(t, slates, np.zeros_like(outcome), seen, context)
        self.memory.learn(silent)
        clicked: Any = outcome.any((1, 2))
        if clicked.any():
            arms = np.where(clicked[:, None], slates, -1)
            pair = (Feedback(t, arms, part, seen, context) for part in (silent.outcome, outcome))
            self.told.setdefault(t + int(self.delays[t - 1]), []).append(tuple(pair))  # type: ignore[arg-type]

    def lost(self, t: int) -> Bools:
        """Whether what a visitor does is never told, (R,)."""
        lost: Bools = streams.shared_uniform(self.keys.environment, t)[:, 0] < self.kind.lost
        return lost

    def outcome(self, t: int, segment: int, slates: Ints) -> tuple[Floats, Bools | None]:
        """What the visitors do with the slates, (R, k, n_items), and which items are seen: that of their segment."""
        chances = self.shop.chances[self.rows[:, None], self.phase, segment, slates]
        u = streams.uniform(self.keys.environment, t, slates, 2)
        x = self.kind.visitors.take(chances, slates, u[:, :, 0])
        if self.kind.bots:
            x[streams.shared_uniform(self.keys.environment, t, 3)[:, 2] < self.kind.bots] = 1.0
        if self.shop.people is not None:
            first, end = self.shop.groups[segment : segment + 2]
            person = first + (streams.shared_uniform(self.keys.environment, t, 2)[:, 1] * (end - first)).astype(int)
            x = self.shop.people[self.rows[:, None], person[:, None], slates].astype(float)
        if self.kind.spread:
            size = np.log(np.take_along_axis(self.shop.amounts, slates, 1)) - self.kind.spread**2 / 2.0
            z = streams.normal(u[:, :, 1])
            x *= np.minimum(1.0, np.exp(size + self.kind.spread * z) / self.kind.limit)
        if self.kind.form != "items":
            return x[:, :, None], None
        here = np.arange(len(self.kind.shares)) == segment
        return x[:, :, None] * here, np.broadcast_to(here, (*slates.shape, len(here)))

    def _enter_phase(self, phase: int) -> None:
        """What is for sale, and what the list and the best slates earn, from this phase on."""
        if phase == self.phase:
            return
        shop, self.phase = self.shop, phase
        self._for_sale = shop.for_sale[:, phase]
        ranking = shop.ranking if shop.lists is None else shop.lists[phase]
        ranked = np.argsort(~self._for_sale[:, ranking], axis=1, kind="stable")[:, : self.kind.k]
        self._list = ranking[ranked]
        if self.way.follows and phase:
            self._follow(phase)
        best, segments = shop.best_slates(phase), range(len(self.kind.shares))
        self._list_value = np.stack([self._value(self._list, n) for n in segments], 1)
        self._best_value = np.stack([self._value(best[:, n], n) for n in segments], 1)

    def _follow(self, phase: int) -> None:
        """Go on with the list of a phase, as ``Agent.change_baseline`` does; what was learnt stays."""
        self.policy, old = replace(self.policy, baseline=tuple(self.shop.ranking_of(phase))), self.memory
        self.memory = self.policy.new_memory(self.problem, len(self.shop), self.kind.form == "items")
        self.memory.inherit(old, phase * self.visits // self.shop.means.shape[1])

    def _value(self, slates: Ints, segment: int) -> Floats:
        """What the slates (R, k) earn in expectation, from a visitor of a segment or, if one is for all, from any."""
        if self.shop.people is not None:
            reached = np.bitwise_or.reduce(np.take_along_axis(self._packed, slates[:, None, :], 2), 2)
            return np.bitwise_count(reached).sum(1) / self.shop.people.shape[1]
        p = self.shop.means[:, self.phase]
        if not self.kind.reaches:
            shown = p[self.rows[:, None], segment, slates]
            return self.kind.visitors.chances(shown, slates).sum(1)
        shown = p[self.rows[:, None], :, slates]  # (R, k, n_segments)
        return (1.0 - np.prod(1.0 - shown, 1)) @ np.array(self.kind.shares)
