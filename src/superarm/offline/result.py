"""The result of an evaluation: a value per round, with an interval and its difference from a baseline; warnings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.offline.estimators.methods import KNOWN_REWARD, METHODS, SEMI_BANDIT, Method, has
from superarm.offline.estimators.targets import SlateMixture, is_policy_target
from superarm.rewards import ClippedLinear, Conjunctive, Coverage, Linear

if TYPE_CHECKING:
    from superarm.offline.log import Log

MODEL_BASED = ("intervals", "direct", "one_step")
"""Methods whose ``effective`` is the number of observations of the arm that was observed least."""
FEW_OBSERVATIONS = 30
"""An arm with fewer observations is named in a warning."""
FEW_EFFECTIVE = 100
"""With a smaller effective sample size, normal intervals are not reliable."""
REJECTED = 0.05
"""The level at which a warning says that the semi-bandit assumption is rejected."""


@dataclass(frozen=True)
class ValueInterval:
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class PolicyValue:
    """The value of a target per round, and how it differs from a baseline.

    Parameters
    ----------
    target, baseline
        What was evaluated, and what it is compared with, as text.
    value, low, high
        The estimate and its interval.
    difference
        The target's value minus the baseline's, with its interval.
    baseline_value
        The baseline's value by the same method, with its interval.
    delta, method, reason
        The interval holds with probability 1 - delta; the estimator, and why it was taken.
    time_uniform
        Whether the interval holds however often one looks, and for slates that were chosen by looking at the log.
    effective
        How many rounds the estimate rests on: the effective sample size of importance weights, or the observations of
        the arm of the target that was observed least.
    slate
        The arms, if the target is one slate.
    assumptions, warnings
        What has to hold, and what may be wrong, in plain words.
    approximate, approximate_difference
        Beside a time-uniform interval, the narrower one of the normal distribution (the direct method's): for a slate
        that was fixed beforehand and a log that is looked at once.
    """

    target: str
    baseline: str
    value: float
    low: float
    high: float
    difference: ValueInterval
    baseline_value: ValueInterval
    delta: float
    method: str
    reason: str
    time_uniform: bool
    effective: float
    slate: tuple[str, ...] | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    approximate: ValueInterval | None = None
    approximate_difference: ValueInterval | None = None

    @property
    def better(self) -> bool | None:
        """Whether it is better than the baseline; None if the interval of the difference includes 0."""
        return None if self.difference.low <= 0.0 <= self.difference.high else self.difference.low > 0.0

    @property
    def verdict(self) -> str:
        """``better`` in words."""
        if self.difference.low == self.difference.high == 0.0:
            return "equal"
        return {True: "better", False: "worse", None: "not decided"}[self.better]

    def __repr__(self) -> str:
        sure = f"{100 * (1 - self.delta):g} %"
        kind = "time-uniform" if self.time_uniform else "normal"
        d = self.difference
        lines = [
            f"{self.target}: {self.value:.4g} [{self.low:.4g}, {self.high:.4g}] per round ({sure}, {kind})",
            f"minus {self.baseline} ({self.baseline_value.value:.4g}): "
            f"{d.value:+.4g} [{d.low:+.4g}, {d.high:+.4g}], {self.verdict}",
        ]
        if self.approximate and self.approximate_difference:
            a, b = self.approximate, self.approximate_difference
            lines.append(
                f"if looked at once: [{a.low:.4g}, {a.high:.4g}], minus baseline [{b.low:+.4g}, {b.high:+.4g}]"
            )
        lines += [f"slate: {', '.join(self.slate)}"] if self.slate else []
        counted = "observations of the arm observed least" if self.method in MODEL_BASED else "effective sample size"
        lines += [
            f"method: {self.method} ({METHODS[self.method].title}), {self.reason}",
            f"{counted}: {self.effective:.0f}",
        ]
        lines += [f"assumes: {text}" for text in self.assumptions]
        return "\n".join(lines + [f"warning: {text}" for text in self.warnings])


# --- what may be wrong with an evaluation, in plain words ---


def list_warnings(log: "Log", method: Method, target: Any, mixture: SlateMixture, effective: float) -> tuple[str, ...]:
    """The warnings about one evaluation."""
    found = warn_of_outcomes(log)
    if is_policy_target(target) and method.score is not None and method.name != "replay":
        found.append(
            "the policy's slates were chosen by looking at this log: the estimate is too high on average, and the "
            "interval does not cover that (method='intervals' does)"
        )
    if SEMI_BANDIT in method.assumptions:
        found += _warn_of_arms(log, mixture) + warn_of_assumption(log)
    if method.name in ("intervals", "direct"):
        found += _warn_of_luck(log)
    if method.needs.endswith("propensities") or method.name == "replay":
        found += _warn_of_chance(log, method, effective)
    if KNOWN_REWARD in method.assumptions:
        found += _warn_of_reward(log, method)
    return tuple(found)


def warn_of_outcomes(log: "Log") -> list[str]:
    """Outcomes of shown arms that were not observed."""
    own = (log.rows.slot >= 0)[:, None] & (log.entries >= 0)
    missing = int((own & ~log.rows.seen).sum())
    if not missing:
        return []
    share = f"{100 * missing / own.sum():.2g} %"
    return [
        f"{share} of the outcomes of shown arms were not seen; if whether they were seen depends on what they are, "
        "estimates are biased"
    ]


def _warn_of_arms(log: "Log", mixture: SlateMixture) -> list[str]:
    used = np.unique(mixture.slates[(mixture.shares > 0.0).any(axis=0)])
    used = used[used >= 0]
    pulls = log.tally.pulls[0, used]
    never = [log.arms[j] for j in used[pulls == 0.0]]
    few = [f"{log.arms[j]} ({int(n)})" for j, n in zip(used, pulls, strict=True) if 0 < n < FEW_OBSERVATIONS]
    found = []
    if never:
        found.append(f"never observed: {_some(never)}; the estimate counts them as 0, the interval as anything")
    if few and not mixture.logged:
        found.append(f"fewer than {FEW_OBSERVATIONS} observations: {_some(few)}")
    return found


def warn_of_assumption(log: "Log") -> list[str]:
    """The semi-bandit assumption, where the test rejects it."""
    test = log.assumption_test
    if test.p_value >= REJECTED:
        return []
    return [
        f"the test rejects the semi-bandit assumption (p = {test.p_value:.2g}: outcomes depend on {test.worst}); "
        "what arms would do in other slates and slots may differ"
    ]


def _warn_of_luck(log: "Log") -> list[str]:
    """The normal interval of the direct method, where the log may be one of a policy that samples and nothing else."""
    if log.deterministic.all() or has(log, "slot propensities"):
        return []
    return [
        "if Thompson sampling made this log without further exploration, the normal 95 % interval of the direct method "
        "holds in about 85 % of such logs: an arm with bad luck was given up, and its mean stayed too low"
    ]


def _warn_of_chance(log: "Log", method: Method, effective: float) -> list[str]:
    found = []
    n = int(log.deterministic.sum())
    if n:
        found.append(
            f"in {n} of {log.n_rounds} rounds the slate was chosen without chance: slates that were not shown there "
            "have no weight, and the estimate is biased"
        )
    if effective == 0.0:
        found.append("no complete round: there is none with a slate of the target of which every outcome was seen")
    elif effective < FEW_EFFECTIVE:
        found.append(
            f"the estimate rests on {effective:.0f} effective rounds; its interval is not to be trusted below about "
            f"{FEW_EFFECTIVE}"
        )
    return found


def _warn_of_reward(log: "Log", method: Method) -> list[str]:
    reward, found = log.problem.reward, []
    unknown = int(np.isnan(log.rewards).sum())
    if unknown:
        found.append(f"the reward of {unknown} of {log.n_rounds} rounds is not known; the others stand for them")
    if method.name in ("independent_ips", "pseudoinverse") and not reward.modular:
        found.append("the reward is not linear: this estimator is biased for it")
    if not isinstance(reward, Coverage | Conjunctive | Linear):
        binary = set(np.unique(log.rows.outcome[log.observed]).tolist()) <= {0.0, 1.0}
        if not isinstance(reward, ClippedLinear) or binary:
            found.append(
                "for this reward the mean realised reward E r(A; X) is not the value r(A; p) that other methods "
                "estimate"
            )
    elif not reward.modular and log.slates.shape[1] > 1:
        found.append(
            "E r(A; X) is the value r(A; p) that other methods estimate only if the arms of a slate act independently"
        )
    return found


def _some(names: list[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
