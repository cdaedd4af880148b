"""Any environment, told as a whole: the policy sees what a batch did together, and not what each arm did."""

from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.environments.base import Answer, Environment
from superarm.oracles import Default, Exhaustive, Oracle, solve
from superarm.oracles.certificate import upper_bound
from superarm.oracles.exhaustive import MAX_LISTED_BATCHES
from superarm.problem import Problem
from superarm.rewards import Reward


class Totals(Environment):
    """Another environment, of which only totals are told: the realised reward of a batch, as a share of the most.

    A total is ``reward`` at the outcomes of the batch, over what it would be if all k outcomes were 1. Regret is that
    of the reward at the true means, over the same: the mean total if arms are independent and the reward is
    ``Coverage``, ``Linear`` or ``Conjunctive``.

    Parameters
    ----------
    environment
        The environment to wrap.
    reward
        What outcomes are worth together, e.g. ``Coverage()``.
    n_items, weights
        The items of its outcomes, by default the columns of the environment's ``p``, and their weights.

    Examples
    --------
    >>> import superarm as sa
    >>> problem = sa.Problem(3, reward=sa.Total(), actions=sa.Subsets(2))
    >>> wrapped = Totals(sa.environments.Bernoulli([[0.5, 0.0], [0.5, 0.5], [0.0, 1.0]]), sa.Coverage())
    >>> sa.Instance(problem, wrapped).value([0, 2])
    0.75
    """

    environment: Environment
    reward: Reward
    n_items: int = 0
    weights: Any = None
    totals = True
    own_reward = True

    def check(self) -> None:
        self.require_family("environment", Environment, "Bernoulli(p)")
        self.require_family("reward", Reward, "Coverage()")
        one = self.environment
        if one.n_contexts or one.free_samples or one.own_reward or one.totals or self.reward.totals:
            wrong = f"{one!r} with {self.reward!r} says no outcome of each arm alone"
            raise InvalidArgument("environment", wrong, "give one without contexts, e.g. Bernoulli(p)", "Totals")
        shape = np.shape(getattr(one, "p", ()))
        self.convert("n_items", self.n_items or (int(shape[1]) if len(shape) == 2 else 1))

    def inner(self, problem: Problem) -> Problem:
        """The problem whose outcomes are drawn."""
        kept = self.__dict__.setdefault("_entries", {})
        if "inner" not in kept or kept["inner"][0] is not problem:
            made = Problem(problem.n_arms, self.n_items, self.reward, problem.actions, self.weights)
            kept["inner"] = problem, made, self._worth(made, np.ones((1, problem.k, self.n_items)))[0]
        return kept["inner"][1]

    def most(self, problem: Problem) -> float:
        """What a batch is worth if all outcomes are 1."""
        self.inner(problem)
        return float(self.__dict__["_entries"]["inner"][2])

    def _worth(self, inner: Problem, rows: Floats, there: Any = None) -> Floats:
        """What rows of outcomes (R, K, n_items) are worth together, (R,)."""
        states = self.reward.start(np.repeat(inner.weights[None], len(rows), 0))
        for place in range(rows.shape[1]):
            joined = self.reward.join(states, rows[:, place])
            states = joined if there is None else np.where(there[:, place, None], joined, states)
        return np.asarray(self.reward.worth(inner.weights[None], states).sum(1))

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        inner, most = self.inner(problem), self.most(problem)
        answer = self.environment.draw(inner, action, t, keys)
        total = np.clip(self._worth(inner, answer.outcome, action >= 0) / most, 0.0, 1.0)
        return Answer(answer.outcome[:, :, :1], total=total)

    def means(self, problem: Problem, t: int) -> Floats:
        """What each arm alone is worth, as a share of the most."""
        inner, alone = self.inner(problem), np.arange(problem.n_arms)[:, None]
        q = np.repeat(self.environment.means(inner, t)[:1], problem.n_arms, 0)
        return inner.values(q, alone)[None, None] / self.most(problem)

    def expected(self, problem: Problem, action: Ints, t: int) -> Floats:
        inner = self.inner(problem)
        return inner.values(self.environment.means(inner, t), action) / self.most(problem)

    def best(self, problem: Problem) -> tuple[float, float]:
        return self.best_at(problem, 1)

    def best_at(self, problem: Problem, t: int) -> tuple[float, float]:
        """What the batch that the default oracle finds is worth, and a bound of the best; equal if all are listed."""
        inner = self.inner(problem)
        oracle: Oracle = Default()
        exact = oracle.guarantee(inner).alpha == 1.0
        if not exact and problem.actions.n_batches(problem.n_arms) <= MAX_LISTED_BATCHES:
            oracle, exact = Exhaustive(), True
        p = inner.support.to_user(self.environment.means(inner, t)[0])
        batch, most = solve(inner, p, oracle), self.most(problem)
        low = inner.value(p, batch)
        return low / most, low / most if exact else max(low, upper_bound(inner, p, batch)) / most

    def changes(self, horizon: int) -> Ints:
        return self.environment.changes(horizon)

    def validate(self, problem: Problem) -> None:
        self.environment.validate(self.inner(problem))
