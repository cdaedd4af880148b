"""A person with contexts is erased: sums, kept observations and means of features are those of a log without them."""

import asyncio
import random

import numpy as np
import pytest

from superarm.context import frames
from superarm.service.application import application
from superarm.service.domain.events import Fitted
from superarm.service.http.service import ServiceLimits
from superarm.service.storage.snapshot import compact, restore_ledger, verify
from superarm.service.storage.sqlite import Sqlite
from superarm.testing import require_equal_memories

from .inprocess import serving
from .test_erasure import ASK, counters_without

MODELS = {
    "segments": ({"name": "segments", "parameters": {"pooling": 2.0}}, {"name": "bc_ucb"}),
    "linear": ({"name": "linear", "parameters": {"shared": "arms"}}, {"name": "vac2_ucb"}),
    "logistic": ({"name": "logistic"}, {"name": "logistic_kl_ucb", "parameters": {"ridge": 2**-6}}),
}
FEATURES = {"numeric": {"age": None}, "categorical": {"country": ["NO", "other"]}, "hashed": {"words": 2}}


async def use(http, model, policy, n=60) -> set[str]:
    """Decisions of four units with contexts; the ids of those of unit 1, whose words are a secret."""
    draw, ids = random.Random(1), set()
    spec = {"arms": ["a", "b", "c", "d"], "items": ["x", "y"], "k": 2, "settings": {"policy": policy}, "seed": 1}
    spec |= {"context": {"features": FEATURES, "model": model}}
    (await http.put("/v1/problems/p", json=spec)).raise_for_status()
    for i in range(n):
        unit, id = f"unit-{draw.randrange(4)}", f"d{i}"
        context = {"age": draw.gauss(40, 9), "country": draw.choice(["NO", "SE"]), "words": "known"}
        if unit == "unit-1":
            ids.add(id)
            context["words"] = "a-secret-word"
        slate = (await http.post(ASK, json={"id": id, "unit": unit, "context": context})).json()["arms"]
        if draw.random() < 0.8:
            rows = [[float(draw.random() < 0.3) for _ in "xy"] for _ in slate]
            (await http.post(f"{ASK}/{id}/feedback", json={"outcome": rows})).raise_for_status()
    return ids


@pytest.mark.parametrize("kind", MODELS)
def test_the_state_is_that_of_a_log_without_the_person(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(frames, "FIRST_FRAME", 6)

    async def live() -> set[str]:
        store = Sqlite(tmp_path / "log.db")
        async with serving(application(store, ServiceLimits(snapshot_every=25))) as http:
            ids = await use(http, *MODELS[kind])
            erased = (await http.post("/v1/problems/p/erasures", json={"unit": "unit-1"})).json()
            assert erased["erased"] == len(ids) > 5
            return ids

    ids = asyncio.run(live())
    reader = Sqlite(tmp_path / "log.db", lock=False)
    assert verify(reader).faults == []
    assert any(isinstance(read.entry.event, Fitted) for read in reader.tail({})) == (kind == "logistic")
    want, have = counters_without(reader, ids)[0].learner, restore_ledger(reader)[0].problems["default", "p"].learner
    require_equal_memories(want.memory, have.memory, "as without the person")
    np.testing.assert_array_equal(want.contexts.pending, have.contexts.pending)
    assert want.contexts.frames.moments.sums == have.contexts.frames.moments.sums
    assert want.contexts.frames.contexts == have.contexts.frames.contexts
    if kind == "logistic":
        for name in ("precision", "response", "information", "rows"):
            own, other = (np.sort(getattr(one.memory.logits.kept[0], name), axis=0) for one in (want, have))
            np.testing.assert_array_equal(own, other)
    reader.close()
    store = Sqlite(tmp_path / "log.db", lock=False)
    assert compact(store, 0) == len(ids)
    assert verify(store).faults == []
    store.close()
    assert b"a-secret-word" not in (tmp_path / "log.db").read_bytes()
