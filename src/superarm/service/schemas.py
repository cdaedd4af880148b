"""The request bodies of the HTTP interface; ``replies`` holds the replies."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, field
from msgspec.structs import fields

from superarm.core.totals import MAX_TRIALS
from superarm.service.domain.components import AnyActionSpec, Name, Positive
from superarm.service.domain.context_spec import GivenFeatures, Vector
from superarm.service.domain.spec import MAX_ARMS, MAX_ITEMS, MAX_K, PolicySpec, Score, Settings, Share, Weight

MAX_BULK = 10_000

MAX_BULK_ARMS = 1_000_000
"""The decisions of one request have at most so many arms in total."""

Arms = Annotated[list[Name], Meta(max_length=MAX_ARMS)]


class Body(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request body; unknown fields are refused."""


class SlotBody(Body, frozen=True):
    """A named slot of the slate.

    Parameters
    ----------
    id
        The name of the slot.
    excluded
        Arms that it may not hold.
    pinned
        The arm that it must hold.
    """

    id: Name
    excluded: Arms = field(default_factory=list)
    pinned: Name | None = None


class AskBody(Body, frozen=True):
    """Ask for a decision; every field may be left out.

    Parameters
    ----------
    id
        The decision's id, of your choice: the same id and body give the same decision, and it seeds the randomness.
    eligible
        Only these arms may be in the slate.
    excluded
        These arms may not be in the slate.
    pinned
        These arms come first in the slate, and the policy chooses the rest.
    k
        The size of a shorter slate.
    slots
        Named slots, each with arms that it may not hold, or with the one that it must hold.
    baseline
        The slate that you would show without the policy: the answer in other modes than ``online``, and for the
        control share.
    deferred
        Whether the decision counts only after it was activated.
    items
        The items that the decision is about: only they are awaited, and feedback on them completes it.
    unit
        Whom the slate is for, a visitor for instance: its decisions are all of the policy or all of the control.
    context
        The features of the user.
    pairs
        For each arm the features of the pair of the user and the arm, where the problem has such.
    budget
        What the arms of this decision may cost together, in place of the budget of a knapsack.
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
    budget: Positive | None = None


class AskManyBody(Body, frozen=True):
    """Ask for several decisions at once.

    Parameters
    ----------
    decisions
        The requests, one after the other.
    """

    decisions: Annotated[list[AskBody], Meta(min_length=1, max_length=MAX_BULK)]


class UnitBody(Body, frozen=True):
    """What one arm did: a ``value``, or ``seen: false``.

    Parameters
    ----------
    arm
        The arm.
    item
        The item that it is about; without it, all items of the decision.
    value
        What was observed, from 0 to 1.
    seen
        False if it was not observed, and will not be.
    """

    arm: Name
    item: Name | None = None
    value: Share | None = None
    seen: bool = True


class PartBody(Body, frozen=True):
    """A part of a slate, of which only the total is known.

    Parameters
    ----------
    arms
        The arms of the part.
    total
        What they did together, from 0 to 1.
    """

    arms: Annotated[list[Name], Meta(min_length=1, max_length=MAX_K)]
    total: Share


Trials = Annotated[int, Meta(ge=1, le=MAX_TRIALS)]
Matrix = Annotated[list[Annotated[list[Share | None], Meta(max_length=10_000)]], Meta(max_length=MAX_K)]


class TellBody(Body, frozen=True):
    """Feedback of a decision: ``feedback``, ``outcome``, ``total``, ``totals`` or ``scores``.

    Parameters
    ----------
    feedback
        What single arms did.
    outcome
        One row per arm of the slate, one value per item that the arm can touch; null stays pending.
    seen
        In the shape of ``outcome``: false for what was not observed and will not be.
    amend
        Whether values replace earlier ones. Otherwise a larger value does, and any other one is refused with 409.
    arms
        The arms of the rows of ``outcome``, where they are others than the slate's.
    total
        What the slate did as a whole, from 0 to 1, where the reward is ``total``.
    totals
        What parts of the slate did, which have no arm in common; parts that are not named stay pending.
    n
        Of how many trials each total is the mean.
    scores
        Where the problem has ``scores``, that of each arm, in its own units; null: there is none, and will be none.
    """

    feedback: Annotated[list[UnitBody], Meta(max_length=MAX_BULK)] | None = None
    outcome: Matrix | None = None
    seen: Annotated[list[list[bool]], Meta(max_length=MAX_K)] | None = None
    amend: bool = False
    arms: Annotated[list[Name], Meta(max_length=MAX_K)] | None = None
    total: Share | None = None
    totals: Annotated[list[PartBody], Meta(min_length=1, max_length=MAX_K)] | None = None
    n: Trials = 1
    scores: Annotated[dict[Name, Score | None], Meta(max_length=MAX_K)] | None = None


class BulkLine(TellBody, frozen=True, kw_only=True):
    """A line of bulk feedback.

    Parameters
    ----------
    decision
        The id of the decision.
    """

    decision: Name


class ActivateBody(Body, frozen=True):
    """A decision was shown.

    Parameters
    ----------
    shown
        The slate that was shown, if it is another one; an empty list means that none was.
    """

    shown: Annotated[list[Name], Meta(max_length=MAX_K)] | None = None


class ErasureBody(Body, frozen=True):
    """Erase all decisions of a unit.

    Parameters
    ----------
    unit
        The unit that they were asked for with.
    """

    unit: Name


class ArmsBody(Body, frozen=True):
    """Arms to add and to retire.

    Parameters
    ----------
    add
        Arms to add; adding a retired arm restores it, with what was learnt about it.
    retire
        Arms that no new slate may have.
    actions
        The action set of all arms: other prices or limits, or what may be done with new arms.
    support
        The items of each new arm, where arms can touch some items only.
    features
        The features of each new arm, where arms have features.
    prices
        New costs of arms of a knapsack; the others keep theirs, and names that are not known are new arms.
    budget
        The new budget of a knapsack.
    """

    add: Arms = field(default_factory=list)
    retire: Arms = field(default_factory=list)
    actions: AnyActionSpec | None = None
    support: dict[Name, Arms] | None = None
    features: dict[Name, GivenFeatures] | None = None
    prices: dict[Name, Positive] = field(default_factory=dict)
    budget: Positive | None = None


class BaselineBody(Body, frozen=True):
    """The ranking that is followed from now on.

    Parameters
    ----------
    arms
        All arms that are known to be worth showing today, best first; leave out new ones, of which nothing is known.
    """

    arms: Annotated[list[Name], Meta(min_length=1, max_length=1_000)]


class ItemsBody(Body, frozen=True):
    """Items to add and to retire.

    Parameters
    ----------
    add
        Items to add.
    weights
        Their weights; 1 each by default.
    retire
        Items that count no longer.
    """

    add: Arms = field(default_factory=list)
    weights: list[Weight] | None = None
    retire: Arms = field(default_factory=list)


class LearnBody(Body, frozen=True):
    """Which items a problem that learns them should have.

    Parameters
    ----------
    version
        An earlier version, to return to; without it, items are learnt anew from all decisions.
    """

    version: Annotated[int, Meta(ge=1)] | None = None


class PastBody(Body, frozen=True):
    """Outcomes, or totals of sets, without a decision, for a warm start.

    Parameters
    ----------
    id
        An id of your choice: the same id and body count once.
    arms
        The arm of each row.
    outcomes
        One row per arm, one value per item; null where nothing was seen.
    contexts
        With segments, the context of each row, as a request for a decision has it, or the name of its segment.
    sets
        Where the reward is ``total``, the sets that were shown, in place of ``arms``: each with its total.
    n
        Of how many trials each total is the mean.
    scores
        Where the problem has ``scores``, one for each of ``arms``, in place of ``outcomes``; null is none.
    """

    id: Name
    arms: Annotated[list[Name], Meta(max_length=MAX_BULK)] = field(default_factory=list)
    outcomes: Annotated[list[list[Share | None]], Meta(max_length=MAX_BULK)] = field(default_factory=list)
    sets: Annotated[list[PartBody], Meta(max_length=MAX_BULK)] = field(default_factory=list)
    n: Trials = 1
    contexts: Annotated[list[dict[str, Any] | str], Meta(max_length=MAX_BULK)] | None = None
    scores: Annotated[list[Score | None], Meta(max_length=MAX_BULK)] | None = None


Count = Annotated[int, Meta(ge=0, le=2**53)]


class SumsBody(Body, frozen=True):
    """Integer sums of outcomes without a decision, as the statement of ``superarm learn --sql`` makes them.

    Parameters
    ----------
    id
        An id of your choice, such as that of a day: the same id and body count once.
    rows
        Segment ("" without segments), arm and item ("" if there is one), then in how many decisions something of the
        arm was seen, in how many the item was, and the sums of outcomes and their squares in units of 2^-24.
    patterns
        How often rows of a published table were shown with the same clicks: its version, segment, row (-1 for the
        control slate), a bit for each place that was clicked, and how often.
    replace
        Whether these sums take the place of earlier ones with the same id.
    """

    id: Name
    rows: Annotated[list[tuple[str, str, str, Count, Count, Count, Count]], Meta(max_length=100_000)] = field(
        default_factory=list
    )
    patterns: Annotated[list[tuple[int, str, int, Count, Count]], Meta(max_length=100_000)] = field(
        default_factory=list
    )
    replace: bool = False


def _partial(kind: type[Struct], name: str, words: str, **other: Any) -> Any:
    """A body with the fields of ``kind``, all of which may be left out; null takes away what may be unset there."""
    optional = [
        (one.name, other.get(one.name, one.type) | (UnsetType | None if one.default is UNSET else UnsetType), UNSET)
        for one in fields(kind)
    ]
    return defstruct(name, optional, bases=(Body,), namespace={"__doc__": words}, frozen=True)


PolicyChange = _partial(PolicySpec, "PolicyChange", "Another policy, or other parameters of the current one.")
SettingsBody = _partial(Settings, "SettingsBody", "Settings to change; what is left out stays.", policy=PolicyChange)


class Query(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a URL; unknown ones are refused."""


class PageQuery(Query, frozen=True):
    """A page of a list.

    Parameters
    ----------
    offset
        How many entries to leave out before the first.
    limit
        How many entries a page has at most.
    """

    offset: Annotated[int, Meta(ge=0, le=10**9)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class AuditQuery(PageQuery, frozen=True):
    """A page of changes.

    Parameters
    ----------
    offset
        How many entries to leave out before the first.
    limit
        How many entries a page has at most.
    problem
        The name of a problem; without it, all problems and keys.
    """

    problem: str | None = None


class LiftQuery(Query, frozen=True):
    """What is compared.

    Parameters
    ----------
    delta
        The chance that an interval may be wrong.
    item
        An item, whose part of the reward is compared, or a segment of the context, whose decisions are compared;
        without it, the whole reward of all decisions.
    """

    delta: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.05
    item: str | None = None


class ExplanationQuery(Query, frozen=True):
    """How much is explained.

    Parameters
    ----------
    most
        How many features are named for each arm.
    """

    most: Annotated[int, Meta(ge=0, le=100)] = 5
