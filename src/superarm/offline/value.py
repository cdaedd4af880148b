"""What slates and policies are worth per round, with intervals and differences from a baseline."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.offline.estimators.entries import EntryIntervals, entry_intervals, entry_means
from superarm.offline.estimators.importance import effective_sample_size, group_shares, slate_weights
from superarm.offline.estimators.methods import METHODS, Method, find_method, has
from superarm.offline.estimators.slates import difference_bounds, value_each_slate
from superarm.offline.estimators.targets import LOGGED, PolicyTarget, SlateMixture, is_policy_target, mix_slates
from superarm.offline.result import PolicyValue, ValueInterval, list_warnings

if TYPE_CHECKING:
    from superarm.offline.log import Log

FALLBACK_LEVEL = 0.001
"""If the test of the semi-bandit assumption rejects it at this level, the default method does not rely on it. The test
is approximate, and a false alarm costs more than a small effect that it misses: weighting slates errs more."""
MIN_EFFECTIVE = 100.0
"""By default, importance weighting is not used if its effective sample size is smaller."""


def evaluate(log: "Log", target: Any, baseline: Any, method: str | None, delta: float) -> PolicyValue:
    """The value of ``target`` on ``log``: see :meth:`Log.value`."""
    if not 0.0 < delta < 1.0:
        raise InvalidArgument("delta", f"{delta!r}", "give a number between 0 and 1, such as 0.05")
    if not log.n_rounds:
        raise InvalidArgument("log", "it has no rounds", "give at least one round")
    name, reason = (method, "as you asked") if method else choose_method(log, target)
    chosen = find_method(log, name)
    mixture = mix_slates(log, target)
    weight, near = None, (None, None)
    if chosen.score is None:
        own, other, difference = by_intervals(log, mixture, mix_slates(log, baseline), delta)
        near = _approximate(log, mixture, mix_slates(log, baseline), delta)
    else:
        own, other, difference, weight = by_scores(log, chosen, target, baseline, delta)
    effective = effective_sample_size(weight) if weight is not None else fewest_observations(log, mixture)
    slate = mixture.slates[0] if len(mixture.slates) == 1 and not mixture.logged else None
    return PolicyValue(
        name_target(log, target),
        name_target(log, baseline),
        own.value,
        own.low,
        own.high,
        difference,
        other,
        delta,
        name,
        reason,
        chosen.score is None,
        effective,
        None if slate is None else tuple(log.arms[j] for j in slate if j >= 0),
        chosen.assumptions,
        list_warnings(log, chosen, target, mixture, effective),
        *near,
    )


def _approximate(log: "Log", mixture: SlateMixture, baseline: SlateMixture, delta: float) -> tuple[Any, Any]:
    """The intervals of the direct method, of the value and of the difference; None for a reward that is no sum."""
    if not log.problem.reward.additive:
        return None, None
    own, _, difference, _ = by_scores(log, METHODS["direct"], mixture, baseline, delta)
    return own, difference


def choose_method(log: "Log", target: Any) -> tuple[str, str]:
    """The method that suits the log, and why."""
    test = log.assumption_test
    if test.p_value < FALLBACK_LEVEL and has(log, "slate propensities") and not log.deterministic.all():
        weight = np.where(np.isnan(log.rewards), 0.0, slate_weights(log, mix_slates(log, target)))
        effective = effective_sample_size(weight)
        if effective >= MIN_EFFECTIVE:
            return "snips", "because the test rejects the semi-bandit assumption and the log has propensities"
    if log.n_groups > 1 and has(log, "inclusion probabilities"):
        return "one_step", "because rounds have groups and the log has inclusion probabilities"
    return "intervals", "because it needs no propensities and holds under any logging policy"


def by_intervals(
    log: "Log", mixture: SlateMixture, baseline: SlateMixture, delta: float
) -> tuple[ValueInterval, ValueInterval, ValueInterval]:
    """Value, baseline and difference from intervals of all entries, which hold together."""
    intervals = entry_intervals(entry_means(log), delta)
    own, other = (_carry(log, one, intervals) for one in (mixture, baseline))
    least, most = _difference(log, mixture, baseline, intervals)
    low, high = max(least, own.low - other.high), min(most, own.high - other.low)
    return own, other, ValueInterval(own.value - other.value, low, high)


def _carry(log: "Log", mixture: SlateMixture, intervals: EntryIntervals) -> ValueInterval:
    """The value of a mixture at the lower ends, the means and the upper ends: the reward grows with its parameters."""
    shares = group_shares(log)
    ends = [
        math.fsum(
            shares[g] * float(mixture.shares[g] @ value_each_slate(log.problem, q[g], mixture.slates))
            for g in range(log.n_groups)
        )
        for q in intervals
    ]
    return ValueInterval(ends[1], ends[0], ends[2])


def _difference(
    log: "Log", mixture: SlateMixture, baseline: SlateMixture, intervals: EntryIntervals
) -> tuple[float, float]:
    """Bounds of the difference in which shared arms cancel; infinite where the target has several slates per group."""
    least, most = 0.0, 0.0
    for g, share in enumerate(group_shares(log)):
        own = np.flatnonzero(mixture.shares[g])
        used = np.flatnonzero(baseline.shares[g])
        if len(own) != 1:
            if np.array_equal(mixture.slates, baseline.slates) and np.array_equal(
                mixture.shares[g], baseline.shares[g]
            ):
                continue
            return -math.inf, math.inf
        box, slate = (intervals.low[g], intervals.high[g]), mixture.slates[own[0]]
        low, high = difference_bounds(log.problem, *box, slate, baseline.slates[used])
        least += float(share) * float(baseline.shares[g][used] @ low)
        most += float(share) * float(baseline.shares[g][used] @ high)
    return least, most


def by_scores(
    log: "Log", method: Method, target: Any, baseline: Any, delta: float
) -> tuple[ValueInterval, ValueInterval, ValueInterval, Floats | None]:
    """Value, baseline and difference from the scores of the rounds, with normal intervals, and importance weights."""
    assert method.score is not None
    own, other = method.score(log, target), method.score(log, baseline)
    if method.name == "replay" or bool((np.isnan(own.score) != np.isnan(other.score)).any()):
        a, b = _normal(own.score, delta), _normal(other.score, delta)
        reach = math.hypot(a.high - a.value, b.high - b.value)
        d = a.value - b.value
        return a, b, ValueInterval(d, d - reach, d + reach), own.weight
    return _normal(own.score, delta), _normal(other.score, delta), _normal(own.score - other.score, delta), own.weight


def _normal(score: Floats, delta: float) -> ValueInterval:
    """The mean of the known scores with the interval of the normal distribution; NaN if there is none."""
    from scipy.special import ndtri

    known = score[~np.isnan(score)]
    if not len(known):
        return ValueInterval(math.nan, -math.inf, math.inf)
    value = float(known.mean())
    if len(known) == 1:
        return ValueInterval(value, -math.inf, math.inf)
    reach = float(ndtri(1.0 - delta / 2.0)) * float(known.std(ddof=1)) / math.sqrt(len(known))
    return ValueInterval(value, value - reach, value + reach)


def fewest_observations(log: "Log", mixture: SlateMixture) -> float:
    """How often the arm of the mixture was observed that was observed least, in the group where that is least."""
    pulls = np.zeros((log.n_groups, log.problem.n_arms))
    seen = log.observed.any(axis=1)
    np.add.at(pulls, (log.groups[log.rows.round][seen], log.rows.arm[seen]), 1.0)
    least = math.inf
    for g in range(log.n_groups):
        used = mixture.slates[mixture.shares[g] > 0.0]
        least = min(least, float(pulls[g][used[used >= 0]].min(initial=math.inf)))
    return least


def name_target(log: "Log", target: Any) -> str:
    """A target in a few words."""
    if isinstance(target, str):
        return "the logged slates" if target == LOGGED else target
    if isinstance(target, dict):
        return "one slate per group"
    if isinstance(target, SlateMixture):
        return "a mixture of slates"
    if isinstance(target, PolicyTarget):
        share = f", {100 * target.explore:g} % of slots explored" if target.explore else ""
        return name_target(log, target.policy) + share
    if is_policy_target(target):
        parts = [type(part).__name__ for part in list(target.parameters().values())[:1]]
        return f"{type(target).__name__}({', '.join(parts)})"
    return "slate " + ", ".join(log.arms[j] for j in log.numbers(target))


@dataclass(frozen=True, repr=False)
class LogComparison:
    """The values of several targets by name, against one baseline: print it, or write a page."""

    log: "Log"
    values: dict[str, PolicyValue]

    def __getitem__(self, name: str) -> PolicyValue:
        return self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __repr__(self) -> str:
        width = max(len(name) for name in self.values)
        first = next(iter(self.values.values()))
        head = f"{'':<{width}}  value per round, and minus {first.baseline} ({100 * (1 - first.delta):g} %)"
        return "\n".join([head, *(_line(name, found, width) for name, found in self.values.items())])

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page: the values with their intervals as a picture, warnings, assumptions."""
        from superarm.offline.page import write_page

        return write_page(self, Path(path))


def _line(name: str, found: PolicyValue, width: int) -> str:
    d = found.difference
    value = f"{found.value:9.4g} [{found.low:.4g}, {found.high:.4g}]"
    return f"{name:<{width}}  {value:<32} {d.value:+9.4g} [{d.low:+.4g}, {d.high:+.4g}]  {found.verdict}"


def compare_targets(
    log: "Log", targets: dict[str, Any], baseline: Any, method: str | None, delta: float
) -> LogComparison:
    """The value of each target: see :meth:`Log.compare`."""
    if not isinstance(targets, dict) or not targets:
        raise InvalidArgument("targets", f"{targets!r}", 'give a dict of names and targets: {"now": "logged", …}')
    return LogComparison(log, {str(name): evaluate(log, one, baseline, method, delta) for name, one in targets.items()})
