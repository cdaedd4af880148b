"""Policies on linear models: ridge regression, an ellipsoid or a posterior around it, and an oracle."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.context.design import design_of
from superarm.context.models import LinearModel
from superarm.context.sums import round_share
from superarm.contextual.base import ContextPolicy
from superarm.contextual.ridge import Ridge, Scores, score_entries
from superarm.contextual.rules import Rule
from superarm.core.arrays import Floats, Ints
from superarm.core.tally import Feedback, Tally, View
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default

if TYPE_CHECKING:
    from superarm.core.problem import Problem


class LinearPolicy(ContextPolicy):
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
    caveat = (
        "its bound assumes that outcomes are linear in the features and, where entries share parameters, that the "
        "outcomes of one round are independent given the past"
    )

    def check(self) -> None:
        self.require_family("rule", Rule, "Ellipsoid()")
        self.require_family("oracle", Oracle, "Greedy()")
        self.require("discount", 0.0 < self.discount <= 1.0, "give a number in (0, 1]")

    def validate(self, problem: "Problem") -> None:
        super().validate(problem)
        self.oracle.validate(problem)

    def prepare(self, problem: "Problem", tally: Tally) -> Ridge:
        return Ridge(tally.moments)

    def choose(self, problem: "Problem", view: View, memory: Ridge) -> Ints:
        return self.oracle.maximize(problem, self.scores(problem, view, memory), view)

    def learn(self, problem: "Problem", tally: Tally, memory: Ridge, feedback: Feedback, sign: float = 1.0) -> None:
        tally.record(feedback, sign)
        memory.mark(design_of(problem), problem.support, feedback.action)

    def scores(self, problem: "Problem", view: View, memory: Ridge) -> Floats:
        """The optimistic or sampled parameters of all entries, clipped to [0, 1]."""
        design, sums, given = design_of(problem), view.tally.moments, view.context
        ridge = self.rule.penalty * design.longest
        memory.refresh(sums, ridge)
        inverse, theta = memory.widen(sums, ridge, given.pending), memory.theta
        k = design.observations(_discounted_size(problem.k, self.discount), problem.n_items)
        spread = self.rule.radius(design.d, k, view.t)
        if self.rule.sampled:
            theta, spread = memory.draw(inverse, spread, view.keys, view.t), 0.0
        found = score_entries(design, problem.support, given, theta, inverse)
        bonus = found.bonus(spread)
        memory.low = np.clip(found.mean - bonus, 0.0, 1.0)
        memory.high = np.clip(found.mean + bonus, 0.0, 1.0)
        return memory.high

    def weigh(self, problem: "Problem", view: View, memory: Ridge, action: Ints) -> Any:
        rows = problem.support.rows
        weights = self.rule.weight(rows(memory.low, action), rows(memory.high, action))
        if self.discount < 1.0:
            shares = np.cumprod(np.full(action.shape[1], self.discount * self.discount)) / self.discount**2
            weights = np.where(shares[:, None] < 1.0, round_share(weights * shares[:, None]), weights)
        return replace(view.context, weights=weights, pending=None)

    def estimates(self, problem: "Problem", view: View, memory: Ridge) -> tuple[Floats, Floats]:
        optimistic = self.scores(problem, view, memory)
        found: Scores = score_entries(design_of(problem), problem.support, view.context, memory.theta, memory.inverse)
        return found.mean, optimistic

    def coefficients(self, problem: "Problem", tally: Tally, memory: Ridge) -> Floats:
        memory.refresh(tally.moments, self.rule.penalty * design_of(problem).longest)
        return memory.theta

    def guarantee(self, problem: "Problem") -> Guarantee:
        return self.oracle.guarantee(problem)


def _discounted_size(k: int, discount: float) -> int:
    """The sum of the shares of ``k`` positions, rounded up; ``k`` without a discount."""
    square = discount * discount
    return k if discount == 1.0 else math.ceil((1.0 - square**k) / (1.0 - square))
