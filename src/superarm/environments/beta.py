from typing import NamedTuple

from superarm._jit import component
from superarm.arrays import Bools, Floats, Ints, Probabilities
from superarm.parameters import positive
from superarm.streams import Stream, beta, seek
from superarm.support import Support, span


@component
class Beta(NamedTuple):
    r"""Independent outcomes inside [0, 1]: Beta with mean ``p`` and variance ``p (1 - p) / (strength + 1)``.

    .. math:: X_{ij} \sim Beta(p_{ij}\,strength,\ (1 - p_{ij})\,strength)

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    strength
        The sum of the two parameters of the Beta distributions: the larger, the smaller the variance.
    """

    p: Probabilities
    strength: float = 10.0

    def _check(self) -> None:
        positive(self, "strength")

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p.reshape(-1)
        at = 0
        for j in action:
            seek(stream, t, j)
            first, last = span(support, j)
            for e in range(first, last):
                if 0.0 < p[e] < 1.0:
                    outcome[at] = beta(stream, p[e] * self.strength, (1.0 - p[e]) * self.strength)
                else:
                    outcome[at] = p[e]
                at += 1

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]
