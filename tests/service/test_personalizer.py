"""Personalizer's calls, as its clients make them."""

import httpx
import pytest

from .running import Server

ACTIONS = [{"id": id} for id in ("pasta", "soup", "salad", "cake")]


@pytest.fixture(scope="module")
def azure(tmp_path_factory):
    db = str(tmp_path_factory.mktemp("azure") / "log.db")
    with (
        Server(db, "--compat", "personalizer") as server,
        httpx.Client(base_url=f"{server.url}/personalizer", timeout=60.0) as http,
    ):
        yield http


def test_one_slot(azure):
    reply = azure.post("/v1.0/rank", json={"actions": ACTIONS, "eventId": "e1", "excludedActions": ["soup"]})
    assert reply.status_code == 201, reply.text
    ranked = reply.json()
    assert ranked["eventId"] == "e1"
    assert ranked["rewardActionId"] == ranked["ranking"][0]["id"] != "soup"
    assert sum(part["probability"] for part in ranked["ranking"]) == pytest.approx(1.0)
    assert {part["id"] for part in ranked["ranking"]} == {"pasta", "soup", "salad", "cake"}
    assert azure.post("/v1.0/events/e1/reward", json={"value": 0.5}).status_code == 204
    assert azure.post("/v1.0/events/e1/reward", json={"value": 0.5}).status_code == 204
    assert azure.post("/v1.0/events/e1/reward", json={"value": 0.7}).status_code == 409
    assert azure.post("/v1.0/events/nobody/reward", json={"value": 0.5}).status_code == 404
    assert azure.post("/v1.0/events/e1/reward", json={"value": 1.5}).status_code == 422
    rows = httpx.get(str(azure.base_url.copy_with(path="/v1/problems/personalizer/arms"))).json()["arms"]
    learnt = [row for row in rows if row["pulls"]]
    assert [(row["arm"], row["mean"]) for row in learnt] == [(ranked["rewardActionId"], [0.5])]


def test_many_slots(azure):
    slots = [
        {"id": "top", "baselineAction": "pasta", "excludedActions": ["cake"]},
        {"id": "side", "baselineAction": "soup"},
    ]
    body = {"actions": ACTIONS, "slots": slots, "eventId": "m1", "deferActivation": True}
    reply = azure.post("/v1.1-preview.1/multislot/rank", json=body)
    assert reply.status_code == 201, reply.text
    filled = {slot["id"]: slot["rewardActionId"] for slot in reply.json()["slots"]}
    assert set(filled) == {"top", "side"}
    assert filled["top"] != "cake"
    assert filled["top"] != filled["side"]
    events = "/v1.1-preview.1/multislot/events/m1"
    assert azure.post(f"{events}/activate").status_code == 204
    told = {"reward": [{"slotId": "side", "value": 1.0}]}
    assert azure.post(f"{events}/reward", json=told).status_code == 204
    assert azure.post(f"{events}/reward", json={"reward": [{"slotId": "x", "value": 1.0}]}).status_code == 422
    assert azure.post("/v1.1-preview.1/multislot/rank", json=body).json() == reply.json()


def test_slots_are_filled_whatever_they_exclude_if_some_way_fills_them(azure):
    context = [{"superarm": {"problem": "exclusions"}}]
    actions = ACTIONS[:3]
    top = {"id": "top", "baselineAction": "salad", "excludedActions": ["pasta", "soup"]}
    side = {"id": "side", "baselineAction": "pasta"}
    for n in range(10):
        body = {"actions": actions, "slots": [top, side], "eventId": f"x{n}", "contextFeatures": context}
        reply = azure.post("/v1.1-preview.1/multislot/rank", json=body)
        assert reply.status_code == 201, reply.text
        filled = {slot["id"]: slot["rewardActionId"] for slot in reply.json()["slots"]}
        assert filled["top"] == "salad"
        assert filled["side"] in {"pasta", "soup"}
        told = {"reward": [{"slotId": "side", "value": float(filled["side"] == "soup")}]}
        assert azure.post(f"/v1.1-preview.1/multislot/events/x{n}/reward", json=told).status_code == 204
    side = side | {"excludedActions": ["pasta", "soup"]}
    reply = azure.post("/v1.1-preview.1/multislot/rank", json={"actions": actions, "slots": [top, side]})
    assert reply.status_code == 422
    assert "cannot be filled" in reply.json()["error"]["message"]


def test_features_are_refused_and_segments_are_problems(azure):
    feature = {"actions": ACTIONS, "contextFeatures": [{"time": "morning"}]}
    reply = azure.post("/v1.0/rank", json=feature)
    assert reply.status_code == 422
    assert "--ignore-features" in reply.json()["error"]["message"]
    morning = {"actions": ACTIONS, "contextFeatures": [{"superarm": {"problem": "morning"}}]}
    assert azure.post("/v1.0/rank", json=morning).status_code == 201
    names = httpx.get(str(azure.base_url.copy_with(path="/v1/problems"))).json()["problems"]
    assert "morning" in names


def test_apprentice_mode_answers_with_the_baseline(azure):
    context = {"contextFeatures": [{"superarm": {"problem": "apprentice"}}]}
    slots = [{"id": "top", "baselineAction": "cake"}, {"id": "side", "baselineAction": "pasta"}]
    many = {"actions": ACTIONS, "slots": slots, **context}
    assert azure.post("/v1.0/rank", json={"actions": ACTIONS, **context}).status_code == 201
    settings = str(azure.base_url.copy_with(path="/v1/problems/apprentice/settings"))
    httpx.put(settings, json={"mode": "apprentice"}, timeout=60.0).raise_for_status()
    one = azure.post("/v1.0/rank", json={"actions": ACTIONS[::-1], **context}).json()
    assert one["rewardActionId"] == "cake"
    reply = azure.post("/v1.1-preview.1/multislot/rank", json=many).json()
    assert [slot["rewardActionId"] for slot in reply["slots"]] == ["cake", "pasta"]
    reward = {"reward": [{"slotId": "side", "value": 1.0}]}
    path = f"/v1.1-preview.1/multislot/events/{reply['eventId']}/reward"
    assert azure.post(path, json=reward).status_code == 204
    rows = httpx.get(str(azure.base_url.copy_with(path="/v1/problems/apprentice/arms"))).json()["arms"]
    assert {row["arm"] for row in rows if row["pulls"]} == {"pasta"}
    twice = {**many, "slots": [slots[0], {"id": "side", "baselineAction": "cake"}]}
    assert azure.post("/v1.1-preview.1/multislot/rank", json=twice).status_code == 422
