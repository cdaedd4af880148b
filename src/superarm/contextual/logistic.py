"""Policies on logistic models: a regression on the scale of log-odds, refitted by maximum likelihood."""

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from superarm.context.context import Context
from superarm.context.design import Design, arm_major, design_of, places
from superarm.context.models import LogisticModel
from superarm.context.sums import UNWEIGHTED, RegressionTally, triangle
from superarm.contextual.base import ContextPolicy, RegressionMemory
from superarm.contextual.kept import Kept, Likelihood, Refit, carry_kept, grow_kept
from superarm.contextual.ridge import Correction, Ridge, score_entries
from superarm.core.arrays import Floats, Ints
from superarm.core.numeric import log, sigmoid
from superarm.core.tally import Feedback, Tally, View
from superarm.indices import KL, Chance, Index
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.policies.base import fact_of, try_every_arm
from superarm.policies.memory import NEVER, Arrays, Memory, inside, join, split, under
from superarm.problem import Problem

_GRID = 4096.0
"""Weights and shifts of logistic models are multiples of 1 / _GRID."""


class Logits(Ridge):
    """Ridge estimates of logistic policies, and what each replication keeps; ``kept`` is empty if nothing.

    ``estimate`` are the estimates of log-odds without the offset in the last round, in the shape of entries.
    """

    def __init__(self, tally: RegressionTally, design: Design, likelihood: Likelihood, capacity: int) -> None:
        super().__init__(tally.regression)
        self.estimate: Floats = np.zeros(0)
        self.more = None
        self.kept: list[Kept] = []
        if capacity:
            sums = tally.regression
            self.more = Correction(np.zeros_like(sums.precision), np.zeros_like(sums.response))
            parts = zip(self.more.precision, self.more.response, self.stale, strict=True)
            self.kept = [Kept(capacity, design, tally.support, likelihood, part) for part in parts]


class LogitMemory(RegressionMemory):
    """The sums of a regression, the ``logits`` that follow from them, and what is kept of observations for refits."""

    logits: Logits

    def adopt(self, tally: Tally) -> None:
        super().adopt(tally)
        policy, problem = self.policy, self.problem
        capacity = problem.context.model.kept if policy.refits else 0
        kept = [] if not hasattr(self, "logits") else self._kept()
        self.logits = Logits(self.tally, design_of(problem), policy.likelihood(problem), capacity)
        self._restore(kept)

    def learn(self, feedback: Feedback, weight: float = 1.0) -> None:
        super().learn(feedback, weight)
        self.logits.mark(design_of(self.problem), self.problem.support, feedback.action)
        if feedback.context.shifts is not None and feedback.t > self.begun:
            for r, kept in enumerate(self.logits.kept):
                kept.record(feedback, r, weight)

    def inherit(self, old: Memory, t: int) -> None:
        """Where the old memory has kept no observations, those of its decisions are not kept later either."""
        super().inherit(old, t)
        if isinstance(old, LogitMemory) and old.logits.kept:
            self._restore(old._kept())
            self.begun = old.begun
        else:
            self.begun = t

    @property
    def due(self) -> int:  # type: ignore[override]
        """0 if the information of a parameter vector has doubled since its last fit."""
        return 0 if any(len(kept.due()) for kept in self.logits.kept) else NEVER

    def plan(self, t: int, within: int = NEVER) -> Arrays | None:
        plans = [kept.plan(t) for kept in self.logits.kept]
        if all(plan is None for plan in plans):
            return None
        return join([None if plan is None else plan._asdict() for plan in plans])

    def accept(self, plan: Arrays) -> None:
        for kept, own in zip(self.logits.kept, split(plan, len(self.logits.kept)), strict=True):
            if own:
                kept.take(Refit(int(own["t"]), own["groups"], own["points"], own["information"]))

    def carry(self, frames: Any) -> None:
        self.tally.regression.begin(frames)
        self._renew([carry_kept(one, frames) for one in self._kept()])

    def grown(self, problem: Problem, t: int) -> Self:
        before, after = ((design_of(one), one.support) for one in (self.problem, problem))
        kept = [grow_kept(one, before, after) for one in self._kept()]
        new = copy(self)
        new.problem, new.tally = problem, self.tally.grown(problem)
        new._renew(kept)
        return new

    def _kept(self) -> list[dict[str, Any]]:
        return [kept.save() for kept in self.logits.kept]

    def _restore(self, saved: list[dict[str, Any]]) -> None:
        for kept, one in zip(self.logits.kept, saved, strict=False):
            kept.restore(one)

    def _renew(self, saved: list[dict[str, Any]]) -> None:
        """Derive anew what follows from the sums, and keep other observations."""
        del self.logits  # not emptied: a copy may share them
        self.adopt(self.tally)
        self._restore(saved)

    def beside(self) -> Arrays:
        return super().beside() | under("kept", join(list(self._kept())))

    def take_beside(self, arrays: Mapping[str, Any]) -> None:
        super().take_beside(arrays)
        self._restore([one for one in split(inside(arrays, "kept"), len(self.logits.kept)) if one])


class LogisticPolicy(ContextPolicy[LogitMemory]):
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
    remembers = LogitMemory
    caveat = (
        "it assumes that log-odds are linear in the features and, where entries share parameters, that the "
        "outcomes of one round are independent given the past; no regret bound is known for it"
    )

    @property
    def random(self) -> bool:  # type: ignore[override]
        return self.draws > 0.0

    def check(self) -> None:
        self.require_family("oracle", Oracle, "Greedy()")
        self.require("draws", self.draws >= 0.0, "give a number >= 0")
        self.require("ridge", 0.0 < self.ridge < math.inf, "give a finite number > 0")

    def validate(self, problem: Problem) -> None:
        super().validate(problem)
        self.oracle.validate(problem)

    def likelihood(self, problem: Problem) -> Likelihood:
        """The offset and the penalty on this problem."""
        prior = problem.context.model.prior_mean
        return Likelihood(log(prior / (1.0 - prior)), self.ridge * design_of(problem).longest)

    def choose(self, problem: Problem, view: View, memory: LogitMemory) -> Ints:
        return self.oracle.maximize(problem, self.scores(problem, view, memory), view)

    def scores(self, problem: Problem, view: View, memory: LogitMemory) -> Floats:
        """The optimistic or sampled probabilities of all entries."""
        design, sums, given, logits = design_of(problem), memory.tally.regression, view.context, memory.logits
        offset, ridge = self.likelihood(problem)
        logits.refresh(sums, ridge, logits.more)
        inverse = logits.widen(sums, ridge, given.pending, logits.more)
        found = score_entries(design, problem.support, given, logits.theta, inverse)
        logits.estimate, odds = found.mean, found.mean
        if self.draws > 0.0:
            drawn = logits.draw(inverse, self.draws, view.keys, view.t)
            odds = score_entries(design, problem.support, given, drawn, inverse).mean
        else:
            odds = odds + found.bonus(math.sqrt(2.0 * self.index.numerator(float(view.t))))
        logits.high = sigmoid(offset + odds)
        return logits.high

    def weigh(self, problem: Problem, view: View, memory: LogitMemory, action: Ints) -> Any:
        eta = problem.support.rows(memory.logits.estimate, action)
        mean = sigmoid(self.likelihood(problem).offset + eta)
        weights = np.maximum(1.0, np.floor(mean * (1.0 - mean) * _GRID + 0.5)) / _GRID
        shifts = np.floor((weights * eta - mean) * _GRID + 0.5) / _GRID
        return replace(view.context, weights=weights, shifts=shifts, pending=None)

    def estimates(self, problem: Problem, view: View, memory: LogitMemory) -> tuple[Floats, Floats]:
        optimistic = self.scores(problem, view, memory)
        return sigmoid(self.likelihood(problem).offset + memory.logits.estimate), optimistic

    def coefficients(self, problem: Problem, memory: LogitMemory) -> Floats:
        logits = memory.logits
        logits.refresh(memory.tally.regression, self.likelihood(problem).ridge, logits.more)
        return logits.theta

    def guarantee(self, problem: Problem) -> Guarantee:
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


class GroupedPolicy(ContextPolicy[RegressionMemory]):
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
    remembers = RegressionMemory
    random = fact_of("index", "random")

    def choose(self, problem: Problem, view: View, memory: RegressionMemory) -> Ints:
        _, q, counts = self._cells(problem, view, memory)
        seen = replace(view, counts=counts)
        return try_every_arm(problem, seen, lambda: self.oracle.maximize(problem, q, seen))

    def weigh(self, problem: Problem, view: View, memory: RegressionMemory, action: Ints) -> Any:
        weights = np.full((*action.shape, problem.support.widest), UNWEIGHTED)
        return replace(view.context, weights=weights, pending=None)

    def _cells(self, problem: Problem, view: View, memory: RegressionMemory) -> tuple[Floats, Floats, Floats]:
        """Mean and score of every entry's coordinate, and the pulls of every arm's, pending ones included."""
        design, support, sums, given = design_of(problem), problem.support, memory.tally.regression, view.context
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

    def estimates(self, problem: Problem, view: View, memory: RegressionMemory) -> tuple[Floats, Floats]:
        return self._cells(problem, view, memory)[:2]

    def coefficients(self, problem: Problem, memory: RegressionMemory) -> Floats:
        """The empirical mean of every coordinate, in place of its log-odds, which may be infinite."""
        sums = memory.tally.regression
        diagonal = sums.precision[..., [triangle(r) + r for r in range(sums.response.shape[2])]]
        return sums.response / np.maximum(diagonal, 1.0)

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)
