"""Feedback as callers give it: outcomes, single units, clicks, totals or scores; checked, and turned into numbers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from superarm.core.arrays import HUGE, Bools, Floats, floats
from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense
from superarm.core.totals import check_trials
from superarm.decisions.events import UNKNOWN, UNSEEN, Part
from superarm.decisions.names import Names
from superarm.decisions.record import DecisionRecord, width
from superarm.problem import Problem

Rows = dict[int, Floats]
"""A row for each arm: a value, ``UNSEEN`` or ``UNKNOWN`` for each of its items."""


class Remedies(NamedTuple):
    """How a caller replaces what was told, and what stays pending: in Python's words by default."""

    amend: str = "give amend=True"
    later: str = "with more=True, what is missing stays pending"


HTTP = Remedies("send amend: true", "an arm that is left out stays pending")


class ReadAnswer(NamedTuple):
    """An answer that was checked: rows of arms or, where only totals are told, totals of sets of arms.

    Beside totals, rows are those of arms that were not observed. ``scores`` are those of which the rows were made, by
    arm, as they were told. ``names`` of all arms and ``remedies`` are for what is refused.
    """

    rows: Rows
    totals: tuple[Part, ...] = ()
    scores: Mapping[int, float] = {}
    names: Sequence[str] = ()
    remedies: Remedies = Remedies()


class Reported(NamedTuple):
    """What came of a decision, in one of several ways; names or numbers of arms and items.

    ``outcome`` has a row for each of ``arms``, those of the batch by default, and ``seen`` says which of it was
    observed. ``units`` are single arms and items, each with its value. ``clicks`` are arms, or their values by arm,
    where a decision is about one item: the others of the batch count as ``silence``. ``total`` is what the whole
    decision did, ``totals`` what disjoint parts of it did: by an arm, or by several. Each is the mean of ``n`` trials.
    ``scores`` are one for each arm of the batch, or by arm, in their own units; None or NaN is one that was not seen.
    Of arms that are not named, scores may still come; with ``gaps``, also of those that are None in a list.
    """

    outcome: Any = None
    seen: Any = None
    arms: Iterable[Any] | None = None
    units: Sequence[Any] | None = None
    clicks: Any = None
    silence: float = 0.0
    total: Any = None
    totals: Any = None
    n: Any = 1
    scores: Any = None


class Reader(NamedTuple):
    """Who reads answers: the problem, its names, and whether arms outside of the batch may be observed.

    With ``gaps``, a value that is missing (None or NaN) may still come; otherwise it is refused. With ``wide``, the
    outcome of a decision about some items may have columns for all, of which the others do not count.
    """

    problem: Problem
    arms: Names
    items: Names
    triggered: bool = True
    gaps: bool = True
    wide: bool = False
    remedies: Remedies = Remedies()

    def size(self, record: DecisionRecord[Any], arm: int) -> int:
        """How many items an arm has in a decision."""
        if arm in record.action:
            return width(record, record.action.index(arm))
        support = self.problem.support
        return record.asked.n_items if isinstance(support, Dense) else int(support.widths[arm])

    def arm(self, record: DecisionRecord[Any], name: Any, field: str) -> int:
        """The number of an arm that a decision may be told of."""
        number = self.arms.number(name)
        if number is None or (number not in record.action and not self.triggered):
            raise InvalidArgument(field, f"{name!r} is not in the slate", "report only arms that were shown")
        return number


def read_answer(reader: Reader, record: DecisionRecord[Any], answer: Reported) -> ReadAnswer:
    """What an answer says; ``InvalidArgument`` names what is wrong with it."""
    return _read(reader, record, answer)._replace(names=reader.arms.all, remedies=reader.remedies)


def _read(reader: Reader, record: DecisionRecord[Any], answer: Reported) -> ReadAnswer:
    ways = (answer.outcome, answer.units, answer.clicks, answer.total, answer.totals, answer.scores)
    if all(way is None for way in ways) and reader.problem.thresholds is not None:
        raise InvalidArgument("scores", "missing", "give the score of each arm")
    if sum(way is not None for way in ways) != 1:
        others = [name for name, way in zip(("total", "totals", "scores"), ways[3:], strict=True) if way is not None]
        wrong = "given beside others" if others else "give feedback or outcome, and not both"
        remedy = "give total, totals or outcome" if others else "feedback is a list of units"
        remedy = "give scores alone" if "scores" in others else remedy
        raise InvalidArgument("feedback", wrong, remedy)
    if answer.scores is not None:
        return _read_scores(reader, record, answer)
    if answer.total is not None or answer.totals is not None:
        return ReadAnswer({}, _read_totals(reader, record, answer))
    rows = _read_rows(reader, record, answer)
    if not record.asked.joint:
        return ReadAnswer(rows)
    _require_shown(reader, record, list(rows), "outcome")
    told = sorted(((arm,), float(row[0]), 1) for arm, row in rows.items() if row[0] >= 0.0)
    return ReadAnswer({arm: row for arm, row in rows.items() if row[0] == UNSEEN}, tuple(told))


def _read_rows(reader: Reader, record: DecisionRecord[Any], answer: Reported) -> Rows:
    if answer.units is not None:
        for field in ("seen", "arms"):
            if getattr(answer, field) is not None:
                remedy = "a unit of feedback names its arm, and says seen: false"
                raise InvalidArgument(field, "goes with outcome", remedy)
        return _read_units(reader, record, answer.units)
    return _read_clicks(reader, record, answer) if answer.clicks is not None else _read_outcome(reader, record, answer)


# --- totals


def _read_totals(reader: Reader, record: DecisionRecord[Any], answer: Reported) -> tuple[Part, ...]:
    name, n = "totals" if answer.total is None else "total", check_trials(answer.n)
    if not record.asked.joint:
        wrong = f"the reward is {reader.problem.reward!r}"
        raise InvalidArgument(name, wrong, "declare the reward Total(), or tell what each arm did")
    if answer.total is not None:
        return ((tuple(sorted(record.action)), _read_total(answer.total, name), n),)
    given = answer.totals.items() if isinstance(answer.totals, Mapping) else answer.totals
    parts: list[Part] = []
    for some, total in given:
        own = [some] if isinstance(some, str | int | np.integer) else some
        parts.append((tuple(sorted(reader.arms.numbers(own).tolist())), _read_total(total, name), n))
    told = [arm for arms, _, _ in parts for arm in arms]
    if not told:
        raise InvalidArgument(name, "no arm is named", "name arms of the decision")
    _require_shown(reader, record, told, name)
    if twice := [arm for arm in told if told.count(arm) > 1]:
        wrong = f"{reader.arms.all[twice[0]]!r} is in two parts"
        raise InvalidArgument(name, wrong, "give parts that have no arm in common")
    return tuple(sorted(part for part in parts if part[0]))


def _require_shown(reader: Reader, record: DecisionRecord[Any], arms: list[int], name: str) -> None:
    strange = [arm for arm in arms if arm not in record.action]
    if strange:
        raise InvalidArgument(name, f"{reader.arms.all[strange[0]]!r} is not in the decision", "name arms of it")


def _read_total(total: Any, name: str) -> float:
    if isinstance(total, bool) or not isinstance(total, int | float | np.number) or not 0.0 <= total <= 1.0:
        remedy = "give totals in [0, 1]; sa.agent.Scale(limit).outcome turns money into them"
        raise InvalidArgument(name, f"{total!r} is no number in [0, 1]", remedy)
    return float(total)


# --- scores


def _read_scores(reader: Reader, record: DecisionRecord[Any], answer: Reported) -> ReadAnswer:
    scale, given = reader.problem.thresholds, answer.scores
    if scale is None:
        wrong = "the items of the problem are no thresholds of scores"
        raise InvalidArgument("scores", wrong, "declare items=Thresholds(low, high), or tell an outcome")
    missing = UNSEEN
    if not isinstance(given, Mapping):
        missing = UNKNOWN if reader.gaps else UNSEEN
        listed = list(given) if np.ndim(given) == 1 else []
        if len(listed) != len(record.action):
            remedy = f"give {len(record.action)}, one for each arm in the order of the decision, or scores by arm"
            raise InvalidArgument("scores", f"shape {np.shape(given)}", remedy)
        given = dict(zip(record.action, listed, strict=True))
    else:
        numbered = reader.arms.numbers(given).tolist()
        named = [reader.arm(record, reader.arms.all[number], "scores") for number in numbered]
        given = dict(zip(named, given.values(), strict=True))
    rows, scores = dict[int, Floats](), dict[int, float]()
    for arm, score in given.items():
        if score is None or (isinstance(score, float) and math.isnan(score)):
            rows[arm] = np.full(len(scale), missing)
        elif isinstance(score, str | bool | np.bool_):
            raise InvalidArgument("scores", f"{score!r} is not a number", "give numbers, or None where none was seen")
        else:
            scores[arm] = float(floats(score, "scores", low=-HUGE, high=HUGE))
            rows[arm] = scale.encode(scores[arm])
    return ReadAnswer(rows, scores=scores)


# --- single units


def _read_units(reader: Reader, record: DecisionRecord[Any], units: Sequence[Any]) -> Rows:
    rows: Rows = {}
    for unit in units:
        if (unit.value is None) == unit.seen:
            wrong = "a unit needs a value, or seen: false"
            raise InvalidArgument("feedback.value", wrong, "give exactly one of the two")
        arm = reader.arm(record, unit.arm, "feedback.arm")
        row = rows.setdefault(arm, np.full(reader.size(record, arm), UNKNOWN))
        if reader.problem.thresholds is not None and unit.item is None and unit.value is not None:
            wrong = "the items are thresholds of scores"
            raise InvalidArgument("feedback.value", wrong, 'tell the score of each arm: {"scores": {"arm": 7.5}}')
        value = UNSEEN if unit.value is None else unit.value
        places = _places(reader, record, arm, unit, len(row))
        before = row[places]
        if ((before != UNKNOWN) & (before != value)).any():
            wrong = "the same entry appears twice, with different values"
            raise InvalidArgument("feedback", wrong, "give each entry once")
        row[places] = value
    return rows


def _places(reader: Reader, record: DecisionRecord[Any], arm: int, unit: Any, size: int) -> Any:
    """The places in an arm's row that a unit is about: that of its item, or those of all items of the decision."""
    about, support = record.asked.items, reader.problem.support
    if unit.item is None:
        return slice(size) if about is None else list(about)
    item = reader.items.number(unit.item)
    if item is None:
        raise InvalidArgument("feedback.item", f"unknown {unit.item!r}", "report only items of the problem")
    if item >= record.asked.n_items:
        wrong = f"{unit.item!r} was added after this decision"
        raise InvalidArgument("feedback.item", wrong, "it takes only older items")
    if about is not None and item not in about:
        wrong = f"the decision is not about {unit.item!r}"
        raise InvalidArgument("feedback.item", wrong, "report only items that it named")
    if isinstance(support, Dense):
        return [item]
    place = np.flatnonzero(support.items[support.start[arm] : support.start[arm + 1]] == item)
    if not len(place):
        wrong = f"{unit.arm!r} cannot touch {unit.item!r}"
        raise InvalidArgument("feedback.item", wrong, "report items of its support")
    return place


# --- clicks


def _read_clicks(reader: Reader, record: DecisionRecord[Any], answer: Reported) -> Rows:
    about = record.asked.items
    n = reader.problem.n_items if about is None else len(about)
    if n != 1:
        wrong = f"the decision is about {n} items"
        raise InvalidArgument("clicks", wrong, "name the visitor's item, ask(items=[…]), or tell an outcome")
    given = answer.clicks
    values = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, 1.0)
    clicked = dict(zip(reader.arms.numbers(values).tolist(), values.values(), strict=True))
    strange = [arm for arm in clicked if arm not in record.action]
    if strange:
        raise InvalidArgument("clicks", f"arm {strange[0]} was not in the batch", "name arms of the decision")
    place, rows = 0 if about is None else about[0], {}
    for n, arm in enumerate(record.action):
        rows[arm] = np.full(width(record, n), UNSEEN)
        rows[arm][place] = floats(clicked.get(arm, answer.silence), "clicks", low=0.0, high=1.0)
    return rows


# --- outcomes


def _read_outcome(reader: Reader, record: DecisionRecord[Any], answer: Reported) -> Rows:
    if answer.arms is None:
        observed: list[int] = list(record.action)
    else:
        observed = [int(j) for j in reader.arms.numbers(answer.arms)]
        if not reader.triggered:
            observed = [reader.arm(record, reader.arms.all[j], "arms") for j in observed]
    if len(set(observed)) < len(observed):
        raise InvalidArgument("arms", "an arm appears twice", "give one row per arm")
    sizes = [reader.size(record, arm) for arm in observed]
    given, mask = _tables(reader, record, sizes, answer)
    shown = given if mask is None else np.where(mask, given, 0.0)
    missing = np.isnan(shown.astype(float)) if reader.gaps else None
    coded = floats(shown if missing is None else np.where(missing, 0.0, shown), "outcome", low=0.0, high=1.0)
    if missing is not None:
        coded[missing] = UNKNOWN
    if mask is not None:
        coded[~mask] = UNSEEN
    rows = list(coded) if coded.ndim == 2 else np.split(coded, np.cumsum(sizes)[:-1])
    return dict(zip(observed, rows, strict=True))


def _tables(
    reader: Reader, record: DecisionRecord[Any], sizes: list[int], answer: Reported
) -> tuple[Any, Bools | None]:
    """Outcome and mask, one row per arm or all rows laid flat; the mask is None if everything was seen."""
    dense, about = isinstance(reader.problem.support, Dense), record.asked.items
    outcome, seen = (part if dense else _lay_flat(part, sizes, name) for part, name in _named(answer))
    given = _array(outcome)
    mask: Any = None if seen is None else _array(seen)
    if mask is not None and (mask.dtype != bool or mask.shape != given.shape):
        raise InvalidArgument("seen", f"{mask.dtype} of shape {mask.shape}", "give booleans in the outcome's shape")
    if about is not None and not reader.wide and given.shape != (len(sizes), len(about)):
        raise InvalidArgument("outcome", f"shape {given.shape}", _right_shape([len(about)] * len(sizes), dense))
    if about is not None and given.ndim == 2 and len(given) == len(sizes):
        given, mask = _spread(given, mask, list(about), record.asked.n_items, reader.problem.n_items)
    table = dense and given.ndim == 2 and len(given) == len(sizes)
    fits = table and record.asked.n_items <= given.shape[1] <= reader.problem.n_items
    if not fits and given.shape != (sum(sizes),):
        raise InvalidArgument("outcome", f"shape {given.shape}", _right_shape(sizes, dense))
    return given, mask


def _named(answer: Reported) -> tuple[tuple[Any, str], ...]:
    return (answer.outcome, "outcome"), (answer.seen, "seen")


def _lay_flat(rows: Any, sizes: list[int], name: str) -> Any:
    """Rows of several lengths, one after the other; what is flat already stays."""
    if not isinstance(rows, list | tuple) or not rows or not isinstance(rows[0], list | tuple):
        return rows
    if [len(row) for row in rows] != sizes:
        raise InvalidArgument(name, "wrong shape", _right_shape(sizes, dense=False))
    return list(chain(*rows))


def _spread(given: Any, mask: Any, about: list[int], n_items: int, most: int) -> tuple[Any, Bools]:
    """Outcome and mask of a decision about some items, for all items; columns may be those of its items alone."""
    mask = np.ones(given.shape, bool) if mask is None else mask
    if given.shape[1] == len(about) < n_items:
        wide = np.zeros((len(given), n_items), given.dtype)
        shown = np.zeros(wide.shape, bool)
        wide[:, about], shown[:, about] = given, mask
        return wide, shown
    own = np.zeros(most, bool)
    own[about] = True
    return given, mask & own[: given.shape[1]]


def _right_shape(sizes: list[int], dense: bool) -> str:
    if len(set(sizes)) == 1:
        shape = f"shape ({len(sizes)}, {sizes[0]})" if dense else f"{len(sizes)} rows of {sizes[0]}"
        return f"give {shape}, one row per arm in the order of the slate"
    return f"give rows of {', '.join(map(str, sizes[:20]))}: one value per item of each arm, in the order of the slate"


def _array(values: Any) -> Any:
    """``values`` as an array of numbers or booleans; objects only where something is None."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidArgument("outcome", "rows of different lengths", "give rows of one length, one per arm") from None
    kind = array.dtype.kind
    if kind not in "biufO" or (kind == "O" and any(isinstance(x, str) for x in array.flat)):
        text = next((x for x in np.asarray(values, object).flat if isinstance(x, str)), None)
        wrong = array.dtype.name if text is None else repr(text)
        raise InvalidArgument("outcome", f"{wrong} is not a number", "give numbers in [0, 1]")
    return array
