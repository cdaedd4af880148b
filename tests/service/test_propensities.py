"""The chances that decisions store, against enumeration, and decisions chosen again from what they saw."""

import asyncio
import itertools
import math

import numpy as np
import pytest

import superarm as sa
from superarm.service.application import application
from superarm.service.domain.events import Restriction
from superarm.service.domain.slate import Drawn, SlateRequest, choose_slate, draw_slate, exact_chances
from superarm.service.storage.base import recall_decision

from .inprocess import serving
from .memory_store import MemoryStore
from .replaying import replay
from .running import Server, invoke
from .test_slates import make

ANY_SLATE = SlateRequest(Restriction(), [])


@pytest.mark.parametrize("pinned", [(), (2,)])
def test_closed_forms_are_a_distribution_over_all_slates(pinned):
    """Summed over all ordered slates, the products of propensities are 1, and those with an arm its inclusion."""
    learner = make(k=3, policy="uniform")
    request = SlateRequest(Restriction(excluded=(4,)), list(pinned))
    drawn = draw_slate(learner, "d", request)
    free = [int(j) for j in np.flatnonzero(drawn.free)]
    total, holding = 0.0, dict.fromkeys(free, 0.0)
    inclusion = {}
    for slate in itertools.permutations(free, 3 - len(pinned)):
        chances = exact_chances(learner, drawn._replace(action=(*pinned, *slate), queue=slate))
        product = math.prod(chances.propensities)
        total += product
        for arm, chance in zip(slate, chances.inclusion[len(pinned) :], strict=True):
            holding[arm] += product
            inclusion[arm] = chance
    assert total == pytest.approx(1.0)
    assert holding == pytest.approx(inclusion)
    assert len({round(chance, 9) for chance in inclusion.values()}) == 1


@pytest.mark.parametrize(("policy", "explore"), [("kl_ucb", 0.4), ("uniform", 0.3)])
def test_slates_are_drawn_with_the_chances_that_are_stored(policy, explore):
    """Of 800 slates; a share errs by more than four standard errors with probability below 1e-4."""
    learner = make(k=2, policy=policy, explore=explore)
    stored, counted, n = {}, np.zeros(6), 800
    for id in range(n):
        slate = choose_slate(learner, str(id), ANY_SLATE)
        assert slate.draws == 0
        counted[list(slate.action)] += 1.0
        stored |= dict(zip(slate.action, slate.inclusion, strict=True))
    for arm, chance in stored.items():
        assert counted[arm] / n == pytest.approx(chance, abs=4.0 * math.sqrt(chance * (1.0 - chance) / n) + 1e-9)
    assert sum(stored.values()) == pytest.approx(2.0)


def test_inclusion_of_thompson_sampling_is_counted():
    learner = make(k=2, policy="cts")
    assert choose_slate(learner, "d", ANY_SLATE)[1:] == (None, None, 0)
    learner.versions[-1] = type(learner.settings)(policy=learner.settings.policy, propensity_draws=400)
    slate = choose_slate(learner, "d", ANY_SLATE)
    fresh = [draw_slate(learner, f"other {n}", ANY_SLATE).action for n in range(400)]
    for arm, chance in zip(slate.action, slate.inclusion, strict=True):
        assert chance == pytest.approx(np.mean([arm in action for action in fresh]), abs=0.15)  # six standard errors
    assert (slate.propensities, slate.draws) == (None, 400)


@pytest.mark.parametrize("chance", [0.02, 0.5, 1.0])
def test_one_more_draw_gives_the_weight_of_geometric_resampling(chance):
    """The mean of (n + 1)/(B + 1) over a binomial B is (1 - (1 - e)^(n + 1))/e."""
    n = 40
    pmf = [math.comb(n, b) * chance**b * (1.0 - chance) ** (n - b) for b in range(n + 1)]
    mean = sum(p * (n + 1) / (b + 1) for b, p in enumerate(pmf))
    assert mean == pytest.approx((1.0 - (1.0 - chance) ** (n + 1)) / chance)


def test_all_arms_pinned_are_shown_without_chance():
    learner = make(k=2, policy="uniform", explore=0.5)
    assert choose_slate(learner, "d", SlateRequest(Restriction(), [1, 3])) == ((1, 3), (1.0, 1.0), None, 0)
    assert (
        exact_chances(make(explore=0.5), Drawn((1, 3), (1, 3), (), np.ones(6, bool), sa.Subsets(2))).inclusion is None
    )


async def busy_history(http, policy: str, explore: float) -> None:
    """Asks at the same time, with restrictions of all kinds, between feedback, new arms and other settings."""
    spec = {"arms": list("abcdef"), "items": ["x", "y"], "k": 3}
    settings = {"policy": {"name": policy}, "explore": explore, "window_s": None}
    assert (await http.put("/v1/problems/p", json={**spec, "settings": settings})).status_code == 201
    limits = [
        {},
        {"eligible": list("abcd")},
        {"excluded": ["a"], "k": 2},
        {"pinned": ["c"]},
        {"slots": [{"id": "top", "excluded": ["a"]}, {"id": "side"}]},
        {},
    ]
    for round_ in range(4):
        asks = [{"id": f"{round_}-{n}", **limit} for n, limit in enumerate(limits)]
        replies = await asyncio.gather(*(http.post("/v1/problems/p/decisions", json=ask) for ask in asks))
        for n, reply in enumerate(replies):
            assert reply.status_code == 201, reply.text
            rows = [[(n + round_ + j) % 3 / 2, j % 2] for j in range(len(reply.json()["arms"]))]
            if n != 3:
                await http.post(f"/v1/problems/p/decisions/{round_}-{n}/feedback", json={"outcome": rows})
        if round_ == 1:
            await http.post("/v1/problems/p/arms", json={"add": ["g"], "retire": ["b"]})
            await http.patch("/v1/problems/p/settings", json={"late": "learn"})


@pytest.mark.parametrize(
    ("policy", "explore"), [("kl_ucb", 0.0), ("kl_ucb", 0.3), ("cts", 0.0), ("epsilon_greedy", 0.0)]
)
def test_every_decision_can_be_chosen_again_from_what_it_saw(policy, explore):
    store = MemoryStore()

    async def scenario() -> None:
        async with serving(application(store)) as http:
            await busy_history(http, policy, explore)

    asyncio.run(scenario())
    found = list(replay(store, 8))
    assert len(found) == 24
    for one in found:
        asked = recall_decision(store, one.key).asked
        assert one.same, asked
        if asked.inclusion is not None:
            assert one.slate.inclusion == asked.inclusion
        elif policy in ("cts", "epsilon_greedy"):
            assert one.slate.draws == 8
            assert all(1 / 9 <= chance <= 1.0 for chance in one.slate.inclusion)
    assert sum(recall_decision(store, one.key).asked.seen[""] > 0 for one in found) == 24


# --- Decisions without chance are exported as such, not as propensity 1.


def test_a_deterministic_policy_has_no_propensities_in_the_export(tmp_path):
    with Server(str(tmp_path / "log.db")) as server:
        service = sa.connect(server.url)
        agent = service.create("ads", ["a", "b", "c"], ["x"], 2, settings={"policy": {"name": "bc_ucb"}})
        for n in range(3):
            agent.tell(agent.ask(id=f"d{n}"), [[1], [0]])
        service.close()
        done = invoke("export", "--db", server.db, str(tmp_path / "log.parquet"))
    assert done.exit_code == 0, done.stderr
    log = sa.offline.Log.read(tmp_path / "log.parquet")
    assert log.deterministic.all()
    from pyarrow import parquet

    table = parquet.read_table(tmp_path / "log.parquet").to_pydict()
    assert set(table["propensity_score"]) == {None}
    assert set(table["deterministic"]) == {True}
