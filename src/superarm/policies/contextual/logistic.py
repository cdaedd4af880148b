"""Policies on logistic models: a regression on the scale of log-odds, with exact sums."""

import math
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, inlined, interpreted, kernel, lean
from superarm.arrays import Floats, Ints
from superarm.context import LogisticModel
from superarm.context.design import longest_features, make_design
from superarm.context.observations import ContextFeedback, ContextRound, ContextTally
from superarm.errors import InvalidArgument
from superarm.indices import KL, BetaPosterior
from superarm.oracles import Default, Guarantee, Oracle, maximize
from superarm.parameters import nonnegative, positive
from superarm.policies.base import Policy
from superarm.policies.contextual.grouped import GroupedPolicy, is_one_hot
from superarm.policies.contextual.ridge import (
    Ridge,
    draw_parameters,
    empty_ridge,
    estimate_coefficients,
    learn_regression,
    refresh,
    widened,
)
from superarm.policies.contextual.scoring import score_entries
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import Support, span

_GRID = 4096.0
"""Weights and shifts of logistic models are multiples of 1 / _GRID."""


class Logits(NamedTuple):
    """The memory of logistic policies: ridge estimates of log-odds, and buffers (n_entries,) for weights and shifts."""

    ridge: Ridge
    weight: Floats
    shift: Floats


@component
class LogisticPolicy(NamedTuple):
    r"""Optimistic or sampled log-odds, and the oracle at their probabilities.

    With :math:`\hat\eta = \langle\phi, \hat\theta\rangle`, :math:`\sigma` the logistic function and o the offset of the
    model,

    .. math:: q_{ij} = \sigma\bigl(o + \hat\eta_{ij} + \sqrt{2\beta_t}\,\lVert\phi_{ij}\rVert_{H^{-1}}\bigr), \qquad
              \beta_t = \rho\log t + c\log^+\log t

    (``sampled=False``), or :math:`\sigma(o + \langle\phi, \theta\rangle)` for one draw :math:`\theta \sim N(\hat\theta,
    \rho^2 H^{-1})` per round. H is the sum of :math:`\dot\sigma\,\phi\phi^\top` at the estimates of the decisions, plus
    the ridge; :math:`\hat\theta = H^{-1}\sum (\dot\sigma\hat\eta_s + X - \sigma_s)\,\phi`. The ellipsoid of
    [LeeYunJun2024]_ with the level of KL-UCB. Differs: no bound is claimed for this level.
    """

    kl: KL
    draws: float = 0.0
    ridge: float = 1.0
    oracle: Oracle = Default()
    design: Any = None
    offset: float = 0.0

    def _check(self) -> None:
        nonnegative(self, "draws")
        positive(self, "ridge")

    @property
    def caveat(self) -> str:
        return (
            "it assumes that log-odds are linear in the features and, where entries share parameters, that the "
            "outcomes of one round are independent given the past; no regret bound is known for it"
        )

    def prepare(self, problem: Problem, tally: ContextTally) -> Logits:
        return Logits(empty_ridge(tally), np.zeros(len(tally.total)), np.zeros(len(tally.total)))

    def choose(self, problem: Problem, current: ContextRound, memory: Logits, stream: Stream) -> Ints:
        score_logits(self, problem, current, memory, stream)
        return maximize(self.oracle, problem, memory.ridge.q, current.candidates, stream)

    def learn(
        self,
        problem: Problem,
        tally: ContextTally,
        memory: Logits,
        feedback: ContextFeedback,
        stream: Stream,
        sign: float,
    ) -> None:
        learn_regression(self.design, tally, memory.ridge.stale, problem.terms.support, feedback, stream, sign)

    @lean
    def linearises(self) -> bool:
        return True

    @lean
    def fill_weights(self, memory: Logits, support: Support, action: Ints, weights: Floats, shifts: Floats) -> None:
        at = 0
        for j in action:
            first, last = span(support, j)
            for e in range(first, last):
                weights[at] = memory.weight[e]
                shifts[at] = memory.shift[e]
                at += 1

    @interpreted
    def parameters(
        self, problem: Problem, current: ContextRound, memory: Logits, stream: Stream
    ) -> tuple[Floats, Floats]:
        """The estimated probabilities, and the optimistic or sampled ones."""
        score_logits(self, problem, current, memory, stream)
        optimistic = memory.ridge.q.copy()
        score_entries(self.design, problem.terms.support, current, memory.ridge, 0.0)
        return 1.0 / (1.0 + np.exp(-self.offset - memory.ridge.q)), optimistic

    @interpreted
    def coefficients(self, tally: ContextTally) -> Floats:
        """The estimate of every parameter vector."""
        return estimate_coefficients(tally, self.ridge)

    @interpreted
    def learns_from(self, model: Any) -> bool:
        """Whether the policy reads contexts of this model."""
        return isinstance(model, LogisticModel)

    @interpreted
    def fit(self, problem: Problem) -> Policy:
        context = problem.context
        if context is None or not self.learns_from(context.model):
            raise InvalidArgument("policy", "it learns logistic models", "give Context(…, model=models.Logistic())")
        design, oracle = make_design(context, problem.n_arms, problem.n_items), self.oracle.fit(problem)
        if is_one_hot(context, design):
            grouped: Any = GroupedPolicy(BetaPosterior() if self.draws > 0.0 else self.kl, oracle, design)
            return grouped  # type: ignore[no-any-return]
        prior = context.model.prior_mean
        ridge, offset = self.ridge * longest_features(context, design), math.log(prior / (1.0 - prior))
        fitted: Any = self._replace(oracle=oracle, design=design, ridge=ridge, offset=offset)
        return fitted  # type: ignore[no-any-return]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


@inlined
def sigmoid(x: float) -> float:
    """The logistic function; exact to rounding for large negative numbers."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@kernel
def score_logits(
    policy: LogisticPolicy, problem: Problem, current: ContextRound, memory: Logits, stream: Stream
) -> None:
    """Write probabilities to ``q``, and weights and shifts of the linearisation at the estimate to their buffers."""
    ridge, support, design = memory.ridge, problem.terms.support, policy.design
    refresh(ridge, current.tally, policy.ridge)
    inverse = widened(ridge, current.tally, current.pending, policy.ridge)
    log_t = math.log(current.t)
    beta = policy.kl.rho * log_t + policy.kl.c * math.log(max(1.0, log_t))
    wide = Ridge(ridge.theta, inverse, ridge.stale, ridge.q, ridge.low)
    if policy.draws > 0.0:
        score_entries(design, support, current, wide, 0.0)
        _linearise(policy.offset, memory)
        drawn = draw_parameters(ridge.theta, inverse, policy.draws, stream)
        scores = Ridge(drawn, inverse, ridge.stale, ridge.q, np.zeros(len(ridge.q)))
        score_entries(design, support, current, scores, 0.0)
    else:
        score_entries(design, support, current, wide, math.sqrt(2.0 * beta))
        _linearise(policy.offset, memory)
    for e in range(len(ridge.q)):
        ridge.q[e] = sigmoid(policy.offset + ridge.q[e])


@lean
def _linearise(offset: float, memory: Logits) -> None:
    """Write the weights and shifts at the estimates, which are in the middle of the bounds of log-odds."""
    q, low, weight, shift = memory.ridge.q, memory.ridge.low, memory.weight, memory.shift
    for e in range(len(q)):
        eta = 0.5 * (q[e] + low[e])
        mean = sigmoid(offset + eta)
        weight[e] = max(1.0, math.floor(mean * (1.0 - mean) * _GRID + 0.5)) / _GRID
        shift[e] = math.floor((weight[e] * eta - mean) * _GRID + 0.5) / _GRID
