"""What is known of scores beside the tally: how many lie beyond the scale, and what sets claimed beside what came."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

from superarm.agent.decisions import Record
from superarm.agent.outcomes import Scale
from superarm.core.arrays import Ints
from superarm.core.tally import View, round_to_grid
from superarm.problem import Problem
from superarm.rewards import Coverage
from superarm.thresholds import Thresholds

CLIPPED, MANY = 0.01, 100
"""From so large a share of scores beyond the scale on, of so many or more, the agent warns."""
SHARES = 10
"""So many different fractions may be shares of something; more are probably scores."""


def claim_of(problem: Problem, view: View, action: Ints) -> float | None:
    """What a batch is expected to be worth by the means of its arms, where scores are told; None if some have none."""
    tally, context, row = view.tally, problem.context, slice(0, 1)
    if problem.thresholds is None or (context is not None and context.dimension(problem.n_items)):
        return None
    if len(tally) > 1:
        row = slice(int(view.context.segment[0]), int(view.context.segment[0]) + 1)
    if not (tally.pulls[row][:, action] > 0.0).all():
        return None
    return problem.floor + float(problem.values(tally.mean[row], action[None])[0])


class Claimed(NamedTuple):
    """What sets claimed when they were chosen beside what their best scores were worth: means over ``sets``.

    Scores of which one is high when the others are, as those of easy prompts, make claims too high.

    >>> print(Claimed(40, 8.25, 7.5))
    claimed 8.25 beside realised 7.5 in 40 sets (x1.100)
    """

    sets: int
    claimed: float
    realised: float

    def __str__(self) -> str:
        ratio = f" (x{self.claimed / self.realised:.3f})" if self.realised > 0.0 else ""
        return f"claimed {self.claimed:.4g} beside realised {self.realised:.4g} in {self.sets} sets{ratio}"


@dataclass
class ScoreCounts:
    """Sums over decisions, on the grid of outcomes, so that they are taken back exactly."""

    told: int = 0
    beyond: int = 0
    sets: int = 0
    claimed: float = 0.0
    realised: float = 0.0
    warned: bool = False

    def move(self, scale: Thresholds, before: Record | None, after: Record) -> None:
        """Count a decision that has changed."""
        for record, sign in ((before, -1), (after, 1)):
            if record is None or not record.active:
                continue
            scores = [score for _, score in record.scores]
            self.told += sign * len(scores)
            self.beyond += sign * sum(not scale.edges[0] <= score <= scale.edges[-1] for score in scores)
            claimed = record.asked.decision.claimed
            if claimed is not None and len(scores) == len(record.action) and record.closed == "complete":
                self.sets += sign
                self.claimed += sign * float(round_to_grid(claimed))
                self.realised += sign * float(round_to_grid(scale.value(max(scores))))

    def warn(self, scale: Thresholds, arm: str, score: float) -> None:
        """Warn once, if too many scores lie beyond the scale, as ``score`` of ``arm`` does."""
        inside = scale.edges[0] <= score <= scale.edges[-1]
        if not (self.warned or inside) and self.told >= MANY and self.beyond > CLIPPED * self.told:
            self.warned = True
            warnings.warn(
                f"{self.beyond} of {self.told} scores lie beyond {scale!r}, as {score:g} of {arm!r} does, and count as "
                "its ends: take a wider scale, or Thresholds.fit(scores)",
                stacklevel=5,
            )

    @property
    def claims(self) -> Claimed | None:
        """Means of what was claimed and what came; None before the first set."""
        n = self.sets
        return Claimed(n, self.claimed / n, self.realised / n) if n else None


class Fractions:
    """Which outcomes between 0 and 1 were told, as far as they may be scores that were taken for chances."""

    def __init__(self) -> None:
        self.seen: set[float] = set()

    def warn(self, problem: Problem, record: Record) -> None:
        """Warn once, if more different fractions were told than are shares of something."""
        one = type(problem.reward) is Coverage and problem.n_items == 1 and problem.thresholds is None
        if not one or Scale.made or len(self.seen) > SHARES:
            return
        self.seen.update(x for row in record.rows for x in row or () if 0.0 < x < 1.0)
        if len(self.seen) > SHARES:
            warnings.warn(
                "with Coverage() an outcome is a chance of success: two arms of 0.5 are worth 0.75 together. If these "
                "are scores, of which the best one counts, declare items=Thresholds(0, 1) and tell scores",
                stacklevel=5,
            )
