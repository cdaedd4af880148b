"""Click models: lists that are read from the top, or whose positions matter.

The list has the arms of a batch in the order of ``action``. With several items, each item is a different reader of the
same list. The outcome of every arm is drawn; ``seen`` marks what the reader reached.
"""

from typing import Any, ClassVar

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Bools, Floats, Ints, floats
from superarm.core.errors import InvalidArgument
from superarm.environments.base import Answer, Environment
from superarm.environments.bernoulli import WithMeans, flip_coins
from superarm.oracles import Ladder, solve
from superarm.problem import Problem

_POSITIONS = 3 << 61
"""The first index, in a round, of the numbers that belong to positions."""


def _seen_until(problem: Problem, action: Ints, ends: Any) -> Bools:
    """What a reader has seen who stops after the first arm that ``ends`` (rows) the reading of an item."""
    ended = problem.support.rows_to_items(ends.astype(float), action)
    before = np.cumsum(ended, axis=1) - ended == 0.0
    return problem.support.items_to_rows(before, action) & (action >= 0)[:, :, None]


class Cascade(WithMeans):
    """Disjunctive cascade: a user examines the list from the top and stops at the first attractive arm.

    Arm ``j`` attracts with probability ``p[j, i]``, independently of all other arms; arms below the first attractive
    one are not seen. With one item, the probability that some arm attracts is the reward ``Coverage``. The cascade
    model of [CraswellEtAl2008]_, as a bandit [KvetonEtAl2015]_.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    """

    p: Any
    partial = True
    end: ClassVar[float] = 1.0
    """The outcome that ends the reading."""

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        x = flip_coins(problem, self.means(problem, t), action, t, keys)
        return Answer(x, _seen_until(problem, action, x == self.end))


class CostlyCascade(Cascade):
    r"""A ladder: arms are tried from the top until one succeeds, and every arm that is tried costs something.

    The expected reward of a list is what it is worth net of costs, :math:`\sum_n (p_{a_n} - c_{a_n}) \prod_{m<n} (1 -
    p_{a_m})`, where a success is worth 1: [ZhouEtAl2018]_. With two items the outcome of the second is the share of
    ``scale`` that a try did not cost: 1 or 0, with mean 1 - cost / scale.

    Parameters
    ----------
    p
        The probability of success of each arm, (n_arms,).
    costs
        What a try costs on average, (n_arms,), in units of what a success is worth.
    scale
        The largest cost of a try, for problems with two items, which learn costs.
    """

    p: Any
    costs: Any
    scale: float = 1.0
    own_reward = True

    def check(self) -> None:
        p, costs = floats(self.p, "p", low=0.0, high=1.0).reshape(-1), floats(self.costs, "costs", low=0.0, high=np.inf)
        if costs.shape != p.shape or (costs > self.scale).any():
            raise InvalidArgument("costs", f"shape {costs.shape}", f"give {len(p)} numbers of at most {self.scale:g}")
        self.convert("p", p)
        self.convert("costs", costs)

    def validate(self, problem: Problem) -> None:
        if problem.n_items not in (1, 2) or problem.n_arms != len(self.p):
            raise InvalidArgument("environment", "it has one cost per arm", "give a problem with one or two items")

    def means(self, problem: Problem, t: int) -> Floats:
        return np.stack([self.p, 1.0 - self.costs / self.scale])[None, : problem.n_items].copy()

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        x = flip_coins(problem, self.means(problem, t), action, t, keys)
        ends = np.repeat(x[:, :, :1] == self.end, problem.n_items, 2)
        return Answer(x, _seen_until(problem, action, ends))

    def expected(self, problem: Problem, action: Ints, t: int) -> Floats:
        there = action >= 0
        p = np.where(there, self.p[action], 0.0)
        reached = np.cumprod(np.concatenate([np.ones((len(p), 1)), 1.0 - p[:, :-1]], 1), axis=1)
        return np.asarray((reached * (p - np.where(there, self.costs[action], 0.0))).sum(1))

    def best(self, problem: Problem) -> tuple[float, float] | None:
        single = problem.changed(n_items=1, weights=None, support=None)
        worth = float(self.expected(problem, solve(single, self.p[:, None], Ladder(self.costs))[None], 1)[0])
        return worth, worth


class ConjunctiveCascade(Cascade):
    """Conjunctive cascade: all arms of the list must work; they are tried from the top until the first that fails.

    Arm ``j`` works with probability ``p[j, i]``; arms below the first failing one are not seen. The probability that
    all work is the reward ``Conjunctive``. The model of combinatorial cascading bandits, [KvetonEtAl2015b]_.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    """

    p: Any
    end: ClassVar[float] = 0.0


class _ByPosition(WithMeans):
    """A model with a probability for each position, from the top; the last holds for all further ones.

    The expected reward of a list depends on the order of its arms, so ``expected`` is defined here. The reward of the
    problem (``Coverage`` or ``Linear``) is used by the learner only; it ranks arms in the same way.
    """

    p: Any
    partial = True
    own_reward = True

    def _fall(self, name: str) -> None:
        chances = np.atleast_1d(floats(getattr(self, name), name, low=0.0, high=1.0))
        if chances.ndim != 1 or not chances.size or (np.diff(chances) > 0.0).any():
            remedy = "give one probability per position, the largest first"
            raise InvalidArgument(name, "not a list of falling probabilities", remedy)
        self.convert(name, chances)

    def _at(self, chances: Floats, n: int) -> Floats:
        return chances[np.minimum(np.arange(n), len(chances) - 1)]

    def _position_numbers(self, problem: Problem, action: Ints, t: int, keys: Any) -> Floats:
        return streams.uniform(keys, t, _POSITIONS + np.arange(action.shape[1]), problem.support.widest)

    def _table(self, problem: Problem) -> Floats:
        """The parameters as an array (n_arms, n_items); refuses action sets other than ``Subsets``."""
        if not problem.actions.uniform:
            remedy = 'take the target "oracle", or Subsets'
            raise InvalidArgument("target", "the best list is known for Subsets only", remedy)
        arms = np.arange(problem.n_arms)[None]
        return problem.support.rows_to_items(self.mean_rows(problem, arms), arms)[0]

    def _in_order(self, problem: Problem, table: Floats) -> Ints:
        return np.argsort(-(table @ problem.weights), kind="stable")[None, : problem.k]


class DependentClick(_ByPosition):
    r"""The dependent-click model: after a click at position n the user leaves satisfied with probability ``leave[n]``.

    A user examines the list from the top, clicks on each attractive arm (probability ``p[j, i]``), and reads on unless
    they leave. What was examined is seen, as in a log of how far the user scrolled. The expected reward is the
    probability of leaving satisfied,

    .. math:: 1 - \prod_n (1 - leave_n\, p_{a_n})

    The model of [GuoLiuWang2009]_, as a bandit [KatariyaEtAl2016]_, where only clicks are logged: ``logs="clicks"``.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    leave
        The probability of leaving after a click, by position from the top; must not rise.
    logs
        ``reading``: what was examined is seen. ``clicks``: everything up to the last click is, and the whole list
        without one, which favours arms that were clicked last.
    """

    p: Any
    leave: Any
    logs: str = "reading"

    def check(self) -> None:
        super().check()
        self._fall("leave")
        self.require("logs", self.logs in ("reading", "clicks"), "give 'reading' or 'clicks'")

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        x = flip_coins(problem, self.means(problem, t), action, t, keys)
        leaves = self._position_numbers(problem, action, t, keys) < self._at(self.leave, action.shape[1])[:, None]
        seen = _seen_until(problem, action, leaves & (x == 1.0))
        return Answer(x, seen if self.logs == "reading" else self._seen_in_clicks(problem, action, (x == 1.0) & seen))

    def _seen_in_clicks(self, problem: Problem, action: Ints, clicks: Bools) -> Bools:
        """What counts as examined where only ``clicks`` are known: [KatariyaEtAl2016]_ (Algorithm 1)."""
        clicked = problem.support.rows_to_items(clicks.astype(float), action)
        below = np.cumsum(clicked[:, ::-1], axis=1)[:, ::-1]
        seen = (below > 0.0) | (below[:, :1] == 0.0)
        return problem.support.items_to_rows(seen, action) & (action >= 0)[:, :, None]

    def expected(self, problem: Problem, action: Ints, t: int) -> Floats:
        rows = self.mean_rows(problem, action) * (action >= 0)[:, :, None]
        stops = problem.support.rows_to_items(rows, action) * self._at(self.leave, action.shape[1])[:, None]
        left, value = np.repeat(problem.weights[None], len(action), 0), np.zeros(len(action))
        for stop in stops.transpose(1, 0, 2):
            value += (left * stop).sum(1)
            left = left * (1.0 - stop)
        return value

    def best(self, problem: Problem) -> tuple[float, float]:
        """Lower and upper bound of the best expected reward; equal with one item, [KatariyaEtAl2016]_ (section 3)."""
        table = self._table(problem)
        low = float(self.expected(problem, self._in_order(problem, table), 1)[0])
        largest = -np.sort(-table, axis=0)[: problem.k]
        each = 1.0 - np.prod(1.0 - self._at(self.leave, problem.k)[:, None] * largest, axis=0)
        return low, low if problem.n_items == 1 else float(each @ problem.weights)


class PositionBased(_ByPosition):
    r"""The position-based model: position n is examined with probability ``examine[n]``, whatever is above it.

    An arm that is examined attracts with probability ``p[j, i]``; what was examined is seen. The expected reward is the
    expected number of clicks,

    .. math:: \sum_n examine_n\, p_{a_n}

    The model of [RichardsonDominowskaRagno2007]_, as a bandit [LagreeVernadeCappe2016]_. Differs: there, whether a
    position was examined is not logged; only the probability is known.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    examine
        The probability of examination, by position from the top; must not rise.
    """

    p: Any
    examine: Any

    def check(self) -> None:
        super().check()
        self._fall("examine")

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        x = flip_coins(problem, self.means(problem, t), action, t, keys)
        chances = self._at(self.examine, action.shape[1])[:, None]
        seen = self._position_numbers(problem, action, t, keys) < chances
        return Answer(x, seen & (action >= 0)[:, :, None])

    def expected(self, problem: Problem, action: Ints, t: int) -> Floats:
        rows = self.mean_rows(problem, action) * (action >= 0)[:, :, None]
        clicks = problem.support.rows_to_items(rows, action) @ problem.weights
        return clicks @ self._at(self.examine, action.shape[1])

    def best(self, problem: Problem) -> tuple[float, float]:
        """The best expected reward, twice: it is attained by the best arms in falling order."""
        most = float(self.expected(problem, self._in_order(problem, self._table(problem)), 1)[0])
        return most, most


class FreeSamples(Environment):
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

    def check(self) -> None:
        self.require_family("environment", Environment, "Cascade(p)")
        self.require("n", self.n >= 1, "give n >= 1, or take the environment without FreeSamples")

    @property
    def partial(self) -> bool:  # type: ignore[override]
        return self.environment.partial

    @property
    def own_reward(self) -> bool:  # type: ignore[override]
        return self.environment.own_reward

    @property
    def free_samples(self) -> int:  # type: ignore[override]
        return self.n

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        return self.environment.draw(problem, action, t, keys)

    def means(self, problem: Problem, t: int) -> Floats:
        return self.environment.means(problem, t)

    def expected(self, problem: Problem, action: Ints, t: int) -> Floats:
        return self.environment.expected(problem, action, t)

    def best(self, problem: Problem) -> tuple[float, float] | None:
        return self.environment.best(problem)

    def changes(self, horizon: int) -> Ints:
        return self.environment.changes(horizon)

    def validate(self, problem: Problem) -> None:
        self.environment.validate(problem)
