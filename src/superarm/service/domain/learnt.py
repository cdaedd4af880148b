"""Items that a problem learns itself: versions of classes of visitors, and the counters of the version in force.

With ``items: "learn"`` an outcome is about an arm alone, and the classes that slates should cover are fitted to the
problem's own decisions. A version is an event with all parameters of the classes. How much an outcome counts for each
class is a function of these and of the outcomes of its decision (``superarm.items.counts``). So a decision is taken
back exactly under any version, and a replay fits nothing.

- The class of a visitor is judged by what their decision counts as: provisional zeros and values at the end of a window
  are outcomes. Feedback that replaces them replaces the whole decision.
- An erased decision leaves the counters and its unit's classes at once, and the parameters with the next version.
- A decision that a compaction removes still counts, but no longer for its unit.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from superarm.agent.learner import Learner
from superarm.core.arrays import Ints
from superarm.core.tally import round_to_grid
from superarm.decisions import UNSEEN, Row
from superarm.items.counts import Answered, ItemCounts, recommended, to_rows
from superarm.items.latent import STRENGTH, Items, learn_rows
from superarm.items.need import Need
from superarm.problem import Problem
from superarm.service.domain.events import Asked, Learnt, Warmed


class LearntItems:
    """The versions of a problem's items, and the counters of the newest; before the first, there is one class."""

    def __init__(self, problem: Problem, arms: list[str]) -> None:
        one = learn_rows(to_rows([], problem.n_arms), (1,), arms=arms)
        self.counts = ItemCounts(one, problem.actions, recommended(problem.actions, problem.n_arms))
        self.versions: list[Learnt] = []

    @property
    def in_force(self) -> bool:
        """Whether slates cover several classes; with one class, the problem's policy chooses."""
        return self.counts.items.n_classes > 1

    @property
    def learner(self) -> Learner:
        """The counters by class."""
        return self.counts.learner

    @property
    def due(self) -> bool:
        """Whether there are enough new decisions to learn anew."""
        return len(self.counts.told) >= self.counts.due

    def apply(self, event: Learnt) -> None:
        """Take on a version: all decisions count by its classes."""
        self.versions.append(event)
        shares, p, level, rates = (np.array(part) for part in (event.shares, event.p, event.level, event.rates))
        names = self.counts.items.arms
        rows = to_rows([], len(names))
        made = Items(shares, p.reshape(-1, len(shares)), level, rates, STRENGTH, event.z, rows, names[: len(rates)])
        self.counts.adopt(made.grown(names), event.since)
        self.counts.due_after(event.n)

    def grow(self, problem: Problem, arms: Iterable[str]) -> None:
        """The problem has further arms."""
        self.counts.grow(list(arms), problem.actions, recommended(problem.actions, problem.n_arms))

    def record(self, asked: Asked, rows: dict[int, Row]) -> None:
        """Count what is known of a decision, in place of what was known before; ``rows`` as they count."""
        seen = {arm: row[0] for arm, row in rows.items() if row[0] != UNSEEN}
        outcomes = np.asarray(round_to_grid(np.array(list(seen.values()), float)))
        self.counts.put(asked.id, Answered(asked.t, np.array(list(seen), np.int64), outcomes, asked.unit or None))

    def warm(self, event: Warmed) -> None:
        """Count outcomes without a decision: each is of a visitor of its own."""
        for n, (arm, row) in enumerate(zip(event.arms, event.rows, strict=True)):
            self.record(Asked(0, "", f"\x1f{event.id}/{n}", "", event.t, (arm,), 1, 1), {arm: tuple(row)})

    def choose(self, view: Any, unit: str, actions: Any) -> Ints:
        """The slate for a view: for the classes of the unit, if it has answered before, or of all visitors."""
        shares = self.counts.shares(unit) if unit else None
        return self.counts.choose(view, None if shares is self.counts.items.shares else shares, actions)

    def next_version(self, items: Items, now: int, by: str = "") -> Learnt:
        """The event of items that were learnt."""
        shares, p, level, rates = (
            tuple(part.ravel().tolist()) for part in (items.shares, items.p, items.level, items.rates)
        )
        version, n = len(self.versions) + 1, len(self.counts.told)
        return Learnt(now, version, n, self.counts.oldest(), shares, p, level, rates, float(items.z), 0, by)

    def rehearse(self) -> None:
        """Take on two classes of nobody, and count an outcome, as problems do that have learnt."""
        names = self.counts.items.arms
        self.counts.adopt(learn_rows(to_rows([], len(names)), (2,), arms=names))
        self.record(Asked(0, "", "", "", 1, (0,), 1, 1), {0: (1.0,)})

    def need(self) -> Need:
        """Whether visitors fall into groups, by the newest decisions."""
        return replace(self.counts.need(), items=self.counts.items if self.versions else None)
