from typing import Any, NamedTuple

from superarm._jit import component, interpreted
from superarm.arrays import Bools, Floats, Ints
from superarm.environments.base import Environment, Sheet, answer, draw, earn, means, widest
from superarm.errors import InvalidArgument
from superarm.noise import Noise
from superarm.support import Support


@component
class FreeSamples(NamedTuple):
    """Another world that shows every arm ``n`` times before the first round, for nothing.

    So begins the cascading-bandits literature, [KvetonEtAl2015]_ (Algorithm 1, initialization): with ``n=1``, regret is
    comparable with theirs. An ``Agent`` gets the same from ``problem.past(arms, outcomes)`` as its ``tally``.
    """

    world: Environment
    n: int = 1

    def _check(self) -> None:
        if self.n < 1:
            raise InvalidArgument("n", f"{self.n} is below 1", "give at least one sample, or the world itself")

    @property
    def partial(self) -> bool:
        return bool(getattr(self.world, "partial", False))

    def draw(self, support: Support, action: Ints, t: int, noise: Noise, outcome: Floats, seen: Bools) -> None:
        draw(self.world, support, action, t, noise, outcome, seen)

    def means(self, t: int) -> Floats:
        return means(self.world, t)

    def answer(self, support: Support, action: Ints, t: int, noise: Noise, sheet: Sheet) -> int:
        return answer(self.world, support, action, t, noise, sheet)

    def widest(self, support: Support, n_arms: int, k: int) -> int:
        return widest(self.world, support, n_arms, k)

    def earn(self, weights: Floats, support: Support, action: Ints, t: int, told: float) -> float:
        return earn(self.world, weights, support, action, t, told)

    @interpreted
    def best(self, problem: Any) -> tuple[float, float] | None:
        """What the best batch is worth, if the world itself tells."""
        return self.world.best(problem) if hasattr(self.world, "best") else None
