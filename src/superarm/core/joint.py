r"""How strongly the items of an arm vary together: three sums per arm beside those of a tally.

Over the pulls of an arm of which every entry was seen, with :math:`Y = \sum_i X_{ij}`: their number, how many had
:math:`Y > 0` (events), and the sum of :math:`Y^2`. The mean correlation of two items is what the variance of Y has
beyond that of independent items, as a share of the most that it can have:

.. math:: r_j = \frac{\hat E Y^2 - (\sum_i\hat p_{ij})^2 - \sum_i\hat V_{ij}}
                     {(\sum_i\sqrt{\hat V_{ij}})^2 - \sum_i\hat V_{ij}}

in [0, 1]. It begins at ``EXPECTED`` and counts that as ``EVENTS`` events.
"""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.support import AnySupport, Dense
from superarm.core.tally import Feedback, Tally, round_to_grid

if TYPE_CHECKING:
    from superarm.problem import Problem

EXPECTED, EVENTS = 0.36, 5.0
"""The correlation that is expected of an arm without events, and how many events that counts for."""

FINE = 2.0**20
"""Squares of sums are multiples of 1 / FINE: they are exact while their sum is below 2^33."""


class JointTally(Tally):
    """A tally that says of each arm how strongly its items vary together.

    ``whole`` (R, n_arms) counts pulls of which every entry was seen, ``eventful`` those of them with an outcome above
    0, and ``joint`` adds up the squares of the sums of their outcomes. With one item nothing is counted.

    >>> tally = JointTally(Dense(2, 1))
    >>> for outcome in [[1.0, 1.0], [0.0, 0.0]] * 50:
    ...     tally.record(Feedback(1, np.array([[0]]), np.array([[outcome]])))
    >>> tally.correlation().round(2).tolist()
    [[0.94]]
    """

    BESIDE = ("whole", "eventful", "joint")
    SUMS = (*Tally.SUMS, *BESIDE)

    def __init__(self, support: AnySupport, replications: int = 1, partial: bool = False) -> None:
        super().__init__(support, replications, partial)
        self.whole, self.eventful, self.joint = (np.zeros((replications, support.n_arms)) for _ in self.BESIDE)

    def record(self, feedback: Feedback, sign: float = 1.0, known: bool = True) -> None:
        super().record(feedback, sign, known)
        if not known or self.support.widest == 1 or feedback.share is not None:
            return
        here, outcome = feedback.action >= 0, feedback.outcome
        if not isinstance(self.support, Dense):
            inside = self.support.row_entries[feedback.action] >= 0
            outcome = np.where(inside, outcome, 0.0)
            here = here if feedback.seen is None else here & (feedback.seen | ~inside).all(2)
        elif feedback.seen is not None:
            here = here & feedback.seen.all(2)
        r, k = np.nonzero(here)
        j, y = feedback.action[r, k], round_to_grid(outcome[r, k]).sum(1)
        self.whole[r, j] += sign
        self.eventful[r, j] += sign * (y > 0.0)
        self.joint[r, j] += sign * np.floor(y * y * FINE + 0.5) / FINE

    def correlation(self, n_segments: int = 1) -> Floats:
        """The mean correlation of two items of each arm in a pull, (R, n_arms), over all segments, if rows are theirs.

        Arms of which nothing varies in a pull that was seen whole have ``EXPECTED``.
        """
        add, n = self.support.sum_items, self.whole
        mean, alone = add(self.mean.copy()), add(self.deviation**2)
        parts = (self.joint - n * (mean * mean + alone), n * (add(self.deviation.copy()) ** 2 - alone), self.eventful)
        excess, most, events = (part.reshape(-1, n_segments, n.shape[1]).sum(1) for part in parts)
        seen = np.clip(excess / np.where(most > 1e-12, most, 1.0), 0.0, 1.0)
        events = np.where(most > 1e-12, events, 0.0)
        return (EVENTS * EXPECTED + events * seen) / (EVENTS + events)

    def take_over(self, other: Tally) -> bool:
        self.add(other)
        return isinstance(other, JointTally)

    def like(self) -> Self:
        return self._with(JointTally(self.support, len(self), self.partial))

    def grown(self, problem: "Problem") -> Self:
        """New arms have no pulls; with new items no pull so far was seen whole."""
        new = super().grown(problem)
        empty, n = JointTally(problem.support, len(self)), self.support.n_arms
        for name in self.BESIDE:
            if problem.n_items == self.support.n_items:
                getattr(empty, name)[:, :n] = getattr(self, name)
            setattr(new, name, getattr(empty, name))
        return new

    def to_arrays(self) -> dict[str, Any]:
        """Without what was never counted."""
        arrays = super().to_arrays()
        return {name: part for name, part in arrays.items() if name not in self.BESIDE or self.whole.any()}
