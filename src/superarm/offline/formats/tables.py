"""A log from a table with one row per arm of a slate and item: a file that the service exported, or your own frame."""

import csv
import math
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from superarm.actions import Subsets
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument, MissingExtra
from superarm.describe import build
from superarm.offline.formats.arrays import check_probabilities, make_log
from superarm.offline.log import Log, LogRows
from superarm.problem import Problem

Columns = dict[str, list[Any]]

METADATA = b"superarm"
"""The key under which a Parquet file of the service holds its problems."""


def read_columns(path: Path) -> tuple[Columns, Any]:
    """The columns of a .parquet, .csv or .jsonl file, and the problems that a Parquet file describes, if it does."""
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if path.suffix == ".csv":
        return _transpose(_read_csv(path)), None
    if path.suffix == ".jsonl":
        return _transpose(_read_jsonl(path)), None
    raise InvalidArgument("path", f"{path.name!r}", "give a name that ends in .parquet, .csv or .jsonl")


def _read_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        try:
            rows = list(reader)
        except (csv.Error, UnicodeDecodeError) as error:
            wrong = f"{path.name} cannot be read after line {reader.line_num}: {error}"
            raise InvalidArgument("path", wrong, "give a table in CSV") from None
    for n, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise InvalidArgument("path", f"{path.name}: row {n} has another length", "give a cell for each column")
    return [{name: value.removeprefix("'") for name, value in row.items()} for row in rows]


def _read_jsonl(path: Path) -> list[dict[str, Any]]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    try:
        return [decode(line) for line in path.read_bytes().splitlines() if line.strip()]
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidArgument("path", f"{path.name} cannot be read: {error}", "give a JSON object per line") from None


def open_parquet(path: Path) -> Any:
    """A Parquet file: its ``metadata`` can be looked at before it is read."""
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise MissingExtra("pyarrow", "lab") from None
    try:
        return parquet.ParquetFile(path)
    except ArrowInvalid as error:
        raise InvalidArgument("path", f"{path.name} cannot be read: {error}", "give a file in Parquet") from None


def _read_parquet(path: Path) -> tuple[Columns, Any]:
    table = open_parquet(path).read()
    stored = (table.schema.metadata or {}).get(METADATA)
    return table.to_pydict(), None if stored is None else msgspec.json.decode(stored)


def _transpose(rows: list[dict[str, Any]]) -> Columns:
    """Rows as columns; a value that a row lacks is None."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def frame_columns(frame: Any) -> Columns:
    """The columns of a pandas data frame, an Arrow table, or a dict of columns."""
    if isinstance(frame, dict):
        return {str(name): list(values) for name, values in frame.items()}
    if callable(getattr(frame, "to_pydict", None)):  # Arrow
        return {str(name): values for name, values in frame.to_pydict().items()}
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):  # pandas, polars
        return {str(name): list(frame[name]) for name in frame.columns}
    raise InvalidArgument("frame", f"{type(frame).__name__}", "give a pandas data frame, an Arrow table or a dict")


NAMES = {
    "decision": ("decision", "slate_id"),
    "arm": ("arm", "item_id", "action"),
    "number": ("item_id", "action"),
    "item": ("item",),
    "position": ("position",),
    "outcome": ("click", "reward", "outcome"),
    "propensity": ("propensity_score",),
    "inclusion": ("inclusion",),
    "position_propensity": ("position_propensity",),
    "group": ("group",),
    "time": ("t", "timestamp"),
    "state": ("state",),
    "deterministic": ("deterministic",),
    "problem": ("problem",),
    "tenant": ("tenant",),
}
"""What a column means, and its names in the order in which they are looked for."""
NOT_SHOWN = ("deferred", "unshown")
"""The states of decisions that nobody saw."""


class Described(NamedTuple):
    """What the caller says about the problem: see :meth:`Log.read`."""

    problem: Any = None
    reward: Any = None
    weights: Any = None
    k: Any = None
    name: Any = None


def log_from_columns(columns: Columns, stored: Any, **described: Any) -> Log:
    """The log in columns; ``stored`` are the problems that the file describes, by tenant and name."""
    unknown = sorted(set(described) - set(Described._fields))
    if unknown:
        raise InvalidArgument(unknown[0], "is not an argument", f"give {', '.join(Described._fields)}")
    given, table = Described(**described), {what: _find(columns, names) for what, names in NAMES.items()}
    for what in ("arm", "outcome"):
        if table[what] is None:
            raise InvalidArgument("columns", f"no column {' or '.join(NAMES[what])}", f"found {', '.join(columns)}")
    keep, key = _select_shown(table, given.name)
    table = {what: None if values is None else [values[n] for n in keep] for what, values in table.items()}
    if not keep:
        raise InvalidArgument("columns", "no row of a slate that was shown", "give at least one decision")
    names = _Names(table, _find_described(stored, key))
    problem = names.problem(given, _sizes(table))
    return _log(table, names, problem)


def _find(columns: Columns, names: tuple[str, ...]) -> list[Any] | None:
    return next((columns[name] for name in names if name in columns), None)


def _select_shown(table: dict[str, list[Any] | None], wanted: Any) -> tuple[list[int], tuple[str, str]]:
    """The rows of decisions that were shown, of the one problem that is wanted, and its tenant and name."""
    n = len(table["arm"] or [])
    tenants, problems = (table[what] or [""] * n for what in ("tenant", "problem"))
    states = table["state"] or [""] * n
    found = dict.fromkeys((str(a), str(b)) for a, b in zip(tenants, problems, strict=True) if wanted in (None, b))
    if len(found) != 1 and n:
        known = ", ".join(sorted({str(name) for name in problems}))
        raise InvalidArgument("name", f"{wanted!r} fits {len(found)} problems of the file", f"give one of {known}")
    key = next(iter(found), ("", ""))
    rows = zip(tenants, problems, states, strict=True)
    return [i for i, (a, b, state) in enumerate(rows) if (str(a), str(b)) == key and state not in NOT_SHOWN], key


def _find_described(stored: Any, key: tuple[str, str]) -> dict[str, Any] | None:
    """The problem that the file describes under that tenant and name."""
    found = [one for one in stored or [] if (one["tenant"], one["name"]) == key]
    return found[0] if found else None


def _sizes(table: dict[str, Any]) -> int:
    """The size of the largest slate."""
    slates: dict[Any, set[str]] = {}
    positions = table["position"] or [1] * len(table["arm"])
    for decision, arm, position in zip(_decisions(table), table["arm"], positions, strict=True):
        if not _empty(position):
            slates.setdefault(decision, set()).add(str(arm))
    return max((len(arms) for arms in slates.values()), default=1)


def _decisions(table: dict[str, Any]) -> list[Any]:
    """The decision of each row; without a column, every row is one."""
    return table["decision"] or list(range(len(table["arm"])))


class _Names:
    """The names of arms and items in the order of their numbers, and the problem that the file describes."""

    def __init__(self, table: dict[str, Any], stored: dict[str, Any] | None) -> None:
        self.stored = stored
        rows = range(len(table["arm"]))
        numbers = table["number"] or [None] * len(rows)
        items = table["item"] or [""] * len(rows)
        self.items = stored["items"] if stored else list(dict.fromkeys(str(item or "") or "value" for item in items))
        if stored:
            self.arms = stored["arms"]
            return
        ordered = dict.fromkeys(str(arm) for arm in table["arm"])
        if all(_whole(number) is not None for number in numbers):
            place = {str(arm): _whole(number) for arm, number in zip(table["arm"], numbers, strict=True)}
            ordered = dict.fromkeys(sorted(ordered, key=lambda arm: place[arm] or 0))
            if all(arm == str(place[arm]) for arm in ordered):  # numbers that are their own names: keep the gaps
                ordered = dict.fromkeys(str(j) for j in range(1 + max(place[arm] or 0 for arm in ordered)))
        self.arms = list(ordered)

    def problem(self, given: Described, k: int) -> Problem:
        """The problem: as given, as described in the file, or any ``k`` arms with the given reward."""
        if given.problem is not None:
            if (given.problem.n_arms, given.problem.n_items) == (len(self.arms), len(self.items)):
                return given.problem
            if all(arm == str(j) for j, arm in enumerate(self.arms)) and len(self.arms) < given.problem.n_arms:
                self.arms = [str(j) for j in range(given.problem.n_arms)]
                return given.problem
            wrong = f"{given.problem.n_arms} arms and {given.problem.n_items} items"
            raise InvalidArgument("problem", wrong, f"the log has {len(self.arms)} arms and {len(self.items)} items")
        if self.stored and given.reward is None and given.weights is None:
            problem: Problem = build(self.stored["problem"])
            return problem if given.k is None else problem.changed(actions=Subsets(given.k))
        if given.reward is None:
            raise InvalidArgument(
                "reward", "the file does not say what a slate is worth", "give e.g. reward=sa.Coverage()"
            )
        return Problem(len(self.arms), len(self.items), given.reward, Subsets(given.k or k), given.weights)


def _log(table: dict[str, Any], names: _Names, problem: Problem) -> Log:
    """The log: rounds in the order of time, rows in the order of slots."""
    number, first = _number_decisions(table)
    time = [_number(table["time"][n]) if table["time"] else math.nan for n in first]
    order = np.lexsort((first, np.nan_to_num(np.array(time))))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    round = rank[number]
    arms = {name: j for j, name in enumerate(names.arms)}
    items = {name: i for i, name in enumerate(names.items)}
    arm = np.array([arms[str(a)] for a in table["arm"]])
    item = (
        np.array([items[str(i or "") or "value"] for i in table["item"]])
        if table["item"]
        else np.zeros(len(arm), np.int64)
    )
    position = np.array([-1.0 if _empty(p) else float(p) for p in table["position"] or [1] * len(arm)])
    pairs, line = _distinct_rows(np.stack([round, np.where(position < 0, np.inf, position), arm], axis=1))
    return _assemble(table, problem, names, (pairs, line, item, first[order]))


def _number_decisions(table: dict[str, Any]) -> tuple[Ints, Ints]:
    """The number of each row's decision, in the order in which they appear, and the first row of each decision."""
    known, number, first = dict[str, int](), list[int](), list[int]()
    for n, decision in enumerate(map(str, _decisions(table))):
        place = known.setdefault(decision, len(known))
        number.append(place)
        if place == len(first):
            first.append(n)
    return np.array(number, np.int64), np.array(first, np.int64)


def _distinct_rows(rows: Floats) -> tuple[Floats, Ints]:
    """The distinct rows in ascending order, and which of them each row is.

    ``np.unique`` with an axis would hold the interpreter for as long as it sorts, which stops a service.

    >>> _distinct_rows(np.array([[2.0, 1.0], [0.0, 5.0], [2.0, 1.0]]))
    (array([[0., 5.],
           [2., 1.]]), array([1, 0, 1]))
    """
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    new = np.ones(len(rows), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    which = np.empty(len(rows), np.int64)
    which[order] = np.cumsum(new) - 1
    return ordered[new], which


def _assemble(table: dict[str, Any], problem: Problem, names: _Names, at: tuple[Any, Ints, Ints, Ints]) -> Log:
    """Put the values of all table rows into the rows of the log: ``line`` is the log's row of each of them."""
    pairs, line, item, first = at
    outcome = np.zeros((len(pairs), len(names.items)))
    seen = np.zeros(outcome.shape, bool)
    values = np.array([_number(value) for value in table["outcome"]])
    known = ~np.isnan(values)
    if known.any() and not (0.0 <= values[known].min() and values[known].max() <= 1.0):
        raise InvalidArgument("columns", f"outcomes up to {values[known].max():g}", "give outcomes in [0, 1]")
    outcome[line[known], item[known]] = values[known]
    seen[line[known], item[known]] = True
    round, arm = pairs[:, 0].astype(np.int64), pairs[:, 2].astype(np.int64)
    slot = _slots(round, np.isinf(pairs[:, 1]))
    probabilities = [
        _row_values(table, what, line, len(pairs)) for what in ("propensity", "position_propensity", "inclusion")
    ]
    deterministic = _deterministic(table, probabilities[0], round, slot, first)
    chain = np.where(deterministic[round] & np.isnan(probabilities[0]), 1.0, probabilities[0])
    rows = LogRows(round, slot, arm, outcome, seen, _prefix(chain, round, slot), probabilities[1], probabilities[2])
    given = [] if table["group"] is None else [table["group"][n] for n in first]
    labels = None if all(_empty(label) for label in given) else given
    return make_log(problem, rows, labels, deterministic, (names.arms, names.items))


def _slots(round: Ints, outside: Any) -> Ints:
    """The slot of each row, counted from 0 in its round; -1 for arms outside of the slate, which come last."""
    start = np.searchsorted(round, round)
    return np.where(outside, -1, np.arange(len(round)) - start)


def _row_values(table: dict[str, Any], what: str, line: Ints, n: int) -> Floats:
    """The probability of each row of the log; NaN where there is none."""
    result = np.full(n, np.nan)
    if table[what] is not None:
        result[line] = [_number(value) for value in table[what]]
        check_probabilities(result, NAMES[what][0])
    return result


def _deterministic(table: dict[str, Any], chain: Floats, round: Ints, slot: Ints, first: Ints) -> Any:
    """Which rounds were chosen without chance: by their column, or because every slot has probability 1."""
    n = len(first)
    certain = np.ones(n, bool)
    certain[round[(slot >= 0) & ~(chain == 1.0)]] = False
    if table["deterministic"] is not None:
        said = np.array([str(table["deterministic"][i]).lower() in ("true", "1") for i in first])
        return said | certain
    return certain


def _prefix(chain: Floats, round: Ints, slot: Ints) -> Floats:
    """The product of the probabilities of each row and those before it in its round."""
    result = np.full(len(chain), np.nan)
    running, last = 1.0, -1
    for n in range(len(chain)):
        if slot[n] < 0:
            continue
        running = chain[n] if round[n] != last else running * chain[n]
        last = int(round[n])
        result[n] = running
    return result


def _empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _number(value: Any) -> float:
    try:
        return math.nan if _empty(value) else float(value)
    except (TypeError, ValueError):
        raise InvalidArgument("columns", f"{value!r} is not a number", "give numbers, empty where unknown") from None


def _whole(value: Any) -> int | None:
    """A whole number, None if it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number == int(number) else None
