"""Policies on linear models: ridge regression, an ellipsoid or a posterior around it, and an oracle."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel, lean
from superarm.actions import capacity
from superarm.arrays import Bools, Floats, Ints
from superarm.context import LinearModel
from superarm.context.design import Design, feature_size, group_of, longest_features, make_design, most_observations
from superarm.context.observations import ContextFeedback, ContextRound, ContextTally
from superarm.context.sums import record_sums
from superarm.errors import InvalidArgument
from superarm.intake import Exact
from superarm.oracles import Default, Guarantee, Oracle, maximize
from superarm.policies.contextual.linear_algebra import factorise, invert_factor, solve_factor, square_factor
from superarm.policies.contextual.rules import Rule, penalty, radius, sampled, weight
from superarm.policies.contextual.scoring import Ridge, score_entries
from superarm.problem import Problem
from superarm.streams import Stream, normal
from superarm.support import Support, span
from superarm.tally import Feedback, Tally, record


@component
class LinearPolicy(NamedTuple):
    r"""Ridge regression on the features of entries, then the oracle at optimistic or sampled parameters.

    .. math:: \hat\theta = G^{-1}\sum w\,\phi X, \qquad
              q_{ij} = clip_{[0, 1]}(\langle\phi_{ij}, \hat\theta\rangle + radius\,\lVert\phi_{ij}\rVert_{G^{-1}})

    with the radius, the weights w and the ridge of the ``rule``. Pending decisions are part of G and not of
    :math:`\hat\theta`. There are no rounds that try every arm: a new arm is predicted from its features at once.
    Implements [QinChenZhu2014]_, [LiuEtAl2023]_ and [WenKvetonAshkan2015]_, for any oracle.
    """

    rule: Rule
    oracle: Oracle = Default()
    design: Any = None
    ridge: float = 0.0

    @property
    def caveat(self) -> str:
        return (
            "its bound assumes that outcomes are linear in the features and, where entries share parameters, that the "
            "outcomes of one round are independent given the past"
        )

    def prepare(self, problem: Problem, tally: ContextTally) -> Ridge:
        return empty_ridge(tally)

    def choose(self, problem: Problem, current: ContextRound, memory: Ridge, stream: Stream) -> Ints:
        _score(self.rule, self.design, self.ridge, problem, current, memory, stream)
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
                weights[at] = memory.weight[e]
                at += 1

    @interpreted
    def parameters(
        self, problem: Problem, current: ContextRound, memory: Ridge, stream: Stream
    ) -> tuple[Floats, Floats]:
        """The regression's estimates, and the optimistic or sampled parameters."""
        _score(self.rule, self.design, self.ridge, problem, current, memory, stream)
        optimistic = memory.q.copy()
        score_entries(self.design, problem.terms.support, current, memory, 0.0)
        return memory.q, optimistic

    @interpreted
    def coefficients(self, tally: ContextTally) -> Floats:
        """The ridge estimate of every parameter vector."""
        return estimate_coefficients(tally, self.ridge)

    @interpreted
    def learns_from(self, model: Any) -> bool:
        """Whether the policy reads contexts of this model."""
        return isinstance(model, LinearModel)

    @interpreted
    def fit(self, problem: Problem) -> "LinearPolicy":
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
def learn_regression(
    design: Design,
    tally: ContextTally,
    stale: Bools,
    support: Support,
    feedback: ContextFeedback,
    stream: Stream,
    sign: float,
) -> None:
    """Record feedback in the tally, and mark the parameter vectors that are to be estimated again."""
    record_counts(tally, support, feedback, stream, sign)
    record_sums(tally, design, support, feedback, sign)
    mark_stale(stale, design, support, feedback.action)


@kernel
def record_counts(
    tally: ContextTally, support: Support, feedback: ContextFeedback, stream: Stream, sign: float
) -> None:
    """Record feedback in the counts of the tally, which do not depend on the context."""
    plain = Feedback(feedback.t, feedback.action, feedback.outcome, feedback.seen)
    counts = Tally(
        tally.pulls,
        tally.total,
        tally.square,
        tally.missed,
        tally.joint,
        tally.reference,
        tally.moments,
        tally.products,
    )
    record(counts, support, plain, Exact(), stream, sign)


@lean
def mark_stale(stale: Bools, design: Design, support: Support, action: Ints) -> None:
    """Mark the parameter vectors of the entries of ``action``."""
    for j in action:
        first, last = span(support, j)
        for e in range(first, last):
            stale[group_of(design, j, e)] = True


@kernel
def empty_ridge(tally: ContextTally) -> Ridge:
    """A memory in which every parameter vector is still to be estimated."""
    groups, d = tally.response.shape
    return Ridge(
        np.zeros((groups, d)),
        np.zeros(tally.precision.shape),
        np.ones(groups, np.bool_),
        np.zeros(len(tally.total)),
        np.zeros(len(tally.total)),
    )


def estimate_coefficients(tally: ContextTally, ridge: float) -> Floats:
    """The ridge estimate of every parameter vector."""
    memory = empty_ridge(tally)
    refresh(memory, tally, ridge)
    return memory.theta


@kernel
def _score(
    rule: Rule, design: Design, ridge: float, problem: Problem, current: ContextRound, memory: Ridge, stream: Stream
) -> None:
    """Write the optimistic or sampled parameters of all entries to ``memory.q``, and their weights."""
    refresh(memory, current.tally, ridge)
    inverse = widened(memory, current.tally, current.pending, ridge)
    k = capacity(problem.actions, problem.n_arms)
    spread = radius(rule, feature_size(design), most_observations(design, k, problem.n_items), current.t)
    theta = memory.theta
    if sampled(rule):
        theta, spread = draw_parameters(theta, inverse, spread, stream), 0.0
    around = Ridge(theta, inverse, memory.stale, memory.q, memory.weight)
    score_entries(design, problem.terms.support, current, around, spread)
    _weigh_entries(rule, memory)


@kernel
def refresh(memory: Ridge, tally: ContextTally, ridge: float) -> None:
    """Estimate the parameter vectors of which something new was observed."""
    groups, d = memory.theta.shape
    factor, inverse_factor = np.zeros(tally.precision.shape[1]), np.zeros(tally.precision.shape[1])
    for g in range(groups):
        if memory.stale[g]:
            factor[:] = tally.precision[g]
            _add_ridge(factor, d, ridge)
            factorise(factor, d)
            memory.theta[g] = tally.response[g]
            solve_factor(factor, d, memory.theta[g])
            invert_factor(factor, d, inverse_factor)
            square_factor(inverse_factor, d, memory.inverse[g])
            memory.stale[g] = False


@kernel
def widened(memory: Ridge, tally: ContextTally, pending: Floats, ridge: float) -> Floats:
    """The inverse of each G with the precision of pending decisions; that of the memory itself where there are none."""
    if pending.size == 0 or not pending.any():
        return memory.inverse
    d = memory.theta.shape[1]
    inverse = memory.inverse.copy()
    factor, inverse_factor = np.zeros(pending.shape[1]), np.zeros(pending.shape[1])
    for g in range(len(inverse)):
        if pending[g].any():
            factor[:] = tally.precision[g] + pending[g]
            _add_ridge(factor, d, ridge)
            factorise(factor, d)
            invert_factor(factor, d, inverse_factor)
            square_factor(inverse_factor, d, inverse[g])
    return inverse


@lean
def _add_ridge(triangle: Floats, d: int, ridge: float) -> None:
    at = 0
    for r in range(d):
        triangle[at + r] += ridge
        at += r + 1


@kernel
def draw_parameters(theta: Floats, inverse: Floats, spread: float, stream: Stream) -> Floats:
    r"""One draw of every parameter vector from :math:`N(\hat\theta, spread^2\,G^{-1})`."""
    groups, d = theta.shape
    drawn, root = theta.copy(), np.zeros(inverse.shape[1])
    z = np.zeros(d)
    for g in range(groups):
        root[:] = inverse[g]
        factorise(root, d)
        for r in range(d):
            z[r] = normal(stream)
        at = 0
        for r in range(d):
            shift = 0.0
            for c in range(r + 1):
                shift += root[at + c] * z[c]
            drawn[g, r] += spread * shift
            at += r + 1
    return drawn


@lean
def _weigh_entries(rule: Rule, memory: Ridge) -> None:
    """Replace the lower bounds in ``memory.weight`` by weights, and clip the optimistic parameters."""
    for e in range(len(memory.q)):
        high = min(1.0, max(0.0, memory.q[e]))
        memory.weight[e] = weight(rule, min(1.0, max(0.0, memory.weight[e])), high)
        memory.q[e] = high
