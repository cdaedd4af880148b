"""The semantics table over HTTP, on both stores, by one suite."""

import itertools
import json
import time

import httpx
import pytest

from .running import NDJSON

_names = itertools.count()


@pytest.fixture
def problem(http: httpx.Client) -> str:
    return create(http)


def create(http: httpx.Client, **more) -> str:
    name = f"problem-{next(_names)}"
    settings = {"policy": {"name": "kl_ucb"}} | more.pop("settings", {})  # whose slates are known
    body = {"arms": ["a", "b", "c", "d"], "items": ["x", "y"], "k": 2, "settings": settings, **more}
    reply = http.put(f"/v1/problems/{name}", json=body)
    assert reply.status_code == 201, reply.text
    return name


def ask(http: httpx.Client, problem: str, status: int = 201, **body) -> dict:
    reply = http.post(f"/v1/problems/{problem}/decisions", json=body)
    assert reply.status_code == status, reply.text
    MADE[reply.json().get("id")] = problem
    return reply.json()


MADE: dict[str, str] = {}  # the problem of each decision


def path_of(decision: str) -> str:
    return f"/v1/problems/{MADE.get(decision, 'nobody')}/decisions/{decision}"


def tell(http: httpx.Client, decision: str, status: int = 200, **body) -> dict:
    reply = http.post(f"{path_of(decision)}/feedback", json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


def arm(http: httpx.Client, problem: str, name: str) -> dict:
    rows = http.get(f"/v1/problems/{problem}/arms").json()["arms"]
    return next(row for row in rows if row["arm"] == name)


def everything(value: float, *arms: str) -> dict:
    return {"feedback": [{"arm": name, "value": value} for name in arms]}


def test_the_same_id_and_body_give_the_stored_decision(http, problem):
    first = ask(http, problem, id=f"{problem}/1".replace("/", "-"))
    again = ask(http, problem, 200, id=first["id"])
    assert again["arms"] == first["arms"]
    assert "created" not in again
    ask(http, problem, 409, id=first["id"], k=1)
    other = create(http)
    assert ask(http, other, id=first["id"])["problem"] == other, "an id is that of one problem"
    tell(http, first["id"], **everything(1.0, "a", "b"))
    assert http.get(f"/v1/problems/{problem}/decisions/{first['id']}").json()["state"] == "open"


def test_feedback_changes_the_statistics_once(http, problem):
    made = ask(http, problem)
    assert made["arms"] == ["a", "b"]
    assert arm(http, problem, "a")["pending"] == 1
    assert tell(http, made["id"], **everything(1.0, "a", "b")) == {"applied": True, "late": False, "state": "complete"}
    before = arm(http, problem, "a")
    assert (before["pulls"], before["pending"], before["mean"]) == (1, 0, [1.0, 1.0])
    assert tell(http, made["id"], **everything(1.0, "a", "b"))["applied"] is False
    assert tell(http, made["id"], 409, **everything(0.5, "a"))["error"]["code"] == "conflict"
    assert arm(http, problem, "a") == before


def test_a_purchase_after_a_click_is_more_and_no_conflict(http, problem):
    """The second was refused with 409, in every shop that reports both."""
    made = ask(http, problem)
    click, purchase = ({"feedback": [{"arm": "a", "item": "x", "value": value}]} for value in (0.25, 1.0))
    for body, applied in ((click, True), (purchase, True), (click, False), (purchase, False)):
        assert tell(http, made["id"], **body)["applied"] is applied
        assert arm(http, problem, "a")["mean"] == [1.0 if body is purchase or not applied else 0.25, None]
    both = {"outcome": [[0.25, 0.0], [0.0, 0.0]]}  # the rest of it is new
    assert tell(http, made["id"], **both) == {"applied": True, "late": False, "state": "complete"}
    assert arm(http, problem, "a")["mean"] == [1.0, 0.0]
    for value in (0.5, 0.0):  # which were not told before
        smaller = {"feedback": [{"arm": "a", "item": "x", "value": value}]}
        assert "unless the new one is larger" in tell(http, made["id"], 409, **smaller)["error"]["message"]
    assert tell(http, made["id"], **click, amend=True)["applied"] is True  # it was returned
    assert arm(http, problem, "a")["mean"] == [0.25, 0.0]


def test_a_larger_value_counts_in_long_rows_too(http):
    """Rows of very many values are stored as they are."""
    name = create(http, items=[f"i{n}" for n in range(600)])
    made = ask(http, name)
    rows = [[0.5] * 600, [0.0] * 600]
    assert tell(http, made["id"], outcome=rows)["applied"] is True
    rows[0][7] = 1.0
    assert tell(http, made["id"], outcome=rows)["applied"] is True
    assert arm(http, name, "a")["mean"] == rows[0]
    rows[0][8] = 0.0
    tell(http, made["id"], 409, outcome=rows)


def test_an_amendment_replaces_exactly(http, problem):
    made = ask(http, problem)
    tell(http, made["id"], **everything(0.3, "a", "b"))
    tell(http, made["id"], **everything(0.9, "a"), amend=True)
    row = arm(http, problem, "a")
    assert row["pulls"] == 1
    assert row["mean"] == pytest.approx([0.9, 0.9], abs=1e-7)
    assert arm(http, problem, "b")["mean"] == pytest.approx([0.3, 0.3], abs=1e-7)


def test_what_is_not_mentioned_stays_pending(http, problem):
    made = ask(http, problem)
    state = tell(http, made["id"], feedback=[{"arm": "a", "item": "x", "value": 1}])
    assert state["state"] == "open"
    assert arm(http, problem, "a")["seen"] == [1, 0]
    assert arm(http, problem, "b")["pending"] == 1
    tell(http, made["id"], feedback=[{"arm": "a", "item": "y", "seen": False}])
    assert arm(http, problem, "a")["mean"] == [1.0, None]
    done = tell(http, made["id"], outcome=[[1, None], [0, 0]], seen=[[True, False], [True, True]])
    assert done["state"] == "complete"
    assert arm(http, problem, "b")["mean"] == [0.0, 0.0]


def test_wrong_feedback_is_refused_and_nothing_of_it_is_taken(http, problem):
    made = ask(http, problem)
    for body in (
        {"feedback": [{"arm": "c", "value": 1}]},
        {"feedback": [{"arm": "nobody", "value": 1}]},
        {"feedback": [{"arm": "a", "item": "z", "value": 1}]},
        {"feedback": [{"arm": "a", "value": 1.5}]},
        {"feedback": [{"arm": "a", "value": -0.1}]},
        {"feedback": [{"arm": "a"}]},
        {"feedback": [{"arm": "a", "value": 1, "seen": False}]},
        {"feedback": [{"arm": "a", "value": 1}, {"arm": "a", "item": "x", "value": 0}]},
        {"feedback": [{"arm": "b", "value": 1}, {"arm": "c", "value": 1}]},
        {"outcome": [[1, 1]]},
        {"outcome": [[1], [1]]},
        {"outcome": [[1, 1], [1, 1]], "seen": [[True]]},
        {},
    ):
        tell(http, made["id"], 422, **body)
    assert arm(http, problem, "b")["pulls"] == 0
    tell(http, "never-made", 404, **everything(1.0, "a"))


def test_the_window_counts_zero_a_value_or_nothing(http):
    for rule, mean in ((0.0, [0.0, 0.0]), (0.25, [0.25, 0.25]), ("ignore", [None, None])):
        name = create(http, settings={"window_s": 0.2, "at_window_end": rule})
        made = ask(http, name)
        tell(http, made["id"], **everything(1.0, "a"))
        wait(http, made["id"], "expired")
        assert arm(http, name, "b")["mean"] == mean
        assert arm(http, name, "b")["pending"] == 0
        assert arm(http, name, "a")["mean"] == [1.0, 1.0]


def wait(http: httpx.Client, decision: str, state: str) -> None:
    for _ in range(100):
        if http.get(path_of(decision)).json()["state"] == state:
            return
        time.sleep(0.05)
    raise AssertionError(f"{decision} never became {state}")


@pytest.mark.parametrize(("late", "mean"), [("ignore", 0.0), ("learn", 1.0)])
def test_late_feedback_is_logged_and_learnt_if_so_set(http, late, mean):
    name = create(http, settings={"window_s": 0.2, "at_window_end": 0.0, "late": late})
    made = ask(http, name)
    wait(http, made["id"], "expired")
    reply = tell(http, made["id"], **everything(1.0, "a"))
    assert reply == {"applied": late == "learn", "late": True, "state": "expired"}
    row = arm(http, name, "a")
    assert (row["pulls"], row["mean"]) == (1, [mean, mean])
    assert tell(http, made["id"], **everything(1.0, "a"))["applied"] is False
    tell(http, made["id"], 409, **everything(0.5, "a"))


def test_a_deferred_decision_counts_only_when_activated(http, problem):
    made = ask(http, problem, deferred=True)
    assert tell(http, made["id"], **everything(1.0, "a", "b"))["state"] == "deferred"
    assert arm(http, problem, "a")["pulls"] == 0
    reply = http.post(f"{path_of(made['id'])}/activate", json={}).json()
    assert reply == {"applied": True, "late": False, "state": "complete"}
    assert arm(http, problem, "a")["pulls"] == 1
    assert http.post(f"{path_of(made['id'])}/activate", json={}).json()["applied"] is False


def test_a_deferred_decision_that_is_never_activated_is_never_counted(http):
    name = create(http, settings={"window_s": 0.2, "at_window_end": 0.0})
    made = ask(http, name, deferred=True)
    tell(http, made["id"], **everything(1.0, "a"))
    wait(http, made["id"], "expired")
    assert [arm(http, name, j)["pulls"] for j in "ab"] == [0, 0]
    assert http.post(f"{path_of(made['id'])}/activate", json={}).status_code == 409


def test_the_slate_actually_shown_is_what_counts(http, problem):
    made = ask(http, problem)
    path = f"{path_of(made['id'])}/activate"
    assert http.post(path, json={"shown": ["d", "a"]}).json()["applied"] is True
    assert http.post(path, json={"shown": ["d", "a"]}).json()["applied"] is False
    assert http.post(path, json={"shown": ["c"]}).status_code == 409
    tell(http, made["id"], 422, **everything(1.0, "b"))
    assert tell(http, made["id"], **everything(1.0, "a", "d"))["state"] == "complete"
    assert [arm(http, problem, j)["pulls"] for j in "abcd"] == [1, 0, 0, 1]
    unshown = ask(http, problem)
    assert http.post(f"{path_of(unshown['id'])}/activate", json={"shown": []}).json()["state"] == "unshown"
    assert all(arm(http, problem, j)["pending"] == 0 for j in "abcd")


def test_eligible_excluded_and_pinned_fill_the_slate(http, problem):
    assert sorted(ask(http, problem, eligible=["c", "d"])["arms"]) == ["c", "d"]
    assert sorted(ask(http, problem, excluded=["a", "b"])["arms"]) == ["c", "d"]
    assert ask(http, problem, pinned=["d"])["arms"][0] == "d"
    assert len(ask(http, problem, pinned=["d"])["arms"]) == 2
    assert len(ask(http, problem, k=1)["arms"]) == 1
    ask(http, problem, 422, eligible=[])
    ask(http, problem, 422, eligible=["nobody"])
    ask(http, problem, 422, pinned=["a"], excluded=["a"])
    ask(http, problem, 422, pinned=["a"], eligible=["b", "c"])
    ask(http, problem, 422, pinned=["a", "b"], k=1)
    slots = [{"id": "top", "excluded": ["a", "b", "c"]}, {"id": "side", "excluded": ["d"]}]
    seated = ask(http, problem, slots=slots)
    assert dict(zip(seated["slots"], seated["arms"], strict=True))["top"] == "d"
    assert len(seated["arms"]) == 2
    for place in ("top", "side"):
        slots = [{"id": one, **({"pinned": "c"} if one == place else {})} for one in ("top", "side")]
        seated = ask(http, problem, slots=slots)
        assert (dict(zip(seated["slots"], seated["arms"], strict=True))[place], len(seated["arms"])) == ("c", 2)
    ask(http, problem, 422, slots=[{"id": "top", "pinned": "c"}, {"id": "side", "pinned": "c"}])
    ask(http, problem, 422, slots=[{"id": "top", "pinned": "nobody"}, {"id": "side"}])
    ask(http, problem, 422, k=3)


def test_feedback_about_arms_outside_of_the_slate(http, problem):
    made = ask(http, problem, eligible=["a", "b"])
    tell(http, made["id"], 422, feedback=[{"arm": "c", "value": 1}])
    tell(http, made["id"], 422, outcome=[[1, 1]], arms=["c"])
    triggered = create(http, triggered=True)
    made = ask(http, triggered, eligible=["a", "b"])
    units = [{"arm": "c", "item": "x", "value": 1}, {"arm": "a", "value": 0.5}]
    assert tell(http, made["id"], feedback=units)["state"] == "open"
    assert tell(http, made["id"], feedback=units)["applied"] is False
    tell(http, made["id"], 409, feedback=[{"arm": "c", "item": "x", "value": 0}])
    assert tell(http, made["id"], feedback=[{"arm": "c", "item": "x", "value": 0.5}], amend=True)["applied"]
    assert arm(http, triggered, "c")["mean"] == [0.5, None]
    assert arm(http, triggered, "c")["pending"] == 0
    assert tell(http, made["id"], feedback=[{"arm": "b", "seen": False}])["state"] == "complete"
    assert [arm(http, triggered, j)["pulls"] for j in "abcd"] == [1, 0, 1, 0]
    late = tell(http, made["id"], feedback=[{"arm": "d", "value": 1}])
    assert late["late"]
    assert arm(http, triggered, "d")["pulls"] == 0


def test_action_sets_by_arm_names(http):
    costs = {"a": 3, "b": 1, "c": 1, "d": 2}
    knapsack = {"name": "knapsack", "parameters": {"costs": costs, "budget": 3}}
    name = create(http, k=1, actions=knapsack)
    for _ in range(6):
        made = ask(http, name)
        assert sum(costs[j] for j in made["arms"]) <= 3
        tell(http, made["id"], **everything(1.0, *made["arms"]))
    dearer = {**knapsack, "parameters": {"costs": costs | {"b": 3}, "budget": 3}}
    before = [arm(http, name, j)["pulls"] for j in "abcd"]
    http.post(f"/v1/problems/{name}/arms", json={"actions": dearer}).raise_for_status()
    assert [arm(http, name, j)["pulls"] for j in "abcd"] == before, "what was learnt stays"
    assert ask(http, name, pinned=["b"])["arms"] == ["b"]
    mixed = create(http, settings={"explore": 0.5, "policy": {"name": "kl_ucb"}})
    reply = http.post(f"/v1/problems/{mixed}/arms", json={"actions": dearer})
    assert (reply.status_code, "settings.explore: the action set is not a matroid" in reply.text) == (422, True)
    assert ask(http, name, pinned=["d"])["arms"][0] == "d"
    ask(http, name, 422, pinned=["a", "b"])
    ask(http, name, 422, k=1)
    slots = {"name": "slots", "parameters": {"slots": {"top": ["a", "b"], "side": ["b", "c", "d"]}}}
    made = ask(http, create(http, k=1, actions=slots))
    assert dict(zip(made["slots"], made["arms"], strict=True))["top"] in {"a", "b"}
    body = {"arms": ["a", "b", "c", "d"], "k": 1}
    edges = {j: ["s", "t"] for j in "abcd"}
    for wrong in (
        {"actions": knapsack, "k": 2},
        {"actions": {"name": "knapsack", "parameters": {"costs": {"a": 1}, "budget": 3}}},
        {"actions": {"name": "knapsack", "parameters": {"costs": {**costs, "e": 1}, "budget": 3}}},
        {"actions": {"name": "unheard of", "parameters": {}}},
        {"actions": {"name": "paths", "parameters": {"edges": edges, "source": "q", "target": "t"}}},
        {"support": {"a": ["value"], "q": ["value"]}},
        {"support": {"a": ["nothing"]}},
        {"settings": {"policy": {"name": "escb"}}},
        {"settings": {"policy": {"window": 5, "half_life": 5}}},
        {"actions": knapsack, "settings": {"explore": 0.5}},
    ):
        reply = http.put(f"/v1/problems/{name}-wrong", json={**body, **wrong})
        assert reply.status_code == 422, (wrong, reply.text)
        assert reply.json()["error"]["message"]


def test_a_laminar_set_is_given_again_for_new_arms(http):
    """Review, A6: new arms are in no family, so nothing limited them, and slates of three grew to five."""
    families = [{"arms": ["a", "b"], "limit": 1}, {"arms": ["a", "b", "c", "d"], "limit": 3}]
    name = create(http, k=1, actions={"name": "laminar", "parameters": {"families": families}})
    refused = http.post(f"/v1/problems/{name}/arms", json={"add": ["e", "f"]})
    assert (refused.status_code, "give `actions` for all arms" in refused.text) == (422, True)
    families[1]["arms"] += ["e", "f"]
    body = {"add": ["e", "f"], "actions": {"name": "laminar", "parameters": {"families": families}}}
    http.post(f"/v1/problems/{name}/arms", json=body).raise_for_status()
    assert [len(ask(http, name)["arms"]) for _ in range(3)] == [3, 3, 3]
    http.post(f"/v1/problems/{name}/arms", json={"retire": ["a"]}).raise_for_status()
    http.post(f"/v1/problems/{name}/arms", json={"add": ["a"]}).raise_for_status()


def test_windows_forget_and_survive_a_change_of_settings(http):
    name = create(http, settings={"policy": {"name": "kl_ucb", "window": 4}})
    for _ in range(6):
        made = ask(http, name, eligible=["a", "b"])
        tell(http, made["id"], **everything(1.0, *made["arms"]))
    assert set(ask(http, name)["arms"]) == {"c", "d"}
    settings = http.patch(f"/v1/problems/{name}/settings", json={"policy": {"half_life": 3}}).json()["settings"]
    assert settings["policy"] == {"name": "kl_ucb", "parameters": {}, "half_life": 3}
    settings = http.patch(f"/v1/problems/{name}/settings", json={"policy": {"half_life": None}}).json()["settings"]
    assert settings["policy"] == {"name": "kl_ucb", "parameters": {}}


def test_arms_and_items_come_and_go(http, problem):
    made = ask(http, problem)
    http.post(f"/v1/problems/{problem}/arms", json={"add": ["e"], "retire": ["a"]}).raise_for_status()
    http.post(f"/v1/problems/{problem}/items", json={"add": ["z"], "weights": [2]}).raise_for_status()
    assert ask(http, problem, eligible=["a", "e"])["arms"] == ["e"]
    tell(http, made["id"], **everything(1.0, "a", "b"))
    row = arm(http, problem, "a")
    assert (row["retired"], row["pulls"], row["seen"]) == (True, 1, [1, 1, 0])
    tell(http, made["id"], 422, feedback=[{"arm": "a", "item": "z", "value": 1}])
    again = http.post(f"/v1/problems/{problem}/arms", json={"add": ["a"]}).raise_for_status().json()
    assert (again["n_arms"], arm(http, problem, "a")) == (5, row | {"retired": False})
    assert set(ask(http, problem, eligible=["a", "e"])["arms"]) == {"a", "e"}
    http.post(f"/v1/problems/{problem}/items", json={"retire": ["x"]}).raise_for_status()
    assert http.get(f"/v1/problems/{problem}").json()["weights"] == [0.0, 1.0, 2.0]
    assert http.post(f"/v1/problems/{problem}/items", json={"retire": ["x", "y", "z"]}).status_code == 422


def test_settings_change_as_versions_and_back(http, problem):
    made = ask(http, problem)
    tell(http, made["id"], **everything(1.0, "a", "b"))
    before = arm(http, problem, "a")
    reply = http.patch(f"/v1/problems/{problem}/settings", json={"policy": {"name": "cts"}}).json()
    assert (reply["version"], reply["settings"]["policy"]["name"]) == (2, "cts")
    assert ask(http, problem, eligible=["b", "c", "d"])["version"] == 2
    reply = http.post(f"/v1/problems/{problem}/versions/1/restore").json()
    assert (reply["version"], reply["settings"]["policy"]["name"]) == (3, "kl_ucb")
    assert len(http.get(f"/v1/problems/{problem}/versions").json()["versions"]) == 3
    assert http.post(f"/v1/problems/{problem}/versions/9/restore").status_code == 404
    assert arm(http, problem, "a") == before


def test_feedback_of_an_old_version_is_taken_back_exactly(http):
    name = create(http, settings={"policy": {"name": "cts"}})
    made = ask(http, name)
    first, second = made["arms"]
    tell(http, made["id"], **everything(0.5, first, second))
    http.patch(f"/v1/problems/{name}/settings", json={"policy": {"name": "kl_ucb"}}).raise_for_status()
    tell(http, made["id"], feedback=[{"arm": first, "seen": False}, {"arm": second, "value": 1}], amend=True)
    assert arm(http, name, first)["seen"] == [0, 0]
    assert arm(http, name, second)["mean"] == [1.0, 1.0]


def test_modes_answer_with_the_baseline(http):
    name = create(http, settings={"mode": "apprentice"})
    ask(http, name, 422)
    made = ask(http, name, baseline=["d", "c"])
    assert made["arms"] == ["d", "c"]
    assert made["policy_arms"] == ["a", "b"]
    tell(http, made["id"], **everything(1.0, "c"))
    assert arm(http, name, "c")["pulls"] == 1
    http.patch(f"/v1/problems/{name}/settings", json={"mode": "logging_only"}).raise_for_status()
    made = ask(http, name, baseline=["d", "c"])
    tell(http, made["id"], **everything(1.0, "c", "d"))
    assert arm(http, name, "d")["pulls"] == 0


def test_exploration_logs_propensities(http):
    name = create(http, arms=[f"arm-{n}" for n in range(10)], k=3, seed=5, settings={"explore": 0.5})
    slates = [ask(http, name) for _ in range(60)]
    chances = {chance for made in slates for chance in made["propensities"]}
    assert {round(c, 9) for c in chances} <= {round(0.5 / n + leader, 9) for n in (10, 9, 8) for leader in (0.0, 0.5)}
    assert len(chances) > 3
    assert all(len(set(made["arms"])) == 3 for made in slates)


def test_many_asks_before_any_feedback_spread_out(http, problem):
    slates = [tuple(sorted(ask(http, problem)["arms"])) for _ in range(8)]
    assert len(set(slates[2:])) > 1


def test_bulk_decisions_and_bulk_feedback_answer_line_by_line(http, problem):
    reply = http.post(f"/v1/problems/{problem}/decisions/bulk", json={"decisions": [{}, {"k": 9}, {}]}).json()
    first, wrong, third = reply["decisions"]
    assert wrong["error"]["code"] == "invalid"
    lines = [
        f'{{"decision":"{first["id"]}","feedback":[{{"arm":"{first["arms"][0]}","value":1}}]}}',
        '{"decision":"nobody","feedback":[{"arm":"a","value":1}]}',
        "not json",
        f'{{"decision":"{third["id"]}","feedback":[{{"arm":"{third["arms"][0]}","value":0}}]}}',
    ]
    reply = http.post(f"/v1/problems/{problem}/feedback/bulk", content="\n".join(lines), headers=NDJSON)
    codes = [line.split('"')[1] for line in reply.text.strip().split("\n")]
    assert codes == ["applied", "error", "error", "applied"]


def test_lines_of_one_request_count_as_requests_one_after_the_other_would(http):
    name = create(http, arms=[f"arm-{n}" for n in range(6)], k=2)
    decisions = [ask(http, name) for _ in range(70)]  # more than one commit takes
    lines = []
    for made in decisions:
        first, second = made["arms"]
        for arm_, value in ((first, 1.0), (second, 0.5), (first, 1.0), (first, 0.0)):
            lines.append({"decision": made["id"], "feedback": [{"arm": arm_, "value": value}]})
    body = "\n".join(json.dumps(line) for line in lines)
    reply = http.post(f"/v1/problems/{name}/feedback/bulk", content=body, headers=NDJSON)
    answers = [json.loads(line) for line in reply.text.strip().split("\n")]
    for n in range(len(decisions)):
        told, more, again, against = answers[4 * n : 4 * n + 4]
        assert (told["applied"], told["state"]) == (True, "open")
        assert (more["applied"], more["state"]) == (True, "complete")
        assert again["applied"] is False
        assert against["error"]["code"] == "conflict"
    rows = [arm(http, name, f"arm-{n}") for n in range(6)]
    assert sum(row["pulls"] for row in rows) == 140
    assert sum(row["pulls"] * row["mean"][0] for row in rows) == pytest.approx(70 * 1.5)


def test_past_outcomes_warm_the_start_once(http, problem):
    body = {"id": "2025", "arms": ["a", "a", "b"], "outcomes": [[1, 0], [1, None], [0, 0]]}
    path = f"/v1/problems/{problem}/outcomes"
    assert http.post(path, json=body).json()["applied"] is True
    assert http.post(path, json=body).json()["applied"] is False
    assert http.post(path, json={**body, "arms": ["a", "a", "c"]}).status_code == 409
    assert http.post(path, json={**body, "id": "2", "arms": ["a", "a", "nobody"]}).status_code == 422
    row = arm(http, problem, "a")
    assert (row["pulls"], row["seen"], row["mean"]) == (2, [2, 1], [1.0, 0.0])


def test_a_problem_is_created_once(http, problem):
    body = {"arms": ["a", "b", "c", "d"], "items": ["x", "y"], "k": 2}
    assert http.put(f"/v1/problems/{problem}", json=body).status_code == 200
    other = http.put(f"/v1/problems/{problem}", json={**body, "k": 1})
    assert (other.status_code, "actions (POST …/arms)" in other.text) == (409, True)
    assert problem in http.get("/v1/problems").json()["problems"]
    for wrong in ({"k": 5}, {"arms": ["a", "a"]}, {"weights": [1]}, {"settings": {"policy": {"parameters": {"x": 1}}}}):
        reply = http.put("/v1/problems/wrong", json={**body, **wrong})
        assert reply.status_code == 422, wrong
        assert ";" in reply.json()["error"]["message"]


def test_too_many_pending_decisions_are_refused(http):
    name = create(http, settings={"max_pending": 3})
    for _ in range(3):
        ask(http, name)
    reply = http.post(f"/v1/problems/{name}/decisions", json={})
    assert reply.status_code == 429
    assert reply.headers["retry-after"]
    assert "max_pending" in reply.json()["error"]["message"]


def test_asked_together_or_one_by_one_the_slates_are_the_same(http):
    spec = {"arms": [f"arm-{n}" for n in range(9)], "k": 3, "seed": 7, "settings": {"policy": {"name": "bc_ucb"}}}
    together, alone = create(http, **spec), create(http, **spec)
    past = {"id": "past", "arms": spec["arms"], "outcomes": [[n / 9, 1 - n / 9] for n in range(9)]}
    for name in (together, alone):
        http.post(f"/v1/problems/{name}/outcomes", json=past).raise_for_status()
    many = [{"id": f"{together}-{n}", **({"k": 1} if n == 2 else {})} for n in range(6)]
    made = http.post(f"/v1/problems/{together}/decisions/bulk", json={"decisions": many}).json()["decisions"]
    single = [ask(http, alone, id=f"{alone}-{n}", **({"k": 1} if n == 2 else {})) for n in range(6)]
    assert [(one["arms"], one["t"]) for one in made] == [(one["arms"], one["t"]) for one in single]


def test_health_and_metrics(http):
    assert http.get("/health").json()["status"] == "ok"
    text = http.get("/metrics").text
    assert "superarm_requests_total" in text
    assert "superarm_open_decisions" in text
    assert "superarm_worker_info" in text
