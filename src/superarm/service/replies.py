"""The replies of the HTTP interface."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from superarm.service.domain.components import AnyActionSpec
from superarm.service.domain.context_spec import GivenFeatures
from superarm.service.domain.spec import ScoresSpec, Settings


class DecisionReply(Struct, frozen=True, omit_defaults=True):
    """A decision.

    Parameters
    ----------
    id
        Its id.
    problem
        Its problem.
    arms
        The slate: names of arms, in their order.
    action
        The numbers of these arms.
    t
        The round that it was made for.
    version
        The version of the settings under which it was made.
    state
        ``open``, ``deferred``, ``complete``, ``expired`` or ``unshown``.
    created
        Whether this request made it; false if it was made before.
    propensities
        The chance of each arm in its slot, given the slots before.
    policy_arms
        The slate that the policy would have shown, where another one is shown.
    slots
        The names of the slots.
    items
        The items that it is about, if it named some.
    inclusion
        The chance of each arm to be in the slate, in any slot.
    group
        ``policy`` or ``control``, if it is part of their comparison.
    fallback
        Whether the guardrail let the control slate be shown.
    context
        The context as it was given, unless only its encoded form is stored.
    segment
        The number of the segment of its context.
    scores
        The scores that were told of its arms, where the problem has ``scores``.
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
    scores: dict[str, float] | None = None


class DecisionsReply(Struct, frozen=True):
    """Several decisions, in the order of the requests; an error takes the place of a decision that was refused.

    Parameters
    ----------
    decisions
        The decisions and errors.
    """

    decisions: list[Any]


class AppliedReply(Struct, frozen=True):
    """What feedback changed.

    Parameters
    ----------
    applied
        Whether anything changed.
    late
        Whether it came after the window.
    state
        The state of the decision: ``open``, ``deferred``, ``complete``, ``expired`` or ``unshown``.
    """

    applied: bool
    late: bool
    state: str


class ArmRow(Struct, frozen=True):
    """What is known of one arm.

    Parameters
    ----------
    arm
        Its name.
    pulls
        How often it was observed.
    pending
        In how many decisions it awaits feedback.
    retired
        Whether no new slate may have it.
    seen
        How often each item was observed.
    mean
        The mean of each item; null where nothing was seen. Where the reward is ``total``, the effect of the arm: by how
        much a total is larger, or smaller, than with the mean arm in its place.
    variance
        The variance of each item; null where nothing was seen. Where the reward is ``total``, that of the effect.
    items
        The names of these items, where the arm can touch some items only.
    score
        The mean of its scores, where the problem has ``scores``; null if none was told.
    """

    arm: str
    pulls: int
    pending: int
    retired: bool
    seen: list[int]
    mean: list[float | None]
    variance: list[float | None]
    items: list[str] | UnsetType = UNSET
    score: float | UnsetType | None = UNSET


class ProblemReply(Struct, frozen=True):
    """The current state of a problem.

    Parameters
    ----------
    name
        Its name.
    n_arms
        How many arms there are, retired ones included.
    n_items
        How many items there are.
    k
        The size of the largest slate.
    decisions
        How many decisions were made and not erased.
    pending
        How many of them await feedback.
    version
        The current version of the settings, counted from 1.
    settings
        The current settings.
    items
        The names of the items.
    weights
        The weights of the items; 0 for retired ones.
    warnings
        What its owner should look at, a sentence each.
    t
        The last round that a decision was made for.
    reason
        Why its policy is recommended for such a problem; left out if another one was chosen.
    scores
        The scale of its scores, where it has any: ``items`` are the upper edges of its bins.
    actions
        Its action set, with prices and budget for instance; left out where any ``k`` arms are a slate.
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
    reason: str | UnsetType = UNSET
    scores: ScoresSpec | UnsetType = UNSET
    actions: AnyActionSpec | UnsetType = UNSET


class VisitorClass(Struct, frozen=True):
    """A group of visitors that was found.

    Parameters
    ----------
    share
        The share of visitors who belong to it.
    rate
        The mean rate at which they like arms.
    arms
        The arms that they like more than others do, the most telling first.
    """

    share: float
    rate: float
    arms: list[str]


class ItemsVersion(Struct, frozen=True):
    """A version of items that were learnt.

    Parameters
    ----------
    version
        Its number, counted from 1.
    at
        When it was written, in milliseconds since 1970.
    classes
        How many groups of visitors it has.
    decisions
        How many decisions counted then.
    z
        By how many standard errors so many groups explain held-out visitors better than one.
    of
        The earlier version that it repeats; 0 if it was learnt.
    """

    version: int
    at: int
    classes: int
    decisions: int
    z: float
    of: int


class ItemsReply(Struct, frozen=True):
    """The items of a problem.

    Parameters
    ----------
    learn
        Whether the problem learns them itself.
    items
        The names of the items of feedback.
    said
        Whether groups of visitors should be served by items, in a sentence; empty where that is not asked.
    decisions
        How many decisions items are learnt from.
    next_at
        From how many decisions on they are learnt anew.
    classes
        The groups of visitors that slates serve now, the largest first.
    versions
        All versions, the newest last.
    realised
        The mean reward of the newest finished decisions: the share of visitors who liked something, if outcomes are 0
        or 1.
    claimed
        What the estimates predicted for the same slates, for all visitors together.
    """

    learn: bool
    items: list[str]
    said: str
    decisions: int
    next_at: int
    classes: list[VisitorClass]
    versions: list[ItemsVersion]
    realised: float | None
    claimed: float | None


class ArmsReply(Struct, frozen=True):
    """A page of arms.

    Parameters
    ----------
    arms
        The arms of the page.
    total
        How many arms there are.
    """

    arms: list[ArmRow]
    total: int


class IntervalReply(Struct, frozen=True):
    """An estimate with the ends of its interval, which holds at all times: it may be looked at every day.

    Parameters
    ----------
    value
        The estimate.
    low
        The lower end.
    high
        The upper end.
    """

    value: float
    low: float
    high: float


class GroupReply(Struct, frozen=True):
    """The finished decisions of a group.

    Parameters
    ----------
    decisions
        How many there are.
    mean
        Their mean reward; null before the first.
    """

    decisions: int
    mean: IntervalReply | None


class EarnedReply(Struct, frozen=True):
    """The mean reward of the policy's newest decisions, beside what the estimates predicted for the same slates.

    Parameters
    ----------
    realised
        The mean reward of the newest quarter of finished decisions.
    estimated
        What the estimates predicted for their slates when they finished; null where that is not known.
    difference
        Realised minus estimated.
    low
        The lower end of the 95 % interval of the difference, for one reading.
    high
        Its upper end.
    warning
        What to do where the two part; empty where they agree.
    """

    realised: float
    estimated: float | None
    difference: float | None
    low: float | None
    high: float | None
    warning: str


class EarlierLift(Struct, frozen=True):
    """A comparison that ended when the control slate or the items changed.

    Parameters
    ----------
    since
        Only decisions after this round were compared.
    until
        The last of these rounds.
    control_slate
        The control slate of that time, as in the settings.
    policy
        Decisions that showed what the policy chose.
    control
        Decisions that showed the control slate.
    difference
        The mean of the policy minus that of the control; null if one of them is not known.
    relative
        The difference as a share of the control's mean; null if that may be 0.
    verdict
        ``better``, ``worse`` or ``open``.
    method
        How the intervals were made: ``large`` by the central limit theorem, ``bounded`` by the largest reward that
        there can be, ``planned`` for the planned end alone.
    needed
        About how many more decisions decide, if the difference stays what it is; 0 if it is decided, null if that
        cannot be said. Of a planned comparison, how many are awaited until it speaks.
    needed_at_half
        About how many decisions would, with a control share of a half.
    said
        The result in a sentence.
    """

    since: int
    until: int
    control_slate: str | list[str]
    policy: GroupReply
    control: GroupReply
    difference: IntervalReply | None
    relative: IntervalReply | None
    verdict: str
    method: str
    needed: int | None
    needed_at_half: int | None
    said: str


class LiftReply(Struct, frozen=True):
    """The reward with the policy against that of the control share.

    All intervals hold together, at all times, with probability 1 - ``delta``.

    Parameters
    ----------
    share
        The share of decisions that show the control slate.
    delta
        The chance that an interval is ever wrong.
    since
        Only decisions after this round are compared.
    policy
        Decisions that show what the policy chose.
    control
        Decisions that show the control slate.
    difference
        The mean of the policy minus that of the control; null until both are known.
    relative
        The difference as a share of the control's mean; null while that may be 0.
    verdict
        ``better``, ``worse`` or ``open``.
    left_out
        How many decisions finished without a reward that can be compared.
    fallback
        Whether the guardrail shows the control slate.
    item
        The item or the segment that is compared; null for the whole reward of all decisions.
    earned
        What the policy earns, beside what was estimated; null before the first decision has finished.
    missing
        Why the difference is null, and when the first window ends; empty if it is known.
    earlier
        The comparisons before this one, the newest first.
    said
        The result in a sentence.
    method
        How the intervals were made: ``large`` by the central limit theorem, ``bounded`` by the largest reward that
        there can be, ``planned`` for the planned end alone.
    needed
        About how many more decisions decide, if the difference stays what it is; 0 if it is decided, null if that
        cannot be said. Of a planned comparison, how many are awaited until it speaks.
    needed_at_half
        About how many decisions would, with a control share of a half.
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
    method: str
    needed: int | None
    needed_at_half: int | None
    item: str | None = None
    earned: EarnedReply | None = None
    missing: str = ""
    earlier: list[EarlierLift] = []
    said: str = ""


class NamesReply(Struct, frozen=True):
    """The names of all problems.

    Parameters
    ----------
    problems
        Their names.
    """

    problems: list[str]


class VersionsReply(Struct, frozen=True):
    """All versions of the settings; the last one is the current one.

    Parameters
    ----------
    versions
        The settings, from the first version to the current one.
    """

    versions: list[Settings]


class ErasedReply(Struct, frozen=True):
    """How many decisions were erased.

    Parameters
    ----------
    problem
        Their problem.
    erased
        How many decisions were erased.
    """

    problem: str
    erased: int


class FeatureEffect(Struct, frozen=True):
    """What a feature adds to the estimate of an arm.

    Parameters
    ----------
    feature
        The feature.
    effect
        What it adds to the estimated mean; of a logistic model, to its log-odds.
    """

    feature: str
    effect: float


class ExplainedArmReply(Struct, frozen=True):
    """An arm of a slate, and why it was chosen.

    Parameters
    ----------
    arm
        Its name.
    estimate
        Its estimated parameters, one per item that it can touch.
    optimistic
        The parameters that the policy hoped for, or drew.
    gain
        What it added to the arms before it, at the parameters that were hoped for.
    estimated_gain
        What it added at the estimates.
    features
        The features that mattered most.
    """

    arm: str
    estimate: list[float]
    optimistic: list[float]
    gain: float
    estimated_gain: float
    features: list[FeatureEffect]


class WorthReply(Struct, frozen=True):
    """What a slate is worth by a model of totals: ±2 deviations, about 95 % sure as far as arms add up.

    Parameters
    ----------
    value
        The estimate.
    low
        Two deviations less.
    high
        Two deviations more.
    """

    value: float
    low: float
    high: float


class ExplanationReply(Struct, frozen=True):
    """Why these arms, by what is known now; a pending decision as if it was not made yet.

    Parameters
    ----------
    id
        The decision's id.
    problem
        Its problem.
    arms
        The arms in the order of picking.
    worth
        What they are worth together, where the reward is ``total``: the estimates of arms are their shares of it.
    """

    id: str
    problem: str
    arms: list[ExplainedArmReply]
    worth: WorthReply | UnsetType = UNSET
