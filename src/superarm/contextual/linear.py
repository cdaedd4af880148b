"""Policies on linear models: ridge regression, an ellipsoid or a posterior around it, and an oracle."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from superarm.context.design import design_of
from superarm.context.models import LinearModel
from superarm.context.sums import round_share
from superarm.contextual.base import ContextPolicy, RegressionMemory
from superarm.contextual.ridge import Ridge, RidgeScores, score_entries
from superarm.contextual.rules import Rule
from superarm.core.arrays import Floats, Ints
from superarm.core.tally import Feedback, Tally, View
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.policies.base import fact_of
from superarm.problem import Problem


class RidgeMemory(RegressionMemory):
    """The sums of a regression, and the ridge estimates that follow from them."""

    ridge: Ridge

    def adopt(self, tally: Tally) -> None:
        super().adopt(tally)
        self.ridge = Ridge(self.tally.regression)

    def learn(self, feedback: Feedback, weight: float = 1.0) -> None:
        super().learn(feedback, weight)
        self.ridge.mark(design_of(self.problem), self.problem.support, feedback.action)


class LinearPolicy(ContextPolicy[RidgeMemory]):
    r"""Ridge regression on the features of entries, then the oracle at optimistic or sampled parameters.

    .. math:: \hat\theta = G^{-1}\sum w\,\phi X, \qquad
              q_{ij} = clip_{[0, 1]}(\langle\phi_{ij}, \hat\theta\rangle + radius\,\lVert\phi_{ij}\rVert_{G^{-1}})

    with the radius, the weights w and the ridge of the ``rule``. An observation at position n of the batch, from 0, has
    the weight :math:`w\,discount^{2n}`. Pending decisions are part of G and not of
    :math:`\hat\theta`. There are no rounds that try every arm: a new arm is predicted from its features at once.
    Implements [QinChenZhu2014]_, [LiuEtAl2023]_ and [WenKvetonAshkan2015]_, for any oracle.

    Parameters
    ----------
    rule
        How far the policy explores, and how it weighs what it observes.
    oracle
        The algorithm that finds a batch.
    discount
        By how much less a list earns if its success is one position further down, in (0, 1].
    """

    rule: Rule
    oracle: Oracle = Default()
    discount: float = 1.0
    learns = LinearModel
    remembers = RidgeMemory
    random = fact_of("rule", "sampled")
    any_outcome = fact_of("rule", "sampled")
    caveat = (
        "its bound assumes that outcomes are linear in the features and, where entries share parameters, that the "
        "outcomes of one round are independent given the past"
    )

    def check(self) -> None:
        self.require_family("rule", Rule, "Ellipsoid()")
        self.require_family("oracle", Oracle, "Greedy()")
        self.require("discount", 0.0 < self.discount <= 1.0, "give a number in (0, 1]")

    def validate(self, problem: Problem) -> None:
        super().validate(problem)
        self.oracle.validate(problem)

    def choose(self, problem: Problem, view: View, memory: RidgeMemory) -> Ints:
        return self.oracle.maximize(problem, self.scores(problem, view, memory), view)

    def scores(self, problem: Problem, view: View, memory: RidgeMemory) -> Floats:
        """The optimistic or sampled parameters of all entries; clipped to [0, 1] if outcomes are."""
        design, sums, given, found = design_of(problem), memory.tally.regression, view.context, memory.ridge
        penalty = self.rule.ridge_for(design.longest)
        found.refresh(sums, penalty)
        inverse: Floats | None = found.widen(sums, penalty, given.pending)
        theta = found.theta
        k = design.observations(_discounted_size(problem.k, self.discount), problem.n_items)
        spread = self.rule.radius(design.d, k, view.t)
        if self.rule.sampled and inverse is not None:
            theta, inverse = found.draw(inverse, spread, view.keys, view.t), None
        scores = score_entries(design, problem.support, given, theta, inverse)
        bonus = 0.0 if inverse is None else scores.bonus(spread)
        least, most = (-np.inf, np.inf) if problem.real else (0.0, 1.0)
        found.low = np.clip(scores.mean - bonus, least, most)
        found.high = np.clip(scores.mean + bonus, least, most)
        return found.high

    def weigh(self, problem: Problem, view: View, memory: RidgeMemory, action: Ints) -> Any:
        rows = problem.support.rows
        weights = self.rule.weight(rows(memory.ridge.low, action), rows(memory.ridge.high, action))
        if self.discount < 1.0:
            shares = np.cumprod(np.full(action.shape[1], self.discount * self.discount)) / self.discount**2
            weights = np.where(shares[:, None] < 1.0, round_share(weights * shares[:, None]), weights)
        return replace(view.context, weights=weights, pending=None)

    def estimates(self, problem: Problem, view: View, memory: RidgeMemory) -> tuple[Floats, Floats]:
        optimistic = self.scores(problem, view, memory)
        ridge = memory.ridge
        found: RidgeScores = score_entries(
            design_of(problem), problem.support, view.context, ridge.theta, ridge.inverse
        )
        return found.mean, optimistic

    def coefficients(self, problem: Problem, memory: RidgeMemory) -> Floats:
        memory.ridge.refresh(memory.tally.regression, self.rule.ridge_for(design_of(problem).longest))
        return memory.ridge.theta

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def _discounted_size(k: int, discount: float) -> int:
    """The sum of the shares of ``k`` positions, rounded up; ``k`` without a discount."""
    square = discount * discount
    return k if discount == 1.0 else math.ceil((1.0 - square**k) / (1.0 - square))
