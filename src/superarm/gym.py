"""Gymnasium: an instance as an environment with ``reset`` and ``step``, for learners of other libraries.

Needs the extra ``gym``.
"""

from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints, count
from superarm.core.errors import InvalidArgument, MissingExtra
from superarm.core.streams import run_keys, seed_sequence
from superarm.simulation import Instance
from superarm.simulation.regret import optimum

try:
    import gymnasium
except ImportError:
    raise MissingExtra("gymnasium", "gym") from None


class SetBandit(gymnasium.Env[Floats, Ints]):
    """A combinatorial semi-bandit: a step plays a set of arms, and shows what was seen of each.

    An action names k arms, in the order of a list; an arm that is named again is shown once. An observation is
    (n_arms, n_items): the outcomes that were seen in the step, -1 for all others, and 0 after ``reset``. The reward is
    the expected one of the set, or with ``realised`` that of its outcomes; ``info`` has the expected ``regret``. Action
    sets other than ``Subsets`` refuse what may not be played.

    Parameters
    ----------
    instance
        A problem without context, with its environment.
    horizon
        The steps of an episode, after which it is truncated.
    realised
        Whether the reward of a step is computed from its outcomes, which must all be seen.

    Examples
    --------
    >>> import superarm as sa
    >>> env = SetBandit(sa.instances.random_coverage(5, 2, 2), horizon=10)
    >>> seen, info = env.reset(seed=1)
    >>> seen, reward, terminated, truncated, info = env.step(np.array([0, 3]))
    >>> seen[1].tolist(), terminated, truncated
    ([-1.0, -1.0], False, False)
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, instance: Instance, horizon: int = 10_000, realised: bool = False) -> None:
        if instance.problem.context is not None:
            raise InvalidArgument("instance", "its problem has a context", "give one without", "SetBandit")
        instance.problem.require_shares("give an instance with outcomes in [0, 1]")
        if realised and instance.environment.partial:
            wrong = "outcomes are not all seen, so that the realised reward is not known"
            raise InvalidArgument("realised", wrong, "take the expected reward", "SetBandit")
        self.instance, self.horizon, self.realised = instance, count(horizon, "horizon", 1, "SetBandit"), realised
        problem = instance.problem
        self.action_space = gymnasium.spaces.MultiDiscrete([problem.n_arms] * problem.k)
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (problem.n_arms, problem.n_items), np.float64)
        self._best = optimum(problem, instance.p).low
        self._t, self._keys = 0, run_keys([seed_sequence(0)]).environment

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode; with the same ``seed`` the same sets have the same outcomes."""
        super().reset(seed=seed)
        entropy = int(self.np_random.integers(1 << 62))
        self._t, self._keys = 0, run_keys([seed_sequence(entropy)]).environment
        return np.zeros(self.observation_space.shape or ()), {}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Play the arms of ``action``."""
        problem, environment = self.instance.problem, self.instance.environment
        batch = problem.action(list(dict.fromkeys(np.asarray(action).tolist())))[None]
        self._t += 1
        answer = environment.draw(problem, batch, self._t, self._keys)
        arms = batch if answer.observed is None else answer.observed
        seen = np.ones(answer.outcome.shape, bool) if answer.seen is None else answer.seen
        told = problem.support.rows_to_items(np.where(seen, answer.outcome, -1.0), arms)[0]
        observation = np.full((problem.n_arms, problem.n_items), -1.0)
        observation[arms[0][arms[0] >= 0]] = told[arms[0] >= 0]
        expected = float(environment.expected(problem, batch, self._t)[0])
        reward = expected
        if self.realised:
            outcomes = np.maximum(observation, 0.0)
            reward = float(problem.value(outcomes, batch[0]))
        truncated = self._t >= self.horizon
        return observation, reward, False, truncated, {"regret": self._best - expected}
