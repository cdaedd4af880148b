"""Sums of a warehouse: every engine, order and partition gives the tally of ``problem.past``, bit for bit."""

import contextlib
import itertools
import random
import re
import sqlite3
import sys
from decimal import Decimal

import polars
import psycopg
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import superarm as sa
from superarm import warehouse
from superarm.core.tally import Tally
from tests.service.database import Database, fresh

ARMS, ITEMS, SEGMENTS = ["tent", "stövel", "mug"], ["north", "south"], ["campers", "other"]
NAMES = ("decision", "segment", "arm", "item", "click")
EVENT = st.tuples(
    st.integers(0, 30).map("visit-{}".format),
    st.sampled_from(SEGMENTS),
    st.sampled_from(ARMS),
    st.sampled_from(ITEMS),
    st.one_of(st.none(), st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0)),
)


def problem_of(n_items=1):
    context = sa.Context(sa.Features(categorical={"segment": SEGMENTS}))
    return sa.Problem(len(ARMS), n_items, sa.Coverage(), sa.Subsets(2), context=context)


def same(one, other):
    """Whether two tallies are equal, bit for bit."""
    (a, b) = (tally.to_arrays() for tally in (one, other))
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


def naive(events, n_items):
    """The tally of ``problem.past``: each decision once, with the largest outcome that was seen."""
    largest = {}
    for decision, segment, arm, item, x in events:
        row = largest.setdefault((decision, segment, arm), [None] * n_items)
        i = ITEMS.index(item) if n_items > 1 else 0
        row[i] = x if row[i] is None else max(row[i], row[i] if x is None else x)
    arms = [ARMS.index(arm) for _, _, arm in largest]
    outcomes = [[x or 0.0 for x in row] for row in largest.values()]
    seen = [[x is not None for x in row] for row in largest.values()]
    segments = [f"segment={segment}" for _, segment, _ in largest]
    return problem_of(n_items).past(arms, outcomes, seen, segments)


def frame(events):
    columns = zip(*events, strict=True) if events else [[]] * len(NAMES)
    kinds = [pyarrow.string()] * 4 + [pyarrow.float64()]
    return pyarrow.table([pyarrow.array(x, k) for x, k in zip(columns, kinds, strict=True)], list(NAMES))


def sqlite(events, statement):
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE clicks (decision, segment, arm, item, click)")
        connection.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?, ?)", events)
        return connection.execute(statement).fetchall()


def in_polars(events):
    """The same sums in an engine that speaks no SQL of ours."""
    rows = polars.from_arrow(frame(events)).group_by("decision", "segment", "arm").agg(polars.col("click").max())
    x = (polars.col("click") * 2.0**24 + 0.5).floor()
    whole = [part.cast(polars.Int64).sum() for part in (x, (x * x / 2.0**24 + 0.5).floor())]
    counts = (x.count().alias("pulls"), x.count().alias("seen"), whole[0].alias("total"), whole[1].alias("square"))
    return rows.group_by("segment", "arm").agg(*counts)


@pytest.mark.parametrize("item", [None, "item"])
@given(events=st.lists(EVENT, max_size=60), order=st.randoms())
def test_engines_agree_with_past_in_any_order(item, events, order):
    n_items = 1 if item is None else 2
    want = naive(events, n_items)
    shuffled = events + [event for event in events if order.random() < 0.5]  # and some came twice
    order.shuffle(shuffled)
    problem, columns = problem_of(n_items), {"segment": "segment", "item": item}
    found = [
        warehouse.sums(frame(shuffled), threads=1, **columns),
        sqlite(shuffled, warehouse.sql("sqlite", **columns)),
    ]
    found += [in_polars(shuffled)] if item is None else []
    for answer in found:
        items = ITEMS if item else None
        assert same(warehouse.tally(problem, answer, ARMS, items), want)


@given(
    events=st.lists(EVENT, unique_by=lambda event: event[:3], max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=3),
)
def test_sums_of_parts_add_up_in_any_order(events, cuts):
    """Each decision in one part, as one day's events are; the parts are added last to first."""
    problem, whole = problem_of(), naive(events, 1)
    added = Tally(problem.support, 2)
    edges = [0, *sorted(cuts), len(events)]
    for low, high in reversed(list(itertools.pairwise(edges))):
        answer = warehouse.sums(frame(events[low:high]), segment="segment", unique=True, threads=1)
        added.add(warehouse.tally(problem, answer, ARMS))
    assert same(added, whole)


def many_events(n, seed=0):
    """Amounts, clicks and silence; a twentieth of all rows twice."""
    draw = random.Random(seed)
    kinds = (lambda: None, lambda: 0.0, lambda: 1.0, draw.random)
    rows = [(f"d{i // 2}", SEGMENTS[i // 2 % 2], ARMS[i % 3], ITEMS[0], draw.choice(kinds)()) for i in range(n)]
    rows += draw.sample(rows, n // 20)
    draw.shuffle(rows)
    return rows


@pytest.mark.slow("PostgreSQL")
@pytest.mark.parametrize("item", [None, "item"])
def test_postgres_gives_the_same(item):
    events, database, columns = many_events(5_000), Database(fsync=False), {"segment": "segment", "item": item}
    try:
        with psycopg.connect(fresh(database.address, "sums")) as connection:
            kinds = "decision text, segment text, arm text, item text, click double precision"
            connection.execute(f"CREATE TABLE clicks ({kinds})")
            with connection.cursor().copy("COPY clicks FROM STDIN") as copy:
                for event in events:
                    copy.write_row(event)
            answer = connection.execute(warehouse.sql("postgres", **columns)).fetchall()
    finally:
        database.close()
    n_items = 2 if item else 1
    found = warehouse.tally(problem_of(n_items), answer, ARMS, ITEMS if item else None)
    assert same(found, naive(events, n_items))


@pytest.mark.slow("processes of Dask")
def test_a_cluster_that_loses_a_partition_gives_the_same(tmp_path):
    from distributed import Client, LocalCluster

    def sums_of_part(path, died):
        """The sums of one file; the process that comes first dies."""
        import os

        try:
            os.close(os.open(died, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return warehouse.sums(path, segment="segment", threads=1)
        os._exit(9)

    events, parts = many_events(4_000), 8
    for part in range(parts):
        own = [event for event in events if int(event[0][1:]) % parts == part]
        pyarrow.parquet.write_table(frame(own), tmp_path / f"{part}.parquet")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        paths = [str(tmp_path / f"{part}.parquet") for part in range(parts)]
        answers = client.gather(client.map(sums_of_part, paths, died=str(tmp_path / "died")))
    problem = problem_of()
    added = Tally(problem.support, 2)
    for answer in reversed(answers):
        added.add(warehouse.tally(problem, answer, ARMS))
    assert (tmp_path / "died").exists()
    assert same(added, naive(events, 1))


def row(**changes):
    return {"segment": "campers", "arm": "tent", "pulls": 3, "seen": 3, "total": 2 << 24, "square": 2 << 24} | changes


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pulls": 2**29 + 1, "seen": 2**29 + 1}, "sums: 536870913 observations of arm 'tent'; at most 2^29"),
        ({"seen": -1}, "seen of arm 'tent' is -1; give whole numbers that are not negative"),
        ({"total": 0.5}, "total of arm 'tent' is 0.5; give whole numbers"),
        ({"pulls": "3", "total": "many"}, "total of arm 'tent' is 'many'; give whole numbers"),
        ({"low": "many"}, "low and high of arm 'tent' are 'many' and None; give numbers"),
        ({"total": float("nan")}, "total of arm 'tent' is nan; give whole numbers"),
        ({"total": 4 << 24}, "sums: more than outcomes in [0, 1] add up to"),
        ({"square": 3 << 24}, "sums: more than outcomes in [0, 1] add up to"),
        ({"square": 1 << 24}, "sums: squares that add up to less than such a total allows; give the sum"),
        ({"seen": 4}, "sums: an arm with more outcomes than pulls"),
        ({"low": 0, "high": 1.5 * 2**24}, "arm 'tent' has outcomes from 0 to 1.5; give outcomes in [0, 1]"),
        ({"low": -(2**24), "high": 0}, "arm 'tent' has outcomes from -1 to 0; give outcomes in [0, 1]"),
        ({"arm": "boat"}, "arms: unknown name 'boat'"),
        ({"arm": None}, "arms: rows without a name (NULL)"),
        ({"segment": "sailors"}, "segment: unknown 'sailors'; give one of campers, walkers"),
    ],
)
def test_wrong_sums_are_refused_in_a_sentence(changes, told):
    context = sa.Context(sa.Features(categorical={"segment": ["campers", "walkers"]}))
    with pytest.raises(sa.InvalidArgument, match=re.escape(told)):
        warehouse.tally(problem_of().changed(context=context), [row(**changes)], ARMS)


def test_sums_that_only_together_are_too_many_are_refused():
    rows = [row(segment=segment, pulls=2**29, seen=2**29, total=0, square=0) for segment in ("sailors", "cooks")]
    with pytest.raises(sa.InvalidArgument, match="1073741824 observations of an arm; at most 2"):
        warehouse.tally(problem_of(), rows, ARMS)  # both are "other"
    tally = warehouse.tally(problem_of(), rows[:1], ARMS)
    tally.require_exact()
    tally.add(tally)
    with pytest.raises(sa.InvalidArgument, match="1073741824 observations of an arm; at most 2"):
        tally.require_exact()


def test_a_segment_twice_and_pulls_that_differ_between_items_are_refused():
    with pytest.raises(sa.InvalidArgument, match="arm 'tent' appears twice in a segment"):
        warehouse.tally(problem_of(), [row(), row()], ARMS)
    two = [row(item="north"), row(item="south", pulls=4)]
    with pytest.raises(sa.InvalidArgument, match="pulls of arm 'tent' differ between items"):
        warehouse.tally(problem_of(2), two, ARMS, ITEMS)


def test_what_an_engine_answers_is_read_in_any_form():
    """Capitals of Snowflake, sums of nothing as NULL, decimals of PostgreSQL, a polars and a pandas frame."""
    rows = [row(), row(arm="mug", pulls=1, seen=0, total=None, square=None)]
    want = warehouse.tally(problem_of(), rows, ARMS)
    capitals = [
        {name.upper(): x if isinstance(x, str) or x is None else Decimal(x) for name, x in one.items()} for one in rows
    ]
    frame = polars.DataFrame(rows)
    for answer in (capitals, frame, frame.to_pandas(), frame.to_arrow()):
        assert same(warehouse.tally(problem_of(), answer, ARMS), want)
    assert want.pulls[0].tolist() == [3.0, 0.0, 1.0]


def test_levels_of_several_features_make_a_segment():
    features = sa.Features(categorical={"it's in": ["NO", "other"], "device": ["phone", "desk"]})
    problem = sa.Problem(1, 1, sa.Linear(), sa.Subsets(1), context=sa.Context(features))
    log = pyarrow.table({"it's in": ["NO", "NO"], "device": ["desk", "phone"], "arm": ["0", "0"], "click": [1.0, 0.0]})
    answer = warehouse.sums(log, segment=("it's in", "device"), unique=True, decision=None)
    assert warehouse.tally(problem, answer).total[:, 0, 0].tolist() == [0.0, 1.0, 0.0, 0.0]


def test_entries_of_a_sparse_support():
    support = csr_array([[1, 0], [1, 1]])
    problem = sa.Problem(2, 2, sa.Coverage(), sa.Subsets(1), support=support)
    rows = [row(segment="", arm="b", item="y"), row(segment="", arm="b", item="x", total=0, square=0)]
    tally = warehouse.tally(problem, rows, ["a", "b"], ["x", "y"])
    assert tally.total[0].tolist() == [0.0, 0.0, 2.0]
    with pytest.raises(sa.InvalidArgument, match="arm 0 cannot touch item 1"):
        warehouse.tally(problem, [row(segment="", arm="a", item="y")], ["a", "b"], ["x", "y"])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"dialect": "oracle"}, "dialect: unknown 'oracle'; give one of duckdb, postgres"),
        ({"product": "arm"}, "product: is not an argument; give decision, arm"),
        ({"decision": None}, "decision: missing; name the column"),
    ],
)
def test_a_statement_that_cannot_be_made_is_refused(wrong, told):
    with pytest.raises(sa.InvalidArgument, match=told):
        warehouse.sql(**wrong)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("decision,arm,click\n1,tent,1\n2,tent,many\n")
    for source, told in [
        (tmp_path / "none.parquet", "DuckDB cannot read it: .*none.parquet"),
        (tmp_path / "a.csv", "DuckDB cannot read it: .*many"),
        ([1, 2], "source: list; give the path of a file, or a data frame"),
    ]:
        with pytest.raises(sa.InvalidArgument, match=told):
            warehouse.sums(source)
    (tmp_path / "b.jsonl").write_text("{}")
    with pytest.raises(sa.InvalidArgument, match=r"has \['csv', 'jsonl'\] files; give"):
        warehouse.sums(tmp_path)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_directory_of_files_is_one_log(tmp_path, kind):
    events = [event for event in many_events(60) if event[4] is not None]
    for part in (0, 1):
        own = polars.from_arrow(frame(events[part::2]))
        write = {"csv": own.write_csv, "jsonl": own.write_ndjson, "parquet": own.write_parquet}[kind]
        write(tmp_path / f"it's {part}.{kind}")
    for source in (tmp_path, f"{tmp_path}/*.{kind}"):
        found = warehouse.tally(problem_of(), warehouse.sums(source, segment="segment"), ARMS)
        assert same(found, naive(events, 1))


def test_what_was_read_is_counted():
    log = frame(
        [("a", "campers", "tent", "", 1.0), ("a", "campers", "tent", "", 1.0), ("b", "campers", "tent", "", None)]
    )
    (found,) = warehouse.sums(log.add_column(0, "place", [[1, 1, 3]]), segment="segment", position="place")
    assert (found.rows, found.shown, found.seen, found.first, found.last) == (3, 2, 1, 1, 3)


def test_names_are_quoted_where_they_must_be():
    log = pyarrow.table({"group": ["campers"], "the arm": ["tent"], "click": [1.0], 'de"cision': ["a"]})
    columns = {"segment": "group", "arm": "the arm", "decision": 'de"cision'}
    assert [one.arm for one in warehouse.sums(log, **columns)] == ["tent"]
    assert "`the arm`" in warehouse.sql("bigquery", **columns)
    assert "FROM `my-project`.shop.clicks\n" in warehouse.sql("bigquery", "my-project.shop.clicks")
    assert 'FROM "order"\n' in warehouse.sql("postgres", "order")
    assert "FROM read_csv('a-b.csv')\n" in warehouse.sql("duckdb", "read_csv('a-b.csv')")
    assert "WHERE (day = 1) AND decision IS NOT NULL" in warehouse.sql(where="day = 1")
    assert "WHERE day = 1\n" in warehouse.sql(where="day = 1", unique=True)


@pytest.mark.parametrize("item", [None, "item"])
def test_rows_without_the_id_of_a_decision_are_left_out(item):
    known = many_events(60)
    events = known + [(id, "campers", "tent", "north", 1.0) for id in (None, "", None)]
    columns, n_items = {"segment": "segment", "item": item}, 2 if item else 1
    for answer in (warehouse.sums(frame(events), **columns), sqlite(events, warehouse.sql("sqlite", **columns))):
        assert same(warehouse.tally(problem_of(n_items), answer, ARMS, ITEMS if item else None), naive(known, n_items))
    assert warehouse.rows_without_decision(frame(events), **columns, where="click = 1") == 3
    assert warehouse.rows_without_decision(frame(events), unique=True) == 0
    assert all("IS NOT NULL AND CAST(" in warehouse.sql(name, **columns) for name in warehouse.DIALECTS)


def test_without_duckdb_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=re.escape("pip install '.[warehouse]'")):
        warehouse.sums({"arm": []})


def test_numbers_in_a_column_are_names_of_segments():
    features = sa.Features(categorical={"year": ["2023", "2024", "1"]})
    problem = sa.Problem(1, 1, sa.Linear(), sa.Subsets(1), context=sa.Context(features))
    log = pyarrow.table({"decision": ["a", "b"], "arm": ["tent", "tent"], "click": [1.0, 0.0], "segment": [1, 2023]})
    found = warehouse.tally(problem, warehouse.sums(log, segment="segment"), ["tent"])
    assert found.pulls[:, 0].tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(sa.InvalidArgument, match="unknown '0'"):
        warehouse.tally(problem, [(0, "tent", "", 1, 1, 0, 0)], ["tent"])


def test_each_name_of_a_segment_is_looked_up_once(monkeypatch):
    asked, look = [], warehouse.segment_number
    monkeypatch.setattr(warehouse, "segment_number", lambda problem, name: asked.append(name) or look(problem, name))
    warehouse.tally(problem_of(), [(name, arm, "", 1, 1, 0, 0) for name in SEGMENTS for arm in ARMS], ARMS)
    assert asked == SEGMENTS


@pytest.mark.parametrize("name", ["log", "pulled"])
def test_a_table_of_the_log_may_be_called_so(name):
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {name} (decision, arm, item, click)")
        connection.execute(f"INSERT INTO {name} VALUES ('a', 'tent', 'north', 1.0)")
        (row,) = connection.execute(warehouse.sql("sqlite", name, item="item")).fetchall()
    assert row[:5] == ("", "tent", "north", 1, 1)
