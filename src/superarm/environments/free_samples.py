from typing import Any, NamedTuple

from superarm._jit import component, interpreted
from superarm._renamed import old_fields
from superarm.arrays import Bools, Floats, Ints
from superarm.environments import traits
from superarm.environments.base import (
    AnswerBuffer,
    Environment,
    answer,
    draw,
    expected_reward,
    max_answer_entries,
    means,
)
from superarm.errors import InvalidArgument
from superarm.streams import Stream
from superarm.support import Support


@old_fields(world="environment")
@component
class FreeSamples(NamedTuple):
    """Another environment that shows every arm ``n`` times before the first round, without regret.

    The literature on cascading bandits starts this way, [KvetonEtAl2015]_ (Algorithm 1, initialization): with ``n=1``,
    regret is comparable with theirs. For an ``Agent``, ``problem.past(arms, outcomes)`` as its ``tally`` does the same.

    Parameters
    ----------
    environment
        The environment to wrap.
    n
        How often every arm is shown.
    """

    environment: Environment
    n: int = 1

    def _check(self) -> None:
        if self.n < 1:
            raise InvalidArgument(
                "n", f"{self.n} is below 1", "give n >= 1, or take the environment without FreeSamples"
            )

    @property
    def partial(self) -> bool:
        return traits.partial(self.environment)

    @property
    def free_samples(self) -> int:
        return self.n

    @property
    def has_own_reward(self) -> bool:
        return traits.has_own_reward(self.environment)

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        draw(self.environment, support, action, t, stream, outcome, seen)

    def means(self, t: int) -> Floats:
        return means(self.environment, t)

    def answer(self, support: Support, action: Ints, t: int, stream: Stream, sheet: AnswerBuffer) -> int:
        return answer(self.environment, support, action, t, stream, sheet)

    def max_answer_entries(self, support: Support, n_arms: int, k: int) -> int:
        return max_answer_entries(self.environment, support, n_arms, k)

    def expected_reward(self, weights: Floats, support: Support, action: Ints, t: int, default: float) -> float:
        return expected_reward(self.environment, weights, support, action, t, default)

    @interpreted
    def best(self, problem: Any) -> tuple[float, float] | None:
        """Bounds of the best expected reward, if the wrapped environment has them."""
        return traits.known_best(self.environment, problem)
