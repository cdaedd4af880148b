"""Outcomes that are no shares: Gaussian ones, for problems whose bounds are not 0 and 1."""

import math
from typing import Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import HUGE, Ints, probabilities
from superarm.core.errors import InvalidArgument
from superarm.environments.base import Answer
from superarm.environments.bernoulli import WithMeans
from superarm.problem import Problem

REACH = 8.0
"""An outcome is further than so many standard deviations from its mean with probability 1e-15."""


class Gaussian(WithMeans):
    r"""Independent Gaussian outcomes: entry (j, i) is :math:`N(p_{ji}, deviation^2)`.

    Parameters
    ----------
    p
        The true means, (n_arms, n_items) or sparse: any numbers, 8 deviations within the bounds of the problem.
    deviation
        The standard deviation of every outcome.

    Examples
    --------
    >>> import superarm as sa
    >>> problem = sa.Problem(3, 1, sa.Linear(), sa.Subsets(2), bounds=None)
    >>> sa.Instance(problem, Gaussian([[-1.0], [0.5], [2.0]])).value([1, 2])
    2.5
    """

    p: Any
    deviation: float = 1.0
    mean_parameters = ("p",)

    def check(self) -> None:
        self.convert("p", probabilities(self.p, "p", -HUGE, HUGE))
        self.require("deviation", 0.0 < self.deviation < math.inf, "give a finite number > 0")

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        numbers = streams.uniform(keys, t, np.maximum(action, 0), problem.support.widest)
        return Answer(self.mean_rows(problem, action, t) + self.deviation * streams.normal(numbers))

    def validate(self, problem: Problem) -> None:
        (low, high), reach = problem.bounds, REACH * self.deviation
        if self.p.size and not (low + reach <= self.p.min() and self.p.max() <= high - reach):
            own = f"[{self.p.min() - reach:g}, {self.p.max() + reach:g}]"
            wrong = f"its outcomes are in {own}, and those of the problem in [{low:g}, {high:g}]"
            raise InvalidArgument("environment", wrong, "give Problem(…, bounds=(low, high)) that hold them, or None")
        super().validate(problem)
