"""Policies on logistic models: a regression on the scale of log-odds, refitted by maximum likelihood."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.context.context import Context
from superarm.context.design import Design, arm_major, design_of, places
from superarm.context.models import LogisticModel
from superarm.context.sums import UNWEIGHTED, triangle
from superarm.contextual.base import ContextPolicy
from superarm.contextual.kept import Kept, Likelihood, Refit
from superarm.contextual.ridge import Correction, Ridge, score_entries
from superarm.core.arrays import Floats, Ints
from superarm.core.numeric import log, sigmoid
from superarm.core.tally import Feedback, Tally, View
from superarm.indices import KL, Chance, Index
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.policies.base import try_every_arm

if TYPE_CHECKING:
    from superarm.core.problem import Problem

_GRID = 4096.0
"""Weights and shifts of logistic models are multiples of 1 / _GRID."""


class Logits(Ridge):
    """The memory of logistic policies: ridge estimates, and what each replication keeps; ``kept`` is empty if nothing.

    ``estimate`` are the estimates of log-odds without the offset in the last round, in the shape of entries.
    """

    def __init__(self, tally: Tally, design: Design, likelihood: Likelihood, capacity: int) -> None:
        super().__init__(tally.moments)
        self.estimate: Floats = np.zeros(0)
        self.more = None
        self.kept: list[Kept] = []
        if capacity:
            sums = tally.moments
            self.more = Correction(np.zeros_like(sums.precision), np.zeros_like(sums.response))
            parts = zip(self.more.precision, self.more.response, self.stale, strict=True)
            self.kept = [Kept(capacity, design, tally.support, likelihood, part) for part in parts]


class LogisticPolicy(ContextPolicy):
    r"""Optimistic or sampled log-odds, and the oracle at their probabilities.

    With :math:`\hat\eta = \langle\phi, \hat\theta\rangle`, :math:`\sigma` the logistic function and o the offset of the
    model,

    .. math:: q_{ij} = \sigma\bigl(o + \hat\eta_{ij} + \sqrt{2\beta_t}\,\lVert\phi_{ij}\rVert_{H^{-1}}\bigr), \qquad
              \beta_t = \rho\log t + c\log^+\log t

    (``draws=0``), or :math:`\sigma(o + \langle\phi, \theta\rangle)` for one draw :math:`\theta \sim N(\hat\theta,
    draws^2 H^{-1})` per round. H is the sum of :math:`\dot\sigma_s\,\phi\phi^\top`, plus the ridge, and
    :math:`\hat\theta = H^{-1}\sum (\dot\sigma_s\eta_s + X - \sigma_s)\,\phi`, where :math:`\eta_s` are the log-odds at
    the last estimate of maximum likelihood for observations before it, and at the estimate of the decision for later
    ones: right after a refit :math:`\hat\theta` is that of maximum likelihood. The ellipsoid of [LeeYunJun2024]_ with
    the level of KL-UCB. Differs: no bound is claimed for this level.

    Parameters
    ----------
    index
        The KL index whose level is :math:`\beta_t`.
    draws
        Scales the standard deviation of the draw; 0 means no draw.
    ridge
        The penalty of the regression, for features of length at most 1.
    oracle
        The algorithm that finds a batch.
    refits
        Whether observations are kept, as many as the model says, for refits by maximum likelihood.
    """

    index: KL = KL()
    draws: float = 0.0
    ridge: float = 1.0
    oracle: Oracle = Default()
    refits: bool = True
    learns = LogisticModel
    caveat = (
        "it assumes that log-odds are linear in the features and, where entries share parameters, that the "
        "outcomes of one round are independent given the past; no regret bound is known for it"
    )

    def check(self) -> None:
        self.require_family("oracle", Oracle, "Greedy()")
        self.require("draws", self.draws >= 0.0, "give a number >= 0")
        self.require("ridge", 0.0 < self.ridge < math.inf, "give a finite number > 0")

    def validate(self, problem: "Problem") -> None:
        super().validate(problem)
        self.oracle.validate(problem)

    def likelihood(self, problem: "Problem") -> Likelihood:
        """The offset and the penalty on this problem."""
        prior = problem.context.model.prior_mean
        return Likelihood(log(prior / (1.0 - prior)), self.ridge * design_of(problem).longest)

    def prepare(self, problem: "Problem", tally: Tally) -> Logits:
        capacity = problem.context.model.kept if self.refits else 0
        return Logits(tally, design_of(problem), self.likelihood(problem), capacity)

    def choose(self, problem: "Problem", view: View, memory: Logits) -> Ints:
        return self.oracle.maximize(problem, self.scores(problem, view, memory), view)

    def learn(self, problem: "Problem", tally: Tally, memory: Logits, feedback: Feedback, sign: float = 1.0) -> None:
        tally.record(feedback, sign)
        memory.mark(design_of(problem), problem.support, feedback.action)
        if feedback.context.shifts is not None:
            for r, kept in enumerate(memory.kept):
                kept.record(feedback, r, sign)

    def scores(self, problem: "Problem", view: View, memory: Logits) -> Floats:
        """The optimistic or sampled probabilities of all entries."""
        design, sums, given = design_of(problem), view.tally.moments, view.context
        offset, ridge = self.likelihood(problem)
        memory.refresh(sums, ridge, memory.more)
        inverse = memory.widen(sums, ridge, given.pending, memory.more)
        found = score_entries(design, problem.support, given, memory.theta, inverse)
        memory.estimate, odds = found.mean, found.mean
        if self.draws > 0.0:
            drawn = memory.draw(inverse, self.draws, view.keys, view.t)
            odds = score_entries(design, problem.support, given, drawn, inverse).mean
        else:
            odds = odds + found.bonus(math.sqrt(2.0 * self.index.numerator(float(view.t))))
        memory.high = sigmoid(offset + odds)
        return memory.high

    def weigh(self, problem: "Problem", view: View, memory: Logits, action: Ints) -> Any:
        eta = problem.support.rows(memory.estimate, action)
        mean = sigmoid(self.likelihood(problem).offset + eta)
        weights = np.maximum(1.0, np.floor(mean * (1.0 - mean) * _GRID + 0.5)) / _GRID
        shifts = np.floor((weights * eta - mean) * _GRID + 0.5) / _GRID
        return replace(view.context, weights=weights, shifts=shifts, pending=None)

    def refit(self, problem: "Problem", memory: Logits, t: int) -> None:
        for r in range(len(memory.kept)):
            found = self.plan_refit(problem, memory, t, r)
            if found is not None:
                self.take_refit(problem, memory, found, r)

    def plan_refit(self, problem: "Problem", memory: Logits, t: int, replication: int = 0) -> Refit | None:
        """The refit that is due after the choice of round ``t``, if there is one; it changes nothing."""
        return memory.kept[replication].plan(t) if memory.kept else None

    def take_refit(self, problem: "Problem", memory: Logits, refit: Refit, replication: int = 0) -> None:
        """Take on a refit: one of ``plan_refit``, here or in another memory with the same history."""
        if memory.kept:
            memory.kept[replication].take(refit)

    def save_state(self, memory: Logits) -> dict[str, Any] | None:
        """The kept observations and points of the first replication, by the names of ``Kept.save``; None if none."""
        return memory.kept[0].save() if memory.kept else None

    def restore_state(self, memory: Logits, held: dict[str, Any]) -> None:
        if memory.kept:
            memory.kept[0].restore(held)

    def estimates(self, problem: "Problem", view: View, memory: Logits) -> tuple[Floats, Floats]:
        optimistic = self.scores(problem, view, memory)
        return sigmoid(self.likelihood(problem).offset + memory.estimate), optimistic

    def coefficients(self, problem: "Problem", tally: Tally, memory: Logits) -> Floats:
        memory.refresh(tally.moments, self.likelihood(problem).ridge, memory.more)
        return memory.theta

    def guarantee(self, problem: "Problem") -> Guarantee:
        return self.oracle.guarantee(problem)


def is_one_hot(context: Context, design: Design) -> bool:
    """Whether the features of every entry have one coordinate that is 1, and others that are 0.

    >>> from superarm.context import Features, models
    >>> from superarm.context.design import make_design
    >>> country = Features(categorical={"country": ["NO", "SE"]})
    >>> contexts = [Context(country, model=models.Logistic(intercept=one)) for one in (False, True)]
    >>> [is_one_hot(context, make_design(context, 2, 1)) for context in contexts]
    [True, False]
    """
    user = context.features.size == 0 or (context.features.one_hot and not context.model.intercept)
    rows = design.arms
    arm = bool(((rows == 0.0) | (rows == 1.0)).all() and (rows.sum(axis=1) == 1.0).all())
    return user and arm and design.crossed and design.n_pair == 0 and design.n_item == 0


class GroupedPolicy(ContextPolicy):
    r"""The likelihood-ratio index of a logistic model with one-hot features, which is KL-UCB's.

    .. math:: q = \max\{\sigma(\phi^\top\theta) : L(\theta) - L(\hat\theta) \le \beta_t\}
              = \max\{q : N\,kl(\hat p, q) \le \beta_t\}

    where N and :math:`\hat p` are the pulls and the mean of the coordinate that :math:`\phi` selects: the likelihood L
    is a sum over coordinates, and every index depends on one of them. Implements [GarivierCappe2011]_ per coordinate;
    decisions are those of ``kl_ucb`` bit for bit where every entry has its own coordinate, for binary outcomes.
    ``for_context`` takes it in place of ``LogisticPolicy``, with Beta posteriors as the index of Thompson sampling.
    """

    index: Index
    oracle: Oracle = Default()
    learns = LogisticModel

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        _, q, counts = self._cells(problem, view)
        seen = replace(view, counts=counts)
        return try_every_arm(problem, seen, lambda: self.oracle.maximize(problem, q, seen))

    def weigh(self, problem: "Problem", view: View, memory: Any, action: Ints) -> Any:
        weights = np.full((*action.shape, problem.support.widest), UNWEIGHTED)
        return replace(view.context, weights=weights, pending=None)

    def _cells(self, problem: "Problem", view: View) -> tuple[Floats, Floats, Floats]:
        """Mean and score of every entry's coordinate, and the pulls of every arm's, pending ones included."""
        design, support, sums, given = design_of(problem), problem.support, view.tally.moments, view.context
        everyone = np.arange(problem.n_arms)
        there = places(support, everyone)
        arm = np.broadcast_to(everyone[:, None], there.there.shape)[there.there]
        group = design.groups_of(support, everyone)[there.there]
        u = design.own_features(given.x[:, None], np.broadcast_to(everyone, view.counts.shape), given.pairs)
        at, real = u.argmax(-1)[:, arm], (u.max(-1) > 0.0)[:, arm]
        rows = np.arange(len(view))[:, None] if len(sums.precision) > 1 else 0
        pulls = np.where(real, sums.precision[rows, group, triangle(at) + at], 0.0) / UNWEIGHTED
        waiting: Any = 0.0
        if given.pending is not None:
            waiting = np.where(real, given.pending[rows, group, triangle(at) + at], 0.0) / UNWEIGHTED
        seen = arm_major(support, pulls)
        mean = arm_major(support, sums.response[rows, group, at] / UNWEIGHTED / np.maximum(pulls, 1.0))
        mean = np.where(seen > 0.0, mean, 0.0)
        known = np.where(seen > 0.0, arm_major(support, pulls + waiting), 0.0 if self.index.prior else 1.0)
        chance = Chance(view.keys, view.t, support)
        q = self.index.score(mean, np.zeros_like(mean), self.index.level(known, view.t, 1.0), chance)
        q = q if self.index.prior else np.where(seen > 0.0, q, self.index.unknown)
        counts = np.zeros(view.counts.shape[::-1])
        np.maximum.at(counts, arm, (pulls + waiting).T)
        return mean, q, np.ascontiguousarray(counts.T)

    def estimates(self, problem: "Problem", view: View, memory: Any) -> tuple[Floats, Floats]:
        return self._cells(problem, view)[:2]

    def coefficients(self, problem: "Problem", tally: Tally, memory: Any) -> Floats:
        """The empirical mean of every coordinate, in place of its log-odds, which may be infinite."""
        d = tally.moments.response.shape[2]
        diagonal = tally.moments.precision[..., [triangle(r) + r for r in range(d)]]
        return tally.moments.response / np.maximum(diagonal, 1.0)  # type: ignore[no-any-return]

    def guarantee(self, problem: "Problem") -> Guarantee:
        return self.oracle.guarantee(problem)
