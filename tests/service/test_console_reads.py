"""Looking at the page changes nothing: the policy is not asked, and decides afterwards what it would have decided."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from superarm.service.application import application
from superarm.service.domain import intervals
from superarm.service.domain.problem import ProblemState
from superarm.service.storage.snapshot import encode_counters
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .running import DECISIONS

ARMS = [f"ad-{n}" for n in range(64)]
ITEMS = [f"i{n}" for n in range(32)]
"""2,048 entries: enough for KL-UCB to have the device for large problems, whose memory changes with every choice."""
SIZES = {"cts": (24, 4)}
"""The arms and items of policies that have no such device, and draw a number for each entry."""


def leaves(memory: Any) -> list[np.ndarray]:
    """All arrays of a policy's memory, copied."""
    if isinstance(memory, tuple):
        return [leaf for part in memory for leaf in leaves(part)]
    return [np.array(memory)]


def spec(policy: str) -> dict[str, Any]:
    settings, (n_arms, n_items) = {"policy": {"name": policy}, "window_s": None}, SIZES.get(policy, (64, 32))
    return {"arms": ARMS[:n_arms], "items": ITEMS[:n_items], "k": 3, "settings": settings, "seed": 7}


async def live(path: Path, policy: str, looks: bool) -> list[list[str]]:
    """The slates of decisions with some feedback, with or without someone who looks at the page."""
    store, rng = Sqlite(path), np.random.default_rng(1)
    app = application(store)
    slates = []
    async with serving(app) as http:
        (await http.put("/v1/problems/p", json=spec(policy))).raise_for_status()
        for n in range(34):  # after 22 every arm was tried
            made = (await http.post("/v1/problems/p/decisions", json={"id": f"d{n}"})).json()
            slates.append(made["arms"])
            if n % 4:
                outcome = rng.integers(0, 2, (3, SIZES.get(policy, (64, 32))[1])).tolist()
                (await http.post(f"{DECISIONS}/d{n}/feedback", json={"outcome": outcome})).raise_for_status()
            if looks and n > 20:
                await unchanged(http, app.service.coordinator.ledger.problems["default", "p"])
    return slates


async def unchanged(http: httpx.AsyncClient, learner: ProblemState) -> None:
    """Look at the page, and compare the policy's memory with what it was before."""
    learner.tally  # noqa: B018 - what is not counted yet is counted now
    before, counters = leaves(learner.learner.memory), encode_counters("", "", learner)
    assert (await http.get("/?problem=p")).status_code == 200
    assert encode_counters("", "", learner) == counters
    for mine, theirs in zip(leaves(learner.learner.memory), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("policy", ["kl_ucb", "bc_ucb", "cts"])
def test_looking_at_the_page_changes_no_later_slate_and_no_memory(tmp_path, policy):
    slates = asyncio.run(live(tmp_path / "unseen.db", policy, False))
    assert asyncio.run(live(tmp_path / "seen.db", policy, True)) == slates


def test_the_page_asks_no_policy_and_shows_the_last_slate(tmp_path, monkeypatch):
    async def look() -> None:
        app = application(Sqlite(tmp_path / "log.db"))
        async with serving(app) as http:
            (await http.put("/v1/problems/p", json=spec("kl_ucb"))).raise_for_status()
            assert "No decision yet" in (await http.get("/?problem=p")).text
            for n in range(30):
                made = (await http.post("/v1/problems/p/decisions", json={"id": f"d{n}"})).json()
            (await http.post(f"{DECISIONS}/d29/feedback", json={"outcome": [[1] * 32] * 3})).raise_for_status()
            monkeypatch.setattr(ProblemState, "choose", None)
            page = (await http.get("/?problem=p")).text
            section = page.partition('id="slate"')[2].partition("</section>")[0]
            assert all(arm in section for arm in made["arms"])

    asyncio.run(look())


def test_what_grows_with_the_arms_is_computed_off_the_event_loop(tmp_path, monkeypatch):
    threads = dict[str, threading.Thread]()

    def note(module: Any, name: str) -> None:
        run = getattr(module, name)

        def noted(*given: Any) -> Any:
            threads[name] = threading.current_thread()
            return run(*given)

        monkeypatch.setattr(module, name, noted)

    for name in ("mean_alone", "time_uniform", "known_means"):
        note(intervals, name)

    async def look() -> None:
        app = application(Sqlite(tmp_path / "log.db"))
        async with serving(app) as http:
            (await http.put("/v1/problems/p", json=spec("bc_ucb"))).raise_for_status()
            assert "ad-63" in (await http.get("/?problem=p&sort=number&page=3")).text
            assert (await http.get("/?problem=p")).status_code == 200

    asyncio.run(look())
    assert threads.keys() == {"mean_alone", "time_uniform", "known_means"}
    assert threading.main_thread() not in threads.values()


def test_the_last_slate_outlives_a_restart(tmp_path):
    async def shown(decide: bool) -> str:
        app = application(Sqlite(tmp_path / "log.db"))
        async with serving(app) as http:
            if decide:
                (await http.put("/v1/problems/p", json=spec("bc_ucb"))).raise_for_status()
                (await http.post("/v1/problems/p/decisions", json={"id": "d"})).raise_for_status()
            return (await http.get("/?problem=p")).text.partition('id="slate"')[2].partition("</section>")[0]

    first = asyncio.run(shown(True))
    assert "ad-" in first
    assert asyncio.run(shown(False)) == first
