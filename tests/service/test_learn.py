"""``superarm learn``: a log becomes a table, with what was read, what is claimed, and what may mislead."""

import json
import re
from datetime import UTC, datetime

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import superarm as sa
from superarm import warehouse

from .running import invoke

ARMS = [f"arm {j}" for j in range(6)]


def write_log(path, visits=4_000, **changes):
    """A log of random slates of two: in each segment another arm is clicked by half of all visitors."""
    draw = np.random.default_rng(0)
    segments = draw.integers(0, 2, visits)
    slates = np.argsort(draw.random((visits, 6)), axis=1)[:, :2]
    clicks = draw.random((visits, 2)) < np.where(slates == 4 + segments[:, None], 0.5, 0.1)
    columns = {
        "decision": np.repeat([f"visit {n}" for n in range(visits)], 2),
        "segment": np.repeat(np.array(["campers", "walkers"])[segments], 2),
        "arm": [ARMS[j] for j in slates.ravel()],
        "click": clicks.ravel().astype(float),
        "position": np.tile([1, 2], visits),
    }
    table = pyarrow.table({name: one for name, one in (columns | changes).items() if one is not None})
    parquet.write_table(table, path)
    return table


@pytest.fixture
def shop(tmp_path):
    """The words of a command that learns from a log."""
    (tmp_path / "shop.toml").write_text('k = 2\nreward = {name = "linear"}\n')
    (tmp_path / "top.txt").write_text("arm 0\narm 1\n\narm 2\n")
    log = tmp_path / "clicks.parquet"
    write_log(log)
    return ("learn", str(log), "--problem", str(tmp_path / "shop.toml"), "--baseline", str(tmp_path / "top.txt"))


def claims(text):
    """The numbers of each claim."""
    found = re.findall(r"^([a-z ]+): (\S+) a decision \(95 % interval (\S+) to (\S+)\)$", text, re.MULTILINE)
    return {title: tuple(map(float, numbers)) for title, *numbers in found}


def test_a_log_becomes_a_table_that_earns_more(shop, tmp_path):
    done = invoke(*shop, "--publish", str(tmp_path / "table.json"), "--rows", "64")
    assert done.exit_code == 0, done.output
    assert "clicks.parquet, 8,000 rows; 6 arms in 2 segments\n" in done.stdout
    assert "warning" not in done.stdout
    found = claims(done.stdout)
    for title, truth in {"present page": 0.2, "new page": 0.6, "difference": 0.4}.items():
        value, low, high = found[title]
        assert low < truth < high or abs(value - truth) < 0.05, title  # the table explores
        assert low < value < high
    assert "clicks depend on arm and segment alone" in done.stdout
    table = sa.Table.load(tmp_path / "table.json")
    assert (table.problem, len(table.slates["campers"]), table.lifetime) == ("shop", 64, 400)
    shown = [table.decide(f"{n}", "walkers").arms for n in range(200)]
    assert sum("arm 5" in arms for arms in shown) > 190
    assert table.decide("1", eligible=["arm 0", "arm 1"]).arms == ("arm 0", "arm 1")
    again = invoke(*shop, "--publish", str(tmp_path / "again.json"), "--rows", "64")
    assert again.exit_code == 0
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "table.json").read_bytes()
    fewer = ("--where", "decision < 'visit 5'", "--publish", str(tmp_path / "table.json"), "--rows", "64")
    assert invoke(*shop, *fewer).exit_code == 0
    assert sa.Table.load(tmp_path / "table.json", newer_than=table).version == table.version + 1  # programs take it


def test_a_table_that_overwrites_one_is_newer(shop, tmp_path):
    path, found = tmp_path / "table.json", []
    more = (("--baseline", str(tmp_path / "top.txt")), (), ("--where", "position = 1"), ("--version", "9000"), ())
    for words in more:
        assert invoke(*shop[:4], *words, "--publish", str(path), "--rows", "16").exit_code == 0
        found.append(sa.Table.load(path))
    assert [one.version for one in found] == [8_001, 8_002, 8_003, 9_000, 9_000]
    assert found[4].digest == found[3].digest  # the same log gives the same table
    assert len({one.salt for one in found[:4]}) == 4
    done = invoke(*shop, "--publish", str(path), "--version", "9000")
    assert "version: 9000, where table.json holds 9000; give a larger number" in done.stderr
    (tmp_path / "shop.toml").rename(tmp_path / "other.toml")
    invoke(*shop[:3], str(tmp_path / "other.toml"), "--publish", str(path), "--rows", "16")
    assert (sa.Table.load(path).problem, sa.Table.load(path).version) == ("other", 8_001)


def test_settings_are_followed_or_refused(shop, tmp_path):
    def run(settings, *words):
        (tmp_path / "shop.toml").write_text(f"k = 2\n[settings]\n{settings}\n")
        return invoke(*words, "--publish", str(tmp_path / "table.json"))

    assert run("control = 0.25\ntable_rows = 32\ntable_expires_s = 60", *shop).exit_code == 0
    table = sa.Table.load(tmp_path / "table.json")
    assert (table.control.share, len(table.slates[""]), table.control.slates) == (0.25, 32, {"": [[0, 1]]})
    left = datetime.fromisoformat(table.expires) - datetime.now(UTC)
    assert left.total_seconds() <= 60
    assert "settings.explore: has no effect on a table; leave it out" in run("explore = 0.1", *shop).stderr
    assert "settings.control: 0.25, without a control slate; give --baseline" in run("control = 0.25", *shop[:4]).stderr


def test_lines_of_the_baseline_that_are_no_arms_are_told(shop, tmp_path):
    (tmp_path / "top.txt").write_text("arm 0\nboat\narm 1\nship\n")
    assert "left out of top.txt: 2 lines that are no arms: boat, ship\n" in invoke(*shop).stdout
    (tmp_path / "top.txt").write_text("boat\n")
    assert "baseline: top.txt names no arm of the problem or of the log; write" in invoke(*shop).stderr


def test_what_was_not_learnt_from_is_told(shop, tmp_path):
    log = write_log(tmp_path / "clicks.parquet", 100)
    clicks = [None if n < 10 else x for n, x in enumerate(log["click"].to_pylist())]
    log = log.set_column(3, "click", pyarrow.array(clicks))
    parquet.write_table(pyarrow.concat_tables([log, log[:50]]), tmp_path / "clicks.parquet")
    (tmp_path / "shop.toml").write_text(f"k = 2\narms = {ARMS[:5]}\n")
    text = invoke(*shop).stdout
    gone = sum(arm == "arm 5" for arm in log["arm"].to_pylist())
    assert "250 rows, 50 of them again; 5 arms in 2 segments" in text
    assert re.search(r"left out: \d+ rows of what the problem does not have: arm 5 in campers, arm 5 in walkers", text)
    assert gone > 0
    assert re.search(r"not counted: \d+ rows without an outcome, which is not the outcome 0", text)
    markets = [None if n < 6 else x for n, x in enumerate(log["segment"].to_pylist())]
    parquet.write_table(log.set_column(1, "market", pyarrow.array(markets)), tmp_path / "clicks.parquet")
    assert re.search(
        r"left out: .*: arm 0.*, arm \d, whose market is NULL", invoke(*shop, "--segment", "market").stdout
    )
    ids = [None if n < 7 else id for n, id in enumerate(log["decision"].to_pylist())]
    parquet.write_table(log.set_column(0, "decision", pyarrow.array(ids)), tmp_path / "clicks.parquet")
    assert "left out: 7 rows whose decision is NULL or empty\n" in invoke(*shop).stdout


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"click": np.ones(8_000)}, "warning: all outcomes are 1; the log lacks what was shown and not clicked"),
        ({"arm": ["arm 0", "arm 1"] * 4_000}, "warning: 2 of 2 arms were seen in one place only"),
        ({"arm": ["arm 0", "arm 1"] * 4_000}, "warning: one slate alone was shown to campers, walkers"),
    ],
)
def test_what_may_mislead_is_warned_of(shop, tmp_path, changes, told):
    write_log(tmp_path / "clicks.parquet", **changes)
    (tmp_path / "shop.toml").write_text(f"k = 2\narms = {ARMS}\n")
    done = invoke(*shop, "--publish", str(tmp_path / "table.json"), "--rows", "16")
    assert told in done.stdout.partition("table: ")[2], done.output  # last


def test_sums_of_another_engine_are_read_as_the_log_is(shop, tmp_path):
    answer = warehouse.sums(tmp_path / "clicks.parquet", segment="segment")
    names = warehouse.Sum._fields[:7]
    rows = {name: [getattr(one, name) for one in answer] for name in names}
    parquet.write_table(pyarrow.table(rows), tmp_path / "sums.parquet")
    own = invoke("learn", str(tmp_path / "sums.parquet"), *shop[2:], "--publish", str(tmp_path / "sums.json"))
    log = invoke(*shop, "--publish", str(tmp_path / "log.json"))
    assert (own.exit_code, log.exit_code) == (0, 0), own.output
    assert (tmp_path / "sums.json").read_bytes() == (tmp_path / "log.json").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_sums_in_files_of_text_are_read(shop, tmp_path, kind):
    """As an engine writes them: every column of the statement, all as strings."""
    with warehouse.opened(tmp_path / "clicks.parquet") as (connection, table, _):
        found = connection.execute(warehouse.sql("duckdb", table, segment="segment"))
        names, answer = [column[0] for column in found.description], found.fetchall()
    rows = [dict(zip(names, map(str, row), strict=True)) for row in answer]
    lines = [",".join(names), *(",".join(row.values()) for row in rows)]
    if kind == "jsonl":
        lines = [json.dumps(row) for row in rows]
    path = tmp_path / f"sums.{kind}"
    path.write_text("\n".join(lines) + "\n")
    own = invoke("learn", str(path), *shop[2:], "--publish", str(tmp_path / "sums.json"))
    log = invoke(*shop, "--publish", str(tmp_path / "log.json"))
    assert (own.exit_code, log.exit_code) == (0, 0), own.output
    assert (tmp_path / "sums.json").read_bytes() == (tmp_path / "log.json").read_bytes()


def test_the_statement_is_printed():
    done = invoke("learn", "shop.clicks", "--sql", "--dialect", "bigquery", "--segment", "market", "--where", "day = 1")
    assert done.stdout == warehouse.sql("bigquery", "shop.clicks", segment="market", where="day = 1") + "\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--outcome", "bought"), "DuckDB cannot read it"),
        (("--rows", "100"), "rows: 100; give a power of two"),
    ],
)
def test_what_cannot_be_learnt_is_refused_in_a_sentence(shop, words, told):
    done = invoke(*shop, *words)
    assert done.exit_code == 2
    assert re.fullmatch(f"Error: .*{told}.*\n", done.stderr), done.stderr


def test_a_problem_that_is_none_is_refused(shop, tmp_path):
    (tmp_path / "shop.toml").write_text("k = 2\nsize = 3\n")
    assert "problem: Object contains unknown field `size`" in invoke(*shop).stderr
    (tmp_path / "shop.toml").write_text("k = ")
    assert "shop.toml is not TOML" in invoke(*shop).stderr
    assert "give SOURCE and --problem, or --sql" in invoke("learn").stderr


def test_outcomes_of_several_items_are_learnt_for_each(shop, tmp_path):
    items = np.where(np.arange(8_000) % 3 == 0, "north", "south")
    write_log(tmp_path / "clicks.parquet", segment=None, item=items)
    (tmp_path / "shop.toml").write_text('k = 2\nitems = ["north", "south"]\n')
    done = invoke(*shop, "--publish", str(tmp_path / "table.json"), "--rows", "16")
    assert done.exit_code == 0, done.output
    assert "6 arms in 1 segments" in done.stdout
    assert sa.Table.load(tmp_path / "table.json").segments == [""]
