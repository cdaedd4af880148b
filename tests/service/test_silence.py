"""With ``provisional``, what is handed out counts as ``at_window_end`` at once, and feedback replaces it exactly."""

import asyncio
import json

import numpy as np
import pytest

from superarm.service.application import application
from superarm.service.domain.decision import advance_record, counted_rows, expiry, open_record, pending_arms
from superarm.service.domain.events import Asked, decode
from superarm.service.domain.spec import Settings

from .inprocess import serving
from .memory_store import MemoryStore
from .test_partial import ask, during, tell


def test_what_is_new_counts_from_the_start_and_changes_nothing_at_the_end_of_the_window():
    settings = Settings(at_window_end=0.5)
    old = {"type": "asked", "at": 1, "problem": "p", "id": "d", "body": "", "t": 1}
    record = open_record(decode(json.dumps(old | {"action": [2, 0], "n_items": 2, "version": 1})))
    assert (counted_rows(record), pending_arms(record)) == ({}, (2, 0))  # of a log of an earlier version
    assert settings.silence is None
    assert expiry(record, settings, 5).fill == 0.5
    record = open_record(Asked(1, "p", "d", "", 1, (2, 0), 2, 1, items=(1,), silence=0.0))
    zeros = {2: (-1.0, 0.0), 0: (-1.0, 0.0)}
    assert (counted_rows(record), pending_arms(record)) == (zeros, ())
    assert counted_rows(advance_record(record, expiry(record, settings, 5))) == zeros
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
