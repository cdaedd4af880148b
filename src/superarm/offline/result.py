"""The result of an evaluation: a value per round, with an interval and its difference from a baseline."""

from dataclasses import dataclass

from superarm.offline.estimators.methods import METHODS

MODEL_BASED = ("intervals", "direct", "one_step")
"""Methods whose ``effective`` is the number of observations of the arm that was observed least."""


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
