"""The precision of pending decisions: what the observations they wait for will add to that of a regression."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from superarm.arrays import Floats
from superarm.context.design import Design, feature_size, group_count
from superarm.context.observations import ContextFeedback
from superarm.context.sums import add_precision, triangle
from superarm.support import Support

_MAX_WAITING = 64
"""So many decisions wait to be added at most, so that no choice has many to add first."""


class _Waiting(NamedTuple):
    """A decision that is still to be added, ``times`` over (below 0: taken out)."""

    feedback: ContextFeedback
    times: float


class PendingPrecision:
    """The sum over pending decisions, in the shape of ``ContextTally.precision``.

    Decisions are added when the sum is read. One that is pending no longer by then is never added: sums on the grid are
    exact, so adding it and taking it out again would change nothing.
    """

    def __init__(self, design: Design, support: Support) -> None:
        self._design, self._support = design, support
        self._sum: Floats = np.zeros((group_count(design, support), triangle(feature_size(design))))
        self._waiting: dict[tuple[bytes, ...], _Waiting] = {}
        self._arms: int | None = 0  # how many are pending; None if that is not known

    def count(self, feedback: ContextFeedback, sign: float) -> None:
        """The arms of ``feedback``, of which nothing was observed yet, are pending (``sign=-1.0``: no longer)."""
        user, pairs = feedback.context.x, feedback.context.pairs
        key = feedback.action.tobytes(), user.tobytes(), pairs.tobytes(), feedback.weights.tobytes()
        before = self._waiting.pop(key, None)
        times = sign + (before.times if before is not None else 0.0)
        if times:
            self._waiting[key] = _Waiting(feedback, times)
        if self._arms is not None:
            self._arms += int(sign) * len(feedback.action)
        if len(self._waiting) > _MAX_WAITING:
            self.read()

    def read(self) -> Floats:
        """The sum."""
        waiting, self._waiting = self._waiting, {}
        for feedback, times in waiting.values():
            add_precision(self._sum, self._design, self._support, feedback, times)
        return self._sum

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the sum, which need not be read for it."""
        n_groups, size = self._sum.shape
        return n_groups, size

    def grow(self, design: Design, support: Support, change: Callable[[Floats], Floats]) -> None:
        """Take on a problem with more arms or items; ``change`` gives sums its shape."""
        self._sum = change(self.read())
        self._design, self._support = design, support

    def take(self, total: Floats) -> None:
        """Take on another sum, to which decisions were added elsewhere since it was read."""
        self._sum, self._arms = total, None

    def clear(self) -> None:
        """Nothing counts as pending any longer."""
        self._waiting, self._arms = {}, 0
        self._sum[:] = 0.0

    @property
    def empty(self) -> bool:
        """Whether it is known that nothing is pending."""
        return self._arms == 0
