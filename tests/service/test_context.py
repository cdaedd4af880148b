"""Contexts of decisions in the service: declared, stored, explained, refused."""

import asyncio
import re

import numpy as np
import pytest

import superarm as sa
from superarm.service.application import application
from superarm.service.domain import context_spec
from superarm.service.domain.events import Asked, Framed
from superarm.service.storage.snapshot import restore_ledger, take_snapshot, verify
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .memory_store import MemoryStore

ARMS = ["a", "b", "c", "d"]
FEATURES = {"numeric": {"age": [0, 100]}, "categorical": {"country": ["NO", "SE", "other"]}}
Z = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.5, 0.5], "d": [-0.5, 0.25]}
SHARED = {"features": FEATURES, "model": {"name": "linear", "parameters": {"shared": True}}, "arms": Z}


def spec(context, policy="vac2_ucb", **more):
    return {
        "arms": ARMS,
        "items": ["x", "y"],
        "k": 2,
        "seed": 5,
        "settings": {"policy": {"name": policy}},
        "context": context,
        **more,
    }


def run(test, limits=None, db=None):
    """Run a test with a client of a service, and its store: in memory, or in a file."""

    async def whole():
        store = MemoryStore() if db is None else Sqlite(db)
        async with serving(application(store, *([limits] if limits else []))) as http:
            await test(http, store)

    asyncio.run(whole())


async def call(http, method, path, body=None, status=(200, 201, 204)):
    reply = await http.request(method, path, json=body)
    assert reply.status_code in status, reply.text
    return reply.json() if reply.content else None


def asked_events(store):
    return [read.entry.event for read in store.tail({}) if isinstance(read.entry.event, Asked)]


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({**SHARED, "arms": None}, "cannot tell them apart"),
        ({**SHARED, "arms": {"a": [1, 0]}}, "nothing for arm 'b'"),
        ({**SHARED, "arms": {**Z, "e": [0, 0]}}, "unknown arm 'e'"),
        (
            {"features": {"categorical": {"c": ["x"]}}, "model": {"name": "segments", "parameters": {"by": ["d"]}}},
            "'d'",
        ),
        ({"features": {"numeric": {"age": None}}, "model": {"name": "linear"}, "stored": "encoded"}, "standardised"),
        ({"features": {"d": 100}, "model": {"name": "linear"}}, "at most 64"),
        ({"features": {"d": 1024}, "model": SHARED["model"], "arms": Z}, "at most 1024"),
        ({"features": {"d": 1025}, "model": {"name": "linear"}}, "1024"),
        ({"features": FEATURES, "model": {"name": "lineaar"}}, "lineaar"),
    ],
)
def test_a_context_that_does_not_fit_is_refused_at_creation(context, words):
    async def test(http, store):
        policy = "vac2_ucb" if context["model"]["name"] != "segments" else "kl_ucb"
        told = await call(http, "PUT", "/v1/problems/p", spec(context, policy), status=(422,))
        assert words in told["error"]["message"]
        assert not list(store.tail({}))

    run(test)


def test_a_policy_has_to_learn_the_model():
    async def test(http, store):
        told = await call(http, "PUT", "/v1/problems/p", spec(SHARED, "kl_ucb"), status=(422,))
        assert "does not read features" in told["error"]["message"]
        plain = {"arms": ARMS, "settings": {"policy": {"name": "vac2_ucb"}}}
        told = await call(http, "PUT", "/v1/problems/p", plain, status=(422,))
        assert "needs a context" in told["error"]["message"]
        await call(http, "PUT", "/v1/problems/p", spec(SHARED))
        change = {"policy": {"name": "logistic_ts"}}
        told = await call(http, "PATCH", "/v1/problems/p/settings", change, status=(422,))
        assert "does not learn the model" in told["error"]["message"]

    run(test)


def test_what_is_wrong_with_a_context_is_said_with_the_nearest_name():
    async def test(http, store):
        await call(http, "PUT", "/v1/problems/p", spec(SHARED))
        await call(http, "PUT", "/v1/problems/plain", {"arms": ARMS})
        path = "/v1/problems/p/decisions"
        for body, words in [
            ({"context": {"contry": "NO"}}, "did you mean 'country'"),
            ({"context": {"age": "old"}}, "age"),
            ({"context": [1.0, 2.0]}, "not a mapping"),
            ({}, "missing"),
            ({"context": {"age": 3}, "pairs": {"a": [1.0]}}, "pairs"),
            ({"context": {"age": True}}, "Expected"),
        ]:
            told = await call(http, "POST", path, body, status=(422,))
            assert words in told["error"]["message"], body
        told = await call(http, "POST", "/v1/problems/plain/decisions", {"context": {"age": 3}}, status=(422,))
        assert "created without one" in told["error"]["message"]
        many = {"decisions": [{"context": {"age": 3}}, {"context": {"agge": 3}}]}
        good, bad = (await call(http, "POST", f"{path}/bulk", many))["decisions"]
        assert good["context"] == {"age": 3}
        assert "'age'" in bad["error"]["message"]
        arms = {"add": ["e"], "features": {"e": [3.0, 0.0]}}
        told = await call(http, "POST", "/v1/problems/p/arms", arms, status=(422,))
        assert "[-1, 1]" in told["error"]["message"]
        told = await call(http, "POST", "/v1/problems/p/arms", {"add": ["e"]}, status=(422,))
        assert "nothing for arm 'e'" in told["error"]["message"]

    run(test)


def test_memory_that_contexts_would_need_is_limited(monkeypatch):
    monkeypatch.setattr(context_spec, "MAX_CONTEXT_NUMBERS", 100)

    async def test(http, store):
        told = await call(http, "PUT", "/v1/problems/p", spec(SHARED), status=(422,))
        assert "would keep" in told["error"]["message"]

    run(test)


@pytest.mark.parametrize("stored", ["given", "encoded"])
def test_the_log_holds_the_context_or_its_encoded_form_alone(stored):
    async def test(http, store):
        await call(http, "PUT", "/v1/problems/p", spec({**SHARED, "stored": stored}))
        given = {"age": 31, "country": "NO"}
        made = await call(http, "POST", "/v1/problems/p/decisions", {"id": "d", "context": given})
        (asked,) = asked_events(store)
        assert asked.context.given == (given if stored == "given" else None)
        assert made.get("context") == asked.context.given
        assert asked.context.x == (1.0, np.floor(-0.38 * 1024 + 0.5) / 1024, 1.0, 0.0, 0.0)
        assert len(asked.context.weights) == 4
        again = await call(http, "POST", "/v1/problems/p/decisions", {"id": "d", "context": given})
        assert again["arms"] == made["arms"]
        other = {"id": "d", "context": {"age": 32}}
        await call(http, "POST", "/v1/problems/p/decisions", other, status=(409,))

    run(test)


def test_frames_are_events_that_every_worker_applies_alike(tmp_path):
    async def test(http, store):
        context = {
            "features": {"numeric": {"age": None}},
            "model": {"name": "linear", "parameters": {"shared": "arms"}},
        }
        await call(http, "PUT", "/v1/problems/p", spec(context, "c2_ucb"))
        ages = [20, 40] * 8
        bodies = [{"id": f"d{n}", "context": {"age": age}} for n, age in enumerate(ages)]
        await call(http, "POST", "/v1/problems/p/decisions/bulk", {"decisions": bodies})  # all at once
        for n in range(len(ages)):
            await call(http, "POST", f"/v1/problems/p/decisions/d{n}/feedback", {"outcome": [[1.0, 0.0], [0.5, 0.5]]})
        events = [read.entry.event for read in store.tail({})]
        (frame,) = [event for event in events if isinstance(event, Framed)]
        assert frame.version == 1
        center, scale = frame.places["age"]
        assert (center, scale) == (30.0, 30.0)  # three standard deviations of 20 and 40
        await call(http, "POST", "/v1/problems/p/decisions", {"id": "last", "context": {"age": 45}})
        last = asked_events(store)[-1].context
        assert (last.frame, last.x) == (1, (1.0, 0.5))
        assert verify(store).faults == []

    run(test, db=tmp_path / "log.db")


def test_a_snapshot_holds_everything_that_contexts_need(tmp_path):
    async def test(http, store):
        await call(http, "PUT", "/v1/problems/p", spec(SHARED))
        for n in range(6):
            await call(http, "POST", "/v1/problems/p/decisions", {"id": f"d{n}", "context": {"age": 10 * n}})
        for n in range(3):
            await call(http, "POST", f"/v1/problems/p/decisions/d{n}/feedback", {"outcome": [[1.0, 0.0], [0.0, 0.5]]})
        whole, position, _ = restore_ledger(store)
        store.save(take_snapshot(whole, position))
        restored, _, folded = restore_ledger(store)
        assert folded == 0
        (one,), (other,) = whole.problems.values(), restored.problems.values()
        np.testing.assert_array_equal(one.tally.regression.precision, other.tally.regression.precision)
        np.testing.assert_array_equal(one.learner.contexts.pending, other.learner.contexts.pending)
        assert one.learner.contexts.pending.any()
        assert verify(store).faults == []

    run(test, db=tmp_path / "log.db")


def test_an_explanation_has_the_numbers_of_the_agent():
    declared = sa.Features(numeric={"age": (0, 100)}, categorical={"country": ["NO", "SE", "other"]})
    context = sa.Context(declared, arms=list(Z.values()), model=sa.models.Linear(shared=True))
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2), context=context)
    agent = sa.Agent(problem, sa.contextual.c2_ucb(), arms=ARMS, items=["x", "y"])

    async def test(http, store):
        await call(http, "PUT", "/v1/problems/p", spec(SHARED, "c2_ucb"))
        for n in range(5):
            given = {"age": 15 * n, "country": "SE"}
            decision = agent.ask(id=f"d{n}", context=given)
            made = await call(http, "POST", "/v1/problems/p/decisions", {"id": f"d{n}", "context": given})
            assert made["arms"] == list(decision.arms)
            if n < 4:
                agent.tell(decision, [[1.0, 0.0], [0.5, 0.0]])
                told = {"outcome": [[1.0, 0.0], [0.5, 0.0]]}
                await call(http, "POST", f"/v1/problems/p/decisions/d{n}/feedback", told)
        before = agent.learner.pending.copy()
        for id in ("d4", "d1"):  # pending, and told
            wanted = agent.explain(id, most=2)
            found = await call(http, "GET", f"/v1/problems/p/decisions/{id}/explanation?most=2")
            for arm, told in zip(wanted.arms, found["arms"], strict=True):
                assert told["arm"] == arm.name
                assert told["estimate"] == arm.estimate.tolist()
                assert told["optimistic"] == arm.optimistic.tolist()
                assert (told["gain"], told["estimated_gain"]) == (arm.gain, arm.estimated_gain)
                assert [(one["feature"], one["effect"]) for one in told["features"]] == list(arm.features)
        np.testing.assert_array_equal(agent.learner.pending, before)
        page = (await http.get("/?problem=p&decision=d4")).text
        assert "Why these arms" in page
        assert "country=SE" in page
        await call(http, "GET", "/v1/problems/p/decisions/nobody/explanation", status=(404,))
        await call(http, "GET", "/v1/problems/p/decisions/d4/explanation?most=1000", status=(422,))

    run(test)


@pytest.mark.parametrize("stored", ["given", "encoded"])
def test_words_of_hashed_features_are_named_if_they_are_stored(stored):
    model = {"name": "linear", "parameters": {"shared": "arms"}}
    context = {"features": {"hashed": {"query": 8}}, "model": model, "stored": stored}

    async def test(http, store):
        body = {"arms": ARMS, "k": 2, "context": context, "settings": {"policy": {"name": "c2_ucb"}}}
        await call(http, "PUT", "/v1/problems/p", body)
        for n in range(3):
            given = {"query": {"red": 1, "shoes": 0.5}}
            await call(http, "POST", "/v1/problems/p/decisions", {"id": f"d{n}", "context": given})
            await call(http, "POST", f"/v1/problems/p/decisions/d{n}/feedback", {"outcome": [[1.0], [0.5]]})
        found = await call(http, "GET", "/v1/problems/p/decisions/d2/explanation")
        names = {one["feature"] for one in found["arms"][0]["features"]}
        assert ("query=red" in names) == (stored == "given")
        page = (await http.get("/?problem=p&decision=d2")).text
        assert ("query=red" in page) == (stored == "given")
        assert re.search(r'<td class="words"[^>]*>[^<]*query', page)  # a long list of features wraps

    run(test)


def test_policies_that_choose_whole_batches_are_not_explained():
    async def test(http, store):
        await call(http, "PUT", "/v1/problems/p", {"arms": ARMS, "k": 2, "settings": {"policy": {"name": "uniform"}}})
        await call(http, "POST", "/v1/problems/p/decisions", {"id": "d"})
        told = await call(http, "GET", "/v1/problems/p/decisions/d/explanation", status=(422,))
        assert "explain decisions of index policies" in told["error"]["message"]
        assert "No explanation" in (await http.get("/?problem=p&decision=d")).text

    run(test)


def test_arms_of_segments_are_shown_over_all_segments():
    async def test(http, store):
        await call(http, "PUT", "/v1/problems/p", spec({"features": FEATURES}, "kl_ucb"))
        for n, country in enumerate(["NO", "SE", "DK", "NO"]):
            body = {"id": f"d{n}", "context": {"country": country}}
            made = await call(http, "POST", "/v1/problems/p/decisions", body)
            assert made["segment"] == {"NO": 0, "SE": 1, "DK": 2}[country]
            assert made["arms"] == (["a", "b"] if n < 3 else ["c", "d"])  # every segment begins anew
        await call(http, "POST", "/v1/problems/p/decisions/d0/feedback", {"outcome": [[1.0, 0.0], [1.0, 0.0]]})
        rows = (await call(http, "GET", "/v1/problems/p/arms"))["arms"]
        assert [(row["pulls"], row["pending"]) for row in rows] == [(1, 2), (1, 2), (0, 1), (0, 1)]
        assert "Arms (4)" in (await http.get("/?problem=p")).text

    run(test)


def test_the_client_takes_arrays_and_explains():
    from superarm.service.client import RemoteAgent, to_plain

    calls = []

    class Transport:
        def call(self, method, path, body=None):
            calls.append((method, path, body))
            if path.endswith("most=5"):
                arm = {"arm": "a", "estimate": [0.5], "optimistic": [0.75], "gain": 0.75, "estimated_gain": 0.5}
                return {"id": "d", "problem": "p", "arms": [arm | {"features": [{"feature": "age", "effect": 0.25}]}]}
            return {"id": "d", "t": 1, "action": [0], "arms": ["a"], "version": 1, "state": "open"}

    agent = RemoteAgent(Transport(), "p")
    agent.ask(id="d", context=np.array([0.5, np.nan]), pairs={"a": np.zeros(2)})
    assert calls[0][2] == {"id": "d", "context": [0.5, None], "pairs": {"a": [0.0, 0.0]}}
    explained = agent.explain("d")
    assert explained.arms[0].features == (("age", 0.25),)
    assert "gain 0.7500" in str(explained)
    assert to_plain({"x": (np.float64(1.0), "y")}) == {"x": [1.0, "y"]}
