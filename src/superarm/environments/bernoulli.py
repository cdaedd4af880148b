from typing import NamedTuple

from superarm._jit import component, lean
from superarm.arrays import Bools, Floats, Ints, Probabilities
from superarm.environments.base import AnswerBuffer, draw, flip
from superarm.streams import Stream
from superarm.support import Support


@component
class Bernoulli(NamedTuple):
    """Independent binary outcomes: entry (j, i) is 1 with probability ``p[j, i]``.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items), or a SciPy sparse matrix whose stored entries are the problem's support.
    """

    p: Probabilities

    @lean
    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        flip(support, self.p.reshape(-1), action, t, stream, outcome)

    @lean
    def answer(self, support: Support, action: Ints, t: int, stream: Stream, sheet: AnswerBuffer) -> int:
        """As the default, without counting references, which takes longer than drawing the outcomes of a few arms."""
        draw(self, support, action, t, stream, sheet.outcome, sheet.seen)
        return -1

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]
