"""Decisions with contexts that arrive together are those of requests that come one by one, bit for bit."""

import asyncio
from unittest.mock import patch

import numpy as np
import pytest

from superarm.service.application import application
from superarm.service.domain.decision_contexts import DecisionContexts
from superarm.service.domain.events import Asked
from superarm.service.runtime.batcher import QueuedAsk

from .inprocess import serving
from .memory_store import MemoryStore
from .test_agent_and_service import ARMS, ITEMS, POLICIES, SUPPORT
from .test_contexts_of_agent_and_service import CASES, CONTEXTUAL

WRONG = {"context": {"contry": "NO"}}
PLAYED = [(name, policy) for name, (_, policies) in CASES.items() for policy in policies]


def without_events(spec):
    """The case without standardised features and refits, whose events come at times that are not the test's."""
    features = {**spec["features"], "numeric": {"age": [0, 100]}} if "numeric" in spec["features"] else spec["features"]
    model = spec["model"]
    if model["name"] == "logistic":
        model = {**model, "parameters": {**model["parameters"], "kept": 0}}
    return {**spec, "features": features, "model": model}


def draw_request(rng, spec, n):
    """A request in some context; one of eight is wrong, and one restricts the slate."""
    body = {"id": f"d{n}", "unit": f"u{n % 3}"} | ({"eligible": ARMS[1:]} if n % 8 == 5 else {})
    if n % 8 == 3:
        return body | WRONG
    if spec["features"].get("d"):
        rows = {arm: rng.uniform(-1, 1, 2).tolist() for arm in ARMS[: 1 + n % 6]}
        return body | {"context": rng.uniform(-1, 1, 2).tolist(), "pairs": rows}
    if not spec["features"]:
        return body | {"context": {}}
    drawn = {"country": str(rng.choice(["NO", "SE"])), "device": str(rng.choice(["phone", "desk"]))}
    return body | {"context": drawn | {"age": int(rng.integers(0, 100)), "words": str(rng.choice(["a", "b"]))}}


async def play(spec, policy, sparse):
    """Bursts of requests, with feedback in between: the events, and the state at the end."""
    rng, store = np.random.default_rng(0), MemoryStore()
    declared = spec | ({"arms": dict(zip(ARMS, spec["arms"], strict=True))} if "arms" in spec else {})
    touched = {arm: [ITEMS[i] for i in range(3) if row[i]] for arm, row in zip(ARMS, SUPPORT, strict=True)}
    body = {"arms": ARMS, "items": ITEMS, "k": 2, "seed": 5, "context": declared, "settings": {"policy": policy}}
    body |= {"reward": {"name": "linear"}}  # which all policies take
    app = application(store)
    async with serving(app) as http:
        made = await http.put("/v1/problems/p", json=body | ({"support": touched} if sparse else {}))
        assert made.status_code == 201, made.text
        for burst in range(3):
            requests = [draw_request(rng, spec, 12 * burst + n) for n in range(12)]
            answers = await asyncio.gather(*(http.post("/v1/problems/p/decisions", json=one) for one in requests))
            for n, answer in enumerate(answers):
                assert answer.status_code == (422 if "contry" in str(requests[n]) else 201), answer.text
                if answer.status_code == 201 and rng.random() < 0.7:
                    told = [{"arm": arm, "value": float(rng.integers(0, 2))} for arm in answer.json()["arms"]]
                    path = f"/v1/decisions/{requests[n]['id']}/feedback"
                    assert (await http.post(path, json={"feedback": told})).status_code == 200
        (live,) = app.service.coordinator.ledger.problems.values()
        state = [*live.tally, live.learner.contexts.pending, live.learner.pending, live.learner.contexts.clock]
        assert not live.reserved
        assert not live.contexts.reserved
    events = [read.entry.event for read in store.tail({}) if isinstance(read.entry.event, Asked)]
    fields = [name for name in Asked.__struct_fields__ if name not in ("at", "seen")]  # these depend on the clock
    return [[getattr(event, name) for name in fields] for event in events], state


@pytest.mark.parametrize(("case", "policy"), PLAYED)
def test_decisions_in_contexts_that_are_chosen_together_are_those_of_one_by_one(case, policy):
    spec, named = without_events(CASES[case][0]), (POLICIES | CONTEXTUAL)[policy][0]
    sizes, sparse = [], PLAYED.index((case, policy)) % 2 == 1
    choose = DecisionContexts.choose_each

    def watch(self, t, keys, *more):
        sizes.append(len(keys))
        return choose(self, t, keys, *more)

    with patch.object(DecisionContexts, "choose_each", watch):
        events, state = asyncio.run(play(spec, named, sparse))
        assert max(sizes) > 3
        with patch.object(QueuedAsk, "plain", False):
            expected, end = asyncio.run(play(spec, named, sparse))
    assert events == expected
    for own, other in zip(state, end, strict=True):
        np.testing.assert_array_equal(own, other)
