"""Events: the lines of the log, frozen and encoded as JSON.

The log is authoritative. An event holds all that its effect depends on, so that a replay never decides again, never
consults the clock, and never asks which settings were in force. Arms and items are numbers: they are only ever
appended. ``at`` is wall-clock milliseconds, for people; no effect depends on it.
"""

from typing import Any, Union

from msgspec import Struct, field, json

from superarm.decisions import Event, Part
from superarm.service.domain.components import AnyActionSpec
from superarm.service.domain.context_spec import GivenFeatures
from superarm.service.domain.spec import ProblemSpec, Settings
from superarm.tables import Pattern, Table


class Created(Event, frozen=True):
    """A problem came into being; all its randomness comes from ``key``."""

    spec: ProblemSpec
    key: str
    by: str = ""


class Changed(Event, frozen=True):
    """Settings changed after round ``t``: ``version`` counts from 1, the creation's settings."""

    version: int
    settings: Settings
    by: str = ""
    t: int = 0


class Armed(Event, frozen=True):
    """Arms were added and retired: ``actions`` is the new action set, ``support`` the items of each new arm.

    ``features`` are those of each new arm, where arms have features; ``restore`` are retired arms that came back.
    """

    add: list[str] = field(default_factory=list)
    retire: list[int] = field(default_factory=list)
    by: str = ""
    actions: AnyActionSpec | None = None
    support: list[list[int]] | None = None
    features: list[GivenFeatures] | None = None
    restore: list[int] = field(default_factory=list)


class Itemed(Event, frozen=True):
    """Items were added, with weights, and retired."""

    add: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    retire: list[int] = field(default_factory=list)
    by: str = ""


class Guarded(Event, frozen=True):
    """The guardrail changed over, before round ``t``: to the control slate (``fallback``), or back to the policy.

    ``earned`` is what the policy's decisions are surely worth so far, ``needed`` what was asked of them.
    """

    fallback: bool
    t: int
    earned: float
    needed: float


class Warmed(Event, frozen=True):
    """Outcomes without a decision: one row per arm, one value per item, ``UNSEEN`` where nothing was seen.

    Under a policy that forgets they count for round ``t``. ``segments`` are those of the rows, None without a context.
    ``totals`` are those of sets, where only totals are told.
    """

    id: str
    body: str
    arms: list[int]
    rows: list[list[float]]
    t: int = 0
    segments: list[int] | None = None
    totals: list[Part] = field(default_factory=list)


class Summed(Event, frozen=True):
    """Sums of many outcomes: of arms and items in segments, or of the clicks on rows of a published table.

    ``rows`` are the numbers of segment, arm and item, and pulls, seen, total and square as integers;
    ``patterns`` are those of ``superarm.tables``, ``claims`` what the estimates said then that each is worth. The sums
    of an earlier event with the same ``id`` are taken back.
    """

    id: str
    body: str
    rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    patterns: list[Pattern] = field(default_factory=list)
    t: int = 0
    by: str = ""
    claims: list[float] = field(default_factory=list)


class Published(Event, frozen=True):
    """A table was published before round ``t``, when so many ``decisions`` were learnt from."""

    table: Table
    t: int
    decisions: int


class Restriction(Struct, frozen=True, omit_defaults=True, gc=False):
    """Which slates the caller of a decision allowed, by numbers of arms.

    Of ``eligible`` (None: all arms) and ``excluded`` arms, whichever is shorter is kept. ``slots`` are the arms that
    each slot may not hold; None if slots do not matter. ``budget`` takes the place of that of a knapsack.
    """

    eligible: tuple[int, ...] | None = None
    excluded: tuple[int, ...] = ()
    pinned: tuple[int, ...] = ()
    k: int | None = None
    slots: tuple[tuple[int, ...], ...] | None = None
    budget: float | None = None


class Deleted(Event, frozen=True):
    """A problem was deleted, with its decisions. A later ``Created`` of the same stream begins another problem."""

    by: str = ""


class ErasureRequested(Event, frozen=True, tag="erasure"):
    """Somebody asked that ``n`` decisions be erased: all of one unit, or named ones. It does not say which."""

    n: int
    unit: bool = False
    by: str = ""


class Compacted(Event, frozen=True):
    """``n`` decisions of a problem were removed from the log."""

    n: int


class Framed(Event, frozen=True):
    """Standardised features have another centre and scale from now on: those of ``places``, by the feature's name."""

    version: int
    places: dict[str, tuple[float, float]]


ARRAYS = 1
"""The version of the arrays in events. A change of their form increases it, so that earlier programs refuse them."""


class Fitted(Event, frozen=True):
    """What a policy fitted after round ``t``: an event, so that all workers have one state.

    ``plan`` is that of its memory, as plain data: ``superarm.describe`` reads it. ``arrays`` is their version.
    """

    t: int
    plan: dict[str, Any]
    arrays: int = 1


class Learnt(Event, frozen=True):
    """A version of items that the problem learnt from ``n`` decisions, since round ``since``; counted from 1.

    ``shares`` are those of the classes, ``p`` the rates of every arm by class, ``level`` those of the classes and
    ``rates`` those of the arms, as ``superarm.items.Items`` has them. ``of`` is the earlier version that it repeats.
    """

    version: int
    n: int
    since: int
    shares: tuple[float, ...]
    p: tuple[float, ...]
    level: tuple[float, ...]
    rates: tuple[float, ...]
    z: float = 0.0
    of: int = 0
    by: str = ""


class StoredContext(Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """The context of a decision: the ``t``-th of its segment, encoded in a frame of standardised features.

    ``x`` is the user's vector, ``weights`` and ``shifts`` those of the observations of the slate's entries in a
    regression, ``pairs`` the features of the pairs of the user and each arm of the slate, and ``given`` the context as
    the caller gave it, unless only the encoded form is stored.
    """

    t: int
    segment: int = 0
    frame: int = 0
    x: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    shifts: tuple[float, ...] = ()
    pairs: tuple[float, ...] = ()
    given: GivenFeatures | None = None


class Asked(Event, frozen=True):
    """A decision: the slate, and under which version and with which chances it was chosen.

    ``widths`` are how many items each arm of the slate has; all ``n_items`` if it is None. ``items`` are those that the
    decision is about; all if it is None. ``allowed`` is what the caller allowed, ``seen`` the number of the last event
    of each log that the state held: what a replay needs to choose again.
    ``inclusion`` is the chance of each arm of the slate to be in it, in any slot; ``draws`` says how many draws it was
    counted from, 0 if it is exact. ``context`` is there if the problem has one.

    ``born`` is the step of the problem's stream at which the problem was created: not 0 if another one of that name had
    been deleted. ``group`` is "policy" or "control" if the decision is part of their comparison; ``unit`` a digest of
    whom it was for. ``fallback`` says that the guardrail let the control slate be shown, whatever the group.
    ``silence`` is what entries count as until they are told; None if they are pending. ``joint``: only totals are told.
    """

    problem: str
    id: str
    body: str
    t: int
    action: tuple[int, ...]
    n_items: int
    version: int
    window_ms: int | None = None
    deferred: bool = False
    learns: bool = True
    propensities: tuple[float, ...] | None = None
    policy_action: tuple[int, ...] | None = None
    slots: tuple[str, ...] = ()
    widths: tuple[int, ...] | None = None
    items: tuple[int, ...] | None = None
    allowed: Restriction | None = None
    seen: dict[str, int] = field(default_factory=dict)
    inclusion: tuple[float, ...] | None = None
    draws: int = 0
    group: str = ""
    unit: str = ""
    fallback: bool = False
    context: StoredContext | None = None
    born: int = 0
    silence: float | None = None
    joint: bool = False


_encoder = json.Encoder()
_decoder = json.Decoder(Union[tuple(Event.__subclasses__())])  # noqa: UP007 - of all events above


def encode(event: Any) -> bytes:
    """The event as a line of the log, in JSON; ``ValidationError`` if the line could not be read again.

    >>> from superarm.decisions import Expired
    >>> encode(Expired(5, 0.0))
    b'{"type":"expired","at":5,"fill":0.0}'
    """
    line = _encoder.encode(event)
    if b"null" in line:  # NaN and infinity are written so
        decode(line)
    return line


def decode(line: bytes | str) -> Any:
    """The event of a line.

    >>> decode(b'{"type":"expired","at":5,"fill":0.0}')
    Expired(at=5, fill=0.0)
    """
    return _decoder.decode(line)
