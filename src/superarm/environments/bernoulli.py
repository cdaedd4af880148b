"""Outcomes whose entries are independent, with means that stay or move."""

import math
from typing import Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Floats, Ints, probabilities
from superarm.core.errors import InvalidArgument
from superarm.core.ops import op
from superarm.core.reference import beta_draws
from superarm.core.support import Dense
from superarm.environments.base import Answer, Environment
from superarm.problem import Problem


def flip_coins(problem: Problem, p: Floats, action: Ints, t: int, keys: Any) -> Floats:
    """Binary outcomes of ``action``, 1 with the probabilities ``p`` (entries)."""
    x = np.empty((*action.shape, problem.support.widest))
    if isinstance(problem.support, Dense):
        op("flip", 8 * x.size)(keys, t, action, p, x)
    else:
        op("flip_sparse", 8 * x.size)(keys, t, action, problem.support.start, p[0], x)
    return x


class WithMeans(Environment):
    """An environment whose means are its parameter ``p``."""

    p: Any

    def check(self) -> None:
        self.convert("p", probabilities(self.p, "p"))

    def means(self, problem: Problem, t: int) -> Floats:
        return self.entries(problem, self.p)

    def validate(self, problem: Problem) -> None:
        self.means(problem, 1)

    def mean_rows(self, problem: Problem, action: Ints, t: int = 1) -> Floats:
        """The means of the arms of ``action`` as rows (R, K, widest)."""
        return problem.support.rows(self.means(problem, t), action)


class Bernoulli(WithMeans):
    """Independent binary outcomes: entry (j, i) is 1 with probability ``p[j, i]``.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items), or a SciPy sparse matrix whose stored entries are the problem's support.

    Examples
    --------
    >>> Bernoulli([[0.1], [0.2]])
    Bernoulli(p=[[0.1], [0.2]])
    """

    p: Any
    mean_parameters = ("p",)

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        return Answer(flip_coins(problem, self.means(problem, t), action, t, keys))


class Beta(WithMeans):
    r"""Independent outcomes inside [0, 1]: Beta with mean ``p`` and variance ``p (1 - p) / (strength + 1)``.

    .. math:: X_{ij} \sim Beta(p_{ij}\,strength,\ (1 - p_{ij})\,strength)

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    strength
        The sum of the two parameters of the Beta distributions: the larger, the smaller the variance.
    """

    p: Any
    strength: float = 10.0
    mean_parameters = ("p",)

    def check(self) -> None:
        super().check()
        self.require("strength", 0.0 < self.strength < math.inf, "give a finite number > 0")

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        p = self.mean_rows(problem, action, t)
        steps = np.arange(1, p.shape[2] + 1, dtype=np.uint64) * streams.STEP
        own = streams.mix(streams.states(keys, t, np.maximum(action, 0))[:, :, None] + steps)
        inside, x = (p > 0.0) & (p < 1.0), p.copy()
        x[inside] = beta_draws(own[inside], p[inside] * self.strength, (1.0 - p[inside]) * self.strength)
        return Answer(x)


class Switching(Environment):
    """Independent binary outcomes whose parameters change at known rounds: ``p[n]`` holds from round ``since[n]`` on.

    Parameters
    ----------
    p
        The parameters of each phase, (n_phases, n_arms, n_items), or (n_phases, n_entries) for a sparse problem.
    since
        The first round of each phase, increasing from 1.

    Examples
    --------
    >>> Switching([[[0.1], [0.9]], [[0.9], [0.1]]], since=[1, 100]).changes(200).tolist()
    [1, 100]
    """

    p: Any
    since: Any
    mean_parameters = ("p",)

    def check(self) -> None:
        phases = np.ascontiguousarray([probabilities(one, "p") for one in self.p])
        starts = np.asarray(self.since, np.int64)
        if starts.shape != (len(phases),) or not starts.size or starts[0] != 1 or (np.diff(starts) <= 0).any():
            remedy = f"give {len(phases)} increasing rounds, the first of them 1"
            raise InvalidArgument("since", f"{starts.tolist()}", remedy, "Switching")
        self.convert("p", phases)
        self.convert("since", starts)

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        return Answer(flip_coins(problem, self.means(problem, t), action, t, keys))

    def means(self, problem: Problem, t: int) -> Floats:
        phase = int(np.searchsorted(self.since, t, side="right")) - 1
        return self.entries(problem, self.p[phase], f"p{phase}")

    def changes(self, horizon: int) -> Ints:
        return self.since[self.since <= horizon]

    def validate(self, problem: Problem) -> None:
        self.means(problem, 1)


class Swinging(Environment):
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

    p: Any
    other: Any
    period: float
    step: int = 100

    def check(self) -> None:
        self.convert("p", probabilities(self.p, "p"))
        self.convert("other", probabilities(self.other, "other"))
        for name in ("period", "step"):
            self.require(name, 0.0 < getattr(self, name) < math.inf, "give a finite number > 0")
        if self.p.shape != self.other.shape:
            raise InvalidArgument("other", f"shape {self.other.shape}", f"give the shape of p, {self.p.shape}")

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        return Answer(flip_coins(problem, self.means(problem, t), action, t, keys))

    def means(self, problem: Problem, t: int) -> Floats:
        p, other = self.entries(problem, self.p), self.entries(problem, self.other, "other")
        passed = self.step * ((t - 1) // self.step)
        return p + (other - p) * (0.5 * (1.0 - math.cos(2.0 * math.pi * passed / self.period)))

    def changes(self, horizon: int) -> Ints:
        return np.arange(1, horizon + 1, self.step)

    def validate(self, problem: Problem) -> None:
        self.means(problem, 1)
