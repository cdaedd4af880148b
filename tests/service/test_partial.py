"""Decisions about some items: what completes them, what they are worth, and what the owner is warned of."""

import asyncio
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

import superarm as sa
from superarm.decisions import counted_rows, expiry, open_record, pending_arms
from superarm.service.application import application
from superarm.service.domain.decision import advance_record
from superarm.service.domain.events import Asked
from superarm.service.domain.lift import RunningMoments, check_guard, join_moments, mean_interval
from superarm.service.domain.spec import Settings
from superarm.service.storage.snapshot import restore_ledger, verify

from .inprocess import serving
from .memory_store import MemoryStore
from .running import Server

ARMS, ITEMS = ["a", "b", "c", "d"], ["sport", "news", "arts"]
WEIGHTS = [1.0, 2.0, 0.5]
TRUTH = np.array([[0.7, 0.1, 0.2], [0.1, 0.6, 0.1], [0.3, 0.3, 0.5], [0.2, 0.1, 0.1]])
SHARES = [0.6, 0.1, 0.3]  # of visitors: others than the weights


def spec(**settings) -> dict:
    wanted = {"policy": {"name": "bc_ucb"}, "window_s": 3600.0, **settings}
    return {"arms": ARMS, "items": ITEMS, "k": 2, "weights": WEIGHTS, "settings": wanted, "seed": 0}


def during(trial, **settings):
    async def run():
        app = application(MemoryStore())
        async with serving(app) as http:
            created = await http.put("/v1/problems/p", json=spec(**settings))
            assert created.status_code == 201, created.text
            return await trial(http, app.service.coordinator)

    return asyncio.run(run())


async def ask(http, **body) -> dict:
    reply = await http.post("/v1/problems/p/decisions", json=body)
    assert reply.status_code == 201, reply.text
    return reply.json()


async def tell(http, id: str, status: int = 200, **body) -> dict:
    reply = await http.post(f"/v1/problems/p/decisions/{id}/feedback", json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


def test_feedback_on_its_items_completes_a_decision():
    async def trial(http, coordinator) -> None:
        first = await ask(http, id="d0", items=["news"])
        assert first["items"] == ["news"]
        units = [{"arm": arm, "value": 1.0} for arm in first["arms"]]  # without an item: the decision's
        assert (await tell(http, "d0", feedback=units[:1]))["state"] == "open"
        assert (await tell(http, "d0", feedback=units))["state"] == "complete"
        assert (await tell(http, "d0", feedback=units))["applied"] is False
        arms = (await ask(http, id="d1", items=["arts", "sport"]))["arms"]
        message = (await tell(http, "d1", 422, feedback=[{"arm": arms[0], "item": "news", "value": 0}]))["error"]
        assert "the decision is not about 'news'" in message["message"]
        await tell(http, "d1", 422, outcome=[[1.0, 0.0, 0.5]] * 2)
        assert (await tell(http, "d1", outcome=[[0.25, 0.75], [None, 0.5]]))["state"] == "open"
        assert (await tell(http, "d1", outcome=[[None, None], [1.0, None]]))["state"] == "complete"
        record = coordinator.ledger.record(("default", "p/d1"))
        assert record.rows == ((0.25, -1.0, 0.75), (1.0, -1.0, 0.5))
        reply = await http.post("/v1/problems/p/decisions", json={"items": ["nothing"]})
        assert reply.status_code == 422

    during(trial)


def test_the_end_of_a_window_fills_only_its_items():
    async def trial(http, coordinator) -> None:
        await ask(http, id="d", items=["sport"])
        coordinator.deadlines.retry(("default", "p/d"), 0.0)
        for _ in range(400):
            if (await http.get("/v1/problems/p/decisions/d")).json()["state"] == "expired":
                break
            await asyncio.sleep(0.01)
        record = coordinator.ledger.record(("default", "p/d"))
        assert record.rows == ((-3.0, -1.0, -1.0),) * 2
        tally = coordinator.ledger.problems["default", "p"].tally
        seen = tally.pulls[:, None] - tally.missed
        assert seen[0].T[list(record.action)].tolist() == [[1.0, 0.0, 0.0]] * 2

    during(trial, at_window_end=0.0)


@pytest.mark.parametrize("key", ["support", "triggered"])
def test_problems_whose_arms_have_items_of_their_own_take_no_items(key):
    async def run() -> None:
        more = {"support": {arm: ["sport"] for arm in ARMS}, "triggered": True}
        async with serving(application(MemoryStore())) as http:
            assert (await http.put("/v1/problems/p", json={**spec(), key: more[key]})).status_code == 201
            reply = await http.post("/v1/problems/p/decisions", json={"items": ["sport"]})
            assert (reply.status_code, "items" in reply.text) == (422, True)

    asyncio.run(run())


async def visit(http, rng: np.random.Generator, n: int, named: bool) -> list[list[int]]:
    """Visitors of one segment each, who tell of that item only; the slates that they saw."""
    segments = rng.choice(3, n, p=SHARES)
    asks = [{"id": str(rng.integers(2**60))} | ({"items": [ITEMS[i]]} if named else {}) for i in segments]
    reply = await http.post("/v1/problems/p/decisions/bulk", json={"decisions": asks})
    decisions = reply.json()["decisions"]
    lines = []
    for decision, i in zip(decisions, segments, strict=True):
        clicks = rng.random(2) < TRUTH[decision["action"], i]
        units = [
            {"arm": arm, "item": ITEMS[i], "value": float(click)}
            for arm, click in zip(decision["arms"], clicks, strict=True)
        ]
        lines.append({"decision": decision["id"], "feedback": units})
    body = b"\n".join(msgspec.json.encode(line) for line in lines)
    await http.post("/v1/problems/p/feedback/bulk", content=body, headers={"content-type": "application/x-ndjson"})
    return [decision["action"] for decision in decisions]


def reward(action: list[int]) -> float:
    return float(np.array(WEIGHTS) @ (1.0 - np.prod(1.0 - TRUTH[action], axis=0)))


def test_estimates_from_visitors_of_one_segment_each_agree_with_the_truth():
    """Four standard errors, for the reward and for 12 entries: a false alarm in 1 of 1,200 seeds; this one is fixed."""
    rng = np.random.default_rng(3)

    async def trial(http, coordinator) -> None:
        slates = []
        for _ in range(12):
            slates += await visit(http, rng, 100, named=True)
        learner = coordinator.ledger.problems["default", "p"]
        learner.flush()
        found = mean_interval(join_moments([s.policy for s in learner.history.stretches]), learner.weighty_items)
        truth = np.mean([reward(slate) for slate in slates])
        assert found.reach < 0.2
        assert abs(found.value - truth) < 4.0 * found.reach / 1.96
        tally = learner.tally
        seen = tally.pulls[:, None] - tally.missed
        errors = np.abs(tally.total / np.maximum(seen, 1.0) - TRUTH.T[None])
        assert (errors < 4.0 * np.sqrt(0.25 / np.maximum(seen, 1.0))).all()
        assert learner.history.complete == 1200
        assert (await http.get("/v1/problems/p")).json()["warnings"] == []

    during(trial)


async def end_windows(coordinator) -> None:
    for key in list(coordinator.ledger.pending):
        coordinator.deadlines.retry(key, 0.0)
    for _ in range(400):
        if not coordinator.ledger.pending:
            return
        await asyncio.sleep(0.01)


def test_filling_what_was_never_asked_for_is_warned_of():
    rng = np.random.default_rng(0)

    async def trial(http, coordinator) -> None:
        await visit(http, rng, 40, named=False)
        await end_windows(coordinator)
        warnings = (await http.get("/v1/problems/p")).json()["warnings"]
        assert any("40 were told of some items only" in warning for warning in warnings), warnings
        assert "were told of some items only" in (await http.get("/")).text

    during(trial, at_window_end=0.0)


def test_feedback_that_never_arrives_is_warned_of():
    async def trial(http, coordinator) -> None:
        for n in range(20):
            await ask(http, id=f"d{n}", items=["news"])
        assert (await http.get("/v1/problems/p")).json()["warnings"] == []
        await end_windows(coordinator)
        (warning,) = (await http.get("/v1/problems/p")).json()["warnings"]
        assert warning.startswith("no click was ever told: 20 views counted")

    during(trial, at_window_end=0.0, words={"outcome": "click", "decision": "view"})


@pytest.mark.parametrize("fill", ["ignore", 0.0])
def test_a_shop_that_sends_clicks_alone_is_told_what_is_wrong_and_nothing_else(fill):
    """Silence counts as 0 at the end of the window: that is right. Where silence is ignored, every estimate is 1."""
    rng = np.random.default_rng(0)

    async def trial(http, coordinator) -> None:
        for n in range(60):
            i = int(rng.integers(3))
            made = await ask(http, id=f"d{n}", items=[ITEMS[i]])
            clicks = [arm for arm, j in zip(made["arms"], made["action"], strict=True) if rng.random() < TRUTH[j, i]]
            if clicks:
                await tell(http, f"d{n}", feedback=[{"arm": arm, "value": 1.0} for arm in clicks])
        early = (await http.get("/v1/problems/p")).json()["warnings"]
        assert any("every outcome that was told is 1" in warning for warning in early) == (fill == "ignore")
        await end_windows(coordinator)
        warnings, page = (await http.get("/v1/problems/p")).json()["warnings"], (await http.get("/")).text
        if fill == 0.0:
            assert warnings == []
            assert "Starved" not in page
        else:
            assert any("every outcome that was told is 1" in warning for warning in warnings), warnings
            assert not any("ignore" in warning for warning in warnings)

    during(trial, at_window_end=fill)


def test_policy_and_control_are_compared_by_visitors_of_one_segment_each():
    """In total and segment by segment; the guardrail sees the same evidence."""
    rng = np.random.default_rng(5)

    async def trial(http, coordinator) -> None:
        for _ in range(20):
            await visit(http, rng, 100, named=True)
        lift = (await http.get("/v1/problems/p/lift")).json()
        parts = [(await http.get(f"/v1/problems/p/lift?item={item}")).json() for item in ITEMS]
        assert lift["left_out"] == 0
        assert lift["policy"]["decisions"] + lift["control"]["decisions"] == 2000
        assert lift["difference"]["value"] == pytest.approx(sum(part["difference"]["value"] for part in parts))
        assert lift["policy"]["mean"]["value"] == pytest.approx(sum(part["policy"]["mean"]["value"] for part in parts))
        control = lift["control"]["mean"]
        assert control["low"] < reward([3, 2]) < control["high"]
        assert (lift["verdict"], parts[0]["verdict"]) == ("open", "better")
        assert (await http.get("/v1/problems/p/lift?item=nothing")).status_code == 422
        assert lift["difference"]["low"] < 0.0 < parts[0]["difference"]["low"]
        guard = check_guard(coordinator.ledger.problems["default", "p"].history.lift, 0.1, 1)
        assert guard.earned > 0.0

    during(trial, control=0.3, control_slate=["d", "c"])


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"window_s": None, "at_window_end": 0.5, "provisional": False}, "at_window_end has no effect"),
        ({"window_s": None, "late": "learn"}, "late has no effect"),
        ({"mode": "apprentice", "explore": 0.5}, "explore has no effect"),
    ],
)
def test_settings_without_effect_are_named_in_the_answer(settings, word):
    async def trial(http, coordinator) -> None:
        warnings = (await http.get("/v1/problems/p")).json()["warnings"]
        assert len([warning for warning in warnings if word in warning]) == 1

    during(trial, **settings)


def test_strata_are_the_stratified_estimate():
    """Against numpy, with unequal numbers of observations per item; nothing is known before every item was seen."""
    rng = np.random.default_rng(1)
    values = [rng.random(n) for n in (5, 9, 4)]
    moments = RunningMoments()
    for item in (0, 1):
        for value in values[item]:
            moments.add_items({item: value})
    assert mean_interval(moments, frozenset({0, 1, 2})) is None
    for value in values[2]:
        moments.add_items({2: value})
    found = mean_interval(moments, frozenset({0, 1, 2}))
    assert found.value == pytest.approx(sum(v.mean() for v in values))
    assert found.reach == pytest.approx(1.96 * np.sqrt(sum(v.var(ddof=1) / len(v) for v in values)))
    assert join_moments([moments, RunningMoments()]) == moments


def test_decisions_about_items_outlive_a_restart():
    store = MemoryStore()

    async def live() -> None:
        async with serving(application(store)) as http:
            await http.put("/v1/problems/p", json=spec())
            await visit(http, np.random.default_rng(0), 20, named=True)
            await ask(http, id="open", items=["arts"])

    asyncio.run(live())
    ledger, _, folded = restore_ledger(store)
    assert folded == 0  # all of it from the snapshot
    history = ledger.problems["default", "p"].history
    assert sum(s.policy.n_partial for s in history.stretches) == 20
    assert ledger.pending["default", "p/open"].asked.items == (2,)
    store.check = lambda: "ok"
    assert verify(store).faults == []


def test_the_worked_example_of_the_documentation(sqlite_file):
    text = (Path(__file__).parents[2] / "docs" / "guides" / "service.md").read_text()
    (code,) = re.findall(r"```py\n(import numpy.*?)```", text, re.DOTALL)
    names: dict = {}
    with Server(sqlite_file) as server:
        exec(code.replace("http://127.0.0.1:8000", server.url), names)
        rows = {row["arm"]: row for row in names["agent"].statistics()}
        names["service"].close()
    for arm, row in rows.items():
        for i, segment in enumerate(["sport", "news"]):
            error = 4.0 * np.sqrt(0.25 / max(row["seen"][i], 1))  # a false alarm in 1 of 2,600 seeds; it is fixed
            assert abs((row["mean"][i] or 0.0) - names["click"][segment][arm]) < error
    assert sa.Decision in type(names["decision"]).__mro__


def test_a_context_names_the_item_that_a_decision_is_about():
    """Visitors of sections of a magazine: a value for the section completes the decision, and is all that counts."""
    context = {"features": {"categorical": {"section": ["sport", "news", "other"]}}, "items_from": "section"}
    made = {"arms": ["a", "b"], "items": ["sport", "news"], "k": 2, "context": context, "settings": {"window_s": None}}

    async def trial() -> None:
        async with serving(application(MemoryStore())) as http:
            assert (await http.put("/v1/problems/p", json=made)).status_code == 201
            for section, items in (("news", ["news"]), ("sport", ["sport"]), ("arts", None)):
                body = {"id": section, "context": {"section": section}}
                decision = (await http.post("/v1/problems/p/decisions", json=body)).json()
                assert decision.get("items") == items
            named = {"id": "named", "context": {"section": "news"}, "items": ["sport"]}
            assert (await http.post("/v1/problems/p/decisions", json=named)).json()["items"] == ["sport"]
            told = await http.post("/v1/problems/p/decisions/news/feedback", json={"outcome": [[1.0], [0.5]]})
            assert told.json()["state"] == "complete", told.text
            rows = (await http.get("/v1/problems/p/arms")).json()["arms"]
            assert sorted(row["mean"] for row in rows) == [[None, 0.5], [None, 1.0]]
            await http.post("/v1/problems/p/decisions/arts/feedback", json={"feedback": [{"arm": "a", "value": 1.0}]})
            assert (await http.get("/v1/problems/p/decisions/arts")).json()["state"] == "open"

    asyncio.run(trial())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"context": {"features": {"d": 2}, "items_from": "section", "model": {"name": "linear"}}}, "no categorical"),
        ({"items": ["sport"]}, "the value 'news' of 'section' is no item"),
        ({"triggered": True}, "the problem has a support, or triggered arms"),
    ],
)
def test_features_that_cannot_name_items_are_refused(change, said):
    context = {"features": {"categorical": {"section": ["sport", "news"]}}, "items_from": "section"}
    made = {"arms": ["a", "b"], "items": ["sport", "news"], "k": 2, "context": context, **change}

    async def trial() -> None:
        async with serving(application(MemoryStore())) as http:
            refused = await http.put("/v1/problems/p", json=made)
            assert (refused.status_code, said in refused.text) == (422, True), refused.text

    asyncio.run(trial())


@pytest.mark.parametrize("settings", [{}, {"control": 0.3, "control_slate": ["small", "large"]}])
def test_a_ladder_that_stops_at_the_first_success_earns_the_share_of_solved_tasks(settings):
    """Rungs that were not tried are told as not seen; their outcomes make no difference, and savings are not added."""
    rng, models = np.random.default_rng(2), {"small": (0.5, 0.02), "medium": (0.6, 0.1), "large": (0.8, 0.4)}
    policy = {"policy": {"name": "ladder", "parameters": {"scale": 0.5}}}
    wanted = {"arms": [*models], "items": ["solved", "saving"], "k": 3, "settings": policy | settings, "seed": 0}
    groups: dict = {"control": [], "policy": [], "": []}

    async def run() -> None:
        async with serving(application(MemoryStore())) as http:
            for status in (201, 200):  # the same again changes nothing
                assert (await http.put("/v1/problems/p", json=wanted)).status_code == status
            for n in range(300):
                made, done, units = await ask(http, id=f"d{n}"), False, []
                for arm in made["arms"]:
                    if done:
                        units.append({"arm": arm, "seen": False})
                        continue
                    done = bool(rng.random() < models[arm][0])
                    saved = 1.0 - models[arm][1] / 0.5
                    units += [{"arm": arm, "item": "solved", "value": float(done)}]
                    units += [{"arm": arm, "item": "saving", "value": saved}]
                assert (await tell(http, made["id"], feedback=units))["state"] == "complete"
                groups[made.get("group") or ""].append(done)
            found = (await http.get("/v1/problems/p/lift")).json()
            said = (await http.get("/v1/problems/p")).json()
            assert (found["left_out"], said["weights"]) == (0, [1.0, 0.0])
            assert not any("unknown" in warning for warning in said["warnings"])
            for name in ("policy", "control") if settings else ():
                assert found[name]["decisions"] == len(groups[name])
                assert found[name]["mean"]["value"] == pytest.approx(np.mean(groups[name]))
            if not settings:
                assert found["earned"]["realised"] == pytest.approx(np.mean(groups[""][-75:]), abs=0.02)
                assert made["arms"][0] == "small"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("policy", "first", "unknown"), [("cascade_kl_ucb", 1, 0), ("cascade_kl_ucb", 0, 1), ("cts", 1, 1)]
)
def test_an_outcome_that_was_not_seen_leaves_the_reward_unknown_except_after_a_success_of_a_cascade(
    policy, first, unknown
):
    """Elsewhere such decisions would be known only if they succeed: their mean would be 1."""
    wanted = {"arms": ARMS, "k": 2, "items": ["click"], "settings": {"policy": {"name": policy}}}

    async def run() -> None:
        app = application(MemoryStore())
        async with serving(app) as http:
            assert (await http.put("/v1/problems/p", json=wanted)).status_code == 201
            made = await ask(http, id="d0")
            units = [{"arm": made["arms"][0], "value": first}, {"arm": made["arms"][1], "seen": False}]
            assert (await tell(http, "d0", feedback=units))["state"] == "complete"
            history = app.service.coordinator.ledger.problems["default", "p"].history
            assert history.unvalued == unknown
            assert (await http.delete("/v1/problems/p/decisions/d0")).status_code == 200
            assert history.unvalued == 0

    asyncio.run(run())


# --- With ``provisional``, what is handed out counts as ``at_window_end`` at once, and feedback replaces it exactly.


def test_what_is_new_counts_from_the_start_and_changes_nothing_at_the_end_of_the_window():
    settings = Settings(at_window_end=0.5, provisional=False)
    record = open_record(Asked(1, "p", "d", "", 1, (2, 0), 2, 1))
    assert (counted_rows(record), pending_arms(record)) == ({}, (2, 0))
    assert settings.silence is None
    assert expiry(record, settings.at_window_end, 5).fill == 0.5
    record = open_record(Asked(1, "p", "d", "", 1, (2, 0), 2, 1, items=(1,), silence=0.0))
    zeros = {2: (-1.0, 0.0), 0: (-1.0, 0.0)}
    assert (counted_rows(record), pending_arms(record)) == (zeros, ())
    assert counted_rows(advance_record(record, expiry(record, settings.at_window_end, 5))) == zeros
    deferred = open_record(Asked(1, "p", "d", "", 1, (2, 0), 2, 1, deferred=True, silence=0.0))
    assert (counted_rows(deferred), pending_arms(deferred)) == ({}, (2, 0))


async def serve_shop(http, policy, complete):
    """The slates of a shop to which the worst product is added; clicks alone are told, or everything."""
    rates, rng, slates = {"a": 0.5, "b": 0.4, "c": 0.3, "new": 0.02}, np.random.default_rng(1), []
    settings = {"policy": {"name": policy}, "at_window_end": 0.0}
    body = {"arms": list("abc"), "k": 2, "seed": 7, "reward": {"name": "linear"}, "settings": settings}
    assert (await http.put("/v1/problems/p", json=body)).json()["settings"]["provisional"] is True
    for n in range(240):
        if n == 40:
            await http.post("/v1/problems/p/arms", json={"add": ["new"]})
        slates.append((await ask(http, id=f"d{n}"))["arms"])
        values = [(arm, float(rng.random() < rates[arm])) for arm in slates[-1]]
        units = [{"arm": arm, "value": value} for arm, value in values if value or complete]
        if units:
            await tell(http, f"d{n}", feedback=units)
    return slates


@pytest.mark.parametrize("policy", ["kl_moss", "pooled_thompson"])
def test_the_worst_product_goes_as_fast_as_with_complete_feedback(policy):
    async def run(complete):
        async with serving(application(MemoryStore())) as http:
            return await serve_shop(http, policy, complete)

    slates = asyncio.run(run(False))
    assert slates == asyncio.run(run(True))
    assert 0 < sum("new" in slate for slate in slates) < 40


def test_erasing_a_decision_takes_its_zeros_back():
    async def trial(http, coordinator) -> None:
        arms = (await http.get("/v1/problems/p/arms")).json()
        for n in range(4):
            made = await ask(http, id=f"d{n}", unit="visitor")
            await tell(http, f"d{n}", feedback=[{"arm": made["arms"][0], "item": "sport", "value": 1.0}])
        assert (await http.get("/v1/problems/p/arms")).json() != arms
        assert (await http.post("/v1/problems/p/erasures", json={"unit": "visitor"})).status_code == 200
        assert (await http.get("/v1/problems/p/arms")).json() == arms

    during(trial, at_window_end=0.0)
