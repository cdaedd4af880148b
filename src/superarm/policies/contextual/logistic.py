"""Policies on logistic models: a regression on the scale of log-odds, refitted by maximum likelihood."""

import math
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel, lean
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
from superarm.policies.contextual.keeping import keep_feedback
from superarm.policies.contextual.kept_observations import (
    KeptObservations,
    Likelihood,
    correction,
    keep_nothing_yet,
    restore_kept,
    save_kept,
    sigmoid,
)
from superarm.policies.contextual.maximum_likelihood import Refit, correct_groups, fit_due, take_points
from superarm.policies.contextual.ridge import (
    Ridge,
    draw_parameters,
    empty_ridge,
    learn_regression,
    refresh,
    widen,
)
from superarm.policies.contextual.scoring import score_entries
from superarm.policies.policy_state import PolicyState
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import Support, span

_GRID = 4096.0
"""Weights and shifts of logistic models are multiples of 1 / _GRID."""


class Logits(NamedTuple):
    """The memory of logistic policies.

    Ridge estimates, a buffer (n_entries,) for the estimates of log-odds without the offset, and the observations that
    are kept.
    """

    ridge: Ridge
    estimate: Floats
    kept: KeptObservations


@component
class LogisticPolicy(NamedTuple):
    r"""Optimistic or sampled log-odds, and the oracle at their probabilities.

    With :math:`\hat\eta = \langle\phi, \hat\theta\rangle`, :math:`\sigma` the logistic function and o the offset of the
    model,

    .. math:: q_{ij} = \sigma\bigl(o + \hat\eta_{ij} + \sqrt{2\beta_t}\,\lVert\phi_{ij}\rVert_{H^{-1}}\bigr), \qquad
              \beta_t = \rho\log t + c\log^+\log t

    (``sampled=False``), or :math:`\sigma(o + \langle\phi, \theta\rangle)` for one draw :math:`\theta \sim N(\hat\theta,
    \rho^2 H^{-1})` per round. H is the sum of :math:`\dot\sigma_s\,\phi\phi^\top`, plus the ridge, and
    :math:`\hat\theta = H^{-1}\sum (\dot\sigma_s\eta_s + X - \sigma_s)\,\phi`, where :math:`\eta_s` are the log-odds at
    the last estimate of maximum likelihood for observations before it, and at the estimate of the decision for later
    ones: right after a refit :math:`\hat\theta` is that of maximum likelihood. The ellipsoid of [LeeYunJun2024]_ with
    the level of KL-UCB. Differs: no bound is claimed for this level. ``kept`` is how many observations refits use.
    """

    kl: KL
    draws: float = 0.0
    ridge: float = 1.0
    oracle: Oracle = Default()
    design: Any = None
    offset: float = 0.0
    kept: int = 0
    support: Any = None

    def _check(self) -> None:
        nonnegative(self, "draws")
        positive(self, "ridge")

    @property
    def any_actions(self) -> bool:
        """The memory has no part that depends on the action set."""
        return True

    @property
    def caveat(self) -> str:
        return (
            "it assumes that log-odds are linear in the features and, where entries share parameters, that the "
            "outcomes of one round are independent given the past; no regret bound is known for it"
        )

    def prepare(self, problem: Problem, tally: ContextTally) -> Logits:
        n, kept = len(tally.total), keep_nothing_yet(self.kept, self.design, problem.terms.support)
        return Logits(empty_ridge(tally), np.zeros(n), kept)

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
        support, kept = problem.terms.support, memory.kept
        learn_regression(self.design, tally, memory.ridge.stale, support, feedback, stream, sign)
        likelihood = Likelihood(self.offset, self.ridge)
        keep_feedback(kept, self.design, support, feedback, kept.present[0], likelihood, sign)

    def refit(self, problem: Problem, memory: Logits, t: int) -> None:
        if memory.kept.due[0]:
            support, likelihood = problem.terms.support, Likelihood(self.offset, self.ridge)
            groups, points, information = fit_due(memory.kept, self.design, support, likelihood)
            found = Refit(t, groups, points, information)
            take_points(memory.kept, memory.ridge.stale, self.design, support, found, likelihood)

    @interpreted
    def plan_refit(self, problem: Problem, memory: Logits, t: int) -> Refit | None:
        """The refit that is due, if there is one."""
        if not memory.kept.due[0]:
            return None
        support, likelihood = problem.terms.support, Likelihood(self.offset, self.ridge)
        return Refit(t, *fit_due(memory.kept, self.design, support, likelihood))

    @interpreted
    def take_refit(self, problem: Problem, memory: Logits, refit: Refit) -> None:
        """Take on a refit."""
        likelihood = Likelihood(self.offset, self.ridge)
        take_points(memory.kept, memory.ridge.stale, self.design, problem.terms.support, refit, likelihood)

    @interpreted
    def keep_late(self, problem: Problem, memory: Logits, feedback: ContextFeedback, frame: int, sign: float) -> None:
        """Keep what was observed of a decision of an earlier frame, or drop it."""
        likelihood = Likelihood(self.offset, self.ridge)
        keep_feedback(memory.kept, self.design, problem.terms.support, feedback, frame, likelihood, sign)

    @interpreted
    def save_state(self, memory: Logits) -> PolicyState | None:
        """The observations and points; None if none are kept."""
        return PolicyState(-1, [], save_kept(memory.kept)) if self.kept else None

    @interpreted
    def restore_state(self, memory: Logits, held: PolicyState) -> None:
        """Put observations and points into a memory just prepared."""
        if self.kept and held.kept is not None:
            restore_kept(memory.kept, held.kept)
            likelihood, everyone = Likelihood(self.offset, self.ridge), np.arange(len(memory.kept.point))
            correct_groups(memory.kept, self.design, self.support, everyone, likelihood)

    @interpreted
    def without_refits(self) -> "LogisticPolicy":
        """The policy that keeps no observations."""
        return self._replace(kept=0)

    @lean
    def linearises(self) -> bool:
        return True

    @lean
    def fill_weights(self, memory: Logits, support: Support, action: Ints, weights: Floats, shifts: Floats) -> None:
        at = 0
        for j in action:
            first, last = span(support, j)
            for e in range(first, last):
                eta = memory.estimate[e]
                mean = sigmoid(self.offset + eta)
                weights[at] = max(1.0, math.floor(mean * (1.0 - mean) * _GRID + 0.5)) / _GRID
                shifts[at] = math.floor((weights[at] * eta - mean) * _GRID + 0.5) / _GRID
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
    def coefficients(self, problem: Problem, tally: ContextTally, memory: Logits) -> Floats:
        """The estimate of every parameter vector."""
        refresh(memory.ridge, tally, correction(memory.kept), self.ridge)
        return memory.ridge.theta

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
        own = {"kept": context.model.kept, "support": problem.support}
        fitted: Any = self._replace(oracle=oracle, design=design, ridge=ridge, offset=offset, **own)
        return fitted  # type: ignore[no-any-return]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


@kernel
def score_logits(
    policy: LogisticPolicy, problem: Problem, current: ContextRound, memory: Logits, stream: Stream
) -> None:
    """Write probabilities to ``q``, and the estimates to their buffer."""
    ridge, support, design = memory.ridge, problem.terms.support, policy.design
    more = correction(memory.kept)
    refresh(ridge, current.tally, more, policy.ridge)
    inverse = widen(ridge, current.tally, more, current.pending, policy.ridge)
    log_t = math.log(current.t)
    beta = policy.kl.rho * log_t + policy.kl.c * math.log(max(1.0, log_t))
    wide = Ridge(ridge.theta, inverse, ridge.stale, ridge.q, ridge.low, ridge.widened)
    if policy.draws > 0.0:
        score_entries(design, support, current, wide, 0.0)
        _keep_estimates(memory)
        drawn = draw_parameters(ridge.theta, inverse, policy.draws, stream)
        scores = Ridge(drawn, inverse, ridge.stale, ridge.q, np.zeros(len(ridge.q)), ridge.widened)
        score_entries(design, support, current, scores, 0.0)
    else:
        score_entries(design, support, current, wide, math.sqrt(2.0 * beta))
        _keep_estimates(memory)
    for e in range(len(ridge.q)):
        ridge.q[e] = sigmoid(policy.offset + ridge.q[e])


@lean
def _keep_estimates(memory: Logits) -> None:
    """Write the estimates, which are in the middle of the bounds of log-odds."""
    q, low, estimate = memory.ridge.q, memory.ridge.low, memory.estimate
    for e in range(len(q)):
        estimate[e] = 0.5 * (q[e] + low[e])
