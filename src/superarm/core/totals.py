r"""Totals: what is known of arms of which only whole sets were seen, and the additive model that is fitted to it.

A row is a set A with its total y, a multiple of :math:`2^{-24}` in [0, 1]. The model is

.. math:: y = b_{c(A)} + \sum_{j \in A}\beta_j + noise, \qquad \beta_j \sim N(0, \tau^2)

where c(A) is 0 for a whole decision and s for a part of s arms, whose level is another. All sums are additive and exact
in float64, as those of a tally; the estimate is a function of them alone, whichever way they came together.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from superarm.core.arrays import Floats, Ints, count
from superarm.core.errors import InvalidArgument
from superarm.core.support import AnySupport
from superarm.core.tally import Feedback, Joint, Tally, round_to_grid

if TYPE_CHECKING:
    from superarm.problem import Problem

MAX_ARMS = 2_000
"""With so many arms a fit takes some seconds. Its time grows with their cube, the sums with their square."""

MAX_TRIALS = 1_000_000
"""A total is the mean of at most so many trials: sums are exact up to 2^29 of them."""

RATIOS = np.exp(np.linspace(math.log(1e-4), math.log(100.0), 60))
"""The candidates for rho, the prior variance of the total of a random set over the variance of the noise."""

EXPECTED_RATIO = 0.05
"""What rho is expected to be, within a factor of e^2: totals are mostly noise."""


class TotalTally(Tally):
    """A tally with the sums of the totals of sets, of problems in which sets have at most ``k`` arms.

    ``together`` (R, n_arms, n_arms) is how often two arms were in one set, ``by_arm`` (R, n_arms) adds up the totals of
    the sets of each arm, ``squares`` (R,) those of all squared totals; ``rows`` (R,) counts totals. By class of the
    set, ``weight`` and ``level`` (R, k) count rows and add up totals, ``members`` (R, k, n_arms) counts arms. A total
    of n trials counts n times, a part of s of m arms 2^round(log2(m / s)) times: the noise of a sum grows with s, and
    powers of two keep the sums exact.

    The sums of a ``Tally`` are those of equal shares: the total of a set over the number of its arms.
    """

    SUMS = (*Tally.SUMS, "together", "by_arm", "squares", "rows", "weight", "level", "members")

    def __init__(self, support: AnySupport, k: int, replications: int = 1, partial: bool = False) -> None:
        super().__init__(support, replications, partial)
        n, r = support.n_arms, replications
        self.k = k
        self.together, self.by_arm = np.zeros((r, n, n)), np.zeros((r, n))
        self.squares, self.rows = np.zeros(r), np.zeros(r)
        self.weight, self.level, self.members = np.zeros((r, k)), np.zeros((r, k)), np.zeros((r, k, n))
        self._model: Model | None = None

    @property
    def model(self) -> "Model":
        """The model that is fitted to all sums; computed when it is asked for."""
        if self._model is None:
            self._model = posterior(self, *fit(self))
        return self._model

    def record(self, feedback: Feedback, sign: float = 1.0, known: bool = True) -> None:
        if feedback.joint is None:
            wrong = "it says what each arm did, and the reward is Total()"
            raise InvalidArgument("feedback", wrong, "tell totals; in experiments, wrap the environment in Totals(…)")
        super().record(feedback, sign, known)
        self._model = None
        for n in range(feedback.joint.arms.shape[1]):
            self._add_sets(feedback.joint, n, sign)

    def _add_sets(self, joint: Joint, n: int, sign: float) -> None:
        """Add the n-th set of each replication."""
        arms, y = joint.arms[:, n], round_to_grid(joint.total[:, n])
        there, at = arms >= 0, np.arange(len(arms))
        many = there.sum(1)
        part = (many < joint.size) & (many > 0)
        times = np.where(part, 2.0 ** np.round(np.log2(joint.size / np.maximum(many, 1))), 1.0)
        w, kind = sign * joint.trials[:, n] * times, np.where(part, many, 0)
        self.rows += sign * (joint.trials[:, n] > 0.0)
        self.squares += w * round_to_grid(y * y)
        self.weight[at, kind] += w
        self.level[at, kind] += w * y
        r, c = np.nonzero(there)
        own = arms[r, c]
        self.members[r, kind[r], own] += w[r]
        self.by_arm[r, own] += (w * y)[r]
        r, c, d = np.nonzero(there[:, :, None] & there[:, None])
        self.together[r, arms[r, c], arms[r, d]] += w[r]

    def add(self, other: Tally, sign: float = 1.0) -> None:
        if not isinstance(other, TotalTally):
            raise InvalidArgument("tally", "it has no totals", "make it with problem.past(sets=…, totals=…)")
        super().add(other, sign)
        self._model = None

    def take(self, rows: Any) -> Self:
        part = super().take(rows)
        part._model = None
        return part

    def put(self, rows: Any, part: Tally) -> None:
        super().put(rows, part)
        self._model = None

    def like(self) -> Self:
        return self._with(TotalTally(self.support, self.k, len(self), self.partial))

    def grown(self, problem: "Problem") -> Self:
        """Sets of other sizes have other levels, so ``k`` never shrinks."""
        new = TotalTally(problem.support, max(problem.k, self.k), len(self), self.partial)
        for name in self.SUMS:
            sums = getattr(self, name)
            if sums.size:
                getattr(new, name)[tuple(slice(n) for n in sums.shape)] = sums
        new.refresh()
        return self._with(new)

    def known_estimates(self) -> tuple[Floats, Floats]:
        """The effects of all arms, compared with the mean arm, and their variances, as entries; NaN if never seen."""
        mean, variance = self.model.mean, (self.model.root**2).sum(2)
        unknown = self.pulls <= 0.0
        return np.where(unknown, np.nan, mean)[:, None], np.where(unknown, np.nan, variance)[:, None]

    def to_arrays(self) -> dict[str, Any]:
        """``together`` as its upper triangle."""
        return super().to_arrays() | {"together": self.together[:, *np.triu_indices(self.support.n_arms)]}

    def from_arrays(self, arrays: dict[str, Any]) -> Self:
        n = self.support.n_arms
        whole, (rows, columns) = np.zeros((len(self), n, n)), np.triu_indices(n)
        whole[:, rows, columns] = whole[:, columns, rows] = arrays["together"]
        return super().from_arrays(arrays | {"together": whole})

    def centred(self) -> tuple[Floats, Floats, Floats]:
        """X'X, X'y and y'y of each replication, every class of rows about its own level."""
        n = np.where(self.weight > 0.0, self.weight, np.inf)
        share, level = self.members / n[:, :, None], self.level / n
        cross = self.together - np.swapaxes(share, 1, 2) @ self.members
        score = self.by_arm - (level[:, None] @ self.members)[:, 0]
        return cross, score, np.maximum(self.squares - (level * self.level).sum(1), 0.0)


def check_trials(n: Any) -> int:
    """Of how many trials a total is the mean; refused if that is no number of trials.

    >>> check_trials(50)
    50
    """
    trials = count(n, "n", 1)
    if trials > MAX_TRIALS:
        raise InvalidArgument("n", f"{trials} trials", f"give at most {MAX_TRIALS}, in several totals")
    return trials


def joint_feedback(t: int, parts: Iterable[tuple[Any, float, int]], size: int) -> Feedback:
    """Feedback of one decision of ``size`` arms, of which totals are known: arms, total and trials of each part.

    >>> joint_feedback(1, [([4, 2], 0.5, 1), ([3], 0.25, 1)], 3).outcome[0, :, 0].tolist()
    [0.25, 0.25, 0.25]
    """
    told = list(parts)
    sets = np.full((1, len(told), max(len(own) for own, _, _ in told)), -1)
    for row, (own, _, _) in zip(sets[0], told, strict=True):
        row[: len(own)] = own
    total, trials = (np.array([part], float) for part in zip(*((y, n) for _, y, n in told), strict=True))
    shares = np.concatenate([np.full(len(own), y / len(own)) for own, y, _ in told])
    action = np.concatenate([np.asarray(own, np.int64) for own, _, _ in told])
    joint = Joint(sets, total, trials, np.array([size]))
    return Feedback(t, action[None], shares[None, :, None], None, None, None, joint)


def whole_feedback(t: int, action: Ints, total: Floats) -> Feedback:
    """Feedback of round ``t``: the totals (R,) of the batches ``action`` (R, K), padded with -1."""
    size = (action >= 0).sum(1)
    shares = np.repeat((total / np.maximum(size, 1))[:, None], action.shape[1], 1)[:, :, None]
    joint = Joint(action[:, None], total[:, None], np.ones((len(total), 1)), size)
    return Feedback(t, action, shares, None, None, None, joint)


class Worth(NamedTuple):
    """What a set is worth by a model, and ±2 deviations of that: about 95 % sure, as far as arms add up."""

    value: float
    low: float
    high: float


class Model(NamedTuple):
    """What totals say of R replications: total(A) = level + the effects of its arms, with a Gaussian posterior.

    ``mean`` (R, n_arms) and ``root`` (R, n_arms, n_arms): root @ root.T is the covariance. ``noise`` (R,) is the
    variance of a total about the model; ``centre`` (R, n_arms) and ``level`` (R,) are the mean set and its total, of
    ``weight`` (R,) whole decisions.
    """

    mean: Floats
    root: Floats
    noise: Floats
    centre: Floats
    level: Floats
    weight: Floats

    def worth(self, arms: Any) -> "Worth":
        """What a set of arms is worth in the first replication."""
        x = -self.centre[0]
        x[np.asarray(arms)] += 1.0
        deviation = math.sqrt(float(((x @ self.root[0]) ** 2).sum() + self.noise[0] / max(float(self.weight[0]), 1.0)))
        value = float(self.level[0] + self.mean[0] @ x)
        return Worth(value, value - 2.0 * deviation, value + 2.0 * deviation)

    def shares(self, k: int) -> Floats:
        """The effects of arms, each with a k-th of what a set without effects is worth: (R, n_arms).

        Those of the arms of a set of k add up to what the set is worth.
        """
        base = self.level - (self.centre * self.mean).sum(1)
        return self.mean + base[:, None] / k


def fit(tally: TotalTally) -> tuple[Floats, Floats]:
    r"""The penalty of largest marginal likelihood and the variance of the noise at it, each (R,).

    With :math:`X^\top X = U diag(d) U^\top` and :math:`a = U^\top X^\top y`, all about their levels, and the penalty
    :math:`\lambda = k(1 - k/n_{arms})/\rho`,

    .. math:: RSS = y^\top y - \sum\frac{a_i^2}{d_i + \lambda}, \qquad \hat\sigma^2 = \frac{RSS + v_0}{n},

              \log L = -\frac12\Bigl(n\log\hat\sigma^2 + \sum\log(1 + d_i/\lambda)\Bigr)
              - \frac18\log^2\frac{\rho}{0.05}

    where n counts totals and :math:`v_0` is one imagined total with the variance of totals. Empirical Bayes after
    [GelmanEtAl2013]_ (chapter 5). One decomposition serves all penalties.
    """
    cross, score, square = tally.centred()
    penalty = max(tally.k * (1.0 - tally.k / tally.support.n_arms), 0.5) / RATIOS
    n, many = np.maximum(tally.rows, 1.0)[:, None], tally.weight.sum(1)
    d, u = np.linalg.eigh(cross)
    d, a = np.maximum(d, 0.0)[:, None], score[:, None] @ u
    rest = np.maximum(square[:, None] - (a * a / (d + penalty[:, None])).sum(2), 1e-9)
    least = np.maximum((tally.squares + 0.1) / (many + 2.0), 1e-4)[:, None]
    noise = (rest + least) / n
    odds = -0.5 * (n * np.log(noise) + np.log1p(d / penalty[:, None]).sum(2))
    odds -= np.log(RATIOS / EXPECTED_RATIO) ** 2 / 8.0
    at = odds.argmax(1)
    return penalty[at], np.take_along_axis(noise, at[:, None], 1)[:, 0]


def posterior(tally: TotalTally, penalty: Floats, noise: Floats) -> Model:
    r"""The model at a penalty: :math:`\beta \sim N(P^{-1}X^\top y,\ \sigma^2 P^{-1})`, with P the sum of X'X and it."""
    cross, score, _ = tally.centred()
    factor = np.linalg.cholesky(cross + penalty[:, None, None] * np.eye(tally.support.n_arms))
    inverse = np.linalg.inv(factor)
    mean = ((inverse @ score[:, :, None]).swapaxes(1, 2) @ inverse)[:, 0]
    weight = tally.weight[:, 0]
    whole = np.maximum(weight, 1e-300)
    root = np.ascontiguousarray(np.swapaxes(inverse, 1, 2)) * np.sqrt(noise)[:, None, None]
    return Model(mean, root, noise, tally.members[:, 0] / whole[:, None], tally.level[:, 0] / whole, weight)
