"""The base of environments: they draw the outcomes of batches, for all replications at once.

Random numbers depend on (key, round, arm), so policies that play the same arm in the same round see the same outcome,
whatever else they play.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from superarm.context.context import Contexts
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.component import Component
from superarm.problem import Problem


class Answer(NamedTuple):
    """The outcome of a round.

    ``outcome`` is (R, n, n_items), or (R, n, widest) if the support is sparse, one row per observed arm; ``seen`` has
    its shape, or is None if everything was seen; ``observed`` (R, n) are the arms of the rows, or None if they are
    those of the batch. ``total`` (R,), in [0, 1], is what the batches did, where the policy is told only that.
    """

    outcome: Floats
    seen: Bools | None = None
    observed: Ints | None = None
    total: Floats | None = None


class Environment(Component):
    """An environment. Subclass it and define ``draw`` and ``means``; the rest has defaults.

    >>> from superarm.core.streams import shared_uniform
    >>> class AllOrNothing(Environment):
    ...     p: float
    ...     def draw(self, problem, action, t, keys):
    ...         hit = shared_uniform(keys, t) < self.p                    # (R, 1): one number for all arms of the round
    ...         return Answer(np.broadcast_to(hit[:, :, None], (*action.shape, problem.n_items)).astype(float))
    ...     def means(self, problem, t):
    ...         return np.full((1, problem.n_items, problem.n_arms), self.p)
    >>> AllOrNothing(0.1)
    AllOrNothing(p=0.1)
    """

    partial: ClassVar[bool] = False
    """Whether some entries of an answer may not be seen."""
    free_samples: ClassVar[Any] = 0
    """How often every arm is shown before the first round."""
    n_contexts: ClassVar[Any] = 0
    """How many contexts there are, if users with contexts come; 0 if there are none."""
    totals: ClassVar[bool] = False
    """Whether its answers have totals of batches, for ``reward=Total()``."""
    mean_parameters: ClassVar[tuple[str, ...]] = ()
    """The parameters that ``draw`` uses through ``means`` alone, so that those of a family are drawn from at once. Each
    class says this for itself."""
    arm_parameters: ClassVar[tuple[str, ...]] = ()
    """The same for parameters with a row for each arm, of which ``draw`` uses those of ``rows_of(action)``."""
    own_reward: ClassVar[bool] = False
    """Whether ``expected`` differs from the problem's reward at the means."""

    def entries(self, problem: Problem, p: Any, name: str = "p") -> Floats:
        """The parameters ``p`` as entries of the problem; they are converted once."""
        kept = self.__dict__.setdefault("_entries", {})
        if name not in kept or kept[name][0] is not problem.support:
            kept[name] = problem.support, problem.entries(p, "environment")
        return kept[name][1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_entries"}

    def rows_of(self, action: Ints) -> Ints:
        """The rows of the arms of ``action`` in parameters that have a row for each arm."""
        return action

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        """The outcome of ``action`` (R, K), padded with -1, in round ``t``; ``keys`` (R,) of the environment."""
        raise NotImplementedError

    def means(self, problem: Problem, t: int) -> Floats:
        """The true parameters of round ``t`` as entries, with one replication or R; for regret only."""
        raise NotImplementedError

    def expected(self, problem: Problem, action: Ints, t: int) -> Floats:
        """The true expected reward (R,) of ``action`` (R, K); by default the problem's reward at the means."""
        return problem.values(self.means(problem, t), action)

    def worth(self, problem: Problem, action: Ints, t: int, keys: Any) -> Floats:
        """What a run counts as the expected reward (R,) of ``action`` in round ``t``: by default ``expected``."""
        return self.expected(problem, action, t)

    def contexts(self, problem: Problem, t: int, keys: Any) -> Any:
        """The contexts of round ``t``, a ``context.Contexts``; None: it has none.

        By default they are empty: all that is known is about arms.
        """
        declared = problem.context
        if declared.features.size or declared.pairs:
            return None
        empty = declared.encode({}, None, problem.n_arms)
        return Contexts.of([empty] * len(keys), np.full(len(keys), t), problem.n_arms)

    def best(self, problem: Problem) -> tuple[float, float] | None:
        """Lower and upper bound of the best expected reward, if the environment knows them."""
        return None

    def best_at(self, problem: Problem, t: int) -> tuple[float, float] | None:
        """The same for round ``t``, if it knows more."""
        return self.best(problem)

    def changes(self, horizon: int) -> Ints:
        """The rounds up to ``horizon`` from which other means hold, increasing from 1."""
        return np.ones(1, np.int64)

    def validate(self, problem: Problem) -> None:
        """Raise ``InvalidArgument`` if the environment does not fit the problem."""
