r"""A test of the semi-bandit assumption: the mean outcome of an arm depends on neither its slot nor its slate-mates.

Take the pulls s = 1, …, N of one arm in the order of time, with outcomes :math:`y_s` (the mean over items, by weight),
and covariates that were known before: the slot, the slate-mates, and how well these did before. A covariate minus its
mean over earlier pulls is a weight :math:`w_s`; it is cut where the sum of the weights so far would leave [-1, 1]. Then

.. math:: \sum_s w_s (y_s - \bar y) = \sum_s w_s (y_s - p) + (p - \bar y) \sum_s w_s

and under the assumption the first sum has mean 0, also when a policy that learns chose slots, slate-mates and N; the
last term is at most :math:`|\bar y - p|`. The statistic is :math:`U^\top V^{-1} U`, with U the sum over all arms and
:math:`V = \sum_t u_t u_t^\top` over the parts :math:`u_t` of each round, approximately :math:`\chi^2`. The derivation
is in ``docs/theory/offline.md``.
"""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from superarm.core.arrays import Floats, Ints

if TYPE_CHECKING:
    from superarm.offline.log import Log

MIN_ROUNDS_PER_COVARIATE = 20
"""A part of the test is left out if the log has fewer rounds per covariate."""
FIRST_PULLS = 10
"""The first pulls of an arm have weight 0: the mean of an arm with fewer is too far from p. Chosen by simulation."""
LARGEST_BALANCE = 1.0
"""The largest sum of weights of an arm: as much as one pull in another slot, or with another slate-mate."""


@dataclass(frozen=True)
class AssumptionPart:
    """One part of the test: what outcomes may depend on, the statistic, its degrees of freedom and its p-value."""

    name: str
    statistic: float
    freedom: int
    p_value: float


@dataclass(frozen=True, repr=False)
class AssumptionTest:
    """The test of the semi-bandit assumption: its parts, and one p-value for all (Bonferroni's).

    ``p_value`` is 1.0 if the log is too short for every part.
    """

    parts: tuple[AssumptionPart, ...]

    @property
    def p_value(self) -> float:
        """The smallest p-value of the parts, times their number."""
        return min((1.0, *(part.p_value * len(self.parts) for part in self.parts)))

    @property
    def worst(self) -> str:
        """The part with the smallest p-value."""
        return min(self.parts, key=lambda part: part.p_value).name if self.parts else ""

    def __repr__(self) -> str:
        if not self.parts:
            return "semi-bandit assumption: not tested, the log has too few rounds"
        lines = [
            f"  on {part.name}: p = {part.p_value:.3g} (chi2 = {part.statistic:.3g}, {part.freedom} df)"
            for part in self.parts
        ]
        return "\n".join([f"semi-bandit assumption: outcomes depend ..., p = {self.p_value:.3g} in all", *lines])


def run_semi_bandit_test(log: "Log") -> AssumptionTest:
    """Test on a log that what an arm does depends on neither its slot nor its slate-mates."""
    rows = np.flatnonzero((log.rows.slot >= 0) & log.observed.any(axis=1))
    rows = rows[np.lexsort((log.rows.round[rows], log.groups[log.rows.round[rows]], log.rows.arm[rows]))]
    arm = log.rows.arm[rows] * log.n_groups + log.groups[log.rows.round[rows]]
    outcome = _mean_outcome(log, rows)
    error = deviations_from_mean(outcome, arm)
    parts = []
    for name, covariates in _covariates(log, rows, outcome, arm):
        weight = balanced_weights(covariates, arm)
        part = _test(name, error[:, None] * weight, log.rows.round[rows], log.n_rounds)
        parts += [part] if part else []
    return AssumptionTest(tuple(parts))


def _mean_outcome(log: "Log", rows: Ints) -> Floats:
    """The mean outcome of each row over its observed items, by weight."""
    weight = np.where(log.observed[rows], np.maximum(log.problem.weights, 1e-300), 0.0)
    return np.asarray((weight * log.rows.outcome[rows]).sum(axis=1) / weight.sum(axis=1))


def _covariates(log: "Log", rows: Ints, outcome: Floats, arm: Ints) -> list[tuple[str, Floats]]:
    """What outcomes may depend on, (n_rows, d) each."""
    slots, own = log.rows.slot[rows], log.rows.round[rows]
    table = log.slates[own]
    found = []
    if log.slates.shape[1] > 1:
        found.append(("the slot", (slots[:, None] == np.arange(1, log.slates.shape[1])).astype(float)))
        found.append(("how well the slate-mates did before", _strength(log, rows, outcome, table)[:, None]))
        shown = np.zeros((len(rows), log.problem.n_arms + 1))
        shown[np.arange(len(rows))[:, None], table] = 1.0  # -1, of shorter slates, is the last column
        shown[np.arange(len(rows)), log.rows.arm[rows]] = 0.0
        found.append(("which slate-mates it has", shown[:, :-1]))
    return found


def _strength(log: "Log", rows: Ints, outcome: Floats, table: Ints) -> Floats:
    """The sum over the slate-mates of each row of their mean outcomes in earlier rounds (0.5 before any), (n_rows,)."""
    order = np.argsort(log.rows.round[rows], kind="stable")
    total, count = np.full(log.problem.n_arms, 0.5), np.ones(log.problem.n_arms)
    strength, round = np.zeros(len(rows)), log.rows.round[rows]
    start = 0
    while start < len(order):
        stop = start
        while stop < len(order) and round[order[stop]] == round[order[start]]:
            stop += 1
        here = order[start:stop]
        means = total / count
        for row in here:
            mates = table[row][(table[row] >= 0) & (table[row] != log.rows.arm[rows[row]])]
            strength[row] = means[mates].sum()
        np.add.at(total, log.rows.arm[rows[here]], outcome[here])
        np.add.at(count, log.rows.arm[rows[here]], 1.0)
        start = stop
    return strength


def deviations_from_mean(outcome: Floats, arm: Ints) -> Floats:
    """Outcomes minus the mean of the arm; rows of one arm are next to each other, in the order of time.

    >>> deviations_from_mean(np.array([1.0, 0.0, 1.0]), np.array([0, 0, 2])).tolist()
    [0.5, -0.5, 0.0]
    """
    return np.concatenate([np.empty(0), *(outcome[a:b] - outcome[a:b].mean() for a, b in _runs(arm))])


def balanced_weights(covariates: Floats, arm: Ints) -> Floats:
    """Covariates minus their means over earlier rows of the arm, cut so that their sum stays within LARGEST_BALANCE.

    >>> slot = np.array([0.0, 1.0] * 5 + [1.0, 1.0, 1.0, 0.0])[:, None]
    >>> balanced_weights(slot, np.zeros(14)).round(2).ravel()[FIRST_PULLS:].tolist()
    [0.5, 0.45, 0.05, -0.62]
    """
    result = np.zeros(covariates.shape)
    for a, b in _runs(arm):
        before = np.cumsum(covariates[a:b], axis=0) - covariates[a:b]
        balance = np.zeros(covariates.shape[1])
        for n in range(FIRST_PULLS, b - a):
            weight = covariates[a + n] - before[n] / n
            result[a + n] = np.minimum(np.maximum(weight, -LARGEST_BALANCE - balance), LARGEST_BALANCE - balance)
            balance += result[a + n]
    return result


def _runs(arm: Ints) -> list[tuple[int, int]]:
    """Where each run of equal values begins and ends."""
    ends = [0, *(np.flatnonzero(np.diff(arm)) + 1).tolist(), len(arm)]
    return list(itertools.pairwise(ends)) if len(arm) else []


def _test(name: str, parts: Floats, round: Ints, n_rounds: int) -> AssumptionPart | None:
    """The quadratic form of the sums, with the covariance of the sums of each round; None if there is too little."""
    sums = np.zeros((n_rounds, parts.shape[1]))
    np.add.at(sums, round, parts)
    varying = sums.any(axis=0)
    sums = sums[:, varying]
    if not sums.shape[1] or n_rounds < MIN_ROUNDS_PER_COVARIATE * sums.shape[1]:
        return None
    from scipy.special import chdtrc  # not above: the service starts faster

    values, vectors = np.linalg.eigh(sums.T @ sums)
    kept = values > 1e-9 * values.max()
    along = vectors[:, kept].T @ sums.sum(axis=0)
    statistic, freedom = float((along**2 / values[kept]).sum()), int(kept.sum())
    return AssumptionPart(name, statistic, freedom, float(chdtrc(freedom, statistic)))
