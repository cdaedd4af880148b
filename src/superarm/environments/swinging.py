import math
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.arrays import Bools, Floats, Ints, Probabilities
from superarm.errors import InvalidArgument
from superarm.parameters import positive
from superarm.streams import Stream, seek, uniform
from superarm.support import Support, span


@component
class Swinging(NamedTuple):
    r"""Independent binary outcomes whose parameters move from ``p`` to ``other`` and back periodically, in steps.

    .. math:: p_{ij}(t) = p_{ij} + (other_{ij} - p_{ij})\,\frac{1 - \cos(2\pi\tau / period)}{2}, \qquad
              \tau = step\,\lfloor (t - 1) / step \rfloor

    Parameters are constant within a step, so the moving optimum has to be found only once per step.

    Parameters
    ----------
    p, other
        The two tables of parameters, (n_arms, n_items) or sparse.
    period
        How many rounds it takes to return to ``p``.
    step
        How many rounds the parameters stay the same.
    """

    p: Probabilities
    other: Probabilities
    period: float
    step: int = 100

    def _check(self) -> None:
        positive(self, "period", "step")
        if self.p.shape != self.other.shape:
            raise InvalidArgument("other", f"shape {self.other.shape}", f"give the shape of p, {self.p.shape}")

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p, other, share = self.p.reshape(-1), self.other.reshape(-1), _share(self.period, self.step, t)
        at = 0
        for j in action:
            seek(stream, t, j)
            first, last = span(support, j)
            for e in range(first, last):
                outcome[at] = 1.0 if uniform(stream) < p[e] + (other[e] - p[e]) * share else 0.0
                at += 1

    def means(self, t: int) -> Floats:
        return self.p + (self.other - self.p) * _share(self.period, self.step, t)  # type: ignore[no-any-return]

    @interpreted
    def changes(self, horizon: int) -> Ints:
        return np.arange(1, horizon + 1, self.step)


@kernel
def _share(period: float, step: int, t: int) -> float:
    """The weight of ``other`` in round ``t``, from 0 to 1."""
    return 0.5 * (1.0 - math.cos(2.0 * math.pi * (step * ((t - 1) // step)) / period))
