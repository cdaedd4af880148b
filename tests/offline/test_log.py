"""Logs from arrays, files, frames and Open Bandit's layout; what they refuse."""

import csv
import json

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import superarm as sa

from .static_logs import coverage_problem, draw_log

Log = sa.offline.Log


@pytest.fixture
def log():
    problem = coverage_problem()
    return draw_log(problem, np.full((6, 2), 0.3), [0, 1], 0.6, 40, np.random.default_rng(3))


def table_of(log):
    """The log as the rows of a table, one per arm and item, in any order."""
    rows = []
    for n in range(len(log.rows.arm)):
        t, slot = int(log.rows.round[n]), int(log.rows.slot[n])
        chain = log.rows.prefix[n] / (log.rows.prefix[n - 1] if slot else 1.0)
        for i, item in enumerate(log.items):
            rows.append(
                {
                    "t": t,
                    "decision": f"d{t}",
                    "position": slot + 1,
                    "item_id": int(log.rows.arm[n]),
                    "arm": f"arm {log.rows.arm[n]}",
                    "item": f"item {item}",
                    "click": float(log.rows.outcome[n, i]) if log.rows.seen[n, i] else None,
                    "propensity_score": float(chain),
                    "inclusion": float(log.rows.inclusion[n]),
                    "position_propensity": float(log.rows.position_propensity[n]),
                }
            )
    np.random.default_rng(0).shuffle(rows)
    return rows


def assert_same(a, b):
    np.testing.assert_array_equal(a.slates, b.slates)
    for field in a.rows._fields:
        np.testing.assert_allclose(getattr(a.rows, field), getattr(b.rows, field), rtol=1e-12, err_msg=field)
    np.testing.assert_array_equal(a.rewards, b.rewards)


def test_rewards_and_slot_rewards_by_hand(log):
    for n in range(log.n_rounds):
        rows = np.flatnonzero(log.rows.round == n)
        x = log.rows.outcome[rows]
        assert log.rewards[n] == (1.0 - np.prod(1.0 - x, axis=0)).sum()
        assert log.slot_rewards[rows[0]] == x[0].sum()


def test_the_tally_is_that_of_past_observations(log):
    past = log.problem.past(log.rows.arm, log.rows.outcome)
    for name in ("pulls", "total", "square", "mean", "deviation"):
        np.testing.assert_array_equal(getattr(log.tally, name), getattr(past, name))
    agent = sa.Agent(log.problem, sa.kl_ucb(), tally=log.tally)
    assert agent.tally.pulls.sum() == 80


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow", "dict", "frame"])
def test_a_table_in_any_order_gives_the_same_log(log, form, tmp_path):
    rows = table_of(log)
    reward = {"reward": sa.Coverage()}
    path = tmp_path / f"log.{form}"
    if form == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        found = Log.read(path, **reward)
    elif form == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows))
        found = Log.read(path, **reward)
    elif form == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        found = Log.read(path, **reward)
    else:
        table = pyarrow.Table.from_pylist(rows)
        frames = {"arrow": table, "dict": table.to_pydict(), "frame": Frame(table.to_pydict())}
        found = Log.from_frame(frames[form], **reward)
    assert_same(found, log)
    assert found.arms == tuple(f"arm {j}" for j in range(6))
    assert found.problem.k == 2


class Frame:
    """As much of a pandas data frame as is used: ``columns`` and columns by name."""

    def __init__(self, columns):
        self.columns, self._columns = list(columns), columns

    def __getitem__(self, name):
        return np.array(self._columns[name])


def test_outcomes_that_were_not_seen_are_no_zeros():
    problem = coverage_problem()
    seen = [[[True, False], [True, True]], [[True, True], [True, True]]]
    log = Log.from_arrays(problem, [[0, 1], [2, 3]], np.ones((2, 2, 2)), seen=seen)
    assert np.isnan(log.rewards[0])
    assert log.rewards[1] == 2.0
    assert log.tally.missed[0, 1, 0] == 1.0
    assert "12 % of the outcomes" in log.check().warnings[0]


def test_decisions_that_nobody_saw_and_other_problems_are_left_out():
    rows = {
        "problem": ["ads", "ads", "ads", "films"],
        "decision": ["a", "b", "c", "a"],
        "state": ["complete", "unshown", "expired", "complete"],
        "position": [1, 1, 1, 1],
        "arm": ["x", "x", "y", "z"],
        "click": [1.0, None, 0.0, 1.0],
    }
    log = Log.from_frame(rows, reward=sa.Linear(), name="ads")
    assert log.n_rounds == 2
    assert log.arms == ("x", "y")
    with pytest.raises(sa.InvalidArgument, match="give one of ads, films"):
        Log.from_frame(rows, reward=sa.Linear())


def test_rounds_without_chance_are_marked():
    problem = coverage_problem()
    log = Log.from_arrays(problem, [[0, 1], [2, 3]], np.zeros((2, 2, 2)), propensity=[[1.0, 1.0], [0.5, 1.0]])
    assert log.deterministic.tolist() == [True, False]
    rows = {"decision": [1, 2], "position": [1, 1], "arm": ["x", "y"], "click": [1, 0], "deterministic": [True, False]}
    assert Log.from_frame(rows, reward=sa.Linear()).deterministic.tolist() == [True, False]


def test_arms_outside_of_the_slate_count_in_the_tally_alone():
    rows = {"decision": [1, 1, 1], "position": [1, 2, None], "arm": ["x", "y", "z"], "click": [0, 1, 1]}
    log = Log.from_frame(rows, reward=sa.Linear())
    assert log.slates.tolist() == [[0, 1]]
    assert log.rewards.tolist() == [1.0]
    assert log.tally.total.tolist() == [[[0.0, 1.0, 1.0]]]


def test_a_sparse_problem():
    from scipy.sparse import csr_array

    support = csr_array([[1, 0], [0, 1], [1, 1]])
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(2), support=support)
    outcomes = [[[1, 9], [9, 0]], [[1, 1], [9, 1]]]
    seen = [[[True, False], [False, True]], [[True, True], [False, True]]]
    log = Log.from_arrays(problem, [[0, 1], [2, 1]], outcomes, seen=seen)
    assert log.rewards.tolist() == [1.0, 2.0]
    assert log.tally.total.tolist() == [[1.0, 1.0, 1.0, 1.0]]
    assert log.tally.pulls.tolist() == [[1.0, 2.0, 1.0]]
    assert log.value([0, 1]).value == pytest.approx(1.5)


def test_open_bandit_and_back(log):
    linear = Log.from_arrays(
        sa.Problem(6, 1, sa.Linear(), sa.Subsets(2)),
        log.slates,
        log.rows.outcome[:, :1].reshape(-1, 2),
        propensity=0.5,
        position_propensity=0.25,
    )
    flat = linear.to_obp()
    assert flat["pscore"].tolist() == [0.25] * 80
    assert flat["pscore_cascade"][:2].tolist() == [0.5, 0.25]
    again = Log.from_obp(flat, problem=linear.problem)
    assert_same(again, linear)
    rows = {"action": [3, 1], "reward": [1, 0], "pscore": [0.5, 0.25], "position": [2, 0]}
    single = Log.from_obp(rows, reward=sa.Linear())
    assert single.slates.tolist() == [[3], [1]]
    assert single.rows.prefix.tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Log.from_arrays(coverage_problem(), [[0, 0]], np.zeros((1, 2, 2))), "appears twice in a slate"),
        (lambda: Log.from_arrays(coverage_problem(), [[0, 9]], np.zeros((1, 2, 2))), "arms are 0 to 5"),
        (lambda: Log.from_arrays(coverage_problem(), [[0, 1]], np.zeros((1, 2))), r"give shape \(1, 2, 2\)"),
        (lambda: Log.from_arrays(coverage_problem(), [[0, 1]], np.full((1, 2, 2), 3.0)), r"in \[0, 1\]"),
        (lambda: Log.from_arrays(coverage_problem(), [[0, 1]], np.zeros((1, 2, 2)), propensity=0.0), "probability in"),
        (lambda: Log.from_arrays(coverage_problem(), [[0, 1]], np.zeros((1, 2, 2)), weight=1), "weight.*propensity"),
        (lambda: Log.from_frame({"arm": ["a"]}, reward=sa.Linear()), "no column click or reward"),
        (lambda: Log.from_frame({"arm": ["a"], "click": [1]}), "give e.g. reward"),
        (lambda: Log.from_frame({"arm": ["a"], "click": ["x"]}, reward=sa.Linear()), "is not a number"),
        (lambda: Log.from_frame({"arm": ["a"], "click": [1]}, problem=coverage_problem()), "the log has 1 arms"),
        (lambda: Log.from_frame(3), "give a pandas data frame"),
        (lambda: Log.read("log.txt"), "ends in .parquet, .csv or .jsonl"),
        (lambda: Log.from_obp({"action": [1]}), "no 'reward'"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(sa.InvalidArgument, match=words):
        make()
