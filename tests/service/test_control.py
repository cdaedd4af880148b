"""The control share, its comparison with the policy, and the guardrail."""

import asyncio
import hashlib
import re

import numpy as np
import pytest
from msgspec import msgpack, structs

import superarm as sa
from superarm.service.application import application
from superarm.service.domain.events import Asked, Guarded
from superarm.service.domain.history import History
from superarm.service.domain.lift import LiftSums, check_guard, largest_rewards, measure_lift
from superarm.service.domain.slate import is_control
from superarm.service.storage.base import SavedSnapshot
from superarm.service.storage.snapshot import decode_snapshot, restore_ledger, take_snapshot

from .inprocess import serving
from .memory_store import MemoryStore
from .replaying import fold, replay
from .running import DECISIONS, Server, invoke
from .test_slates import make

WORTH = {"a": 0.8, "b": 0.7, "c": 0.2, "d": 0.1, "e": 0.1}


def run(scenario, store=None):
    """The result of a scenario on a service in this process."""
    store = store or MemoryStore()

    async def trial():
        async with serving(application(store)) as http:
            return await scenario(http)

    return asyncio.run(trial()), store


async def play(http, n, rng, units=0, **more):
    """``n`` decisions with feedback; what was answered."""
    answers = []
    for t in range(n):
        body = {"baseline": ["d", "e"], **more} | ({"unit": f"u{t % units}"} if units else {})
        reply = await http.post("/v1/problems/p/decisions", json=body)
        assert reply.status_code == 201, reply.text
        decision = reply.json()
        rows = [[float(rng.random() < WORTH[arm])] for arm in decision["arms"]]
        (await http.post(f"{DECISIONS}/{decision['id']}/feedback", json={"outcome": rows})).raise_for_status()
        answers.append(decision)
    return answers


async def create(http, **settings):
    spec = {"arms": list(WORTH), "k": 2, "reward": {"name": "linear"}, "seed": 1, "settings": settings}
    reply = await http.put("/v1/problems/p", json=spec)
    assert reply.status_code == 201, reply.text


def test_a_share_of_units_gets_the_baseline_and_keeps_it():
    async def scenario(http):
        await create(http, control=0.3)
        refused = await http.post("/v1/problems/p/decisions", json={})
        assert (refused.status_code, "baseline" in refused.text) == (422, True)
        return await play(http, 200, np.random.default_rng(0), units=50)

    answers, store = run(scenario)
    groups = {}
    for t, decision in enumerate(answers):
        groups.setdefault(f"u{t % 50}", set()).add(decision["group"])
        assert (decision["arms"] == ["d", "e"]) == (decision["group"] == "control") or decision["group"] == "policy"
        assert ("policy_arms" in decision) == (decision["group"] == "control")
    assert all(len(names) == 1 for names in groups.values())
    n_control = sum(names == {"control"} for names in groups.values())
    assert 5 <= n_control <= 27  # of 50 with chance 0.3: outside with probability below 2e-4
    asked = [read.entry.event for read in store.tail({}) if isinstance(read.entry.event, Asked)]
    assert len({event.unit for event in asked}) == 50
    assert not any("u1" in event.unit for event in asked)
    assert all(one.same for one in replay(store))


def test_a_larger_share_keeps_the_units_that_it_had():
    learner = make()
    for low, high in ((0.05, 0.2), (0.2, 0.6)):
        in_low, in_high = set(), set()
        for share, found in ((low, in_low), (high, in_high)):
            learner.versions[-1] = type(learner.settings)(control=share)
            found |= {n for n in range(400) if is_control(learner, "d", str(n))}
        assert in_low < in_high
        assert abs(len(in_high) / 400 - high) < 0.12  # more than four standard errors


def test_the_lift_finds_the_better_policy_and_is_what_a_replay_gives():
    async def scenario(http):
        await create(http, control=0.3, at_window_end=0)
        await play(http, 400, np.random.default_rng(1))
        page = (await http.get("/")).text
        assert re.search(r"per decision ± [\d.]+, newest quarter; baseline or control 0\.\d+ ± [\d.]+; estimated", page)
        assert re.search(r"\+[\d.,]+ in \d+ decisions of superarm, between \+[\d.,]+ and \+", page)
        assert "as expected: silence counts as 0" in page
        lift = (await http.get("/v1/problems/p/lift")).json()
        metrics = (await http.get("/metrics")).text
        refused = await http.get("/v1/problems/p/lift?delta=2")
        return lift, metrics, refused.status_code

    (lift, metrics, status), store = run(scenario)
    assert (lift["verdict"], status) == ("better", 422)
    earned = lift["earned"]
    assert earned["difference"] == pytest.approx(earned["realised"] - earned["estimated"])
    assert earned["low"] < earned["difference"] < earned["high"]
    assert lift["difference"]["low"] < 1.5 - 0.2 < lift["difference"]["high"] + 0.2
    assert lift["policy"]["decisions"] + lift["control"]["decisions"] == 400
    assert (
        f'superarm_compared_decisions{{problem="p",shown="policy",tenant="default"}} {lift["policy"]["decisions"]}'
        in metrics
    )
    ledger = fold(read.entry for read in store.tail({}))
    (learner,) = ledger.problems.values()
    learner.history.flush(learner.problem)
    assert measure_lift(learner.history.lift).difference.value == pytest.approx(lift["difference"]["value"])
    (saved,) = [decode_snapshot(take_snapshot(ledger, {"": 1}))]
    assert saved.histories[0].lift == learner.history.lift


def test_lift_curve_and_tiles_by_segment_of_the_context():
    """They are means over the decisions of the segment, also after an erasure, a replay and an earlier snapshot."""
    rng, told = np.random.default_rng(2), dict[str, tuple[str, str, float]]()
    spec = {"arms": ["a", "b", "c"], "seed": 1, "context": {"features": {"categorical": {"who": ["x", "y"]}}}}
    spec["settings"] = {"control": 0.3, "control_slate": "uniform", "window_s": None}

    async def scenario(http):
        (await http.put("/v1/problems/p", json=spec)).raise_for_status()
        for n in range(300):
            who = "xxy"[n % 3]
            made = (await http.post(DECISIONS, json={"id": f"d{n}", "context": {"who": who}})).json()
            value = float(rng.random() < (0.9 if made["arms"] == [{"x": "a", "y": "b"}[who]] else 0.1))
            reply = await http.post(f"{DECISIONS}/{made['id']}/feedback", json={"outcome": [[value]]})
            reply.raise_for_status()
            told[made["id"]] = who, made["group"], value
        (await http.get("/")).raise_for_status()  # rewards are computed when they are needed, also before an erasure
        for id in list(told)[::10]:
            (await http.delete(f"{DECISIONS}/{id}")).raise_for_status()
            del told[id]
        lifts = {who: (await http.get(f"/v1/problems/p/lift?item=who={who}")).json() for who in "xy"}
        refused = await http.get("/v1/problems/p/lift?item=who=z")
        pages = [(await http.get(f"/?item=who={who}")).text for who in "xy"]
        table = (await http.get("/export/rewards.csv")).text
        return lifts, refused, pages, table

    (lifts, refused, pages, table), store = run(scenario)
    assert refused.status_code == 422
    for who, page in zip("xy", pages, strict=True):
        lift = lifts[who]
        assert (lift["item"], lift["verdict"]) == (f"who={who}", {"x": "better", "y": "open"}[who])
        for group in ("policy", "control"):
            values = [value for segment, name, value in told.values() if (segment, name) == (who, group)]
            assert lift[group]["decisions"] == len(values)
            assert lift[group]["mean"]["value"] == pytest.approx(np.mean(values))
        assert f"Reward per decision from who={who}" in page
        assert f'<option value="who={who}" selected>' in page
        assert f"{lift['earned']['realised']:.3g}" in page
        assert f"superarm,who={who}," in table
    live = fold(read.entry for read in store.tail({}))
    live.problems["default", "p"].flush()
    saved = decode_snapshot(take_snapshot(live, {"": 1}))
    before = msgpack.encode(structs.replace(saved, format=2, histories=[History(decisions=0)], position={"": 700}))
    store.save(SavedSnapshot(hashlib.sha256(before).hexdigest(), before))
    again = restore_ledger(store)[0].problems["default", "p"]
    assert again.history.lift.policy.each == live.problems["default", "p"].history.lift.policy.each


def test_a_fixed_slate_and_a_uniform_one_as_control():
    async def scenario(http):
        await create(http, control=0.5, control_slate=["c", "a"])
        rng = np.random.default_rng(2)
        fixed = await play(http, 20, rng)
        restricted = await play(http, 10, rng, excluded=["c"])
        (await http.patch("/v1/problems/p/settings", json={"control_slate": "uniform"})).raise_for_status()
        uniform = await play(http, 30, rng, excluded=["e"])
        lift = (await http.get("/v1/problems/p/lift")).json()
        bad = [
            await http.patch("/v1/problems/p/settings", json=body)
            for body in ({"control_slate": ["a", "z"]}, {"control_slate": ["a", "a"]}, {"guardrail": 0.1, "control": 0})
        ]
        return fixed, restricted, uniform, lift, [reply.status_code for reply in bad]

    (fixed, restricted, uniform, lift, bad), _ = run(scenario)
    assert {tuple(one["arms"]) for one in fixed if one["group"] == "control"} == {("c", "a")}
    assert {one.get("group", "") for one in restricted} == {""}
    drawn = [one for one in uniform if one["group"] == "control"]
    assert {one["inclusion"][0] for one in drawn} == {0.5}
    assert {tuple(one["propensities"]) for one in drawn} == {(1 / 4, 1 / 3)}
    assert not any("e" in one["arms"] for one in drawn)
    assert (lift["since"], lift["policy"]["decisions"] + lift["control"]["decisions"]) == (30, 30)
    assert bad == [422, 422, 422]


def test_a_comparison_is_kept_when_another_one_begins():
    """A change of the control slate deleted it."""

    async def get(http):
        return (await http.get("/v1/problems/p/lift")).json()

    async def scenario(http):
        await create(http, control=0.5, control_slate=["d", "e"], window_s=3600)
        empty = await get(http)
        await play(http, 300, np.random.default_rng(4))
        open_ids = [(await http.post("/v1/problems/p/decisions", json={})).json() for _ in range(10)]
        before = await get(http)
        (await http.patch("/v1/problems/p/settings", json={"control_slate": ["c", "e"]})).raise_for_status()
        (await http.patch("/v1/problems/p/settings", json={"control_slate": "uniform"})).raise_for_status()
        after = await get(http)
        for made in open_ids:  # of the comparison that has ended
            outcome = {"outcome": [[1.0], [0.0]]}
            (await http.post(f"{DECISIONS}/{made['id']}/feedback", json=outcome)).raise_for_status()
        late, page = await get(http), (await http.get("/")).text
        (await http.post("/v1/problems/p/items", json={"add": ["more"]})).raise_for_status()
        (await http.post("/v1/problems/p/decisions", json={})).raise_for_status()
        return empty, before, after, late, page, await get(http)

    (empty, before, after, late, page, last), store = run(scenario)
    assert (empty["earlier"], empty["difference"]) == ([], None)
    assert empty["missing"] == "0 decisions of superarm and 0 of the control share have finished"
    assert (before["missing"], before["verdict"], before["earlier"]) == ("", "better", [])
    (kept,) = after["earlier"]  # one with no decision at all is not
    assert (kept["since"], kept["until"], kept["control_slate"]) == (0, 310, ["d", "e"])
    assert {name: kept[name] for name in ("policy", "control", "difference", "relative", "verdict")} == {
        name: before[name] for name in ("policy", "control", "difference", "relative", "verdict")
    }
    assert (after["since"], after["difference"]) == (310, None)
    (kept,) = late["earlier"]
    assert kept["policy"]["decisions"] + kept["control"]["decisions"] == 310
    assert "Decisions 1 to 310, beside d, e: +" in page
    assert re.search(r"0 of the control share have finished", late["missing"])
    assert last["earlier"] == late["earlier"]
    assert re.search(r"the first window ends at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", last["missing"])
    ledger = restore_ledger(store)[0]
    again = decode_snapshot(take_snapshot(ledger, {"": 1})).histories[0]
    assert [one.until for one in again.earlier] == [310]


def test_the_next_arms_of_the_list_stand_in_for_retired_ones_of_a_fixed_slate():
    async def scenario(http):
        await create(http, control=1.0, control_slate=["c", "a"], policy={"baseline": ["c", "a", "d", "b"]})
        (await http.post("/v1/problems/p/arms", json={"add": ["f", "g"], "retire": ["c"]})).raise_for_status()
        shown = [(await http.post("/v1/problems/p/decisions", json={"excluded": ["d"]})).json()]
        for gone in ("d", "b"):
            (await http.post("/v1/problems/p/arms", json={"retire": [gone]})).raise_for_status()
            shown.append((await http.post("/v1/problems/p/decisions", json={})).json())
            shown.append((await http.get("/v1/problems/p")).json().get("warnings", []))
        return shown

    (first, second, none, third, warnings), store = run(scenario)
    assert [one["arms"] for one in (first, second)] == [["a", "b"]] * 2
    assert [one.get("group") for one in (first, second, third)] == ["control", "control", None]
    assert (none, "1 of control_slate is retired" in warnings[0]) == ([], True)
    assert all(one.same for one in replay(store))


def test_the_control_group_follows_a_list_that_moves_and_the_comparison_goes_on():
    async def scenario(http):
        policy = {"baseline": ["d", "e", "c"], "caution": "bold"}
        await create(http, control=0.5, policy=policy, at_window_end=0)
        asks = [{"id": f"v{n}"} for n in range(60)]
        before = [(await http.post("/v1/problems/p/decisions", json=ask)).json() for ask in asks[:30]]
        changed = await http.put("/v1/problems/p/baseline", json={"arms": ["a", "b"]})
        again = await http.put("/v1/problems/p/baseline", json={"arms": ["a", "b"]})
        after = [(await http.post("/v1/problems/p/decisions", json=ask)).json() for ask in asks[30:]]
        own = await http.post("/v1/problems/p/decisions", json={"id": "v60", "baseline": ["c", "d"]})
        wrong = [await http.put("/v1/problems/p/baseline", json={"arms": arms}) for arms in ([], ["x"], ["a", "a"])]
        other = await http.patch("/v1/problems/p/settings", json={"policy": {"name": "kl_ucb", "caution": "bold"}})
        word = await http.patch("/v1/problems/p/settings", json={"policy": {"caution": "brave"}})
        lift = (await http.get("/v1/problems/p/lift")).json()
        return before, after, own.json(), changed.json(), again.json(), [*wrong, other, word], lift

    before, after, own, changed, again, refused, lift = run(scenario)[0]
    for decisions, shown in ((before, ["d", "e"]), (after, ["a", "b"])):
        control = [decision["arms"] for decision in decisions if decision["group"] == "control"]
        assert (len(control) > 5, control) == (True, [shown] * len(control))
    assert next(decision["arms"] for decision in after if decision["group"] == "policy") == ["a", "b"]
    assert own["group"] == "policy" or own["arms"] == ["c", "d"]
    assert (changed["version"], again["version"]) == (2, 2)
    assert changed["settings"]["policy"]["caution"] == "bold"
    assert [reply.status_code for reply in refused] == [422] * 5
    assert "starts from no list" in refused[3].text
    assert "careful, normal or bold" in refused[4].text
    assert not lift.get("earlier")


def test_the_guardrail_falls_back_and_comes_back():
    """A policy that earns less than the baseline loses its budget; the event, the metric and the flag say so."""

    async def scenario(http):
        await create(http, control=0.2, guardrail=0.3, policy={"name": "uniform"})
        rng = np.random.default_rng(3)
        answers = await play(http, 150, rng, baseline=["a", "b"])
        metrics = (await http.get("/metrics")).text
        return answers, metrics, (await http.get("/v1/problems/p/lift")).json()

    (answers, metrics, lift), store = run(scenario)
    events = [read.entry.event for read in store.tail({}) if isinstance(read.entry.event, Guarded)]
    assert events[0].fallback
    assert events[0].earned < events[0].needed
    assert [event.fallback for event in events] == [n % 2 == 0 for n in range(len(events))]
    assert sum(one.get("fallback", False) for one in answers) > 75
    assert all(one["arms"] == ["a", "b"] for one in answers if one.get("fallback"))
    assert f'superarm_guardrail_fallback{{problem="p",tenant="default"}} {float(lift["fallback"])}' in metrics
    ledger = fold(read.entry for read in store.tail({}))
    (learner,) = ledger.problems.values()
    assert learner.guarded == lift["fallback"]
    assert all(one.same for one in replay(store))


def test_a_guardrail_that_is_removed_while_it_holds_holds_no_longer():
    async def scenario(http):
        await create(http, control=0.2, guardrail=0.3, policy={"name": "uniform"})
        await play(http, 150, np.random.default_rng(3), baseline=["a", "b"])
        fallen = [(await http.get("/v1/problems/p/lift")).json()["fallback"]]
        while not fallen[-1]:
            await play(http, 10, np.random.default_rng(len(fallen)), baseline=["a", "b"])
            fallen.append((await http.get("/v1/problems/p/lift")).json()["fallback"])
        (await http.patch("/v1/problems/p/settings", json={"guardrail": None})).raise_for_status()
        asked = (await http.post("/v1/problems/p/decisions", json={"baseline": ["a", "b"]})).json()
        fallback = [(await http.get("/v1/problems/p/lift")).json()["fallback"]]
        (await http.patch("/v1/problems/p/settings", json={"guardrail": 0.3})).raise_for_status()
        return asked, [*fallback, (await http.get("/v1/problems/p/lift")).json()["fallback"]]

    (asked, fallback), _ = run(scenario)
    assert not asked.get("fallback", False)
    assert fallback == [False, False]


def test_the_guardrail_lets_a_proven_policy_play():
    sums = LiftSums(scale=2.0)
    rng = np.random.default_rng(0)
    for n in range(4000):
        sums.shown_policy, sums.shown_control = n + 1, (n + 1) // 4
        sums.policy.add(rng.choice([1.0, 2.0]))
        if n % 4 == 0:
            sums.control.add(rng.choice([0.0, 1.0]))
    assert check_guard(sums, 0.1, 50).holds
    worse = LiftSums(policy=sums.control, control=sums.policy, scale=2.0, shown_policy=4000, shown_control=1000)
    assert not check_guard(worse, 0.1, 1).holds
    assert check_guard(LiftSums(shown_control=9), 0.1, 1).holds
    assert not check_guard(LiftSums(shown_control=8), 0.1, 1).holds


@pytest.mark.parametrize(
    ("reward", "most"),
    [(sa.Linear(), 6.0), (sa.Coverage(), 3.0), (sa.Logistic(1.0), None), (sa.rewards.Conjunctive(), 3.0)],
)
def test_no_slate_is_worth_more_than_the_largest_reward(reward, most):
    problem = sa.Problem(4, 2, reward, sa.Subsets(2), [2.0, 1.0])
    value = problem.value(np.ones(8), np.array([0, 3]))
    assert sum(largest_rewards(problem)) == pytest.approx(most if most is not None else value)
    assert sum(largest_rewards(problem)) >= value - 1e-12


def test_the_client_and_the_export_tell_the_groups(tmp_path):
    with Server(str(tmp_path / "log.db")) as server:
        service = sa.connect(server.url)
        settings = {"control": 0.5, "control_slate": ["a", "b"]}
        agent = service.create("ads", ["a", "b", "c"], ["x"], 2, settings=settings)
        groups = []
        for n in range(12):
            decision = agent.ask(id=f"d{n}", unit=f"u{n}")
            groups.append(decision.group)
            agent.tell(decision, [[n % 2], [0]])
        told = agent.lift()
        assert told["share"] == 0.5
        said = invoke("lift", "ads", "--url", server.url)
        assert said.output.splitlines()[0] == f"open: {told['said']}"
        assert invoke("lift", "nobody", "--url", server.url).exit_code != 0
        service.close()
    done = invoke("export", "--db", str(tmp_path / "log.db"), str(tmp_path / "log.parquet"))
    assert done.exit_code == 0, done.stderr
    from pyarrow import parquet

    table = parquet.read_table(tmp_path / "log.parquet").to_pydict()
    assert table["comparison"][::2] == groups
    assert len(set(table["unit"])) == 12


@pytest.mark.parametrize("control_slate", ["baseline", "uniform", ["d", "e"]])
def test_asks_chosen_together_are_those_chosen_one_by_one(control_slate):
    """Forty asks at the same time: each sees those before it as pending, whichever slate they show."""

    async def decide(http, together):
        settings = {"control": 0.2, "control_slate": control_slate}
        spec = {"arms": list(WORTH), "k": 2, "reward": {"name": "linear"}, "seed": 1, "settings": settings}
        (await http.put("/v1/problems/p", json=spec)).raise_for_status()
        bodies = [{"id": f"d{n}", "unit": f"u{n}", "baseline": ["e", "d"]} for n in range(40)]
        asks = [http.post("/v1/problems/p/decisions", json=body) for body in bodies]
        return [reply.json() for reply in (await asyncio.gather(*asks) if together else [await ask for ask in asks])]

    (together, store), (alone, _) = (run(lambda http, one=one: decide(http, one)) for one in (True, False))
    assert [(one["arms"], one["group"]) for one in together] == [(one["arms"], one["group"]) for one in alone]
    assert {one["group"] for one in together} == {"policy", "control"}
    assert all(one.same for one in replay(store))


@pytest.mark.parametrize("segments", [False, True])
def test_realised_rewards_that_part_from_the_estimates_are_told_with_a_remedy(segments):
    """Both arms of a slate are clicked, or none is: coverage of independent clicks would be worth 0.75, not 0.5.

    With segments, everybody of the second one clicks everything, which the estimates say, too.
    """
    where = [{"context": {"s": "ab"[n % 4 > 1]}} if segments else {} for n in range(400)]

    async def scenario(http):
        spec = {"arms": ["a", "b"], "k": 2, "settings": {"policy": {"name": "bc_ucb"}}}
        context = {"context": {"features": {"categorical": {"s": ["a", "b"]}}}} if segments else {}
        await http.put("/v1/problems/p", json=spec | context)
        assert (await http.get("/v1/problems/p/lift")).json()["earned"] is None
        for n in range(400):
            click = int(where[n] == {"context": {"s": "b"}} or n % 2)
            await http.post("/v1/problems/p/decisions", json={"id": f"d{n}", **where[n]})
            await http.post(f"/v1/problems/p/decisions/d{n}/feedback", json={"outcome": [[click], [click]]})
        of = [
            f"/v1/problems/p/lift{'?item=s%3D' + one if one else ''}" for one in (["", "a", "b"] if segments else [""])
        ]
        return [(await http.get(one)).json()["earned"] for one in of], (await http.get("/v1/problems/p")).json()

    (found, problem), _ = run(scenario)
    assert segments or found[0]["warning"] in problem["warnings"]
    for earned in found[1:2] or found:
        assert "compare with a control share" in earned["warning"]
        assert earned["realised"] == pytest.approx(0.5, abs=0.02)
        assert earned["estimated"] == pytest.approx(0.75, abs=0.02)
        assert earned["high"] < 0.0
    for earned in found[2:]:
        assert (earned["realised"], earned["estimated"]) == (1.0, 1.0)
