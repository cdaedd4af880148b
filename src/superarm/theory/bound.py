"""A bound of the regret: the numbers of an instance that enter it, its terms over the horizon, and what it says."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from superarm.core.arrays import Bools, Floats
from superarm.core.errors import InvalidArgument
from superarm.rewards import Reward, Smoothness, smoothness_of
from superarm.simulation.instances import Instance
from superarm.theory.gaps import Gaps, gaps

Kind: TypeAlias = Literal["upper", "bayes", "growth", "rate", "near", "size"]
Term: TypeAlias = Callable[[Floats], Any] | float


@dataclass(frozen=True)
class Setting:
    r"""The numbers of an instance that enter the bounds of [MerlisMannor2019]_.

    ``weights`` are those of the items; ``minimum`` and ``maximum`` are the gaps of the arms that have any, ``largest``
    is :math:`\Delta_{\max}`, ``alpha`` the share of the optimum from which gaps are measured.
    """

    n_arms: int
    k: int
    weights: Floats
    reward: Reward
    minimum: Floats
    maximum: Floats
    largest: float
    alpha: float = 1.0

    @property
    def n_items(self) -> int:
        """M."""
        return len(self.weights)

    @property
    def weight(self) -> float:
        r""":math:`\bar M = \sum_i w_i`."""
        return float(self.weights.sum())

    @cached_property
    def smoothness(self) -> Smoothness:
        """The smoothness of the reward for batches of at most k arms."""
        return smoothness_of(self.reward, self.k)

    @property
    def inverse_gaps(self) -> float:
        r""":math:`\sum_j 1/\Delta_{j,\min}` over the arms of some suboptimal batch; infinite for an unknown gap."""
        with np.errstate(divide="ignore"):
            return float(np.sum(1.0 / self.minimum))

    @property
    def log_ratios(self) -> float:
        r""":math:`\sum_j (1 + \log(\Delta_{j,\max}/\Delta_{j,\min}))` over the same arms."""
        with np.errstate(divide="ignore"):
            return float(np.sum(1.0 + np.log(self.maximum / self.minimum)))


SIMULATE = "the theorems are about outcomes in [0, 1]; simulate it"


def setting(instance: Instance | Setting, known: Gaps | None = None) -> Setting:
    """The numbers of ``instance`` that enter the bounds; its gaps are computed unless ``known``."""
    if isinstance(instance, Setting):
        return instance
    problem = instance.problem
    problem.require_shares(SIMULATE)
    g = gaps(instance) if known is None else known
    least, most = g.minimum[g.suboptimal], g.maximum[g.suboptimal]
    return Setting(problem.n_arms, problem.k, problem.weights, problem.reward, least, most, g.largest, g.alpha)


@dataclass(frozen=True, repr=False, eq=False)
class Bound:
    r"""What one theorem says about regret up to each of ``horizon``.

    ``float(bound)`` and ``np.asarray(bound)`` are the ``value``; ``print(bound)`` says it in a sentence.

    Attributes
    ----------
    name
        The name of the theorem, by which :class:`Bounds` are indexed.
    horizon
        One or more horizons T, of any shape.
    terms
        The bound as three functions of T, or numbers: the terms with :math:`\gamma_g` and :math:`\gamma_\infty`, and
        the cost of initial and failed rounds, which does not grow with T or hardly does.
    largest
        The largest gap: no policy has more regret per round, against this target.
    alpha, beta, target
        The guarantee of the policy's oracle, and :math:`\alpha\beta\,r_{\max}`: what regret is measured against, per
        round. NaN if the bound was computed without a policy.
    kind
        ``upper``; ``bayes``, an upper bound of the mean over instances of the policy's prior, not of this instance;
        ``near``, a lower bound of the largest regret on this instance and on others near it, of any policy; ``size``,
        one for some other instance of this size; ``rate``: the regret of consistent policies divided by log T tends to
        at least ``rate``; or ``growth``: to at most. These two bound nothing at a finite T: the value is 0.
    claimed
        Whose claim of smoothness it rests on, in words; empty if the smoothness is proven, or does not matter.
    rate
        The limit that a ``rate`` or a ``growth`` states; NaN otherwise.
    assumptions
        What the theorem assumes, as far as the instance and the policy do not decide it.
    reason
        Why it does not apply, in a sentence; empty if it does. Then there are no terms, and the value is NaN.
    """

    name: str
    horizon: Floats
    terms: tuple[Term, Term, Term] | None
    largest: float = math.nan
    alpha: float = 1.0
    beta: float = 1.0
    target: float = math.nan
    kind: Kind = "upper"
    assumptions: str = ""
    reason: str = ""
    rate: float = math.nan
    claimed: str = ""

    def at(self, horizon: Any) -> "Bound":
        """The same theorem at other horizons."""
        return replace(self, horizon=rounds(horizon))

    @property
    def label(self) -> str:
        """The name of the theorem in words."""
        return LABELS[self.name]

    @property
    def applies(self) -> bool:
        """Whether the theorem is about this policy on this instance."""
        return not self.reason

    def _term(self, n: int) -> Floats:
        term = math.nan if self.terms is None else self.terms[n]
        value = term(self.horizon) if callable(term) else term
        return np.broadcast_to(np.asarray(value, float), self.horizon.shape)

    @property
    def gamma_g(self) -> Floats:
        r"""The terms with :math:`\gamma_g`, or with variances."""
        return self._term(0)

    @property
    def gamma_inf(self) -> Floats:
        r"""The terms with :math:`\gamma_\infty`, or with the range of rewards."""
        return self._term(1)

    @property
    def constant(self) -> Floats:
        """The cost of initial and failed rounds."""
        return self._term(2)

    @property
    def value(self) -> Floats:
        """The bound itself; NaN if it does not apply."""
        return self.gamma_g + self.gamma_inf + self.constant

    @property
    def trivial(self) -> Floats:
        """The largest gap times T."""
        return self.largest * self.horizon

    @property
    def vacuous(self) -> Bools:
        """Whether the bound says nothing: an upper bound above the trivial one, a lower bound of 0."""
        return self.value >= self.trivial if self.is_upper else self.value <= 0.0

    @property
    def is_upper(self) -> bool:
        """Whether it bounds regret from above, on this instance or in the mean over instances."""
        return self.kind in ("upper", "bayes")

    @cached_property
    def crossover(self) -> float:
        """The horizon from which on an upper bound is below the trivial one; infinite if it never is."""
        if not self.applies or not self.is_upper:
            return math.nan
        return crossover(lambda t: float(self.at(t)), self.largest)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.value, dtype)

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        if not self.applies:
            return f"{self.label} does not apply: {self.reason}."
        values, times = (np.ravel(x) for x in (self.value, self.horizon))
        steps = ", ".join(f"{v:.4g} after {t:g} rounds" for v, t in zip(values, times, strict=True))
        against = "" if math.isnan(self.target) else f" against {self.target:.4g} per round"
        if self.kind in ("rate", "growth"):
            return f"{self.label}: {self.limit}."
        if self.kind == "size":
            return f"{self.label}: regret{against} on some instance of this size is at least {steps}."
        if self.kind == "near":
            return f"{self.label}: the largest regret{against} on this instance and near ones is at least {steps}."
        claimed = f"; {self.claimed}" if self.claimed else ""
        if self.kind == "bayes":
            over = "mean regret over instances of the policy's prior"
            return f"{self.label}: {over} is at most {steps}; {self.usefulness}."
        return f"{self.label}: regret{against} is at most {steps}; {self.usefulness}{claimed}."

    @property
    def limit(self) -> str:
        """What an asymptotic rate says, in words."""
        side = "most" if self.kind == "growth" else "least"
        return f"R(T)/log T tends to at {side} {self.rate:.4g}, not a bound at any T"

    @property
    def usefulness(self) -> str:
        """From which horizon on an upper bound says more than the largest gap times T, in words."""
        if self.largest == 0.0:
            if self.alpha == 1.0:
                return "every batch is optimal"
            return (
                f"says nothing: every batch earns at least alpha = {self.alpha:.4g} times the optimum; "
                "use an exact oracle"
            )
        if not math.isfinite(self.crossover):
            return "vacuous at every horizon"
        now = "vacuous, " if np.all(self.vacuous) else ""
        return f"{now}below the trivial bound from T = {self.crossover:.3g} on"


BERNSTEIN_FAILURES = 2.0 * math.pi**2 / 3.0
"""The sum over t of P(H_t) per entry, for BC-UCB: the sum of 4 t^-2."""

CHERNOFF_FAILURES = math.pi**2 / 3.0
"""The same for the KL index at the level 3 log t, and for the Hoeffding index: the sum of 2 t^-2."""


def initial_and_failed(s: Setting, failures: Any) -> Callable[[Floats], Any]:
    r""":math:`L\Delta_{\max}(1 + M failures)`: initial rounds, and rounds in which some interval fails."""
    one, all_items = s.n_arms * s.largest, s.n_items
    return lambda t: one * (1.0 + all_items * (failures(t) if callable(failures) else failures))


def grow(name: str, s: Setting, horizon: Any, main: float, slow: float, constant: Term, level: Any = np.log) -> Bound:
    """A bound whose growing terms are factors of ``level``, f(T)."""
    terms = (_multiply(main, level), _multiply(slow, level), constant)
    return Bound(name, rounds(horizon), terms, s.largest, s.alpha)


def _multiply(factor: float, level: Any) -> Term:
    """``factor`` times f(T); infinite for an infinite factor, also where f(T) is 0."""
    return (lambda t: factor * level(t)) if math.isfinite(factor) else factor


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
    "upper_bound_gap_free": "Corollary 1 (BC-UCB)",
    "upper_bound_sequences": "Theorem 1, other sequences (BC-UCB)",
    "upper_bound_unsplit": "Theorem 1, not split into items (BC-UCB)",
    "upper_bound_sharp": "sharpened (BC-UCB)",
    "upper_bound_sharp_gap_free": "sharpened, without gaps (BC-UCB)",
    "upper_bound_kl": "KL theorem (KL-UCB, 3 log t)",
    "upper_bound_kl_gap_free": "KL theorem without gaps (KL-UCB, 3 log t)",
    "upper_bound_local": "local KL theorem (KL-UCB, 3 log t)",
    "upper_bound_kl_late": "KL theorem, late feedback (KL-UCB, 3 log t)",
    "upper_bound_kl_default": "KL theorem (KL-UCB, log t + 3 log log t)",
    "upper_bound_kl_default_gap_free": "KL theorem without gaps (KL-UCB, log t + 3 log log t)",
    "upper_bound_local_default": "local KL theorem (KL-UCB, log t + 3 log log t)",
    "upper_bound_wang_chen": "Wang-Chen (CUCB)",
    "upper_bound_cascade": "cascade theorem (BCUCB-T)",
    "upper_bound_cascade_kl": "cascade theorem (KL-UCB, log t + 3 log log t)",
    "upper_bound_directional": "directional theorem, known direction",
    "upper_bound_directional_greedy": "directional theorem, coverage",
    "upper_bound_c2_ucb": "linear models (C²-UCB)",
    "upper_bound_vac2_ucb": "linear models (VAC²-UCB)",
    "bayes_bound_total": "Bayesian bound (total_thompson, sharpness 1), no bound on this instance",
    "upper_bound_greedy_commit": "C-ETC with greedy (greedy_then_commit)",
    "growth_cts": "Wang-Chen rate (CTS)",
    "lower_bound_near": "transportation bound, every policy",
    "lower_bound": "Lai-Robbins rate, the paper's instance of this size and gap",
    "lower_bound_independent": "Lai-Robbins rate, the same with independent items",
    "lower_bound_smooth": "Merlis-Mannor rate, some instance of this size and gap",
    "lower_bound_gap_free": "gap-free, some instance of this size",
    "lower_bound_smooth_gap_free": "Merlis-Mannor, some instance of this size, every policy",
    "graves_lai": "Graves-Lai rate, this instance",
}
"""Every theorem by its name."""


MAX_HORIZON = 1e300
"""The largest horizon that is tried."""


def crossover(bound: Callable[[float], float], largest_gap: float) -> float:
    r"""The horizon from which on ``bound`` lies below the trivial :math:`\Delta_{\max}T` of [MerlisMannor2019]_.

    Once below it stays below: for every bound of :mod:`superarm.theory`, bound(T)/T falls from where it is below the
    largest gap. Infinite if it never is. In the notation of ``docs/theory/bc-ucb.md``:

    - :math:`a\log T+c` (Theorem 1, sharpened, Wang-Chen, KL): concave, and not negative at T = 1.
    - :math:`a\sqrt{T\log T}+c`: :math:`\sqrt{\log T/T}` falls for :math:`T\ge e`; up to e the constant is above
      :math:`\Delta_{\max}T`, as :math:`L+ML\pi^2/3>e`.
    - Default KL level: :math:`(\log T+3\log^+\log T)/T` and :math:`\log^+\log T/T` fall from T = 6 on; up to 12 the
      constant is above :math:`\Delta_{\max}T`, as :math:`1+2e\cdot2.3>12`.
    - Corollary 1: up to the kink :math:`\Delta_{\max}T=u_2\log T` it is at least :math:`2u_2\log T\ge2\Delta_{\max}T`.
      Beyond, it is concave: with :math:`y=\log T`, :math:`\phi=y(2+y-\log y+c)` and :math:`y-\log y+c\ge0`,
      :math:`\phi''-\phi'=1-\frac1y-2y-c+\log y\le1-\frac1y-y<0`.
    - Sharpened without gaps: while :math:`D\ge\Delta_{\max}` it is at least :math:`2TD\ge2\Delta_{\max}T`. Beyond, the
      second term over T is proportional to :math:`ye^{-y}(E+E'\log(\Delta_{\max}/D))`, whose derivative
      :math:`(1-y)e^{-y}(E+E'\log(\Delta_{\max}/D)-\frac12E')` is negative for y > 1, as :math:`E\ge E'`; up to T = e as
      above.
    - Directional: :math:`\ell_T/T` falls from T = 5 on at the constants of the theorems, and so does the mean of terms
      that fall; before, the L initial rounds and the terms equal to 1 are above :math:`\Delta_{\max}T`.
    - Cascades: as :math:`a\log T+c` and the default KL level. C²-UCB: :math:`\sqrt T` times logarithms, far above
      :math:`r_{\max}T` where that over T does not fall.

    >>> round(crossover(lambda t: 100.0, 0.5), 6)
    200.0
    """
    high = 1.0
    while not bound(high) < largest_gap * high:
        high *= 2.0
        if high > MAX_HORIZON:
            return math.inf
    low = max(1.0, high / 2.0)
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if bound(middle) < largest_gap * middle:
            high = middle
        else:
            low = middle
    return high
