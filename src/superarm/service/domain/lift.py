"""The reward with the policy against that of the control share, with intervals that hold at all times.

Both are means of realised rewards, over the decisions that finished. Decisions that ended with entries of which nothing
is known, and those about some items only, are left out and counted.
"""

from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from superarm.offline.mean_sequences import BoundedSums, MeanBounds, bound_mean
from superarm.service.domain.events import Asked
from superarm.service.domain.intervals import gains_each


class LiftSums(Struct):
    """Rewards of the two groups, and of decisions that the guardrail let fall back.

    They count decisions after round ``since``: a change of the control slate or of the items begins anew. ``scale`` is
    the largest reward that there can be. ``shown_policy`` and ``shown_control`` count decisions when they are made,
    by what they showed.
    """

    policy: BoundedSums = field(default_factory=BoundedSums)
    control: BoundedSums = field(default_factory=BoundedSums)
    fallback: BoundedSums = field(default_factory=BoundedSums)
    scale: float = 0.0
    since: int = 0
    left_out: int = 0
    shown_policy: int = 0
    shown_control: int = 0

    def restart(self, since: int) -> None:
        """Begin anew, with the decisions after a round."""
        fresh = LiftSums(since=since)
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    def count(self, asked: Asked, sign: int = 1) -> None:
        """A decision was made; with ``sign`` -1, it was erased."""
        if asked.group and asked.t > self.since:
            if asked.group == "control" or asked.fallback:
                self.shown_control += sign
            else:
                self.shown_policy += sign

    def add(self, asked: Asked, value: float, problem: Any) -> None:
        """The reward of a decision is known."""
        if asked.group and asked.t > self.since:
            self.scale = self.scale or largest_reward(problem)
            self._group(asked).add(value, self.scale)

    def take_back(self, asked: Asked, value: float) -> None:
        """The decision was erased; its part of the spread stays, which keeps the intervals as wide as they were."""
        if asked.group and asked.t > self.since:
            group = self._group(asked)
            group.n -= 1
            group.total -= value

    def _group(self, asked: Asked) -> BoundedSums:
        return self.fallback if asked.fallback else self.control if asked.group == "control" else self.policy

    def leave_out(self, asked: Asked) -> None:
        """The reward of a decision will not be known."""
        self.left_out += bool(asked.group and asked.t > self.since)


def largest_reward(problem: Any) -> float:
    """The most that a slate can be worth: all its parameters are 1."""
    if not problem.reward.additive:
        return float(problem.weights.sum())
    added, nothing = gains_each(problem, np.ones((problem.k, problem.n_items)), np.array([problem.k]))
    return float(nothing + added.clip(0.0).sum())


class Lift(NamedTuple):
    """Means of the two groups, and the first minus the second, each with an interval that holds at all times.

    ``relative`` is the difference as a share of the control's mean; None while that may be 0.
    """

    policy: MeanBounds
    control: MeanBounds
    difference: MeanBounds
    relative: MeanBounds | None

    @property
    def verdict(self) -> str:
        """``"better"``, ``"worse"``, or ``"open"`` while the interval holds 0."""
        low, high = self.difference[1:]
        return "better" if low > 0.0 else "worse" if high < 0.0 else "open"


def measure_lift(sums: LiftSums, delta: float = 0.05) -> Lift | None:
    """The lift; all intervals hold together with probability 1 - ``delta``. None until both groups have a reward."""
    if not sums.policy.n or not sums.control.n:
        return None
    policy, control = (bound_mean(one, sums.scale, 0.5 * delta) for one in (sums.policy, sums.control))
    difference = MeanBounds(policy.value - control.value, policy.low - control.high, policy.high - control.low)
    relative = None
    if control.low > 0.0:
        ends = (policy.value / control.value, policy.low / control.high, policy.high / control.low)
        relative = MeanBounds(*(end - 1.0 for end in ends))
    return Lift(policy, control, difference, relative)


RESUMED_DECISIONS = 50
"""After a fallback, the policy is shown again when so many of its decisions could earn nothing: no flapping."""


class Guard(NamedTuple):
    """What the policy's decisions so far are surely worth, and what the guardrail asks of them."""

    earned: float
    needed: float

    @property
    def holds(self) -> bool:
        """Whether the policy may be shown."""
        return self.earned >= self.needed


def check_guard(sums: LiftSums, allowed: float, next_decisions: int, delta: float = 0.05) -> Guard:
    r"""The budget of conservative bandits, [WuEtAl2016]_, on means of rewards.

    With :math:`n_\pi` decisions of the policy, :math:`n_0` of the control slate, whose mean reward is :math:`\mu_0`,
    and m decisions to come, all together earn at least :math:`(1 - \alpha)` of what the control slate would have if

    .. math:: \sum_{t \in \pi} \mu_t + n_0 \mu_0 \ge (1 - \alpha)(n_\pi + n_0 + m)\,\mu_0
              \iff \sum_{t \in \pi} \mu_t \ge [(1 - \alpha)(n_\pi + m) - \alpha n_0]\,\mu_0

    The left side is ``earned``, the lower end of its interval, over decisions that finished; the right side ``needed``,
    at the upper end of :math:`\mu_0`. Both hold at all times with probability 1 - ``delta``.
    """
    due = (1.0 - allowed) * (sums.shown_policy + next_decisions) - allowed * sums.shown_control
    if due <= 0.0:
        return Guard(0.0, 0.0)
    scale = sums.scale or 1.0
    low = bound_mean(sums.policy, scale, delta).low if sums.policy.n else 0.0
    high = bound_mean(sums.control.joined(sums.fallback), scale, delta).high
    return Guard(sums.policy.n * low, due * high)
