"""Scores over HTTP: in their own units, raw in the log, exact after a kill, and told by every client."""

import itertools
import json
import re

import httpx
import numpy as np
import pytest

import superarm as sa
from superarm.decisions import Told
from superarm.service.mcp import build_server
from superarm.service.server import open_store
from superarm.service.storage.snapshot import verify
from superarm.service.storage.tables import rows as table_rows

from .running import Server
from .test_mcp import call

_names = itertools.count()
ARMS = ["a", "b", "c", "d"]
SCALE = {"low": -5, "high": 10, "bins": 6}
SPEC = {"arms": ARMS, "scores": SCALE, "k": 3, "seed": 0, "settings": {"window_s": None}}


def path(name, *more):
    return "/".join([f"/v1/problems/{name}", *more])


def create(http, status=201, **more):
    name = f"scores-{next(_names)}"
    reply = http.put(path(name), json=SPEC | more)
    assert reply.status_code == status, reply.text
    return name if status == 201 else reply.json()["error"]["message"]


def ask(http, name, **body):
    reply = http.post(path(name, "decisions"), json=body)
    assert reply.status_code == 201, reply.text
    return reply.json()


def tell(http, name, id, status=200, **body):
    reply = http.post(path(name, "decisions", id, "feedback"), json=body)
    assert reply.status_code == status, reply.text
    return reply.json() if status == 200 else reply.json()["error"]["message"]


def arms(http, name):
    return {row["arm"]: row for row in http.get(path(name, "arms")).json()["arms"]}


def history(http, name, n=12, seed=0):
    """Decisions told whole, in part, in any order, amended, with scores beyond the scale; what stands in the end."""
    rng, told = np.random.default_rng(seed), {}
    made = [ask(http, name, id=f"d{i}") for i in range(n)]
    for number in rng.permutation(n):
        decision = made[number]
        drawn = rng.uniform(-8.0, 12.0, 3).round(2).tolist()
        scores = {arm: None if rng.random() < 0.2 else x for arm, x in zip(decision["arms"], drawn, strict=True)}
        for arm in rng.permutation(decision["arms"]).tolist():
            tell(http, name, decision["id"], scores={arm: scores[arm]})
        if rng.random() < 0.4:
            scores = dict.fromkeys(scores, 3.25)
            tell(http, name, decision["id"], scores=scores, amend=True)
        told[decision["id"]] = scores
    return told


def means(told):
    seen = {arm: [s[arm] for s in told.values() if s.get(arm) is not None] for arm in ARMS}
    return {arm: float(np.clip(x, -5, 10).mean()) if x else None for arm, x in seen.items()}


def test_scores_are_told_kept_and_shown_in_their_own_units(http):
    name = create(http)
    assert http.get(path(name)).json()["scores"] == SCALE
    assert http.get(path(name)).json()["settings"]["policy"]["name"] == "shapes"
    told = history(http, name)
    rows = arms(http, name)
    for arm, mean in means(told).items():
        assert rows[arm]["score"] == pytest.approx(mean, abs=1e-5)
    for id, scores in told.items():
        known = {arm: score for arm, score in scores.items() if score is not None}
        assert http.get(path(name, "decisions", id)).json().get("scores", {}) == known
    why = http.get(path(name, "decisions", "d0", "explanation")).json()["arms"]
    assert all(len(arm["estimate"]) == 1 and -5.0 <= arm["estimate"][0] <= 10.0 for arm in why)
    earned = http.get(path(name, "lift")).json()["earned"]
    assert -5.0 <= earned["realised"] <= 10.0


def test_realised_rewards_are_those_of_the_best_scores(http):
    """Two scores inside of one bin are worth the larger one, not what coverage claims of their parts."""
    name = create(http, settings={"window_s": None, "policy": {"name": "uniform"}})
    for n in range(8):
        decision = ask(http, name)
        tell(http, name, decision["id"], scores=dict(zip(decision["arms"], [3.0, 3.5, 4.0 + n / 16], strict=True)))
    earned = http.get(path(name, "lift")).json()["earned"]
    assert earned["realised"] == pytest.approx((4.375 + 4.4375) / 2, abs=1e-5)  # of the newest quarter
    page = http.get("/", params={"problem": name}).text
    assert "Worth alone" in page
    made = ask(http, name)
    tell(http, name, made["id"], scores=dict(zip(made["arms"], [-2.5, 4.4375, None], strict=True)))
    found = http.get("/", params={"problem": name, "decision": made["id"]}).text
    assert re.findall(r'data-label="score">([^<]*)<', found) == ["−2.500", "4.438", ""]


def test_agent_and_service_learn_the_same(http):
    name = create(http)
    told = history(http, name, seed=3)
    agent = sa.Agent(sa.Problem(n_arms=4, items=sa.Thresholds(**SCALE), actions=sa.Subsets(3)), arms=ARMS)
    for id, scores in told.items():
        made = agent.ask(id=id, pinned=list(scores), eligible=list(scores))
        agent.tell(made, scores=scores)
    rows = arms(http, name)
    np.testing.assert_array_equal([rows[arm]["pulls"] for arm in ARMS], agent.tally.pulls[0])
    np.testing.assert_array_equal(np.array([rows[arm]["mean"] for arm in ARMS], float), agent.estimates().mean)


def test_kill_9_loses_no_score_and_a_restart_decides_as_before(sqlite_file):
    """The log holds raw scores; counters after a kill are those before it, and those of a replay of the whole log."""
    with Server(sqlite_file) as server, httpx.Client(base_url=server.url, timeout=30.0) as http:
        http.put(path("p"), json=SPEC).raise_for_status()
        told = history(http, "p")
        pending = ask(http, "p", id="pending")
        tell(http, "p", "pending", scores={pending["arms"][0]: 4.5})
        before = arms(http, "p"), http.get(path("p", "decisions", "d3")).json()
        server.kill()
    store = open_store(sqlite_file, serving=False)
    assert verify(store).faults == []
    lines = [read.entry.event for read in store.tail({}) if isinstance(read.entry.event, Told)]
    exported = {row["arm"]: row["score"] for row in table_rows(store) if row["decision"] == "pending"}
    store.close()
    assert exported == {arm: 4.5 if arm == pending["arms"][0] else None for arm in pending["arms"]}
    logged = [score for event in lines for _, score in event.scores]
    assert {s for scores in told.values() for s in scores.values() if s is not None} | {4.5} <= set(logged)
    with Server(sqlite_file) as server, httpx.Client(base_url=server.url, timeout=30.0) as http:
        assert (arms(http, "p"), http.get(path("p", "decisions", "d3")).json()) == before
        tell(http, "p", "pending", scores=dict(zip(pending["arms"][1:], [None, 2.0], strict=True)))
        after = ask(http, "p", id="next")["arms"]
        tell(http, "p", "next", scores={after[0]: -7.25})
        again = arms(http, "p")
    # it was stopped, and left a snapshot with the scores of pending decisions
    with Server(sqlite_file) as server, httpx.Client(base_url=server.url, timeout=30.0) as http:
        assert arms(http, "p") == again
        assert http.post(path("p", "decisions"), json={"id": "next"}).json()["arms"] == after
        assert http.get(path("p", "decisions", "next")).json()["scores"] == {after[0]: -7.25}
        tell(http, "p", "next", scores={after[0]: 1.5}, amend=True)
        tell(http, "p", "next", scores=dict.fromkeys(after[1:]))
        assert http.get(path("p", "decisions", "next")).json()["scores"] == {after[0]: 1.5}


def test_past_scores_under_another_scale_are_what_would_have_been_learnt(http):
    wide = {"low": -10, "high": 20, "bins": 15}
    first, other, past = create(http), create(http, scores=wide), create(http, scores=wide)
    told = history(http, first, seed=5)
    pairs = []
    for id, scores in told.items():
        made = http.get(path(first, "decisions", id)).json()
        kept = made.get("scores", {})
        pairs += kept.items()
        ask(http, other, id=id, eligible=made["arms"])
        tell(http, other, id, scores=scores)
    body = {"id": "before", "arms": [arm for arm, _ in pairs], "scores": [score for _, score in pairs]}
    assert http.post(path(past, "outcomes"), json=body).json()["applied"]
    shown = [{arm: (row["pulls"], row["mean"]) for arm, row in arms(http, name).items()} for name in (other, past)]
    assert shown[0] == shown[1]


def test_many_scores_beyond_the_scale_are_a_warning(http):
    name = create(http)
    for n in range(34):
        decision = ask(http, name)
        tell(
            http,
            name,
            decision["id"],
            scores=dict(zip(decision["arms"], [1.0, 2.0, 12.0 if n < 2 else 3.0], strict=True)),
        )
    warnings = http.get(path(name)).json()["warnings"]
    assert any("2 of 102 scores lie beyond the scale from -5 to 10" in one for one in warnings)


def test_a_best_score_of_one_arm_is_a_warning(http):
    for k, expected in ((1, ["each slate has one of 4 arms, so that there is no best of several scores"]), (2, [])):
        found = http.get(path(create(http, k=k))).json()["warnings"]
        assert [one.split(":")[0] for one in found] == expected


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"items": ["x", "y"]}, "items"),
        ({"weights": [1.0]}, "weights"),
        ({"scores": {"low": 0}}, "give low and high, or edges"),
        ({"scores": {"low": 1, "high": 0}}, "scores.low: 1, and high is 0; give low < high"),
        ({"scores": {"low": 0, "high": 1, "utility": [0, 1]}}, "scores.utility"),
        ({"settings": {"at_window_end": 0.5}}, "give 0, which stands for the lowest score"),
    ],
)
def test_wrong_scales_are_refused(http, more, message):
    assert message in create(http, 422, **more)


def test_wrong_scores_are_refused(http):
    name = create(http)
    decision = ask(http, name)
    shown, other = decision["arms"], next(arm for arm in ARMS if arm not in decision["arms"])
    assert "is not in the slate" in tell(http, name, decision["id"], 422, scores={other: 1.0})
    wrong = tell(http, name, decision["id"], 422, feedback=[{"arm": shown[0], "value": 0.5}])
    assert "tell the score of each arm" in wrong
    assert "scores: missing; give the score of each arm" in tell(http, name, decision["id"], 422)
    assert "scores" in tell(http, name, decision["id"], 422, scores={shown[0]: "high"})
    tell(http, name, decision["id"], scores={shown[0]: 5.0})
    refused = tell(http, name, decision["id"], 409, scores={shown[0]: 4.0})
    assert f"arm {shown[0]!r}: another score was told before" in refused
    tell(http, name, decision["id"], scores={shown[1]: None})
    refused = tell(http, name, decision["id"], 409, scores={shown[1]: 4.0})
    assert f"arm {shown[1]!r} was told as unseen before; send amend: true to replace that" in refused
    plain = f"scores-{next(_names)}"
    http.put(path(plain), json={"arms": ARMS, "k": 2}).raise_for_status()
    made = ask(http, plain)
    assert "no thresholds of scores" in tell(http, plain, made["id"], 422, scores={made["arms"][0]: 1.0})


def test_copies_of_an_arm_share_what_is_learnt(http):
    copies = {"name": "copies", "parameters": {"copies": {"small": 2, "large": 1}, "budget": 2}}
    names = ["small#1", "small#2", "large"]
    name = create(http, arms=names, actions=copies, k=1)
    made = ask(http, name, pinned=["small#2", "large"])
    tell(http, name, made["id"], scores={"small#2": 4.0, "large": 5.0})
    rows = arms(http, name)
    assert [(rows[arm]["pulls"], round(rows[arm]["score"], 5)) for arm in names] == [(1, 4.0), (1, 4.0), (1, 5.0)]
    assert "give small#1, small#2, large" in create(http, 422, arms=["small", "large"], actions=copies, k=1)
    reply = http.post(path(name, "arms"), json={"add": ["small#3"]})
    assert (reply.status_code, "other copies" in reply.text) == (422, True)


def test_thresholds_are_neither_added_nor_retired(http):
    name = create(http)
    for change in ({"add": ["11"]}, {"retire": ["10"]}):
        reply = http.post(path(name, "items"), json=change)
        assert (reply.status_code, "thresholds of scores" in reply.text) == (422, True), reply.text
    assert "scores, or items" in http.post(path(name, "decisions"), json={"items": ["10"]}).text
    assert http.post(path(name, "arms"), json={"add": ["e"]}).status_code == 200
    assert ask(http, name, pinned=["e"])["arms"][0] == "e"


def test_the_client_tells_lists_and_scores_by_arm(served):
    service = sa.connect(served.url)
    remote = service.create(f"scores-{next(_names)}", ARMS, k=3, scores=SCALE, settings={"window_s": None})
    assert remote.scores == SCALE
    decision = remote.ask()
    assert remote.tell(decision, scores=[1.5, float("nan"), None])
    assert not remote.tell(decision, scores=[1.5, None, None])
    assert remote.decision(decision.id).state == "complete"
    second = remote.ask()
    assert remote.tell(second, scores={second.arms[0]: 2.0}, complete=False)
    assert remote.decision(second.id).state == "open"
    assert remote.tell(second, scores={second.arms[0]: 2.0})
    assert remote.decision(second.id).state == "complete"
    assert remote.tell(second, scores={second.arms[0]: 1.0}, amend=True)
    remote.untell(second)
    pulls = {row["arm"]: row["pulls"] for row in remote.statistics()}
    assert sum(pulls.values()) == 1
    with pytest.raises(sa.InvalidArgument, match="give 3, one for each arm"):
        remote.tell(remote.ask(), scores=[1.0])
    service.close()


def test_an_assistant_tells_scores(served):
    service, name = sa.connect(served.url), f"scores-{next(_names)}"
    service.create(name, ARMS, k=3, scores=SCALE)

    def told(found):
        made = found[1].structured_content
        return {
            "problem": name,
            "decision": made["decision"],
            "scores": dict(zip(made["arms"], [7.5, 2, None], strict=True)),
        }

    def why(found):
        return {"problem": name, "decision": found[1].structured_content["decision"]}

    listed, _, first, again, explained = call(
        build_server(service),
        ("problems", {}),
        ("ask", {"problem": name}),
        ("tell_scores", told),
        ("tell_scores", told),
        ("explain", why),
    )
    mine = next(one for one in json.loads(json.dumps(listed.structured_content["result"])) if one["problem"] == name)
    assert mine["scores"] == SCALE
    assert (first.structured_content, again.structured_content) == ({"learnt": True}, {"learnt": False})
    assert set(explained.structured_content["result"][0]["estimates"]) == {"score"}
    service.close()
