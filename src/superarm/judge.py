"""A judge that errs: what sets and ladders are really worth, from what it says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from superarm.core.arrays import Bools, Floats, floats
from superarm.core.errors import InvalidArgument

LEAST_AUDITED = 10
"""So many right and so many wrong answers a sample has at least."""


class Judged(NamedTuple):
    """The share of ``n`` tasks of which an answer passed, the share whose answer is right, and its standard error.

    ``adds`` has for each arm of sets, by how much it changes the second share of the tasks on which it ran, and the
    standard error of that. ``error`` has that of a measured judge, too, and ``adds`` has not.
    """

    n: int
    claimed: float
    right: float
    error: float
    adds: dict[str, tuple[float, float]]

    @property
    def worse(self) -> tuple[str, ...]:
        """The arms without which more answers would be right, by two standard errors or more."""
        return tuple(arm for arm, (more, error) in self.adds.items() if more + 2.0 * error < 0.0)

    def __str__(self) -> str:
        less = f"; without {', '.join(self.worse)} it would be more" if self.worse else ""
        return (
            f"{self.claimed:.1%} passed, {self.right:.1%} ± {2.0 * self.error:.1%} are right, of {self.n} tasks{less}"
        )


@dataclass(frozen=True)
class Judge:
    r"""A judge that passes a share of wrong answers, and fails a share of right ones.

    Of a set one answer that passed is delivered, each with the same chance; a ladder delivers the first one. With
    :math:`z_j` whether answer j passed, :math:`o_j` how many others did, and :math:`a`, :math:`b` the shares of wrong
    answers that pass and of right ones that fail, the share of tasks with a right answer is the mean of

    .. math:: \sum_j \frac{(1 - b)(z_j - a)}{(1 - a - b)(1 + o_j)}

    over the answers of a set, and without :math:`1 + o_j` over those that a ladder tried. Both are unbiased however
    often models fail together, if the judge errs on each answer by itself: then :math:`(z_j - a)/(1 - a - b)` has the
    mean 1 of a right answer and 0 of a wrong one [RoganGladen1978]_, whatever the others did.

    Parameters
    ----------
    false_positive, false_negative
        The share of wrong answers that pass, and of right ones that do not. Their sum is below 1.
    errors
        The standard errors of both, if they were measured.

    Examples
    --------
    >>> Judge(0.1, 0.05).right([[1, 0], [1, 1], [0, 0], [0, 1]]).claimed
    0.75
    """

    false_positive: float
    false_negative: float = 0.0
    errors: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        for name in ("false_positive", "false_negative"):
            floats(getattr(self, name), name, low=0.0, high=1.0)
        if self.false_positive + self.false_negative >= 1.0:
            wrong = f"{self.false_positive:g}, and false_negative {self.false_negative:g}"
            raise InvalidArgument("false_positive", wrong, "give shares whose sum is below 1", "Judge")

    @classmethod
    def measured(cls, passed: Any, right: Any) -> Self:
        """The judge of an audited sample: whether each answer passed, and whether it was right."""
        passed, right = _marks(passed, "passed").ravel() > 0.0, _marks(right, "right").ravel() > 0.0
        n, wrong = int(right.sum()), int((~right).sum())
        if len(passed) != len(right) or min(n, wrong) < LEAST_AUDITED:
            said = f"{len(passed)} answers, and right says that {n} are right and {wrong} are wrong"
            raise InvalidArgument("passed", said, f"give both of the same answers, {LEAST_AUDITED} of each", "Judge")
        shares = [(int(passed[~right].sum()), wrong), (int((~passed[right]).sum()), n)]
        errors = [float(np.sqrt((k + 1) * (m - k + 1) / (m + 2) ** 2 / (m + 3))) for k, m in shares]
        (passing, wrong), (failing, n) = shares
        return cls(passing / wrong, failing / n, (errors[0], errors[1]))

    def right(self, passed: Any, seen: Any = None, *, ladder: bool = False, arms: Sequence[str] = ()) -> Judged:
        """What came of tasks: whether each answer ``passed``, (n_tasks, n_answers), if it was there (``seen``).

        The columns are the ``arms`` of sets, which have names then, or the places of a ladder.
        """
        z = _marks(passed, "passed")
        there = np.ones(z.shape, bool) if seen is None else np.array(seen, bool)
        if z.ndim != 2 or not len(z) or there.shape != z.shape or (arms and len(arms) != z.shape[1]):
            raise InvalidArgument("passed", f"shape {z.shape}", "give (n_tasks, n_answers), as seen and arms", "Judge")
        z = z * there
        each = self._each(z, there, ladder)
        error = each.std() / np.sqrt(max(len(z) - 1, 1))
        for name, sd in zip(("false_positive", "false_negative"), self.errors, strict=True):
            step = 1e-4 * (1.0 - self.false_positive - self.false_negative)
            other = replace(self, **{name: getattr(self, name) + step})
            error = np.hypot(error, sd * (other._each(z, there, ladder).mean() - each.mean()) / step)
        adds = {}
        for j, arm in enumerate(() if ladder else arms):
            rows, without = there[:, j], there.copy()
            without[:, j] = False
            more = each[rows] - self._each((z * without)[rows], without[rows], False)
            if len(more) > 1:
                adds[arm] = (float(more.mean()), float(more.std() / np.sqrt(len(more) - 1)))
        return Judged(len(z), float(z.any(1).mean()), float(each.mean()), float(error), adds)

    def _each(self, z: Floats, there: Bools, ladder: bool) -> Floats:
        """An unbiased estimate for each task of whether its answer is right."""
        a, b = self.false_positive, self.false_negative
        truth = there * (1.0 - b) * (z - a) / (1.0 - a - b)
        if ladder:
            return (truth * (np.cumsum(z, 1) - z == 0.0)).sum(1)
        return (truth / (1.0 + z.sum(1, keepdims=True) - z)).sum(1)

    def worth(self, p: Any, *, ladder: bool = False) -> float:
        """The share of tasks with a right answer, if answers are right with the chances ``p``, each by itself.

        >>> judge = Judge(0.1)
        >>> print(round(judge.worth([0.9]), 3), round(judge.worth([0.9, 0.1]), 3))
        0.9 0.869
        """
        p = floats(p, "p", low=0.0, high=1.0).ravel()
        passes, total = p * (1.0 - self.false_negative) + (1.0 - p) * self.false_positive, 0.0
        for j, own in enumerate(p * (1.0 - self.false_negative)):
            others = np.polynomial.Polynomial([1.0])  # of s: its integral over [0, 1] is the mean of 1 / (1 + others)
            for y in passes[:j] if ladder else np.delete(passes, j):
                others = others * (np.polynomial.Polynomial([1.0 - y, 0.0 if ladder else y]))
            total += own * float(others.integ()(1.0))
        return total


def _marks(given: Any, name: str) -> Floats:
    """Whether answers passed, or are right, as 0 and 1."""
    marks = floats(given, name, low=0.0, high=1.0)
    if not np.isin(marks, (0.0, 1.0)).all():
        raise InvalidArgument(name, "there are values between 0 and 1", "say of each answer whether it passed", "Judge")
    return marks
