"""Learning from a log: the slate that is best at the lower ends of all intervals, and what that guarantees."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.actions import Subsets
from superarm.arrays import Floats, Ints, count
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.offline.cautions import warn_of_assumption, warn_of_outcomes
from superarm.offline.estimators.entries import entry_intervals, pooled_means
from superarm.offline.estimators.paired import difference_bounds, shared_arms_cancel
from superarm.oracles import Default, certify, maximize
from superarm.problem import Problem
from superarm.rewards.traits import additive
from superarm.streams import new_stream

if TYPE_CHECKING:
    from superarm.offline.log import Log

MAX_LISTED_SLATES = 5_000
"""Up to this many slates, every slate is compared with the one to ship."""


@dataclass(frozen=True, repr=False)
class Recommendation:
    """The slate that a log recommends, with its guarantee.

    Parameters
    ----------
    slate, arms
        The arms by number, in the order of picking, and by name.
    value, low, high
        The value of the slate at the means, the lower ends and the upper ends of the intervals.
    alpha
        The share of the optimum that the oracle guarantees.
    shortfall
        With probability 1 - delta, the slate's value falls short of the best slate's by at most this much.
    delta
        All intervals hold together with probability 1 - delta, whatever policy made the log.
    warnings
        What may be wrong, in plain words.
    """

    slate: Ints
    arms: tuple[str, ...]
    value: float
    low: float
    high: float
    alpha: float
    shortfall: float
    delta: float
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        sure = f"{100 * (1 - self.delta):g} %"
        lines = [
            f"slate: {', '.join(self.arms)}",
            f"worth at least {self.low:.4g} per round ({sure}), {self.value:.4g} by the means of the log",
            f"at most {self.shortfall:.4g} below the best slate ({sure})",
        ]
        return "\n".join(lines + [f"warning: {text}" for text in self.warnings])


def recommend(log: "Log", k: int | None, delta: float, oracle: Any, eligible: Any) -> Recommendation:
    r"""The pessimistic slate: :math:`\hat A = Oracle(\underline p)` at the lower ends of the KL intervals (KL-CLCB).

    After [LiuEtAl2025]_ (CLCB), with KL intervals in place of Hoeffding's. On the event that all intervals hold,

    .. math:: r(\hat A; p) \ge r(\hat A; \underline p), \qquad
              \max_A r(A; p) - r(\hat A; p) \le \max_A \max_{\underline p \le q \le \overline p} r(A; q) - r(\hat A; q),

    and with an oracle of guarantee alpha, for every slate A,
    :math:`\alpha r(A; p) - r(\hat A; p) \le \alpha [r(A; p) - r(A; \underline p)]` (:func:`kl_clcb_bound`).
    """
    problem = log.problem if k is None else log.problem._replace(actions=_subsets(k, log.problem.n_arms))
    low, mean, high = (one[0] for one in entry_intervals(pooled_means(log.problem, log.tally), delta))
    fitted = (oracle or Default()).fit(problem)
    candidates = Candidates(log.tally.pulls, _eligible(log, eligible))
    slate = maximize(fitted, problem, low, candidates, new_stream(np.random.SeedSequence(0)))
    if not len(slate):
        raise InvalidArgument("eligible", "no slate can be formed", "make enough arms eligible")
    values = [problem.value(q, slate) for q in (low, mean, high)]
    return Recommendation(
        slate,
        tuple(log.arms[j] for j in slate),
        values[1],
        values[0],
        values[2],
        fitted.guarantee(problem).alpha,
        bound_shortfall(problem, low, high, slate, candidates),
        delta,
        tuple(warn_of_outcomes(log) + warn_of_assumption(log)),
    )


def bound_shortfall(problem: Problem, low: Floats, high: Floats, slate: Ints, candidates: Candidates) -> float:
    """How much more any slate may be worth: over all of them if they are few, else from an upper bound of the best."""
    if not additive(problem.reward):
        return math.inf
    eligible = np.flatnonzero(candidates.eligible)
    upper = certify(problem, high, slate, eligible).bound - problem.value(low, slate)
    if problem.actions.n_batches(problem.n_arms) > MAX_LISTED_SLATES:
        return float(upper)
    listed = [batch for batch in problem.actions.batches(problem.n_arms) if np.isin(batch, eligible).all()]
    width = max(len(slate), *(len(batch) for batch in listed))
    others = np.array([[*batch, *[-1] * (width - len(batch))] for batch in listed]).reshape(-1, width)
    least, _ = difference_bounds(
        problem.reward, problem.terms, low, high, slate, others, shared_arms_cancel(problem.reward)
    )
    return float(min(upper, max(0.0, -least.min(initial=0.0))))


def _subsets(k: int, n_arms: int) -> Subsets:
    if count(k, "k", 1) > n_arms:
        raise InvalidArgument("k", f"{k} of {n_arms} arms", f"give 1 to {n_arms}")
    return Subsets(k)


def _eligible(log: "Log", eligible: Any) -> Any:
    mask = np.ones(log.problem.n_arms, bool)
    if eligible is not None:
        mask[:] = False
        mask[log.numbers(eligible)] = True
    return mask


def kl_clcb_bound(problem: Problem, pulls: Any, slate: Any, delta: float = 0.05, alpha: float = 1.0) -> float:
    r"""How far the pessimistic slate may fall short of alpha times a slate A, given how often A's arms were observed.

    .. math:: \alpha r(A; p) - r(\hat A; p) \le 4 \alpha \gamma_g \bar M \sqrt{\sum_{j \in A} \frac{x_j}{N_j}},
              \qquad x_j = \log\frac{L M}{\delta} + \tfrac12 \log N_j + \log 2

    with probability 1 - delta, for all slates A at once, any logging policy that looks at the past only, and any
    dependence of the outcomes of a round; :math:`\bar M` is the sum of the weights. The theorem of
    ``docs/theory/offline.md``.

    Parameters
    ----------
    problem
        Arms, items, weights and reward; :math:`\gamma_g` is that of slates of ``len(slate)`` arms.
    pulls
        :math:`N_j`, how often each arm was observed with all its items, (n_arms,).
    slate
        The arms of A.
    delta, alpha
        The probability of an error, and the guarantee of the oracle.

    Examples
    --------
    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=20, n_items=5, reward=sa.Coverage(), actions=sa.Subsets(3))
    >>> bound = kl_clcb_bound(problem, [10_000] * 20, [0, 1, 2])
    >>> round(bound, 3)
    0.622
    """
    n = np.asarray(pulls, float)[np.asarray(slate, int)]
    if not (n > 0).all():
        return math.inf
    gamma_g = problem.reward.smoothness(len(n)).gamma_g
    x = math.log(problem.n_entries / delta) + 0.5 * np.log(n) + math.log(2.0)
    return float(4.0 * alpha * gamma_g * problem.weights.sum() * math.sqrt((x / n).sum()))


def clcb_bound(problem: Problem, pulls: Any, slate: Any, delta: float = 0.05, alpha: float = 1.0) -> float:
    r"""The same for the radius of CLCB, which is Hoeffding's, [LiuEtAl2025]_.

    .. math:: \alpha r(A; p) - r(\hat A; p) \le 2 \alpha B_1 \sum_{j \in A} \sum_i w_i
              \sqrt{\frac{\log(4 L M n/\delta)}{2 N_j}}

    with :math:`B_1 = \gamma_\infty`, the largest derivative, and n the sum of all pulls in place of the number of
    rounds (it is at least that number, which the bound needs).
    """
    counts = np.asarray(pulls, float)
    n = counts[np.asarray(slate, int)]
    if not (n > 0).all():
        return math.inf
    steepest = problem.reward.smoothness(len(n)).gamma_inf
    x = math.log(4.0 * problem.n_entries * counts.sum() / delta)
    return float(2.0 * alpha * steepest * problem.weights.sum() * np.sqrt(x / (2.0 * n)).sum())
