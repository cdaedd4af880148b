r"""The proof of Theorem 1, checked along a simulated run: which events occurred, and how loose each step is.

Names and numbers are those of [MerlisMannor2019]_ (section Proving the Regret Upper Bounds, appendices A to D).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.streams import run_keys
from superarm.core.support import Dense
from superarm.core.tally import Tally, View
from superarm.indices import Bernstein
from superarm.policies import IndexPolicy
from superarm.simulation.engine import Run
from superarm.simulation.instances import Instance
from superarm.simulation.replicate import seeds
from superarm.theory.bound import Setting, setting
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.sequences import Sequences, geometric
from superarm.theory.upper.paper import paper_gamma_g

U, V = 4.0 * math.sqrt(3.0), 28.0
"""BC-UCB's width on the good event: q - p <= U sqrt(p (1 - p) log t / N) + V log t / N. The paper has V = 34."""


def paper(s: Setting) -> tuple[float, float]:
    r""":math:`c_1 = 12\sqrt6\gamma_g` and :math:`c_2 = 34\gamma_\infty` of :math:`c_t`, [MerlisMannor2019]_.

    (Lemma regretDecomp.) The numbers of :math:`g(K, \Delta) = (c_1^2 + 2c_2\Delta/\bar M)\,\bar M^2 K \ell` are 864
    and 68 times the smoothness.
    """
    return 12.0 * math.sqrt(6.0) * paper_gamma_g(s), 34.0 * s.smoothness.gamma_inf


@dataclass(frozen=True)
class Trace:
    r"""The events of the proof in each round after every arm was played once; arrays are (n_rounds,) by default.

    Attributes
    ----------
    t, gap
        The round, and :math:`\Delta_{A_t}`, which may be negative if alpha < 1.
    bad_mean, bad_variance
        Whether :math:`H^p_t`, :math:`H^V_t` occurred: some interval fails, some variance is too large.
    radius
        :math:`\bar M c_t(A_t)`: on the good event no batch with a larger gap is played.
    level
        The k for which :math:`G^k_t` occurred; 0 if none did.
    few
        How many arms of the batch were played at most :math:`a_k g\log t/\Delta^2` times, (n_rounds, k0).
    fewest, threshold
        The fewest pulls in the batch, and the threshold of level 1; infinite where the gap is not positive.
    width, allowed
        The largest ratio of q - p to :math:`u\sqrt{p(1-p)} + v` over the batch's entries, and that of :math:`\bar M
        c_t(A_t)` to :math:`r(A_t; q) - r(A_t; p)`: how loose the two steps are.
    """

    t: Ints
    gap: Floats
    bad_mean: Bools
    bad_variance: Bools
    radius: Floats
    level: Ints
    few: Ints
    fewest: Floats
    threshold: Floats
    width: Floats
    allowed: Floats

    @property
    def contradictions(self) -> int:
        """Rounds that contradict a lemma: good with a gap above the radius, or within it without G^k.

        0 for BC-UCB with an oracle that always succeeds.
        """
        good = ~(self.bad_mean | self.bad_variance)
        above = self.gap > self.radius * (1.0 + 1e-9)
        unplaced = (self.gap > 0.0) & (self.gap <= self.radius) & (self.level == 0)
        return int(np.sum((good & above) | unplaced))

    def __str__(self) -> str:
        ratio = np.median(self.allowed[np.isfinite(self.allowed)]) if np.isfinite(self.allowed).any() else math.nan
        counts = np.bincount(self.level, minlength=self.few.shape[1] + 1)
        placed = ", ".join(f"G^{k}: {n}" for k, n in enumerate(counts) if k > 0)
        return (
            f"{len(self.t)} rounds; H^p in {int(self.bad_mean.sum())}, H^V in {int(self.bad_variance.sum())}; "
            f"suboptimal batches in {int((self.gap > 0).sum())} ({placed}, none: {counts[0]})\n"
            f"widths reach at most {self.width.max():.3f} of u sqrt(p(1-p)) + v; "
            f"Mbar c_t is {ratio:.3g} times what the index overshoots by (median)"
        )


def follow(
    instance: Instance,
    horizon: int,
    policy: IndexPolicy | None = None,
    seed: int = 0,
    sequences: Sequences | None = None,
    known: Gaps | None = None,
) -> Trace:
    r"""Play ``policy`` (BC-UCB) for ``horizon`` rounds, and check every event of the proof in each round.

    The run is the one that ``simulate`` plays with the same seed, replication 0. Implements the definitions of
    [MerlisMannor2019]_: :math:`H^p_t, H^V_t` (equations Hp, HV), :math:`c_t` (lemma regretDecomp), :math:`S^k_t, G^k_t`
    (before lemma AeventProperties). Differs: :math:`G^k_t` asks for few arms in :math:`S^n_t` for
    :math:`1 \le n < k` only, since :math:`|S^0_t| = K` for every full batch, and the batch must be suboptimal. The
    lemmas are about BC-UCB and rounds in which the oracle succeeds; with another policy, or an oracle with beta < 1,
    :attr:`Trace.contradictions` can be positive.

    >>> from superarm.simulation import instances
    >>> trace = follow(instances.lower_bound(6, 3), 200)
    >>> trace.contradictions, bool(trace.bad_mean.any())
    (0, False)
    """
    if not isinstance(instance.problem.support, Dense) or instance.environment.partial:
        raise InvalidArgument(
            "instance", "it is sparse, or shows only part of the feedback", "give a dense instance with full feedback"
        )
    if not isinstance(policy, IndexPolicy | None):
        raise InvalidArgument("policy", f"{type(policy).__name__} is not an index policy", "give e.g. bc_ucb()")
    g = gaps(instance) if known is None else known
    steps = _ProofSteps(instance, setting(instance, g), g, sequences or geometric(instance.problem.k))
    played = IndexPolicy(Bernstein()) if policy is None else policy
    run = Run(instance.problem, instance.environment, played, run_keys(seeds(seed, 1)), fuse=False)
    records = []
    for t in range(1, horizon + 1):
        before = run.tally.take([0])  # a copy: what the policy knows when it chooses
        run.play_round()
        if before.pulls.all():
            view = View(t, before, run.keys.policy, before.pulls, run.eligible, run.pinned)
            records.append(steps.measure(t, before, played.scores(instance.problem, view), run.last[0]))
    if not records:
        raise InvalidArgument("horizon", f"{horizon} rounds do not play every arm once", "give more rounds")
    columns = [np.array(column) for column in zip(*records, strict=True)]
    return Trace(*columns)


class _ProofSteps:
    """The quantities of the proof, round by round."""

    def __init__(self, instance: Instance, s: Setting, g: Gaps, sequences: Sequences) -> None:
        self.problem, self.s, self.target, self.sequences = instance.problem, s, g.target, sequences
        self.p = instance.p
        self.c1, self.c2 = paper(s)
        a, b = sequences
        before = np.concatenate([[1.0], b[:-1]])
        self.ell = float(np.sum((before - b) / a) + b[-1] / a[-1])

    def measure(self, t: int, tally: Tally, q: Floats, batch: Ints) -> tuple[Any, ...]:
        s, action, pulls = self.s, batch[batch >= 0], tally.pulls[0]
        mean, variance, optimistic = (self.problem.support.to_user(v[0]) for v in (tally.mean, tally.deviation**2, q))
        x = math.log(t) / pulls[:, None]
        bad_mean = bool((np.abs(mean - self.p) > np.sqrt(6.0 * variance * x) + 9.0 * x).any())
        bad_variance = bool((variance > 2.0 * self.p * (1.0 - self.p) + 3.5 * x).any())
        gap = self.target - (self.problem.value(self.p, action) - self.problem.floor)
        share = float(x[action].sum())
        radius = s.weight * (self.c1 * math.sqrt(share) + self.c2 * share)
        few, level, threshold = self._levels(gap, math.log(t), pulls[action])
        return (
            t, gap, bad_mean, bad_variance, radius, level, few, pulls[action].min(), threshold,
            self._width(optimistic[action], self.p[action], x[action]), self._allowed(radius, optimistic, action),
        )  # fmt: skip

    def _levels(self, gap: float, log_t: float, pulls: Floats) -> tuple[Ints, int, float]:
        a, b = self.sequences
        if gap <= 0.0:
            return np.zeros(len(a), np.int64), 0, math.inf
        s = self.s
        g = (self.c1**2 + 2.0 * self.c2 * gap / s.weight) * s.weight**2 * s.k * self.ell
        thresholds = a * g * log_t / gap**2
        few = (pulls[:, None] <= thresholds).sum(axis=0)
        enough = np.flatnonzero(few >= s.k * b * (1.0 - 1e-12))
        return few, int(enough[0]) + 1 if enough.size else 0, float(thresholds[0])

    def _width(self, q: Floats, p: Floats, x: Floats) -> float:
        return float(((q - p) / (U * np.sqrt(x * p * (1.0 - p)) + V * x)).max())

    def _allowed(self, radius: float, q: Floats, action: Ints) -> float:
        overshoot = self.problem.value(q, action) - self.problem.value(self.p, action)
        return radius / overshoot if overshoot > 0.0 else math.inf
