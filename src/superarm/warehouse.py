"""Learning from a warehouse: one GROUP BY, whose sums are integers, makes a tally of a log of any length.

``sql`` is the statement, for the engine that has the log. ``sums`` runs it with DuckDB on files or a data frame.
``tally`` adds its answer up, from whichever engine: integers add in any order, so all give the same tally, bit for bit.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from superarm.core.errors import InvalidArgument, MissingExtra
from superarm.core.support import Dense
from superarm.core.tally import GRID, MAX_COUNT, Tally
from superarm.decisions.names import Given, names_for
from superarm.problem import Problem

__all__ = ["Columns", "Sum", "sql", "sums", "tally"]


class Dialect(NamedTuple):
    """How an engine calls its types, and quotes names."""

    number: str
    integer: str
    quote: str = '"'
    text: str = "VARCHAR"


DIALECTS = {
    "duckdb": Dialect("DOUBLE", "BIGINT"),
    "postgres": Dialect("DOUBLE PRECISION", "BIGINT"),
    "sqlite": Dialect("REAL", "INTEGER"),
    "bigquery": Dialect("FLOAT64", "INT64", "`", "STRING"),
    "snowflake": Dialect("DOUBLE", "BIGINT"),
    "spark": Dialect("DOUBLE", "BIGINT", "`", "STRING"),
    "clickhouse": Dialect("Nullable(Float64)", "Nullable(Int64)", "`", "Nullable(String)"),
}

RESERVED = {
    "all",
    "by",
    "case",
    "from",
    "group",
    "in",
    "is",
    "key",
    "limit",
    "order",
    "select",
    "table",
    "user",
    "where",
}


class Columns(NamedTuple):
    """The names of the columns of a log, one row for each decision and arm that was shown.

    Parameters
    ----------
    decision
        The id of the decision; None if rows are ``unique``, each a decision of its own. Rows whose id is NULL or empty
        are left out where it is needed.
    arm, outcome
        The name of the arm, and its outcome in [0, 1]; NULL is not seen, which is no zero.
    segment
        The segment, or several columns, by the names of the features that make it; None for none.
    item
        The item that the outcome is about; None if there is one.
    position
        The place of the arm in the slate, to warn of arms that were shown in one place only; None if it is not known.
    where
        A condition in SQL, such as one day: sums of days add up.
    unique
        Whether no row is there twice. Otherwise the largest outcome of a decision, arm and item counts, once; that
        takes nine times as long.
    """

    decision: str | None = "decision"
    arm: str = "arm"
    outcome: str = "click"
    segment: str | tuple[str, ...] | None = None
    item: str | None = None
    position: str | None = None
    where: str = ""
    unique: bool = False


class Sum(NamedTuple):
    """The sums of an arm and item in a segment, in the columns of the statement.

    ``pulls`` is in how many decisions something of the arm was seen, the same for all its items, and ``seen`` in how
    many this item was. ``total`` and ``square`` are in units of 2^-24. ``low`` and ``high`` are the least and the
    largest outcome, ``rows`` how many rows were read and ``shown`` how many were left when each counted once;
    ``first`` and ``last`` are the least and the largest place.
    """

    segment: Any
    arm: Any
    item: Any
    pulls: int
    seen: int
    total: int
    square: int
    low: float | None = None
    high: float | None = None
    rows: int = 0
    shown: int = 0
    first: Any = None
    last: Any = None


def sql(dialect: str = "duckdb", table: str = "clicks", **columns: Any) -> str:
    """The statement that makes integer sums of a log.

    Parameters
    ----------
    dialect
        ``duckdb``, ``postgres``, ``sqlite``, ``bigquery``, ``snowflake``, ``spark`` or ``clickhouse``.
    table
        The table of the log, or what stands for it in a FROM clause. Names such as ``my-project.shop.clicks`` are
        quoted where they must be.
    columns
        See :class:`Columns`.

    Examples
    --------
    >>> print(sql("bigquery", "shop.clicks", arm="product", unique=True))
    WITH log AS (
      SELECT '' AS segment, product AS arm, floor(CAST(click AS FLOAT64) * 16777216 + 0.5) AS x, 1 AS copies
      FROM shop.clicks
    )
    SELECT segment, arm, '' AS item, count(x) AS pulls, count(x) AS seen,
      sum(CAST(x AS INT64)) AS total,
      sum(CAST(floor(x * x / 16777216 + 0.5) AS INT64)) AS square,
      min(x) AS low, max(x) AS high, sum(copies) AS rows_read, count(*) AS shown
    FROM log GROUP BY segment, arm
    """
    if dialect not in DIALECTS:
        raise InvalidArgument("dialect", f"unknown {dialect!r}", f"give one of {', '.join(DIALECTS)}")
    unknown = sorted(set(columns) - set(Columns._fields))
    if unknown:
        raise InvalidArgument(unknown[0], "is not an argument", f"give {', '.join(Columns._fields)}")
    names = Columns(**columns)
    if names.decision is None and not names.unique:
        raise InvalidArgument(
            "decision", "missing", "name the column of the decision's id, or say that rows are unique"
        )
    log, pulled = (f"{name}_rows" if table.strip().lower() == name else name for name in ("log", "pulled"))
    rows = _log(names, DIALECTS[dialect], _table(table, DIALECTS[dialect]), log, pulled)
    return f"WITH {rows}{_answer(names, DIALECTS[dialect], log, pulled)}"


def _log(names: Columns, dialect: Dialect, table: str, log: str, pulled: str) -> str:
    """The rows of the log, each once, by names of ours; with items, also how often each arm was pulled."""
    parts = {"arm": _quoted(names.arm, dialect), "segment": _segment(names, dialect)}
    parts |= {} if names.item is None else {"item": _quoted(names.item, dialect)}
    keep = _needs_decision(names)
    parts |= {"decision": _quoted(str(names.decision), dialect)} if keep else {}
    values = {"x": f"floor(CAST({_quoted(names.outcome, dialect)} AS {dialect.number}) * {int(GRID)} + 0.5)"}
    places = (
        {} if names.position is None else dict.fromkeys(("first_place", "last_place"), _quoted(names.position, dialect))
    )
    if names.unique:
        values |= {"copies": "1", **places}
        grouped = ""
    else:
        values = {"x": f"max({values['x']})", "copies": "count(*)"}
        values |= {name: f"{'min' if name == 'first_place' else 'max'}({place})" for name, place in places.items()}
        grouped = "\n  GROUP BY " + ", ".join(part for part in parts.values() if part != "''")
    order = {name: parts[name] for name in ("segment", "arm", "item", "decision") if name in parts} | values
    chosen = ", ".join(part if part == name else f"{part} AS {name}" for name, part in order.items())
    conditions = [f"({names.where})" if keep else names.where] if names.where else []
    conditions += [_has_decision(names, dialect)] if keep else []
    where = f"\n  WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = f"{log} AS (\n  SELECT {chosen}\n  FROM {table}{where}{grouped}\n)\n"
    if names.item is None:
        return rows
    count = "count(DISTINCT decision)" if keep else "count(*)"
    pulls = f"SELECT segment, arm, {count} AS pulls FROM {log} WHERE x IS NOT NULL GROUP BY segment, arm"
    return f"{rows[:-1]}, {pulled} AS (\n  {pulls}\n)\n"


def _needs_decision(names: Columns) -> bool:
    return names.decision is not None and (not names.unique or names.item is not None)


def _has_decision(names: Columns, dialect: Dialect) -> str:
    """The condition that a row has the id of a decision: those without one would count as one decision."""
    id = _quoted(str(names.decision), dialect)
    return f"{id} IS NOT NULL AND CAST({id} AS {dialect.text}) <> ''"


def _answer(names: Columns, dialect: Dialect, log: str, pulled: str) -> str:
    """The sums of each arm and item in each segment."""
    whole, by = "'' AS item, count(x) AS pulls", ["segment", "arm"]
    source = log
    if names.item is not None:
        by = [f"{log}.segment", f"{log}.arm", f"{log}.item", f"{pulled}.pulls"]
        whole = f"{log}.item, coalesce({pulled}.pulls, 0) AS pulls"
        source = f"{log} LEFT JOIN {pulled} ON {pulled}.segment = {log}.segment AND {pulled}.arm = {log}.arm"
    lines = [f"SELECT {by[0]}, {by[1]}, {whole}, count(x) AS seen,"]
    square = f"floor(x * x / {int(GRID)} + 0.5)"  # as a tally does: of the rounded outcome
    scaled = {"total": "x", "square": square}
    lines += [f"  sum(CAST({x} AS {dialect.integer})) AS {name}," for name, x in scaled.items()]
    places = "" if names.position is None else ", min(first_place) AS first_place, max(last_place) AS last_place"
    lines.append(f"  min(x) AS low, max(x) AS high, sum(copies) AS rows_read, count(*) AS shown{places}")
    return "\n".join([*lines, f"FROM {source} GROUP BY {', '.join(by)}"])


def _segment(names: Columns, dialect: Dialect) -> str:
    """The name of the segment: a column, or those of several features with their names, as a problem calls it."""
    if names.segment is None:
        return "''"
    if isinstance(names.segment, str):
        return _quoted(names.segment, dialect)
    told = [f"{name}=".replace("'", "''") for name in names.segment]
    return " || ', ' || ".join(
        f"'{x}' || {_quoted(name, dialect)}" for x, name in zip(told, names.segment, strict=True)
    )


def _quoted(name: str, dialect: Dialect) -> str:
    """A name, quoted where it must be: quotes make names depend on upper and lower case."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in RESERVED:
        return name
    return f"{dialect.quote}{name.replace(dialect.quote, 2 * dialect.quote)}{dialect.quote}"


def _table(table: str, dialect: Dialect) -> str:
    """The name of a table with each part quoted where it must be; what is no name, such as a function, stays."""
    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", table):
        return table
    return ".".join(_quoted(part, dialect) for part in table.split("."))


def sums(source: Any, *, threads: int | None = None, **columns: Any) -> list[Sum]:
    """Read a log once with DuckDB, and add it up.

    Parameters
    ----------
    source
        A file, a directory or a glob of ``.parquet``, ``.csv`` or ``.jsonl`` files, also in object storage as DuckDB
        reads it (``s3://…``); or a data frame of any library with the Arrow interface.
    threads
        How many threads DuckDB uses; all cores by default.
    columns
        See :class:`Columns`. Of a list of names, the first that the log has is taken, or what is said by default.

    Examples
    --------
    >>> import pyarrow
    >>> log = pyarrow.table({"decision": ["a", "a", "b"], "arm": ["tent", "stove", "tent"], "click": [1.0, 0.0, 0.5]})
    >>> [(one.arm, one.pulls, one.total / 2**24) for one in sorted(sums(log))]
    [('stove', 1, 0.0), ('tent', 2, 1.5)]
    """
    with opened(source, threads) as (connection, table, known):
        found = connection.execute(sql("duckdb", table, **_known(columns, known))).fetchall()
    return [Sum(*row) for row in found]


def rows_without_decision(source: Any, **columns: Any) -> int:
    """How many rows of a log ``sums`` leaves out, because the id of their decision is NULL or empty."""
    with opened(source) as (connection, table, known):
        names = Columns(**_known(columns, known))
        if not _needs_decision(names):
            return 0
        own = f"({names.where}) AND " if names.where else ""
        statement = f"SELECT count(*) FROM {table} WHERE {own}NOT ({_has_decision(names, DIALECTS['duckdb'])})"
        return int(connection.execute(statement).fetchone()[0])


@contextmanager
def opened(source: Any, threads: int | None = None) -> Iterator[tuple[Any, str, list[str]]]:
    """A connection of DuckDB, what stands for a log in a FROM clause there, and its columns."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "warehouse") from None
    with duckdb.connect(config={} if threads is None else {"threads": threads}) as connection:
        table = "clicks"
        if isinstance(source, str | Path):
            table = scan(str(source))
        else:
            connection.register(table, _arrow(source))
        try:
            connection.execute("SET enable_progress_bar = false")
            known = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()]
            yield connection, table, known
        except duckdb.Error as error:
            wrong = str(error).partition("\n")[0]
            raise InvalidArgument("source", f"DuckDB cannot read it: {wrong}", REMEDY) from None


def _known(columns: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    """The columns of a log; of several possible names the first that it has."""
    lists = {name: x for name, x in columns.items() if isinstance(x, list)}
    found = dict(columns) | {name: next((one for one in x if one in known), None) for name, x in lists.items()}
    return {name: one for name, one in found.items() if one is not None or columns[name] is None}


REMEDY = "name its columns, and give outcomes in [0, 1]"


def scan(path: str) -> str:
    """What stands for files in a FROM clause."""
    if Path(path).is_dir():
        kinds = [kind for kind in ("parquet", "csv", "jsonl") if any(Path(path).rglob(f"*.{kind}"))]
        if len(kinds) != 1:
            raise InvalidArgument("source", f"{path} has {kinds or 'no'} files", "give .parquet, .csv or .jsonl files")
        path = f"{path}/**/*.{kinds[0]}"
    readers = {"csv": "read_csv", "tsv": "read_csv", "json": "read_json", "jsonl": "read_json", "ndjson": "read_json"}
    words = path.lower().removesuffix(".gz").removesuffix(".zst").rpartition(".")
    reader = readers.get(words[2], "read_parquet")
    text = ", all_varchar = true" if reader == "read_csv" else ""  # names of arms are no numbers
    return f"{reader}('{path.replace(chr(39), 2 * chr(39))}'{text})"


def _arrow(frame: Any) -> Any:
    """A data frame as an Arrow table."""
    import pyarrow

    if isinstance(frame, Mapping):
        return pyarrow.table(dict(frame))
    if not hasattr(frame, "__arrow_c_stream__"):
        raise InvalidArgument("source", f"{type(frame).__name__}", "give the path of a file, or a data frame")
    return pyarrow.RecordBatchReader.from_stream(frame).read_all()


def read_sums(answer: Any) -> list[Sum]:
    """The rows of an answer of the statement, whichever engine it is from: whole numbers, that are not negative.

    ``answer`` is what ``sums`` returned, rows in the order of the columns, mappings by column, or a data frame.
    """
    rows = [_as_numbers(row) for row in _rows(answer)]
    for row in rows:
        for name in ("pulls", "seen", "total", "square"):
            _whole(getattr(row, name), name, row)
        if row.low is not None and row.high is not None and not 0 <= row.low <= row.high <= GRID:
            wrong = f"arm {row.arm!r} has outcomes from {float(row.low) / GRID:g} to {float(row.high) / GRID:g}"
            raise InvalidArgument("outcome", wrong, "give outcomes in [0, 1], such as least(amount, limit) / limit")
    return [row._replace(**{name: int(getattr(row, name) or 0) for name in Sum._fields[3:7]}) for row in rows]


def _as_numbers(row: Sum) -> Sum:
    """A row whose numbers are numbers: files of text, and JSON of BigQuery, write them as strings."""
    found: dict[str, Any] = {name: x for name, x in row._asdict().items() if isinstance(x, str)}
    changes: dict[str, Any] = {}
    for name in ("pulls", "seen", "total", "square", "rows", "shown"):
        if re.fullmatch("[0-9]+", found.get(name, "")):
            changes[name] = int(found[name])
    try:
        changes |= {name: float(found[name]) for name in ("low", "high") if name in found}
    except ValueError:
        wrong = f"low and high of arm {row.arm!r} are {row.low!r} and {row.high!r}"
        raise InvalidArgument("sums", wrong, "give numbers, as the statement makes them") from None
    return row._replace(**changes)


def _whole(value: Any, name: str, row: Sum) -> None:
    if value is None and name in ("total", "square"):  # SQL's sum of nothing
        return
    try:
        whole = int(value) == value and value >= 0
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        wrong = f"{name} of arm {row.arm!r} is {value!r}"
        raise InvalidArgument("sums", wrong, "give whole numbers that are not negative, as the statement makes them")


_NAMES = {"rows": "rows_read", "first": "first_place", "last": "last_place"}


def _rows(answer: Any) -> Iterator[Sum]:
    """The answer as rows."""
    if hasattr(answer, "__arrow_c_stream__"):
        answer = _arrow(answer).to_pylist()
    for row in answer:
        if isinstance(row, Sum):
            yield row
        elif isinstance(row, Mapping):
            lower = {str(name).lower(): value for name, value in row.items()}  # Snowflake writes names in capitals
            written = {name: _NAMES.get(name, name) for name in Sum._fields}
            given = {name: lower[column] for name, column in written.items() if column in lower}
            missing = next((name for name in ("arm", "pulls", "seen", "total", "square") if name not in lower), None)
            if missing is not None:
                raise InvalidArgument("sums", f"no column {missing}", "give the answer of superarm.warehouse.sql()")
            yield Sum(**{"segment": "", "item": ""} | given)
        else:
            yield Sum(*row)


def tally(problem: Problem, answer: Any, arms: Given | None = None, items: Given | None = None) -> Tally:
    """The tally of integer sums, for a warm start: ``Agent(problem, tally=warehouse.tally(problem, sums, arms))``.

    Parameters
    ----------
    problem
        The problem that is to learn; its context, if it has one, is of segments.
    answer
        What ``sums`` returned, or the answer of the statement from another engine: rows, or any data frame.
    arms, items
        The names of the problem's arms and items; by default their numbers.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> from superarm.rewards import Linear
    >>> problem = Problem(2, 1, Linear(), Subsets(1))
    >>> answer = [{"arm": "tent", "pulls": 4, "seen": 4, "total": 2 << 24, "square": 2 << 24}]
    >>> tally(problem, answer, arms=["tent", "stove"]).mean
    array([[[0.5, 0. ]]])
    """
    support, n_segments = problem.support, 1 if problem.context is None else problem.context.n_segments
    names = (names_for(arms, problem.n_arms, "arms"), names_for(items, problem.n_items, "items"))
    pulls = np.zeros((n_segments, problem.n_arms), np.int64)
    seen, total, square = (np.zeros(support.shape(n_segments), np.int64) for _ in range(3))
    own: dict[tuple[Any, Any], int] = {}
    number = segment_numbers(problem)
    for row in read_sums(answer):
        segment, arm, item = number(row.segment), _number(names[0], row.arm), 0
        if problem.n_items > 1:
            item = _number(names[1], row.item)
        if max(row.pulls, row.seen) > MAX_COUNT or max(row.total, row.square) > MAX_COUNT * int(GRID):
            wrong = f"{max(row.pulls, row.seen)} observations of arm {row.arm!r}"
            raise InvalidArgument("sums", wrong, f"at most 2^29 = {MAX_COUNT} are added exactly: leave out old ones")
        key = row.segment, row.arm
        if problem.n_items == 1 and key in own:
            raise InvalidArgument("sums", f"arm {row.arm!r} appears twice in a segment", "group by segment and arm")
        if own.setdefault(key, row.pulls) != row.pulls:
            raise InvalidArgument(
                "sums", f"pulls of arm {row.arm!r} differ between items", "take those of the statement"
            )
        at = (segment, *_entry(support, arm, item))
        seen[at] += row.seen
        total[at] += row.total
        square[at] += row.square
    for (given, arm_name), n in own.items():
        pulls[number(given), _number(names[0], arm_name)] += n
    return Tally.of_sums(support, pulls, seen, total, square)


def _number(names: Any, name: Any) -> int:
    """The number of an arm or item of the answer; one without a name is refused."""
    if name is None:
        raise InvalidArgument(names.what, "rows without a name (NULL)", 'leave them out: where="arm IS NOT NULL"')
    return int(names.numbers([str(name)])[0])


def _entry(support: Any, arm: int, item: int) -> tuple[int, ...]:
    """The place of an entry in an array of entries."""
    if isinstance(support, Dense):
        return item, arm
    own = support.items[support.start[arm] : support.start[arm + 1]]
    place = int(np.searchsorted(own, item))
    if place == len(own) or own[place] != item:
        raise InvalidArgument("sums", f"arm {arm} cannot touch item {item}", "leave out what the support has not")
    return (int(support.start[arm]) + place,)


def segment_numbers(problem: Problem) -> Callable[[Any], int]:
    """What gives the number of a segment, as ``segment_number``, and looks every name up once."""
    known: dict[str, int] = {}

    def number(name: Any) -> int:
        text = "" if name is None else str(name)
        if text not in known or name is None:
            known[text] = segment_number(problem, name)
        return known[text]

    return number


def segment_number(problem: Problem, name: Any) -> int:
    """The number of a segment by its name, or by the level alone where one feature makes the segments."""
    if problem.context is None:
        return 0
    if name is None:
        raise InvalidArgument("segment", "rows without a segment (NULL)", "leave them out, or name one in SQL")
    features, text = problem.context.features, str(name)
    if text in (known := problem.context.segment_names):
        return known.index(text)
    if not known:
        raise InvalidArgument("segment", "the problem's context is no segment", "ask and tell with contexts")
    by = list(problem.context.model.names(features))
    if len(by) != 1:
        raise InvalidArgument("segment", f"unknown {text!r}", f"give one of {', '.join(known[:5])}, …")
    levels: Iterable[str] = features.levels[by[0]]
    if text not in levels and "other" not in levels:
        raise InvalidArgument("segment", f"unknown {text!r}", f"give one of {', '.join(list(levels)[:5])}")
    return int(problem.context.segments([{by[0]: text}])[0])
