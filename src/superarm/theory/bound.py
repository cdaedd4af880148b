"""The parts of a bound: the numbers of an instance that enter it, its terms over the horizon, and its label."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.rewards import Smoothness, smoothness_of
from superarm.simulation.instances import Instance
from superarm.theory.gaps import Gaps, gaps


@dataclass(frozen=True)
class Setting:
    r"""The numbers of an instance that enter the bounds of [MerlisMannor2019]_.

    ``weight`` is :math:`\bar M = \sum_i w_i`, ``heaviest`` is :math:`\max_i w_i`; ``minimum`` and ``maximum`` are the
    gaps of the arms that have any, ``largest`` is :math:`\Delta_{\max}`. ``alpha`` is that of the gaps.
    """

    n_arms: int
    n_items: int
    k: int
    weight: float
    heaviest: float
    smoothness: Smoothness
    minimum: Floats
    maximum: Floats
    largest: float
    alpha: float = 1.0

    @property
    def inverse_gaps(self) -> float:
        r""":math:`\sum_j 1/\Delta_{j,\min}` over the arms of some suboptimal batch; infinite for an unknown gap."""
        with np.errstate(divide="ignore"):
            return float(np.sum(1.0 / self.minimum))

    def log_ratios(self, offset: float, factor: float = 1.0) -> float:
        r""":math:`\sum_j (offset + factor\log(\Delta_{j,\max}/\Delta_{j,\min}))` over the same arms."""
        with np.errstate(divide="ignore"):
            return float(np.sum(offset + factor * np.log(self.maximum / self.minimum)))

    @property
    def gamma_g_paper(self) -> float:
        """The paper's bound of gamma_g; the exact value where the paper's is undefined or too small."""
        paper, exact = self.smoothness.gamma_g_paper, self.smoothness.gamma_g
        return paper if paper >= exact else exact


def setting(instance: Instance, known: Gaps | None = None) -> Setting:
    """The numbers of ``instance`` that enter the bounds; its gaps are computed unless ``known``."""
    problem = instance.problem
    g = gaps(instance) if known is None else known
    mask = g.suboptimal
    return Setting(
        n_arms=problem.n_arms,
        n_items=problem.n_items,
        k=problem.k,
        weight=float(problem.weights.sum()),
        heaviest=float(problem.weights.max()),
        smoothness=smoothness_of(problem.reward, problem.k),
        minimum=g.minimum[mask],
        maximum=g.maximum[mask],
        largest=g.largest,
        alpha=g.alpha,
    )


@dataclass(frozen=True)
class Bound:
    r"""An upper bound of the regret up to each of ``horizon``, in its terms.

    ``gamma_g`` and ``gamma_inf`` are the terms with these smoothness parameters, ``constant`` the cost of initial and
    failed rounds, which does not grow with T, or like log log T; ``value`` is their sum. All have the shape of
    ``horizon``. ``float(bound)`` and ``np.asarray(bound)`` are the value.
    """

    name: str
    horizon: Floats
    gamma_g: Floats
    gamma_inf: Floats
    constant: Floats

    @property
    def value(self) -> Floats:
        """The bound itself."""
        return self.gamma_g + self.gamma_inf + self.constant

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.value, dtype)

    def __float__(self) -> float:
        return float(self.value)


BERNSTEIN_FAILURES = 2.0 * math.pi**2 / 3.0
"""The sum over t of P(H_t) per entry, for BC-UCB: the sum of 4 t^-2."""

CHERNOFF_FAILURES = math.pi**2 / 3.0
"""The same for the KL index at the level 3 log t, and for the Hoeffding index: the sum of 2 t^-2."""


def initial_and_failed(s: Setting, rounds_per_arm: float, failures: Any) -> Any:
    r""":math:`L\Delta_{\max}(rounds + M failures)`: initial rounds, and rounds in which some interval fails."""
    return s.n_arms * s.largest * (rounds_per_arm + s.n_items * failures)


def assemble(name: str, horizon: Any, gamma_g: Any, gamma_inf: Any, constant: Any) -> Bound:
    """A bound whose growing terms are given as functions of T, or as factors of log T, and its constant."""
    t = rounds(horizon)

    def over(term: Any) -> Floats:
        return np.asarray(term(t) if callable(term) else _times_log(term, t), float)

    cost = constant(t) if callable(constant) else np.full(t.shape, float(constant))
    return Bound(name, t, over(gamma_g), over(gamma_inf), cost)


def _times_log(factor: float, t: Floats) -> Floats:
    return factor * np.log(t) if np.isfinite(factor) else np.full(t.shape, factor)  # not inf * 0 at T = 1


def rounds(horizon: Any) -> Floats:
    """``horizon`` as floats, of any shape, each at least 1."""
    try:
        t = np.asarray(horizon, float)
    except (TypeError, ValueError):
        raise InvalidArgument("horizon", f"{horizon!r} is not a number of rounds", "give numbers >= 1") from None
    if not t.size or not (t >= 1.0).all():  # also refuses NaN
        raise InvalidArgument("horizon", "some T is below 1", "give numbers of rounds, each at least 1")
    return t


LABELS = {
    "upper_bound": "Theorem 1 (BC-UCB)",
    "upper_bound_sharp": "sharpened (BC-UCB)",
    "upper_bound_sharp_gap_free": "sharpened, without gaps (BC-UCB)",
    "upper_bound_sequences": "Theorem 1, other sequences (BC-UCB)",
    "upper_bound_unsplit": "Theorem 1, not split into items (BC-UCB)",
    "upper_bound_gap_free": "Corollary 1 (BC-UCB)",
    "upper_bound_kl": "KL theorem (KL-UCB, 3 log t)",
    "upper_bound_kl_gap_free": "KL theorem without gaps (KL-UCB, 3 log t)",
    "upper_bound_kl_late": "KL theorem, late feedback (KL-UCB, 3 log t)",
    "upper_bound_kl_default": "KL theorem (KL-UCB, log t + 3 log log t)",
    "upper_bound_kl_default_gap_free": "KL theorem without gaps (KL-UCB, log t + 3 log log t)",
    "upper_bound_local": "local KL theorem (KL-UCB, 3 log t)",
    "upper_bound_local_default": "local KL theorem (KL-UCB, log t + 3 log log t)",
    "upper_bound_cascade": "cascade theorem (BCUCB-T)",
    "upper_bound_cascade_kl": "cascade theorem (KL-UCB, log t + 3 log log t)",
    "upper_bound_wang_chen": "Wang-Chen (CUCB)",
    "lower_bound": "Lai-Robbins rate × log T, this size and gap",
    "lower_bound_independent": "Lai-Robbins rate × log T, this size and gap, independent items",
    "lower_bound_gap_free": "gap-free, some instance of this size",
    "graves_lai": "Graves-Lai rate × log T, this instance",
}
"""By the name of the function in ``superarm.theory``."""


MAX_HORIZON = 1e300
"""The largest horizon that is tried."""


def crossover(bound: Callable[[float], float], largest_gap: float) -> float:
    r"""The horizon from which on ``bound`` lies below the trivial :math:`\Delta_{\max}T` of [MerlisMannor2019]_.

    Once below it stays below: for every bound of :mod:`superarm.theory`, bound(T)/T falls from where it is below the
    largest gap (``docs/theory/vacuity.md``). Infinite if it never is.

    >>> round(crossover(lambda t: 100.0, 0.5), 6)
    200.0
    """
    high = 1.0
    while not bound(high) < largest_gap * high:
        high *= 2.0
        if high > MAX_HORIZON:
            return math.inf
    low = high / 2.0
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if bound(middle) < largest_gap * middle:
            high = middle
        else:
            low = middle
    return high
