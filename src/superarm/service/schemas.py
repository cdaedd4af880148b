"""The request bodies of the HTTP interface; ``replies`` holds the replies."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from superarm.service.domain.components import AnyActionSpec, Name
from superarm.service.domain.spec import (
    MAX_ARMS,
    MAX_ITEMS,
    MAX_K,
    ControlSlate,
    Draws,
    GivenFeatures,
    Guardrail,
    Late,
    MaxPending,
    Mode,
    PolicyName,
    Rate,
    Rounds,
    Share,
    Vector,
    Weight,
    Window,
    Words,
)

MAX_BULK = 10_000

MAX_BULK_ARMS = 1_000_000
"""The decisions of one request have at most so many arms in total."""

Arms = Annotated[list[Name], Meta(max_length=MAX_ARMS)]


class Body(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request body; unknown fields are refused."""


class SlotBody(Body, frozen=True):
    """A named slot of the slate, and the arms that it may not hold."""

    id: Name
    excluded: Arms = field(default_factory=list)


class AskBody(Body, frozen=True):
    """Ask for a decision; every field may be left out.

    ``items`` are those that the decision is about: only they are awaited, and feedback on them completes it. ``unit``
    is whom the slate is for, a visitor for instance: its decisions are all of the policy or all of the control.
    ``context`` has the features of the user, and ``pairs`` those of the user and each arm, where the problem has such.
    """

    id: Name | None = None
    eligible: Arms | None = None
    excluded: Arms = field(default_factory=list)
    pinned: Annotated[list[Name], Meta(max_length=MAX_K)] = field(default_factory=list)
    k: Annotated[int, Meta(ge=1, le=MAX_K)] | None = None
    slots: Annotated[list[SlotBody], Meta(min_length=1, max_length=MAX_K)] | None = None
    baseline: Annotated[list[Name], Meta(min_length=1, max_length=MAX_K)] | None = None
    deferred: bool = False
    items: Annotated[list[Name], Meta(min_length=1, max_length=MAX_ITEMS)] | None = None
    unit: Name | None = None
    context: GivenFeatures | None = None
    pairs: dict[Name, Vector] | None = None


PLAIN_ASK = AskBody()
"""A request that asks for nothing in particular, as most do."""


class AskManyBody(Body, frozen=True):
    """Ask for several decisions at once."""

    decisions: Annotated[list[AskBody], Meta(min_length=1, max_length=MAX_BULK)]


class UnitBody(Body, frozen=True):
    """What one arm did, for one item or, without ``item``, for all: a ``value``, or ``seen: false``."""

    arm: Name
    item: Name | None = None
    value: Share | None = None
    seen: bool = True


Matrix = Annotated[list[Annotated[list[Share | None], Meta(max_length=10_000)]], Meta(max_length=MAX_K)]


class TellBody(Body, frozen=True):
    """Feedback: a list of units, or ``outcome``, one row per arm of the slate; null stays pending.

    ``seen`` marks, in the shape of ``outcome``, what was not observed and will not be. ``arms`` names the arms of the
    rows, where they are others than the slate's. In a sparse problem a row has one value per item of its arm.
    """

    feedback: Annotated[list[UnitBody], Meta(max_length=MAX_BULK)] | None = None
    outcome: Matrix | None = None
    seen: Annotated[list[list[bool]], Meta(max_length=MAX_K)] | None = None
    amend: bool = False
    arms: Annotated[list[Name], Meta(max_length=MAX_K)] | None = None


class BeaconBody(Body, frozen=True):
    """Feedback from a browser: ``signed_id`` as the decision had it, the rest as in other feedback."""

    signed_id: Annotated[str, Meta(max_length=8_192)]
    feedback: Annotated[list[UnitBody], Meta(max_length=MAX_BULK)] | None = None
    outcome: Matrix | None = None
    seen: Annotated[list[list[bool]], Meta(max_length=MAX_K)] | None = None


class BulkLine(TellBody, frozen=True, kw_only=True):
    """A line of bulk feedback."""

    decision: Name


class ActivateBody(Body, frozen=True):
    """A decision was shown: as it was given, or as ``shown``; an empty list means it never was."""

    shown: Annotated[list[Name], Meta(max_length=MAX_K)] | None = None


class ErasureBody(Body, frozen=True):
    """Erase all decisions that were asked for with this ``unit``."""

    unit: Name


class ArmsBody(Body, frozen=True):
    """Arms to add and to retire. Adding a retired arm restores it, with what was learnt about it.

    ``actions`` is the action set of all arms, where the problem's own does not say what may be done with new ones;
    ``support`` names the items of each new arm, where arms can touch some items only, and ``features`` has the features
    of each new arm, where arms have features.
    """

    add: Arms = field(default_factory=list)
    retire: Arms = field(default_factory=list)
    actions: AnyActionSpec | None = None
    support: dict[Name, Arms] | None = None
    features: dict[Name, GivenFeatures] | None = None


class ItemsBody(Body, frozen=True):
    """Items to add, with weights (1 by default), and to retire."""

    add: Arms = field(default_factory=list)
    weights: list[Weight] | None = None
    retire: Arms = field(default_factory=list)


class PastBody(Body, frozen=True):
    """Outcomes without a decision, for a warm start: ``arms[n]`` did ``outcomes[n]``, null where nothing was seen."""

    id: Name
    arms: Annotated[list[Name], Meta(min_length=1, max_length=MAX_BULK)]
    outcomes: Annotated[list[list[Share | None]], Meta(min_length=1, max_length=MAX_BULK)]


class PolicyChange(Body, frozen=True):
    """A policy by its name, with its parameters; without a name, parameters of the current policy.

    ``window`` and ``half_life`` as in the settings of a problem; null takes one away.
    """

    name: PolicyName | UnsetType = UNSET
    parameters: dict[str, float] | UnsetType = UNSET
    window: Rounds | UnsetType | None = UNSET
    half_life: Rounds | UnsetType | None = UNSET


class SettingsBody(Body, frozen=True):
    """Settings, every field of which may be left out.

    ``PATCH`` keeps what is left out; ``PUT`` gives it the default of a new problem.
    """

    policy: PolicyChange | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    explore: Share | UnsetType = UNSET
    window_s: Window | UnsetType | None = UNSET
    at_window_end: Share | Literal["ignore"] | UnsetType = UNSET
    late: Late | UnsetType = UNSET
    max_pending: MaxPending | UnsetType = UNSET
    propensity_draws: Draws | UnsetType = UNSET
    control: Share | UnsetType = UNSET
    control_slate: ControlSlate | UnsetType = UNSET
    guardrail: Guardrail | UnsetType | None = UNSET
    max_per_second: Rate | UnsetType | None = UNSET
    words: Words | UnsetType | None = UNSET
