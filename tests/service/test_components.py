"""What problems can name: it can be extended, and a wrong place is explained."""

import asyncio
import inspect
import sys

import numpy as np
import pytest

import superarm as sa
from superarm.core.errors import SuperarmError
from superarm.service.application import application
from superarm.service.domain import components
from superarm.service.domain.components import POLICIES, parameters_of
from superarm.service.server import import_components
from superarm.service.storage.snapshot import restore_ledger, verify

from .inprocess import serving
from .memory_store import MemoryStore
from .running import DECISIONS, invoke

SPEC = {"arms": ["a", "b", "c"], "items": ["x", "y"], "k": 2, "settings": {"window_s": None}}


LINEAR = dict.fromkeys(["c2_ucb", "vac2_ucb", "c3_ucb", "comb_lin_ts"], "linear")
MODELS = LINEAR | dict.fromkeys(["logistic_kl_ucb", "logistic_ts"], "logistic")
"""The models of policies that need a context."""
MODULAR = {"comb_ucb1", "escb", "escb_c", "ols_ucb_c"}
"""Policies for modular rewards only."""
RANDOM = {"cts", "pooled_thompson", "gaussian_cts", "shared_cts", "ts_cascade", "epsilon_greedy", "uniform"}
RANDOM |= {"total_thompson"}
RANDOM |= {"comb_lin_ts", "logistic_ts", "shapes"}
WHOLE = {"escb", "escb_delta", "escb_c", "ols_ucb_c"}
LISTS = {"cascade_ucb1", "cascade_kl_ucb", "cascade_ucb_v", "ladder", "ts_cascade"}


def during(trial, store=None):
    async def run():
        async with serving(application(store or MemoryStore())) as http:
            return await trial(http)

    return asyncio.run(run())


def test_everything_that_can_be_named_can_be_created():
    wrappers = {"sliding_window", "discounted", "greedy_then_commit", "llr", "bg_cts"}  # settings of their own
    functions = {name for name in sa.policies.__all__ if inspect.isfunction(getattr(sa.policies, name))}
    public = functions - wrappers - {"policy"}

    async def trial(http) -> None:
        assert POLICIES.keys() == public | MODELS.keys()
        for name, make in POLICIES.items():
            defaults = {key: float(one.default) for key, one in parameters_of(make).items()}
            given = {key: x for key, x in defaults.items() if x < float("inf")}  # JSON has no infinity
            more = {"items": ["x"]} if "cascade" in name else {}
            more |= {"reward": {"name": "linear"}} if name in MODULAR else {}
            if name in MODELS:
                model = {"name": MODELS[name], "parameters": {"shared": "arms"}}
                more |= {"context": {"features": {}, "model": model}}
            more |= {"items": ["x"], "reward": {"name": "total"}} if name == "total_thompson" else {}
            more |= {"items": ["x"]} if name == "c3_ucb" else {}  # for lists
            more |= {"items": ["value"], "scores": {"low": 0, "high": 1}} if name == "shapes" else {}
            settings = {"window_s": None, "policy": {"name": name, "parameters": given}}
            reply = await http.put(f"/v1/problems/{name}", json={**SPEC, **more, "settings": settings})
            assert reply.status_code == 201, reply.text
            made = await http.post(f"/v1/problems/{name}/decisions", json={})
            assert made.status_code == 201, made.text

    during(trial)


def test_what_policies_say_of_themselves():
    """Which chances are not known, which slates cannot be cut, and which lists end at the first success."""
    made = {name: make() for name, make in POLICIES.items()}
    plain = {name: policy for name, policy in made.items() if not policy.counts_decisions}
    wrapped = {name: sa.policies.sliding_window(policy, 16) for name, policy in plain.items()}
    for policies in (made, wrapped):
        found = [{n for n, one in policies.items() if getattr(one, f)} for f in ("random", "whole_batches", "cascade")]
        assert found == [names & policies.keys() for names in (RANDOM, WHOLE, LISTS)]


MODULE = '''
import superarm as sa
from superarm.service.domain import components


def careful(rho: float = 10.0):
    """BC-UCB with a larger radius."""
    return sa.bc_ucb(rho)


components.add_policy("careful", careful)
components.add_reward("steep", lambda: sa.Logistic(2.0))
components.add_actions("even", lambda size=2: sa.Subsets(int(size)))
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the operator, imported from the working directory."""
    (tmp_path / "shop_components.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(components, "POLICIES", components.POLICIES)
    tables = components.POLICIES, components.REWARDS, components.ACTIONS
    before = [dict(known) for known in tables]
    yield "shop_components"
    sys.modules.pop("shop_components", None)
    for known, kept in zip(tables, before, strict=True):
        known.clear()
        known.update(kept)


def test_an_operators_own_components(module):
    import_components([module])
    store = MemoryStore()

    async def trial(http) -> None:
        policy = {"name": "careful", "parameters": {"rho": 4.0}}
        spec = {**SPEC, "reward": {"name": "steep"}, "settings": {"policy": policy, "window_s": None}}
        own_slates = {"name": "own", "parameters": {"kind": "even", "numbers": {"size": 2}}}
        del spec["k"]
        assert (await http.put("/v1/problems/p", json={**spec, "actions": own_slates})).status_code == 201
        unknown = {"name": "own", "parameters": {"kind": "odd"}}
        refused = await http.put("/v1/problems/q", json={**spec, "actions": unknown})
        assert "actions.parameters.kind: unknown 'odd'" in refused.json()["error"]["message"]
        own = sa.Agent(sa.Problem(3, 2, sa.Logistic(2.0), sa.Subsets(2)), sa.bc_ucb(4.0))
        for n in range(6):
            made = (await http.post("/v1/problems/p/decisions", json={"id": str(n)})).json()
            decision = own.ask()
            assert made["action"] == decision.action.tolist()
            outcome = [[0.25 * (n % 4), 1.0], [0.5, 0.0]]
            own.tell(decision, outcome)
            await http.post(f"/v1/problems/p/decisions/{n}/feedback", json={"outcome": outcome})

    during(trial, store)
    components.POLICIES.pop("careful")

    async def without(http) -> None:
        closed = await http.get("/v1/problems/p")
        assert (closed.status_code, "unknown 'careful'" in closed.text) == (503, True), closed.text

    during(without, store)


def test_mistakes_of_an_import_are_named(module, tmp_path):
    with pytest.raises(SuperarmError, match="--import nobody_has_this"):
        import_components(["nobody_has_this"])
    seen = invoke("serve", "--import", "nobody_has_this", "--db", str(tmp_path / "log.db"))
    assert (seen.exit_code, "--import nobody_has_this" in seen.output) == (2, True), seen.output
    with pytest.raises(sa.InvalidArgument, match="taken"):
        components.add_policy("kl_ucb", sa.kl_ucb)
    assert components.POLICIES["kl_ucb"] is sa.kl_ucb


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"policy": {"name": "bc_ucb"}}, 'policy: unknown here; it belongs into settings: {"settings"'),
        ({"explore": 0.1}, "explore: unknown here; it belongs into settings"),
        ({"settings": {"window": 5}}, "settings.window: unknown here; it belongs into settings.policy"),
        ({"settings": {"policy": "bc_ucb"}}, 'settings.policy: give an object, as in {"name"'),
        ({"settings": {"k": 3}}, "settings.k: unknown here; it belongs into the problem itself"),
    ],
)
def test_a_field_in_the_wrong_place_is_answered_with_the_right_one(body, said):
    async def trial(http) -> None:
        reply = await http.put("/v1/problems/q", json={"arms": ["a"], **body})
        assert reply.status_code == 422
        assert reply.json()["error"]["message"].startswith(said), reply.text

    during(trial)


@pytest.mark.parametrize("name", ["directional_kl_ucb", "directional_kl_moss"])
def test_directional_policies_decide_as_those_of_an_agent_and_outlive_a_restart(name):
    store, rng = MemoryStore(), np.random.default_rng(0)

    async def trial(http) -> None:
        spec = {**SPEC, "arms": list("abcdef"), "settings": {"policy": {"name": name}, "window_s": None}}
        assert (await http.put("/v1/problems/p", json=spec)).status_code == 201
        own = sa.Agent(sa.Problem(6, 2, sa.Coverage(), sa.Subsets(2)), getattr(sa.policies, name)())
        for n in range(12):
            made = (await http.post("/v1/problems/p/decisions", json={"id": str(n)})).json()
            decision = own.ask()
            assert made["action"] == decision.action.tolist()
            outcome = (rng.random((2, 2)) < 0.4).astype(float).tolist()
            own.tell(decision, outcome)
            assert (await http.post(f"{DECISIONS}/{n}/feedback", json={"outcome": outcome})).status_code == 200

    during(trial, store)
    assert restore_ledger(store)[2] == 0  # all of it from the snapshot
    store.check = lambda: "ok"
    assert verify(store).faults == []


@pytest.mark.parametrize("policy", ["cts", "gaussian_cts", "epsilon_greedy", "uniform"])
def test_random_policies_give_the_same_slates_for_the_same_seed(policy):
    async def slates(http, seed: int) -> list:
        spec = {**SPEC, "seed": seed, "settings": {"policy": {"name": policy}, "window_s": None}}
        await http.put("/v1/problems/p", json=spec)
        found = []
        for n in range(15):
            made = (await http.post("/v1/problems/p/decisions", json={"id": str(n)})).json()
            found.append(made["arms"])
            outcome = [[0.5, 1.0], [0.0, 0.25]]
            await http.post(f"/v1/problems/p/decisions/{n}/feedback", json={"outcome": outcome})
        return found

    one, two, *others = (during(lambda http, seed=seed: slates(http, seed)) for seed in (1, 1, 2, 3, 4))
    assert one == two
    assert any(one != other for other in others)
