"""Policies on linear models: ridge regression, an ellipsoid or a posterior around it, and an oracle."""

import math
from typing import Any, NamedTuple

from superarm._jit import component, inlined, interpreted, kernel, lean
from superarm.actions import capacity
from superarm.arrays import Floats, Ints
from superarm.context import LinearModel
from superarm.context.design import feature_size, longest_features, make_design, most_observations
from superarm.context.observations import ContextFeedback, ContextRound, ContextTally
from superarm.errors import InvalidArgument
from superarm.oracles import Default, Guarantee, Oracle, maximize
from superarm.policies.base import Policy
from superarm.policies.contextual.ridge import (
    Ridge,
    draw_parameters,
    empty_ridge,
    learn_regression,
    no_correction,
    refresh,
    widen,
)
from superarm.policies.contextual.rules import Rule, clip_scores, penalty, radius, sampled, weight
from superarm.policies.contextual.scoring import score_entries
from superarm.policies.fast.linear_sieve import LinearSieve, suits_linear_sieve
from superarm.policies.fast.shared_sieve import SharedSieve, suits_shared_sieve
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import Support, span


@component
class LinearPolicy(NamedTuple):
    r"""Ridge regression on the features of entries, then the oracle at optimistic or sampled parameters.

    .. math:: \hat\theta = G^{-1}\sum w\,\phi X, \qquad
              q_{ij} = clip_{[0, 1]}(\langle\phi_{ij}, \hat\theta\rangle + radius\,\lVert\phi_{ij}\rVert_{G^{-1}})

    with the radius, the weights w and the ridge of the ``rule``. An observation at position n of the batch, from 0, has
    the weight :math:`w\,discount^{2n}`. Pending decisions are part of G and not of
    :math:`\hat\theta`. There are no rounds that try every arm: a new arm is predicted from its features at once.
    Implements [QinChenZhu2014]_, [LiuEtAl2023]_ and [WenKvetonAshkan2015]_, for any oracle.
    """

    rule: Rule
    oracle: Oracle = Default()
    design: Any = None
    ridge: float = 0.0
    discount: float = 1.0

    def _check(self) -> None:
        if not 0.0 < self.discount <= 1.0:
            raise InvalidArgument("discount", f"{self.discount}", "give a number in (0, 1]", "LinearPolicy")

    @property
    def caveat(self) -> str:
        return (
            "its bound assumes that outcomes are linear in the features and, where entries share parameters, that the "
            "outcomes of one round are independent given the past"
        )

    def prepare(self, problem: Problem, tally: ContextTally) -> Ridge:
        return empty_ridge(tally)

    def choose(self, problem: Problem, current: ContextRound, memory: Ridge, stream: Stream) -> Ints:
        score_all(self, problem, current, memory, stream)
        return maximize(self.oracle, problem, memory.q, current.candidates, stream)

    def learn(
        self,
        problem: Problem,
        tally: ContextTally,
        memory: Ridge,
        feedback: ContextFeedback,
        stream: Stream,
        sign: float,
    ) -> None:
        learn_regression(self.design, tally, memory.stale, problem.terms.support, feedback, stream, sign)

    @lean
    def fill_weights(self, memory: Ridge, support: Support, action: Ints, weights: Floats, shifts: Floats) -> None:
        at = 0
        for j in action:
            first, last = span(support, j)
            for e in range(first, last):
                weights[at] = weight(self.rule, min(1.0, max(0.0, memory.low[e])), memory.q[e])
                at += 1

    @lean
    def position_share(self, position: int) -> float:
        return math.pow(self.discount, 2.0 * position)

    @interpreted
    def parameters(
        self, problem: Problem, current: ContextRound, memory: Ridge, stream: Stream
    ) -> tuple[Floats, Floats]:
        """The regression's estimates, and the optimistic or sampled parameters."""
        score_all(self, problem, current, memory, stream)
        optimistic = memory.q.copy()
        score_entries(self.design, problem.terms.support, current, memory, 0.0)
        return memory.q, optimistic

    @interpreted
    def coefficients(self, problem: Problem, tally: ContextTally, memory: Ridge) -> Floats:
        """The ridge estimate of every parameter vector."""
        refresh(memory, tally, no_correction(tally), self.ridge)
        return memory.theta

    @interpreted
    def learns_from(self, model: Any) -> bool:
        """Whether the policy reads contexts of this model."""
        return isinstance(model, LinearModel)

    @interpreted
    def fit(self, problem: Problem) -> Policy:
        fitted: Any = self.plain(problem)
        if suits_linear_sieve(fitted, problem):
            fitted = LinearSieve(fitted)
        elif suits_shared_sieve(fitted, problem):
            fitted = SharedSieve(fitted)
        return fitted  # type: ignore[no-any-return]

    @interpreted
    def plain(self, problem: Problem) -> "LinearPolicy":
        """The policy made ready for this problem without any device for speed."""
        context = problem.context
        if context is None or not self.learns_from(context.model):
            raise InvalidArgument("policy", "it learns linear models", "give Context(…, model=models.Linear())")
        design = make_design(context, problem.n_arms, problem.n_items)
        ridge = penalty(self.rule) * longest_features(context, design)
        return self._replace(oracle=self.oracle.fit(problem), design=design, ridge=ridge)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


@kernel
def score_all(policy: LinearPolicy, problem: Problem, current: ContextRound, memory: Ridge, stream: Stream) -> None:
    """Write the optimistic or sampled parameters of all entries to ``memory.q``, clipped to [0, 1]."""
    rule, design, ridge = policy.rule, policy.design, policy.ridge
    nothing = no_correction(current.tally)
    refresh(memory, current.tally, nothing, ridge)
    inverse = widen(memory, current.tally, nothing, current.pending, ridge)
    k = discounted_size(capacity(problem.actions, problem.n_arms), policy.discount)
    spread = radius(rule, feature_size(design), most_observations(design, k, problem.n_items), current.t)
    theta = memory.theta
    if sampled(rule):
        theta, spread = draw_parameters(theta, inverse, spread, stream), 0.0
    around = Ridge(theta, inverse, memory.stale, memory.q, memory.low, memory.widened)
    score_entries(design, problem.terms.support, current, around, spread)
    clip_scores(memory.q, 0, len(memory.q))


@inlined
def discounted_size(k: int, discount: float) -> int:
    """The sum of the shares of ``k`` positions, rounded up; ``k`` without a discount."""
    if discount == 1.0:
        return k
    square = discount * discount
    return math.ceil((1.0 - math.pow(square, float(k))) / (1.0 - square))
