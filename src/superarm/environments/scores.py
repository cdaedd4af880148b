"""Scores in units of their own, of which the best one of a batch counts."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import HUGE, Floats, Ints, floats
from superarm.core.component import shorten
from superarm.core.errors import InvalidArgument
from superarm.environments.base import Answer, Environment
from superarm.oracles import Default, solve
from superarm.problem import Problem
from superarm.rewards import Coverage
from superarm.thresholds import Thresholds

QUANTILES = 400
"""A distribution is drawn from so many of its quantiles, each with the same chance."""
MAX_SEARCHED = 20_000
"""The best of so many batches is found by evaluating all of them, without a shared factor."""
NODES, SHARES = np.polynomial.hermite_e.hermegauss(32)
SHARES = SHARES / SHARES.sum()


class Scores(Environment):
    r"""A score of every arm, told to problems whose items are ``Thresholds``; a batch is worth its best score.

    Regret is against the true :math:`E \max_{j \in A} X_j`, and not against what the bins claim. With ``rho`` the
    scores of a round have a Gaussian factor in common, as if hard prompts were hard for all arms:
    :math:`X_j = F_j^{-1}(\Phi(\sqrt\rho\,G + \sqrt{1 - \rho}\,G_j))`.

    Parameters
    ----------
    arms
        For each arm its scores, of which one is drawn, or a distribution of ``scipy.stats`` by name, with its
        parameters: ``{"beta": [2, 5]}``, ``{"norm": [60, 10]}``, drawn from 400 quantiles.
    rho
        The correlation that all arms have, in [0, 1).

    Examples
    --------
    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=2, items=sa.Thresholds(0, 10), actions=sa.Subsets(2))
    >>> instance = sa.Instance(problem, Scores([[6.0], [0.0, 10.0]]))
    >>> instance.value([0]), instance.value([0, 1])
    (6.0, 8.0)
    """

    arms: Any
    rho: float = 0.0
    own_reward = True

    def check(self) -> None:
        self.convert("arms", tuple(self.arms))
        self.require("rho", 0.0 <= self.rho < 1.0, "give a number in [0, 1)")
        if not self.arms or any(not len(values) for values in self.values):
            raise InvalidArgument("arms", "there is none, or one without scores", "give scores of each", "Scores")

    @cached_property
    def values(self) -> list[Floats]:
        """The scores of each arm, increasing and equally likely."""
        return [np.sort(_values(arm)) for arm in self.arms]

    @cached_property
    def grid(self) -> Floats:
        """All scores that can come, increasing."""
        return np.unique(np.concatenate(self.values))

    @cached_property
    def functions(self) -> Floats:
        """The distribution functions of all arms on the grid, (n_arms, n)."""
        return np.array([np.searchsorted(own, self.grid, "right") / len(own) for own in self.values])

    def validate(self, problem: Problem) -> None:
        if problem.thresholds is None or type(problem.reward) is not Coverage:
            remedy = "give Problem(n_arms=…, items=Thresholds(low, high), actions=…)"
            raise InvalidArgument("problem", "its items are no thresholds of scores", remedy)
        if problem.n_arms != len(self.arms):
            raise InvalidArgument("arms", f"{len(self.arms)} for {problem.n_arms} arms", "give one per arm", "Scores")

    def scores(self, action: Ints, t: int, keys: Any) -> Floats:
        """The scores (R, K) of ``action`` in round ``t``."""
        u = streams.uniform(keys, t, np.maximum(action, 0))[:, :, 0]
        if self.rho:
            from scipy.special import ndtr

            shared = streams.normal(streams.shared_uniform(keys, t))
            u = ndtr(math.sqrt(self.rho) * shared + math.sqrt(1.0 - self.rho) * streams.normal(u))
        sizes = np.array([len(own) for own in self.values])[action]
        places = np.minimum((u * sizes).astype(np.int64), sizes - 1)
        flat, first = np.concatenate(self.values), np.cumsum([0, *map(len, self.values)])
        return flat[first[action] + places]

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        return Answer(_scale(problem).encode(self.scores(action, t, keys)))

    def means(self, problem: Problem, t: int) -> Floats:
        return np.stack([_scale(problem).encode(own).mean(0) for own in self.values], axis=1)[None]

    def expected(self, problem: Problem, action: Ints, t: int) -> Floats:
        known, scale = self.__dict__.setdefault("_entries", {}), _scale(problem)
        found = np.empty(len(action))
        for r, batch in enumerate(action.tolist()):
            key = scale.utility is not None and scale, *sorted(j for j in batch if j >= 0)
            if key not in known:
                known[key] = float(self.expected_best(np.array([key[1:]], int), scale)[0])
            found[r] = known[key]
        return found

    def expected_best(self, batches: Ints, scale: Thresholds) -> Floats:
        """What the best score of each of ``batches`` (B, K) is worth on average; beyond the ends of the scale, too."""
        worth = self.grid if scale.utility is None else scale.value(self.grid)
        steps, functions = np.diff(worth), self.functions[:, :-1]
        found = np.full(len(batches), worth[-1])
        if not self.rho:
            return found - functions[batches].prod(1) @ steps
        from scipy.special import ndtr, ndtri

        inside = ndtri(functions)
        for node, share in zip(NODES, SHARES, strict=True):
            given = ndtr((inside - math.sqrt(self.rho) * node) / math.sqrt(1.0 - self.rho))
            found -= share * (given[batches].prod(1) @ steps)
        return found

    def best(self, problem: Problem) -> tuple[float, float]:
        """The worth of the best batch if there are few; otherwise that of the default oracle's, and a bound."""
        scale, actions, n = _scale(problem), problem.actions, problem.n_arms
        if actions.n_batches(n) <= (MAX_SEARCHED if not self.rho else MAX_SEARCHED // len(NODES)):
            best = max(float(self.expected_best(np.array([batch]), scale)[0]) for batch in actions.batches(n))
            return best, best
        batch = solve(problem, problem.support.to_user(self.means(problem, 1)[0]), Default())
        low = float(self.expected_best(batch[None], scale)[0])
        rest = np.setdiff1d(np.arange(n), batch)
        gains = self.expected_best(np.column_stack([np.tile(batch, (len(rest), 1)), rest]), scale) - low
        return low, low + float(np.sort(gains)[::-1][: problem.k].sum())  # the worth of the best score is submodular


def _scale(problem: Problem) -> Thresholds:
    """The scale of a problem, which ``validate`` has checked."""
    return problem.thresholds  # type: ignore[return-value]


def _values(arm: Any) -> Floats:
    """The scores of an arm: as given, or quantiles of a distribution."""
    if not isinstance(arm, Mapping):
        return floats(arm, "arms", low=-HUGE, high=HUGE).reshape(-1)
    from scipy import stats  # takes a third of a second

    (name, parameters), *more = arm.items() or [("", [])]
    distribution = getattr(stats, str(name), None)
    if more or not isinstance(distribution, stats.rv_continuous):
        remedy = 'give scores, or one distribution of scipy.stats, as {"beta": [2, 5]}'
        raise InvalidArgument("arms", f"{shorten(repr(arm))} is no distribution", remedy, "Scores")
    quantiles = distribution(*parameters).ppf((np.arange(QUANTILES) + 0.5) / QUANTILES)
    return floats(quantiles, "arms", low=-HUGE, high=HUGE)
