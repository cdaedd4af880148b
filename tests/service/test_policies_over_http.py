"""Every policy of the catalogue over HTTP: it decides, learns, and gives the same slates again for the same seed."""

import asyncio

import pytest

from superarm.service.application import application
from superarm.service.domain.components import POLICIES

from .inprocess import serving
from .memory_store import MemoryStore
from .test_components import MODELS, MODULAR

N_DECISIONS = 5


def spec_of(policy: str, seed: int = 1, **more) -> dict:
    """A problem that suits a policy: lists have one item, cascades too; models of features need a context."""
    spec = {"arms": list("abcd"), "items": ["x", "y"], "k": 2, "seed": seed}
    if "cascade" in policy or policy == "c3_ucb":
        spec["items"] = ["x"]
    if policy == "total_thompson":
        spec |= {"items": ["x"], "reward": {"name": "total"}}
    if policy == "shapes":  # which is told parts of its two bins
        spec |= {"items": ["value"], "scores": {"low": 0, "high": 1, "bins": 2}}
    if policy == "spend_set":
        more["parameters"] = {"spend": 2.0}  # pays for both places
    if policy in MODULAR:
        spec["reward"] = {"name": "linear"}
    if policy.endswith("_t"):
        spec |= {"triggered": True}
    if policy in MODELS:
        features = {"numeric": {"age": [0, 100]}}
        spec["context"] = {"features": features, "model": {"name": MODELS[policy], "parameters": {"shared": "arms"}}}
    return {**spec, "settings": {"policy": {"name": policy, **more}, "window_s": None}}


def feedback_to(policy: str, arms: list[str], t: int, n_items: int) -> dict:
    """What is told of a slate: of a cascade only the arms up to the click, of triggered arms one outside of it."""
    if "cascade" in policy:
        return {"feedback": [{"arm": arms[0], "value": 1.0}, {"arm": arms[1], "seen": False}]}
    rows = [[(t + j + i) % 3 / 2 for i in range(n_items)] for j in range(len(arms))]
    if policy.endswith("_t"):
        other = next(arm for arm in "abcd" if arm not in arms)
        return {"arms": [*arms, other], "outcome": [*rows, [1.0, 0.0]]}
    return {"outcome": rows}


async def play(http, spec: dict, policy: str, first: int = 0, n: int = N_DECISIONS) -> list[list[str]]:
    """The slates of some decisions, each told before the next."""
    slates = []
    for t in range(first, first + n):
        body = {"id": f"d{t}"} | ({"context": {"age": 7 * t}} if "context" in spec else {})
        made = await http.post("/v1/problems/p/decisions", json=body)
        assert made.status_code == 201, made.text
        slates.append(made.json()["arms"])
        told = await http.post(
            f"/v1/problems/p/decisions/d{t}/feedback",
            json=feedback_to(policy, slates[-1], t, 2 if "scores" in spec else len(spec["items"])),
        )
        assert (told.status_code, told.json()["applied"]) == (200, True), told.text
    return slates


def live(store: MemoryStore, spec: dict, policy: str, first: int, n: int) -> list[list[str]]:
    """A service that starts with what the store holds, decides and stops."""

    async def run() -> list[list[str]]:
        async with serving(application(store)) as http:
            if first == 0:
                made = await http.put("/v1/problems/p", json=spec)
                assert made.status_code == 201, made.text
            return await play(http, spec, policy, first, n)

    return asyncio.run(run())


CASES = [(name, {}) for name in POLICIES]
CASES += [
    (name, more)
    for name in ("kl_ucb", "cts", "cascade_kl_ucb", "vac2_ucb")
    for more in ({"window": 3}, {"half_life": 2})
]


@pytest.mark.parametrize(("policy", "more"), CASES, ids=lambda one: "-".join(one) if isinstance(one, dict) else one)
def test_a_policy_decides_learns_and_repeats_itself(policy, more):
    """The second service is stopped and started between its decisions; the slates are those of the first."""
    spec = spec_of(policy, **more)
    slates = live(MemoryStore(), spec, policy, 0, 2 * N_DECISIONS)
    assert all(len(slate) == len(set(slate)) == 2 for slate in slates)
    store = MemoryStore()
    again = [live(store, spec, policy, first, N_DECISIONS) for first in (0, N_DECISIONS)]
    assert [slate for part in again for slate in part] == slates


def test_another_seed_gives_other_slates():
    """Of a policy that draws at random, and of no other; 1 of 12 ordered slates is right by chance."""
    for policy, make in POLICIES.items():
        one, *others = (live(MemoryStore(), spec_of(policy, seed), policy, 0, 2 * N_DECISIONS) for seed in (1, 2, 3))
        assert any(one != other for other in others) == make().random, policy


LINEAR = {"features": {"numeric": {"age": [0, 100]}}, "model": {"name": "linear"}}


@pytest.mark.parametrize(
    ("more", "policy"),
    [
        ({}, "kl_moss"),
        ({"items": ["x", "y"]}, "pooled_thompson"),
        ({"settings": {"policy": {"baseline": ["b", "c"]}}}, "pooled_thompson"),
        ({"context": LINEAR}, "vac2_ucb"),
        ({"items": "learn"}, "pooled_thompson"),
        ({"settings": {"policy": {"half_life": 50}}}, "kl_moss"),
        ({"settings": {"policy": {"name": "kl_ucb"}}}, "kl_ucb"),
    ],
)
def test_a_problem_without_a_policy_takes_the_recommended_one_and_says_why(more, policy):
    async def run():
        async with serving(application(MemoryStore())) as http:
            body = {"arms": list("abcd"), "k": 2, **more}
            made = await http.put("/v1/problems/p", json=body)
            again = await http.put("/v1/problems/p", json=body)
            assert (made.status_code, again.status_code) == (201, 200), made.text
            assert made.json() == again.json()
            assert made.json()["settings"]["policy"]["name"] == policy
            assert ("reason" in made.json()) == (policy != "kl_ucb")

    asyncio.run(run())


def test_a_policy_starts_from_a_list_of_arms_by_name():
    body = {"arms": [f"p{n}" for n in range(30)], "k": 3, "reward": {"name": "linear"}}
    wanted = ["p7", "p20", "p3"]

    async def run():
        async with serving(application(MemoryStore())) as http:
            for wrong in ({"baseline": ["p7", "strange"]}, {"name": "kl_ucb", "baseline": wanted}):
                refused = await http.put("/v1/problems/p", json=body | {"settings": {"policy": wrong}})
                assert refused.status_code == 422
                assert "settings.policy.baseline" in refused.text
            made = await http.put("/v1/problems/p", json=body | {"settings": {"policy": {"baseline": wanted}}})
            assert made.json()["settings"]["policy"]["baseline"] == wanted
            shown = [(await http.post("/v1/problems/p/decisions", json={})).json()["arms"] for _ in range(10)]
            assert all(len({*slate} & {*wanted}) >= 2 for slate in shown)  # at most a third is replaced
            renewed = {"policy": {"baseline": ["p9", "p1", "p4"]}}  # the list of the next day: what was learnt stays
            before = (await http.get("/v1/problems/p/arms")).json()
            assert (await http.patch("/v1/problems/p/settings", json=renewed)).status_code == 200
            assert (await http.get("/v1/problems/p/arms")).json()["arms"] == before["arms"]
            shown = [(await http.post("/v1/problems/p/decisions", json={})).json()["arms"] for _ in range(10)]
            assert all(len({*slate} & {"p9", "p1", "p4"}) >= 2 for slate in shown)
            changed = await http.patch("/v1/problems/p/settings", json={"policy": {"baseline": None}})
            assert "baseline" not in changed.json()["settings"]["policy"]
            assert (await http.put("/v1/problems/q", json=body)).json()["settings"]["policy"]["name"] == "kl_moss"
            refused = await http.patch("/v1/problems/q/settings", json=renewed)  # the list comes when it has begun
            assert 'give "name": "pooled_thompson" beside the list' in refused.json()["error"]["message"]
            renewed["policy"]["name"] = "pooled_thompson"
            assert (await http.patch("/v1/problems/q/settings", json=renewed)).status_code == 200

    asyncio.run(run())
