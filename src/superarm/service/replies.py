"""The replies of the HTTP interface."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from superarm.service.domain.components import ComponentInfo
from superarm.service.domain.spec import GivenFeatures, ProblemSpec, Settings


class DecisionReply(Struct, frozen=True, omit_defaults=True):
    """A decision: ``arms`` in slate order, ``action`` their numbers.

    ``context`` is what the caller gave, unless only its encoded form is stored; ``segment`` the number of its segment.
    ``signed_id`` lets a browser send feedback for this decision, where the service takes such feedback.
    """

    id: str
    problem: str
    arms: list[str]
    action: list[int]
    t: int
    version: int
    state: str
    created: bool = False
    propensities: list[float] | None = None
    policy_arms: list[str] | None = None
    slots: list[str] | None = None
    items: list[str] | None = None
    inclusion: list[float] | None = None
    group: str = ""
    fallback: bool = False
    context: GivenFeatures | None = None
    segment: int | None = None
    signed_id: str | None = None


class DecisionsReply(Struct, frozen=True):
    """Several decisions, in the order of the requests; an error takes the place of a decision that was refused."""

    decisions: list[Any]


class AppliedReply(Struct, frozen=True):
    """What feedback changed: ``state`` is open, deferred, complete, expired or unshown."""

    applied: bool
    late: bool
    state: str


class ArmRow(Struct, frozen=True):
    """What is known of one arm: one mean and variance per item; null where nothing was seen.

    ``items`` names them where the arm can touch some items only.
    """

    arm: str
    pulls: int
    pending: int
    retired: bool
    seen: list[int]
    mean: list[float | None]
    variance: list[float | None]
    items: list[str] | UnsetType = UNSET


class ProblemReply(Struct, frozen=True):
    """The current state of a problem.

    ``decisions`` counts those that were made and not erased; ``t`` is the last round that one was made for.
    """

    name: str
    n_arms: int
    n_items: int
    k: int
    decisions: int
    pending: int
    version: int
    settings: Settings
    items: list[str]
    weights: list[float]
    warnings: list[str] = []
    t: int = 0


class ArmsReply(Struct, frozen=True):
    """A page of arms."""

    arms: list[ArmRow]
    total: int


class IntervalReply(Struct, frozen=True):
    """An estimate with the ends of its interval, which holds at all times: it may be looked at every day."""

    value: float
    low: float
    high: float


class GroupReply(Struct, frozen=True):
    """The finished decisions of a group, and their mean reward; null before the first."""

    decisions: int
    mean: IntervalReply | None


class LiftReply(Struct, frozen=True):
    """The reward with the policy against that of the control share, over decisions after round ``since``.

    With ``item``, it is what this item contributed to the reward.

    All intervals hold together, at all times, with probability 1 - ``delta``. ``left_out`` decisions finished without a
    known reward. ``verdict`` is better, worse or open. ``fallback`` says that the guardrail shows the control slate.
    """

    share: float
    delta: float
    since: int
    policy: GroupReply
    control: GroupReply
    difference: IntervalReply | None
    relative: IntervalReply | None
    verdict: str
    left_out: int
    fallback: bool
    item: str | None = None


class CertificateReply(Struct, frozen=True):
    """Whether the slate that is best by the means is best up to ``epsilon``, with probability 1 - ``delta``.

    At all times: it may be looked at every day. ``shortfall`` bounds how much more any slate may be worth. If that is
    too much, ``decisions`` are expected to be needed besides, if arms go on to be shown in the present proportions;
    null if that is not known, and ``reason`` says why. If there is no certificate for such a problem, all numbers are
    null, and ``reason`` says why.
    """

    arms: list[str]
    certified: bool
    value: IntervalReply | None
    shortfall: float | None
    epsilon: float | None
    delta: float | None
    decisions: int | None
    reason: str


class NamesReply(Struct, frozen=True):
    """The names of all problems."""

    problems: list[str]


class ComponentsReply(Struct, frozen=True):
    """The components of one kind that a problem can name."""

    components: list[ComponentInfo]


class VersionsReply(Struct, frozen=True):
    """All versions of the settings; the last one is the current one."""

    versions: list[Settings]


class SpecReply(Struct, frozen=True):
    """How the problem was written down when it was created."""

    spec: ProblemSpec


class ErrorBody(Struct, frozen=True):
    """Why nothing was done."""

    code: str
    message: str


class ErrorReply(Struct, frozen=True):
    """Why nothing was done."""

    error: ErrorBody
