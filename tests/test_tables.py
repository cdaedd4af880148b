"""Tables of slates: what a policy would choose, decided alike in every language, learnt from exactly."""

import hashlib
import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

import superarm as sa
from superarm.agent.publishing import choose_rows
from superarm.contextual import comb_lin_ts
from superarm.policies import discounted, shared_cts, sliding_window
from superarm.tables import StaleTable, lifetime
from tests.service.database import Database, fresh

ARMS = [f"arm {j}" for j in range(8)]
SEGMENTS = sa.Context(sa.Features(categorical={"segment": ["campers", "walkers"]}))
CASES = Path(__file__).parent / "data" / "table-cases.json"


def agent_of(policy, context=None, visits=400, n_items=1, **more):
    """An agent that has learnt from a log of its own; of one of many visits there are copies."""
    draw = np.random.default_rng(0)
    problem = sa.Problem(8, n_items, sa.Coverage(), sa.Subsets(3), context=context)
    copies = visits // 400
    arms = draw.integers(0, 8, min(visits, 400))
    outcomes = draw.random((len(arms), n_items)) < np.linspace(0.05, 0.4, 8)[arms][:, None]
    contexts = None if context is None else draw.integers(0, 2, len(arms)).tolist()
    tally = problem.past(arms, outcomes.astype(float), contexts=contexts)
    tally.add(tally.take(slice(None)), max(copies - 1, 0))
    return sa.Agent(problem, policy, seed=1, arms=ARMS, tally=tally, **more)


@pytest.mark.parametrize("context", [None, SEGMENTS], ids=["no segments", "segments"])
@pytest.mark.parametrize("visits", [0, 400, 20_000])
@pytest.mark.parametrize(
    "policy",
    [
        *(sa.pooled_thompson(), sa.pooled_thompson(baseline=range(8)), sa.cts(), shared_cts()),
        *(sliding_window(sa.cts(), 100), discounted(sa.pooled_thompson(), 50)),
    ],
    ids=str,
)
def test_one_call_chooses_what_single_calls_would(policy, context, visits):
    learner = agent_of(policy, context, visits).learner
    for segment in range(1 if context is None else 2):
        seed = np.random.SeedSequence([5, segment])
        found = choose_rows(learner, seed, 8, segment)
        encoded = context and learner.contexts.encode({"segment": ["campers", "walkers"][segment]})
        for key, slate in zip(seed.generate_state(8, np.uint64), found, strict=True):
            view = learner.view(learner.t + 1, np.array([key], np.uint64), context=encoded)
            assert learner.choose(view).tolist() == slate


def test_parts_of_a_large_table_are_those_of_the_whole(monkeypatch):
    learner, seed = agent_of(sa.cts()).learner, np.random.SeedSequence(3)
    whole = choose_rows(learner, seed, 16, 0)
    monkeypatch.setattr("superarm.agent.publishing.AT_ONCE", 24)  # three rows at once
    assert choose_rows(learner, seed, 16, 0) == whole
    assert len({tuple(slate) for slate in whole}) > 4


def test_a_policy_that_does_not_draw_counts_rows_as_pending():
    agent = agent_of(sa.kl_ucb(), visits=40)
    before = agent.to_state()
    table = agent.publish(8)
    assert agent.to_state() == before
    assert table.slates[""] == [agent.ask().action.tolist() for _ in range(8)]
    assert len({tuple(slate) for slate in table.slates[""]}) > 1


@pytest.mark.parametrize("policy", [sa.pooled_thompson(baseline=range(8)), sa.kl_ucb()], ids=str)
def test_publishing_twice_gives_the_same_bytes(policy):
    agent = agent_of(policy, SEGMENTS)
    before, body = agent.to_state(), agent.publish(16).to_json()
    assert agent.to_state() == before
    assert agent.publish(16).to_json() == sa.Agent.from_state(before).publish(16).to_json() == body
    assert sa.Table.load(body).to_json() == body
    agent.warm_start(agent.problem.past([0], [[1.0]], contexts=[0]))
    assert agent.publish(16).version == sa.Table.load(body).version + 1


def test_rows_of_everybody_come_from_all_segments_by_their_traffic():
    table = agent_of(sa.cts(), SEGMENTS).publish(16)
    assert list(table.slates) == ["campers", "walkers", ""]
    own = [table.slates[name] for name in ("campers", "walkers")]
    assert all(table.slates[""][n] in (own[0][n], own[1][n]) for n in range(16))
    assert table.slates[""] not in own
    other = sa.Context(sa.Features(categorical={"segment": ["campers", "other"]}))
    known = agent_of(sa.cts(), other).publish(16)
    assert known.slates[""] == known.slates["other"]
    assert known.decide("x", "unheard of").segment == ""


def naive_row(table, id, segment):
    """The row by the text of the format: whole numbers alone."""
    word = hashlib.sha256((table.salt + "." + id).encode("utf-8")).hexdigest()
    rows = len(table.slates[segment])
    return -1 if int(word[8:16], 16) < table.control.share * 2**32 else int(word[:8], 16) * rows // 2**32


@given(st.text(min_size=1), st.sampled_from(["campers", "walkers", ""]))
def test_decisions_follow_the_format(id, segment):
    table = sa.Table.load(CASE_TABLE)
    served = table.decide(id, segment)
    assert served.row == naive_row(table, id, segment)
    slate = table.slates[segment][served.row] if served.row >= 0 else [0, 1, 2]
    assert served.arms == tuple(table.arms[j] for j in slate)


def test_the_cases_for_all_languages_hold():
    cases = json.loads(CASES.read_text())
    table = sa.Table.load(json.dumps(cases["table"], ensure_ascii=False, separators=(",", ":")).encode())
    found = [table.decide(id, segment) for id, segment, _ in cases["cases"]]
    assert [one.row for one in found] == [row for _, _, row in cases["cases"]]
    assert len(found) == 1_000
    assert sum(not id.isascii() for id, _, _ in cases["cases"]) > 100
    assert 50 < sum(one.row == -1 for one in found) < 200


DUCKDB = """
SELECT CASE WHEN ('0x' || substr(word, 9, 8))::UBIGINT < share * 4294967296 THEN -1
  ELSE ((('0x' || substr(word, 1, 8))::UBIGINT * n_rows) >> 32) END
FROM (SELECT n, share, n_rows, sha256(salt || '.' || id) AS word FROM ids) ORDER BY n"""
POSTGRES = """
SELECT CASE WHEN ('x00000000' || substr(word, 9, 8))::bit(64)::bigint < share * 4294967296 THEN -1
  ELSE (('x00000000' || substr(word, 1, 8))::bit(64)::bigint * n_rows) >> 32 END
FROM (SELECT n, share, n_rows, encode(sha256(convert_to(salt || '.' || id, 'UTF8')), 'hex') AS word FROM ids) AS words
ORDER BY n"""


def case_rows():
    """The cases, as a table that SQL recomputes the rows from: who was shown what."""
    cases = json.loads(CASES.read_text())
    share, salt, n_rows = cases["table"]["control"]["share"], cases["table"]["salt"], len(cases["table"]["slates"][""])
    rows = [(n, salt, id, share, n_rows) for n, (id, _, _) in enumerate(cases["cases"])]
    return rows, [row for _, _, row in cases["cases"]]


def rows_in_sql(execute, statement, many):
    execute("CREATE TABLE ids (n integer, salt text, id text, share double precision, n_rows bigint)")
    rows, want = case_rows()
    many(rows)
    assert [row[0] for row in execute(statement).fetchall()] == want


def test_duckdb_recomputes_the_rows():
    with duckdb.connect() as connection:
        rows_in_sql(
            connection.execute,
            DUCKDB,
            lambda rows: connection.executemany("INSERT INTO ids VALUES (?, ?, ?, ?, ?)", rows),
        )


@pytest.mark.slow("PostgreSQL")
def test_postgres_recomputes_the_rows():
    database = Database(fsync=False)
    try:
        with psycopg.connect(fresh(database.address, "rows")) as connection, connection.cursor() as cursor:
            rows_in_sql(
                cursor.execute,
                POSTGRES,
                lambda rows: cursor.executemany("INSERT INTO ids VALUES (%s, %s, %s, %s, %s)", rows),
            )
    finally:
        database.close()


@pytest.mark.needs("tsc")
def test_node_decides_alike():
    """By the lines of the guide, which need no package."""
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "scale.md").read_text()
    (script,) = re.findall(r"```js\n(.*?)```", guide, re.DOTALL)
    calls = """
const { table, cases } = JSON.parse(require("fs").readFileSync(0));
let refused = "";
try { decide(table, 17); } catch (error) { refused = error.message; }
const ids = [...cases, ["visit", "constructor"]];
console.log(JSON.stringify([refused, ids.map(([id, segment]) => decide(table, id, segment))]));"""
    words = ["node", "-e", script + calls]
    ran = subprocess.run(words, input=CASES.read_text(), text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    refused, found = json.loads(ran.stdout)
    table, cases = sa.Table.load(CASE_TABLE), json.loads(CASES.read_text())["cases"]
    want = [table.decide(id, segment) for id, segment, *_ in [*cases, ("visit", "constructor")]]
    assert [sa.tables.Served(tuple(one.pop("arms")), **one) for one in found] == want
    assert {one.row == -1 for one in want} == {True, False}  # the control slate, and others
    assert refused == "id: 17 is not a string"


def make_cases():
    """``python -m tests.test_tables`` writes the cases."""
    table = agent_of(sa.cts(), SEGMENTS).publish(16, problem="front-page", control=0.1, present=ARMS[:3])
    names = ("visit-{}", "visite-{}-é", "訪問{}", "{}-🏕", "a b/{}?")
    ids = [names[n % 5].format(n) for n in range(1_000)]
    segments = ("campers", "walkers", "nobody knows")
    cases = [[id, segments[n % 3], table.decide(id, segments[n % 3]).row] for n, id in enumerate(ids)]
    whole = {"table": json.loads(table.to_json()), "cases": cases}
    CASES.write_text(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).replace("],[", "],\n[") + "\n")


def test_inclusion_is_what_is_observed():
    table = agent_of(sa.cts()).publish(32, control=0.2, present=ARMS[:3])
    counts = np.zeros(8)
    for n in range(20_000):
        counts[[ARMS.index(arm) for arm in table.decide(f"visit-{n}").arms]] += 1 / 20_000
    assert np.abs(counts - table.inclusion()[""]).max() < 0.02  # 5 standard deviations of a share
    assert table.inclusion()[""].sum() == pytest.approx(3.0)


def test_eligible_arms_take_the_next_row_that_holds_no_other():
    table = sa.Table("p", 1, "p.1", ("a", "b", "c"), 2, {"": [[0, 1], [1, 2], [0, 2], [2, 1]]}).signed()
    for n in range(40):
        row = table.decide(f"{n}").row
        served = table.decide(f"{n}", eligible=["b", "c"])
        assert served.row == next(r % 4 for r in range(row, row + 4) if r % 4 in (1, 3))
    with pytest.raises(sa.InvalidArgument, match="no slate of the table holds only these"):
        table.decide("1", eligible=["a"])
    control = agent_of(sa.cts()).publish(2, present=ARMS[:3])
    assert control.decide("1", eligible=ARMS[:3]).arms == tuple(ARMS[:3])


@given(st.data())
def test_patterns_are_learnt_as_decisions_told_one_by_one(data):
    table = sa.Table.load(CASE_TABLE)
    event = st.tuples(st.integers(0, 99), st.sampled_from(["campers", "walkers"]), st.integers(0, 7))
    shown = data.draw(st.lists(event, max_size=table.lifetime))
    problem = agent_of(sa.cts(), SEGMENTS, 0).problem
    patterns, arms, outcomes, segments = {}, [], [], []
    for id, segment, mask in shown:
        served = table.decide(f"{id}", segment)
        key = (table.version, segment, served.row, mask)
        patterns[key] = patterns.get(key, 0) + 1
        arms += [ARMS.index(arm) for arm in served.arms]
        outcomes += [[float(mask >> place & 1)] for place in range(3)]
        segments += [f"segment={segment}"] * 3
    found = table.tally(problem, [(*key, n) for key, n in patterns.items()], ARMS).to_arrays()
    want = problem.past(arms, outcomes, contexts=segments).to_arrays()
    assert all(found[name].tobytes() == want[name].tobytes() for name in ("pulls", "total", "square"))


def test_an_agent_goes_on_from_patterns():
    agent = agent_of(sa.cts(), SEGMENTS)
    table, pulls = agent.publish(16), agent.tally.pulls.sum()
    patterns = [(table.version, "campers", 3, 0b101, 7), (table.version, "", 0, 1, 2)]
    agent.warm_start(table.tally(agent.problem, patterns, agent.arms))
    assert agent.tally.pulls.sum() == pulls + 21  # those of nobody's segment are not learnt from


def test_patterns_are_credited_by_the_names_of_arms_and_segments():
    table = agent_of(sa.cts(), SEGMENTS).publish(16)
    patterns = [(table.version, "campers", 3, 0b001, 7), (table.version, "walkers", 5, 0b110, 4)]
    turned = sa.Context(sa.Features(categorical={"segment": ["walkers", "ramblers", "campers"]}))
    problem = sa.Problem(9, 1, sa.Coverage(), sa.Subsets(3), context=turned)
    arms = ["boat", *reversed(ARMS)]
    found = table.tally(problem, patterns, arms)
    own = table.tally(agent_of(sa.cts(), SEGMENTS, 0).problem, patterns, ARMS)
    at = [arms.index(arm) for arm in ARMS]
    assert (found.pulls[[2, 0]][:, at] == own.pulls).all()
    assert (found.total[[2, 0]][:, :, at] == own.total).all()
    assert found.pulls.sum() == own.pulls.sum() == 33
    with pytest.raises(sa.InvalidArgument, match="arms: unknown name 'arm 0'"):
        table.tally(problem, patterns, [f"other {j}" for j in range(9)])
    with pytest.raises(sa.InvalidArgument, match="problem: it has 2 items; give sums"):
        table.tally(agent_of(sa.cts(), SEGMENTS, 0, 2).problem, patterns, ARMS)


def test_a_table_that_lived_too_long_is_warned_of():
    agent = agent_of(sa.cts(), visits=3_200)  # a thousand decisions of three arms
    table = agent.publish(4)
    assert table.lifetime == lifetime(1_066) == 106
    table.tally(agent.problem, [(table.version, "", 0, 0, 106)], ARMS)
    with pytest.warns(StaleTable, match=f"version {table.version} served 5000 decisions, and should have served 106"):
        table.tally(agent.problem, [(table.version, "", 0, 0, 5_000)], ARMS)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"rows": 48}, "rows: 48; give a power of two"),
        ({"rows": 2**17}, "rows: 131072; give a power of two"),
        ({"lifetime": 5_000}, "lifetime: 5000 decisions, after 133 that were learnt from; give at most 13"),
        ({"control": 0.1}, "control: nothing is known to be shown at present; name its arms"),
        ({"control": 1.5, "present": ARMS[:3]}, "control: 1.5; give a share in [0, 1]"),
        ({"present": ["boat"]}, "arms: unknown name 'boat'"),
    ],
)
def test_tables_that_cannot_be_published_are_refused(said, told):
    with pytest.raises(sa.InvalidArgument, match=re.escape(told)):
        agent_of(sa.cts()).publish(**said)


def test_contexts_that_are_no_segments_are_refused():
    context = sa.Context(sa.Features(numeric={"age": (0, 99)}), model=sa.models.Linear())
    problem = sa.Problem(8, 1, sa.Linear(), sa.Subsets(3), context=context)
    with pytest.raises(sa.InvalidArgument, match="no segment; cut the features into segments"):
        sa.Agent(problem, comb_lin_ts()).publish()


def test_expiry_and_retired_arms_are_in_the_table():
    agent = agent_of(sa.cts())
    agent.retire_arms(ARMS[:4])
    table = agent.publish(8, expires=datetime(2026, 12, 1, tzinfo=UTC))
    assert table.expires == "2026-12-01T00:00:00+00:00"
    assert {j for slate in table.slates[""] for j in slate} <= set(range(4, 8))


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ((2, "", 0, 0, 1), "patterns.version: 2; this table is version"),
        ((None, "sailors", 0, 0, 1), "patterns.segment: unknown 'sailors'"),
        ((None, "", 16, 0, 1), "patterns.row: 16; give the number of a row"),
        ((None, "", -2, 0, 1), "patterns.row: -2; give the number of a row"),
        ((None, "", 0, 8, 1), "patterns.mask: row 0 has mask 8, n 1; give a bit for each place"),
        ((None, "", 0, 1, -1), "patterns.mask: row 0 has mask 1, n -1"),
    ],
)
def test_wrong_patterns_are_refused(pattern, told):
    table = sa.Table.load(CASE_TABLE)
    with pytest.raises(sa.InvalidArgument, match=re.escape(told)):
        table.tally(agent_of(sa.cts(), SEGMENTS, 0).problem, [(pattern[0] or table.version, *pattern[1:])], ARMS)


def test_documents_that_are_wrong_or_late_are_refused():
    agent = agent_of(sa.cts())
    old, body = agent.publish(4, version=3), agent.publish(4, version=4).to_json()
    new = sa.Table.load(body)
    assert sa.Table.load(body, newer_than=old) == sa.Table.load(old.to_json(), newer_than=new) == new
    with pytest.raises(sa.InvalidArgument, match="it is of problem 'superarm'; give one of 'other'"):
        sa.Table.load(body, newer_than=agent.publish(4, problem="other"))
    for wrong, told in [
        (body.replace(b'"version":4', b'"version":5'), "its digest is another one"),
        (body.replace(b'"format":1', b'"format":2'), "format 2"),
        (body[:-9], "it cannot be read"),
        (b'{"salt":7}', "it cannot be read"),
    ]:
        with pytest.raises(sa.InvalidArgument, match=told):
            sa.Table.load(wrong)
    with pytest.raises(sa.InvalidArgument, match="id: 17 is not a string; write it as one"):
        new.decide(17)


CASE_TABLE = b""
if CASES.exists():
    CASE_TABLE = json.dumps(json.loads(CASES.read_text())["table"], ensure_ascii=False, separators=(",", ":")).encode()

if __name__ == "__main__":
    make_cases()


def test_a_level_without_a_name_is_refused():
    context = sa.Context(sa.Features(categorical={"segment": ["", "walkers"]}))
    with pytest.raises(sa.InvalidArgument, match="give the level another name"):
        agent_of(sa.pooled_thompson(), context).publish(4)
