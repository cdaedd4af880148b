"""Problems with ``items: "learn"``: groups of visitors from the problem's own log, as versions that are exact."""

import asyncio
import contextlib
import random
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import superarm as sa
from superarm.items.counts import to_rows
from superarm.items.latent import learn_rows, prior_tally
from superarm.service.application import application
from superarm.service.domain.events import Created
from superarm.service.domain.problem import ProblemState, rehearse
from superarm.service.domain.spec import ProblemSpec
from superarm.service.http.service import ServiceLimits
from superarm.service.runtime import admin as learning
from superarm.service.storage.snapshot import compact, encode_counters, restore_ledger, verify
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .memory_store import MemoryStore
from .replaying import fold, replay

P = "/v1/problems/p"
ARMS = [f"film {n}" for n in range(12)]
LIKES = np.where(np.arange(12)[:, None] // 6 == np.arange(2), 0.5, 0.02)  # two tastes, six films each
SPEC = {"arms": ARMS, "items": "learn", "k": 4, "seed": 3}


async def post(http, path, **body):
    reply = await http.post(path, json=body)
    assert reply.status_code in (200, 201), reply.text
    return reply.json()


async def visit(http, n, rng, unit=None, problem=P):
    """One visitor; whether they liked something."""
    taste = int(rng.random() < 0.35) if unit is None else int(unit[-1])
    made = await post(http, f"{problem}/decisions", id=f"{problem}-{n}", **({} if unit is None else {"unit": unit}))
    liked = rng.random(4) < LIKES[made["action"], taste]
    path = f"{problem}/decisions/{made['id'].replace('/', '%2F')}/feedback"
    await post(http, path, outcome=[[float(x)] for x in liked])
    return bool(liked.any())


async def learnt_when_due(http):
    """Wait until the items that are due are learnt."""
    for _ in range(2_000):
        found = (await http.get(f"{P}/items")).json()
        if found["decisions"] < found["next_at"]:
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("items that were due were not learnt")


async def tastes_of(http, unit):
    """The tastes of the films that a unit is shown after it has liked films of one taste only, twice."""
    for n in range(2 if "-" in unit else 0):
        made = await post(http, f"{P}/decisions", id=f"{unit}{n}", unit=unit)
        liked = [[float(film // 6 == int(unit[-1]))] for film in made["action"]]
        await post(http, f"/v1/problems/p/decisions/{unit}{n}/feedback", outcome=liked)
    return [film // 6 for film in (await post(http, f"{P}/decisions", unit=unit))["action"]]


def test_groups_are_found_and_more_visitors_are_served_than_with_one_item(monkeypatch):
    """Three films for 65 visitors of 100 and one for the others please 76; four for the 65 please 64."""
    monkeypatch.setattr(learning, "LOOK_SECONDS", 0.01)

    async def run(items):
        rng, served = np.random.default_rng(1), []
        async with serving(application(MemoryStore())) as http:
            (await http.put(P, json=SPEC | {"items": items})).raise_for_status()
            for n in range(800):
                served.append(await visit(http, n, rng))
                if items == "learn" and n % 50 == 49:
                    await learnt_when_due(http)
            known = [await tastes_of(http, unit) for unit in ("a-0", "b-1", "nobody")] if items == "learn" else []
            return np.array(served), (await http.get(f"{P}/items")).json(), known

    served, found, known = asyncio.run(run("learn"))
    one, alone, _ = asyncio.run(run(["value"]))
    assert [sum(part) for part in known[:2]] == [0, 4]  # each unit sees films of its own taste
    assert 0 < sum(known[2]) < 4  # somebody new, of both tastes
    assert served[400:].mean() > one[400:].mean() + 0.06
    assert served[400:].mean() > 0.72
    assert served.mean() > one.mean()
    assert [version["decisions"] for version in found["versions"]] == [200, 300, 450, 700]
    assert len(found["classes"]) == found["versions"][-1]["classes"] == 2
    assert {len({ARMS.index(arm) // 6 for arm in one["arms"]}) for one in found["classes"]} == {1}
    assert sum(one["share"] for one in found["classes"]) == pytest.approx(1.0)
    assert "2 groups of visitors found: slates are chosen for all of them" in found["said"]
    assert abs(found["claimed"] - found["realised"]) < 0.08
    assert found["items"] == ["value"]
    assert alone["learn"] is False
    assert "the estimates promised" in alone["said"]


async def use(http, seed=0, n=150):
    """Decisions of units with all kinds of feedback, versions of items, and new arms; the ids of unit u1-1."""
    draw, rng, ids = random.Random(seed), np.random.default_rng(seed), []
    settings = {"policy": {"name": "kl_moss"}, "at_window_end": 0.0, "late": "learn", "explore": 0.1}
    (await http.put(P, json=SPEC | {"settings": settings})).raise_for_status()
    await post(http, f"{P}/outcomes", id="before", arms=ARMS[:3], outcomes=[[1.0], [0.0], [0.25]])
    for i in range(n):
        unit = None if i % 3 == 0 else f"u{draw.randrange(4)}-{draw.randrange(2)}"
        taste, id = draw.randrange(2) if unit is None else int(unit[-1]), f"d{i}"
        ids += [id] if unit == "u1-1" else []
        body = {"unit": unit} if unit else {}
        made = await post(http, f"{P}/decisions", id=id, deferred=draw.random() < 0.1, **body)
        for again in range(draw.randrange(3)):
            told = [
                {"arm": arm, "value": round(float(rng.random() < LIKES[j % 12, taste]) * (1 - 0.3 * again), 2)}
                for arm, j in zip(made["arms"], made["action"], strict=True)
            ]
            some = told if draw.random() < 0.6 else draw.sample(told, 2)
            await post(http, f"/v1/problems/p/decisions/{id}/feedback", feedback=some, amend=again > 0)
        if draw.random() < 0.1:
            await http.post(f"/v1/problems/p/decisions/{id}/activate", json={"shown": []})  # refused if it is complete
        if i in (60, 110, 130):
            await post(http, f"{P}/items/learn")
        if i == 120:
            await post(http, f"{P}/items/learn", version=1)
        if i == 80:
            await post(http, f"{P}/arms", add=["new film"], retire=["film 11"])
    return ids


@pytest.fixture
def two_classes(monkeypatch):
    """Two classes are found, however few decisions there are; the number of fits."""
    fits = []

    def learn(told, arms, seed):
        fits.append(seed)
        return replace(learn_rows(to_rows(told, len(arms)), (2,), seed=seed, arms=arms), z=3.0)

    monkeypatch.setattr(learning, "learn_answers", learn)
    return fits


def counters(ledger):
    """All counters but the number of events."""
    made = encode_counters("default", "p", ledger.problems["default", "p"])
    return {name: getattr(made, name) for name in made.__struct_fields__ if name != "step"}


def naive_counts(state):
    """The tally by class, decision by decision, from what is stored."""
    items = state.learnt.counts.items
    n, s = np.zeros(items.p.shape), np.zeros(items.p.shape)
    for told in state.learnt.counts.told.values():
        share = items.posterior(told.arms, told.answers)
        for arm, x in zip(told.arms, told.answers, strict=True):
            n[arm] += share
            s[arm] += np.floor(share * x * 2.0**24 + 0.5) / 2.0**24
    return n, s


def test_replay_erasure_and_restart_are_exact_across_versions(tmp_path, two_classes):
    """Live, folded, restored and replayed states are equal; an erased unit leaves no trace; nothing is fitted again."""
    app = application(Sqlite(tmp_path / "log.db"), ServiceLimits(snapshot_every=40))

    async def run():
        async with serving(app) as http:
            ids = await use(http)
            assert (await http.get("/v1/problems/p/decisions/d149/explanation")).status_code == 200
            before = app.service.coordinator.ledger.problems["default", "p"].learnt.counts
            assert len(before._units) == 8
            assert (await post(http, f"{P}/erasures", unit="u1-1"))["erased"] == len(ids) > 5
            found = (await http.get(f"{P}/items")).json()
            state = app.service.coordinator.ledger.problems["default", "p"]
            assert len(state.learnt.counts._units) == 7
            tally, (n, s) = state.learnt.learner.tally, naive_counts(state)
            nothing = np.zeros_like(n)
            prior = prior_tally(state.learnt.counts.items, nothing, nothing)
            assert np.array_equal(tally.pulls - prior.pulls, state.tally.pulls)
            assert (tally.total - prior.total).sum(axis=1) == pytest.approx(state.tally.total[:, 0], abs=1e-4)
            assert np.array_equal(tally.total[0] - prior.total[0], s.T)
            assert np.array_equal(tally.counts(tally.pulls)[0] - prior.counts(prior.pulls)[0], n.T)
            return ids, counters(app.service.coordinator.ledger), found

    ids, live, found = asyncio.run(run())
    assert [(one["version"], one["of"], one["classes"]) for one in found["versions"]] == [
        *((1, 0, 2), (2, 0, 2), (3, 1, 2), (4, 0, 2))
    ]
    assert two_classes == [1, 2, 4]
    store = Sqlite(tmp_path / "log.db", lock=False)
    store.open()
    assert verify(store).faults == []
    assert counters(restore_ledger(store)[0]) == live
    kept = [read.entry for read in store.tail({}) if read.entry.kind != "decision" or read.entry.stream not in ids]
    without = counters(fold(kept, None))
    assert (without["classes"], without["answers"]) == (live["classes"], live["answers"])
    assert not any(one[0] in ids for one in live["answers"])
    again = list(replay(store))
    assert len(again) == 150
    assert all(one.same for one in again)
    assert two_classes == [1, 2, 4]
    store.close()


def test_what_a_compaction_removes_counts_on_without_its_unit(tmp_path, two_classes):
    async def run():
        async with serving(application(Sqlite(tmp_path / "log.db"))) as http:
            await use(http)

    asyncio.run(run())
    store = Sqlite(tmp_path / "log.db")
    before = counters(restore_ledger(store)[0])
    assert compact(store, 2**62) > 50
    assert verify(store).faults == []
    ledger = restore_ledger(store)[0]
    after = counters(ledger)
    assert after["classes"] == before["classes"]
    assert [one[0] for one in after["answers"]] == [one[0] for one in before["answers"]]
    units = [sum(one[4] is not None for one in part["answers"]) for part in (before, after)]
    assert units[0] > units[1] == sum(record.asked.unit != "" for record in ledger.pending.values() if record.active)
    store.close()


def test_the_console_shows_groups_and_goes_back_to_a_version(two_classes):
    async def run():
        async with serving(application(MemoryStore())) as http:
            await use(http)
            page = (await http.get("/?problem=p")).text
            assert "Groups of visitors" in page
            assert "group 2" in page  # in the heat map
            assert page.count("Go back to this") == 3
            form = {"problem": "p", "change": "items", "version": "2", "place": "groups"}
            own = {"sec-fetch-site": "same-origin"}
            assert (await http.post("/change", data=form, headers=own)).status_code == 303
            again = (await http.get(f"{P}/items")).json()["versions"]
            assert [one["of"] for one in again] == [0, 0, 1, 0, 2]
            assert (await http.post("/change", data=form | {"version": "x"}, headers=own)).status_code == 422
            del form["version"]
            assert (await http.post("/change", data=form, headers=own)).status_code == 303
            audit = (await http.get("/v1/audit")).json()["entries"]
            assert [one["details"]["of"] for one in audit if one["what"] == "learnt"] == [0, 2, 0, 1, 0, 0]
            (await http.put("/v1/problems/q", json=SPEC | {"items": ["value"]})).raise_for_status()
            assert "Groups of visitors" not in (await http.get("/?problem=q")).text

    asyncio.run(run())


def test_what_callers_allow_holds_for_groups_too(two_classes):
    async def run():
        async with serving(application(MemoryStore())) as http:
            await use(http)
            assert (await http.get(f"{P}/items")).json()["versions"][-1]["classes"] == 2
            some = {"pinned": ["film 5"], "excluded": ["film 0"], "eligible": ARMS[:8]}
            slots = [{"id": "top", "excluded": ARMS[:6]}, {"id": "side", "excluded": []}]
            for unit in ({}, {"unit": "u0-1"}):
                made = await post(http, f"{P}/decisions", k=3, **some, **unit)
                assert len(made["arms"]) == 3
                assert made["arms"][0] == "film 5"
                assert set(made["arms"]) <= set(ARMS[1:8])
                placed = await post(http, f"{P}/decisions", slots=slots, **unit)
                assert dict(zip(placed["slots"], placed["arms"], strict=True))["top"] not in ARMS[:6]
                assert all(0.0 < chance <= 1.0 for chance in placed["propensities"])
                none = await http.post(f"{P}/decisions", json={"eligible": ["film 11"], **unit})  # it is retired
                assert none.status_code == 422

    asyncio.run(run())


def test_the_client_creates_it_and_kernels_are_rehearsed(served):
    with contextlib.closing(sa.connect(served.url)) as service:
        agent = service.create("learns", ARMS, "learn", 4)
        decision = agent.ask(unit="u1")
        assert agent.tell(decision, [[1.0]] * 4)
        assert agent.items == ("value",)
        assert [one["of"] for one in agent.learn_items()["versions"]] == [0]
        assert [one["of"] for one in agent.learn_items(1)["versions"]] == [0, 1]
        assert agent.learnt_items()["decisions"] == 1
    named = SPEC | {"settings": {"policy": {"name": "kl_ucb"}}}
    state = ProblemState(Created(0, msgspec.convert(named, ProblemSpec), "key"))
    rehearse(state.created)
    state.learnt.rehearse()
    assert state.learnt.in_force


def test_what_does_not_go_with_learnt_items_is_refused():
    async def run():
        async with serving(application(MemoryStore())) as http:
            wrong = {"weights": [1.0], "triggered": True, "reward": {"name": "linear"}, "support": {"film 0": []}}
            for name, value in wrong.items():
                reply = await http.put(P, json=SPEC | {name: value})
                assert reply.status_code == 422
                assert name in reply.text
            (await http.put(P, json=SPEC)).raise_for_status()
            assert (await http.post(f"{P}/items", json={"add": ["x"]})).status_code == 422
            assert (await http.post(f"{P}/decisions", json={"items": ["value"]})).status_code == 422
            assert (await http.post(f"{P}/items/learn", json={"version": 1})).status_code == 404
            (await http.put("/v1/problems/q", json=SPEC | {"items": ["value"]})).raise_for_status()
            given = await http.post("/v1/problems/q/items/learn", json={})
            assert given.status_code == 422
            assert "those of this problem are given" in given.text

    asyncio.run(run())
