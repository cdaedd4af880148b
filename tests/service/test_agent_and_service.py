"""The same history gives an ``Agent`` and the service the same slates and the same estimates.

Each example is a random history: decisions with eligible and pinned arms; feedback that is late, partial, repeated,
amended or about triggered arms; arms and items that come and go; other policies; past data. The service answers through
its whole application, without sockets. Randomised policies draw from the service's streams on both sides: those of an
agent are keyed by the round, those of the service by the decision's id.
"""

import asyncio
import contextlib
import hashlib
import json
from functools import partial
from unittest.mock import patch

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import superarm as sa
from superarm.agent.learner import fit_policy
from superarm.decisions import open_record, to_flat
from superarm.describe import describe
from superarm.service.application import application
from superarm.service.domain import history
from superarm.service.domain.ledger import Ledger
from superarm.service.domain.spec import PolicySpec, to_policy
from superarm.service.http import endpoint
from superarm.service.runtime import coordinator as running
from superarm.service.storage import snapshot
from superarm.service.storage.snapshot import encode_counters, restore_ledger, take_snapshot

from .memory_store import MemoryStore
from .replaying import fold

ARMS, ITEMS = list("abcdef"), ["x", "y", "z"]
SUPPORT = [[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
EDGES = [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)]
NODES = [(f"n{a}", f"n{b}") for a, b in EDGES]


def edges(pairs=NODES):
    return {"edges": dict(zip(ARMS, pairs, strict=True))}


GROUPS = dict(zip(ARMS, "ppqqqr", strict=True))
PAGE = {"name": "subsets", "parameters": {"k": 3}}


def brands(labels):
    groups = dict(zip(ARMS, labels, strict=True))
    return {"name": "partition", "parameters": {"groups": groups, "limits": dict.fromkeys(labels, 2)}}


ACTIONS = {
    "k": ({"k": 2}, sa.Subsets(2)),
    "subsets": ({"actions": {"name": "subsets", "parameters": {"k": 3}}}, sa.Subsets(3)),
    "batches": ({"batches": [["a", "b"], ["c", "d", "e"], ["f"]]}, sa.actions.Explicit([[0, 1], [2, 3, 4], [5]])),
    "explicit": (
        {"actions": {"name": "explicit", "parameters": {"batches": [["b", "a"], ["f", "d"], ["c", "e", "a"]]}}},
        sa.actions.Explicit([[1, 0], [5, 3], [2, 4, 0]]),
    ),
    "partition": (
        {
            "actions": {
                "name": "partition",
                "parameters": {"groups": GROUPS, "limits": {"q": 2, "p": 1, "r": 1}},
            }
        },
        sa.actions.PartitionMatroid([1, 1, 0, 0, 0, 2], [2, 1, 1]),
    ),
    "minimums": (
        {"actions": {"name": "partition", "parameters": {"groups": GROUPS, "k": 3, "minimums": {"r": 1}}}},
        sa.actions.PartitionMatroid("ppqqqr", {}, 3, {"r": 1}),
    ),
    "intersection": (
        {"actions": {"name": "intersection", "parameters": {"rules": [brands("ppqqqr"), brands("xyxyxy"), PAGE]}}},
        sa.actions.Intersection(
            [sa.actions.PartitionMatroid(one, dict.fromkeys(one, 2)) for one in ("ppqqqr", "xyxyxy")] + [sa.Subsets(3)]
        ),
    ),
    "laminar": (
        {
            "actions": {
                "name": "laminar",
                "parameters": {
                    "families": [{"arms": ["a", "b"], "limit": 1}, {"arms": ["b", "a", "c", "d", "e", "f"], "limit": 3}]
                },
            }
        },
        sa.actions.Laminar([([0, 1], 1), (range(6), 3)]),
    ),
    "slots": (
        {
            "actions": {
                "name": "slots",
                "parameters": {"slots": {"top": ["a", "b"], "side": ["b", "c", "d"], "foot": ["e", "f", "a"]}},
            }
        },
        sa.Slots([[0, 1], [1, 2, 3], [0, 4, 5]]),
    ),
    "knapsack": (
        {
            "actions": {
                "name": "knapsack",
                "parameters": {"costs": dict(zip(ARMS, [1, 2, 1.5, 2, 1, 3], strict=True)), "budget": 4},
            }
        },
        sa.Knapsack([1, 2, 1.5, 2, 1, 3], 4.0),
    ),
    "forests": ({"actions": {"name": "forests", "parameters": edges()}}, sa.actions.GraphicMatroid(4, EDGES)),
    "spanning_trees": (
        {"actions": {"name": "spanning_trees", "parameters": edges()}},
        sa.actions.SpanningTrees(4, EDGES),
    ),
    "matching": (
        {"actions": {"name": "matching", "parameters": edges([(f"l{n // 2}", f"r{n % 3}") for n in range(6)])}},
        sa.actions.Matching(3, 3, [(n // 2, n % 3) for n in range(6)]),
    ),
    "paths": (
        {"actions": {"name": "paths", "parameters": {**edges(), "source": "n0", "target": "n3"}}},
        sa.actions.Paths(4, EDGES, 0, 3),
    ),
}
REWARDS = {
    "coverage": ({"name": "coverage"}, sa.Coverage()),
    "linear": ({"name": "linear"}, sa.Linear()),
    "logistic": ({"name": "logistic", "parameters": {"c": 0.5}}, sa.Logistic(0.5)),
    "clipped": ({"name": "clipped_linear", "parameters": {"slope": 0.6}}, sa.rewards.ClippedLinear(0.6)),
    "conjunctive": ({"name": "conjunctive"}, sa.rewards.Conjunctive()),
}
POOLED = sa.policies.pooled_thompson()
POLICIES = {
    name: (spec, make)
    for name, spec, make in [
        ("kl_ucb", {"name": "kl_ucb"}, sa.kl_ucb()),
        ("bc_ucb", {"name": "bc_ucb", "parameters": {"rho": 0.5}}, sa.bc_ucb(0.5)),
        ("cucb", {"name": "cucb"}, sa.cucb()),
        ("ucb_v", {"name": "ucb_v"}, sa.policies.ucb_v()),
        ("kl_moss", {"name": "kl_moss"}, sa.kl_moss()),
        ("directional_kl_moss", {"name": "directional_kl_moss"}, sa.directional_kl_moss()),
        ("directional_kl_ucb", {"name": "directional_kl_ucb"}, sa.policies.directional_kl_ucb()),
        ("cts", {"name": "cts"}, sa.cts()),
        ("pooled_thompson", {"name": "pooled_thompson"}, POOLED),
        ("gaussian_cts", {"name": "gaussian_cts"}, sa.policies.gaussian_cts()),
        ("shared_cts", {"name": "shared_cts", "parameters": {"scale": 1.0}}, sa.policies.shared_cts(1.0)),
        ("epsilon_greedy", {"name": "epsilon_greedy", "parameters": {"epsilon": 0.5}}, sa.policies.epsilon_greedy(0.5)),
        ("uniform", {"name": "uniform"}, sa.uniform()),
        ("follow_the_leader", {"name": "follow_the_leader"}, sa.policies.follow_the_leader()),
        ("escb", {"name": "escb"}, sa.policies.escb()),
        ("escb_delta", {"name": "escb_delta"}, sa.policies.escb_delta()),
        ("escb_c", {"name": "escb_c", "parameters": {"rho": 2.0, "c": 0.5}}, sa.policies.escb_c(2.0, 0.5)),
        ("ols_ucb_c", {"name": "ols_ucb_c"}, sa.policies.ols_ucb_c()),
        ("cucb_t", {"name": "cucb_t"}, sa.policies.cucb_t()),
        ("bcucb_t", {"name": "bcucb_t"}, sa.policies.bcucb_t()),
        ("cascade_ucb1", {"name": "cascade_ucb1"}, sa.policies.cascade_ucb1()),
        ("cascade_kl_ucb", {"name": "cascade_kl_ucb"}, sa.policies.cascade_kl_ucb()),
        ("cascade_ucb_v", {"name": "cascade_ucb_v"}, sa.policies.cascade_ucb_v()),
        ("ts_cascade", {"name": "ts_cascade"}, sa.policies.ts_cascade()),
        ("window", {"name": "kl_ucb", "window": 8}, sa.policies.sliding_window(sa.kl_ucb(), 8, 8)),
        ("long window", {"name": "bc_ucb", "window": 40}, sa.policies.sliding_window(sa.bc_ucb(), 40)),
        ("window of cts", {"name": "cts", "window": 6}, sa.policies.sliding_window(sa.cts(), 6, 6)),
        ("discount", {"name": "kl_moss", "half_life": 3}, sa.policies.discounted(sa.kl_moss(), 3)),
        ("window of pooled", {"name": "pooled_thompson", "window": 6}, sa.policies.sliding_window(POOLED, 6, 6)),
        ("discount of pooled", {"name": "pooled_thompson", "half_life": 4}, sa.policies.discounted(POOLED, 4)),
        ("discount of cts", {"name": "cts", "half_life": 2}, sa.policies.discounted(sa.cts(), 2)),
    ]
}


# Without shrinking: a history is long, and every try runs the whole service.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


def make_problem(actions, reward, sparse):
    support = csr_array(np.array(SUPPORT)) if sparse else None
    return sa.Problem(6, 3, REWARDS[reward][1], ACTIONS[actions][1], [1.0, 2.0, 0.5], support)


def make_spec(actions, reward, sparse, policy, triggered):
    touched = {arm: [ITEMS[i] for i in range(3) if row[i]] for arm, row in zip(ARMS, SUPPORT, strict=True)}
    return {
        "arms": ARMS,
        "items": ITEMS,
        "weights": [1.0, 2.0, 0.5],
        "reward": REWARDS[reward][0],
        "seed": 5,
        "triggered": triggered,
        "settings": {"policy": POLICIES[policy][0], "window_s": None},
        **({"support": touched} if sparse else {}),
        **ACTIONS[actions][0],
    }


class ServiceStreamsAgent(sa.Agent):
    """An agent that draws from the streams of the service's decisions."""

    def _key(self, stream, id):
        digest = hashlib.sha256(f"seed/5/{stream}/{id}".encode()).digest()
        return np.array([int.from_bytes(digest[:8], "little")], np.uint64)

    def ask(self, eligible=None, id=None, pinned=None, **context):
        self._choosing = self._key("mind", id)
        return super().ask(eligible, id, pinned, **context)

    def tell(self, decision, *args, **more):
        self._rounding = self._key("coin", decision if isinstance(decision, str) else decision.id)
        return super().tell(decision, *args, **more)

    def untell(self, decision, *args, **more):
        self._rounding = self._key("coin", decision if isinstance(decision, str) else decision.id)
        super().untell(decision, *args, **more)


class Pair:
    """An agent and a problem of the service, driven by the same history."""

    policies = sorted(POLICIES)

    def __init__(self, http, agent, sparse, rng):
        self.http, self.agent, self.sparse, self.rng = http, agent, sparse, rng
        self.pending, self.told = {}, {}
        self.asked = self.grown = 0

    async def call(self, method, path, body=None, status=(200, 201, 204)):
        reply = await self.http.request(method, path, json=body)
        assert reply.status_code in status, (method, path, body, reply.status_code, reply.text)
        return reply.json() if reply.content else None

    def kind_of(self, spec):
        """Which of ``ACTIONS`` the slates of a problem are."""
        return next(kind for kind, (fields, _) in ACTIONS.items() if fields.items() <= spec.items())

    async def create(self, spec):
        await self.call("PUT", "/v1/problems/p", spec)

    def draw_context(self):
        """What is known of the user: as the service and as the agent take it."""
        return {}, {}

    async def ask(self, eligible, pinned):
        id = f"d{self.asked}"
        self.asked += 1
        given, context = self.draw_context()
        body = {"id": id} | given
        body |= ({} if eligible is None else {"eligible": eligible}) | ({"pinned": pinned} if pinned else {})
        try:
            wanted = self.agent.ask(eligible=eligible, id=id, pinned=pinned or None, **context)
        except sa.InvalidArgument:
            await self.call("POST", "/v1/problems/p/decisions", body, status=(422,))
            return
        found = await self.call("POST", "/v1/problems/p/decisions", body)
        assert found["arms"] == [*pinned, *(arm for arm in wanted.arms if arm not in pinned)]
        assert found["t"] == wanted.t
        self.pending[id] = (found["arms"], wanted, self.agent.problem.n_items)

    def draw(self, arms, n_items):
        """Random values for arms: rows as the service takes them, and which entries were seen."""
        support = self.agent.problem.support
        widths = [int(support.widths[self.agent.arms.index(arm)]) if self.sparse else n_items for arm in arms]
        values = [np.round(self.rng.random(width), 2).tolist() for width in widths]
        full = self.rng.random() < 0.5
        seen = [(full | (self.rng.random(width) < 0.7)).tolist() for width in widths]
        return values, seen

    def observed(self, arms, values, seen):
        """What an agent is told: rows by arm, flat if the problem is sparse."""
        if self.sparse:
            values, seen = ([x for row in rows for x in row] for rows in (values, seen))
        return {"outcome": values, "seen": np.array(seen, bool), "arms": arms}

    async def tell(self, id, others, in_parts):
        arms, decision, n_items = self.pending.pop(id)
        arms = [*arms, *others]
        values, seen = self.draw(arms, n_items)
        units = [
            {"arm": arm, "item": self.item(arm, n), **({"value": x} if s else {"seen": False})}
            for arm, row, marks in zip(arms, values, seen, strict=True)
            for n, (x, s) in enumerate(zip(row, marks, strict=True))
        ]
        path = f"/v1/problems/p/decisions/{id}/feedback"
        if in_parts:
            own = len(decision.action)
            half = self.rng.integers(0, len(units) + 1)
            mine = [unit for unit in units if unit["arm"] in arms[:own]]
            rest = [unit for unit in units if unit["arm"] not in arms[:own]]
            order = [mine[n] for n in self.rng.permutation(len(mine))]  # the last of the slate completes the decision
            for part in ([*rest, *order[:half]], order[half:]):
                await self.call("POST", path, {"feedback": part}) if part else None
        else:
            body = {"outcome": values, "seen": seen, **({"arms": arms} if others else {})}
            assert (await self.call("POST", path, body))["applied"]
            assert not (await self.call("POST", path, body))["applied"]
        told = self.observed(arms, values, seen)
        assert self.agent.tell(decision, **told)
        assert not self.agent.tell(decision, **told)
        self.told[id] = (arms, decision, n_items, told)

    def item(self, arm, n):
        if not self.sparse:
            return self.agent.items[n]
        support = self.agent.problem.support
        return self.agent.items[support.items[support.start[self.agent.arms.index(arm)] + n]]

    async def amend(self, id):
        arms, decision, n_items, told = self.told[id]
        values, seen = self.draw(arms, n_items)
        own = len(decision.action)
        rows = {"outcome": values[:own], "seen": seen[:own], "arms": arms[:own], "amend": True}
        await self.call("POST", f"/v1/problems/p/decisions/{id}/feedback", rows)
        again = self.observed(arms, values, seen)
        if len(arms) > own:  # of the others the first report stands: in the service they came before the end
            old = self.rows(told, arms, n_items)
            again = self.observed(arms, values[:own] + old[0][own:], seen[:own] + old[1][own:])
        self.agent.untell(decision, **told)
        self.agent.tell(decision, **again)
        self.told[id] = (arms, decision, n_items, again)

    def rows(self, told, arms, n_items):
        values, seen = told["outcome"], told["seen"].tolist()
        if not self.sparse:
            return values, seen
        widths = [int(self.agent.problem.support.widths[self.agent.arms.index(arm)]) for arm in arms]
        ends = np.cumsum(widths)
        return tuple(
            [part[end - width : end] for end, width in zip(ends, widths, strict=True)] for part in (values, seen)
        )

    def draw_arm_features(self):
        """The features of a new arm; None if arms have none."""
        return None

    async def add_arm(self, kind):
        name, body = f"new{self.grown}", {}
        actions = support = None
        features = self.draw_arm_features()
        body |= {} if features is None else {"features": {name: features}}
        if kind == "knapsack":
            costs = [*self.agent.problem.actions.costs.tolist(), 1.25]
            named = dict(zip([*self.agent.arms, name], costs, strict=True))
            body["actions"] = {"name": "knapsack", "parameters": {"costs": named, "budget": 4}}
            actions = sa.Knapsack(costs, 4.0)
        elif kind not in ("k", "subsets"):
            if kind == "laminar":
                with pytest.raises(sa.InvalidArgument, match="families of all arms"):
                    self.agent.add_arms([name])
            await self.call("POST", "/v1/problems/p/arms", {"add": [name]}, status=(422,))
            return
        if self.sparse:
            body["support"] = {name: ["z", "x"]}
            old = self.agent.problem.support
            rows = [old.items[old.start[j] : old.start[j + 1]] for j in range(old.n_arms)] + [np.array([0, 2])]
            support = csr_array((len(rows), 3))
            support = csr_array(np.array([[i in row for i in range(3)] for row in rows], float))
        self.agent.add_arms([name], actions, support, None if features is None else [features])
        await self.call("POST", "/v1/problems/p/arms", {"add": [name], **body})
        self.grown += 1

    async def retire_arm(self):
        left = [arm for arm, gone in zip(self.agent.arms, self.agent.learner.retired, strict=True) if not gone]
        if len(left) > 3:
            arm = left[self.rng.integers(len(left))]
            self.agent.retire_arms([arm])
            await self.call("POST", "/v1/problems/p/arms", {"retire": [arm]})

    async def restore_arm(self):
        gone = [arm for arm, out in zip(self.agent.arms, self.agent.learner.retired, strict=True) if out]
        if gone:
            arm = gone[self.rng.integers(len(gone))]
            self.agent.add_arms([arm])
            await self.call("POST", "/v1/problems/p/arms", {"add": [arm]})

    async def add_item(self):
        if self.sparse:
            await self.call("POST", "/v1/problems/p/items", {"add": ["more"]}, status=(422,))
            return
        name = f"item{self.grown}"
        self.grown += 1
        self.agent.add_items([name], [1.5])
        await self.call("POST", "/v1/problems/p/items", {"add": [name], "weights": [1.5]})

    async def retire_item(self):
        left = np.flatnonzero(self.agent.problem.weights)
        if len(left) > 1:
            name = self.agent.items[int(left[0])]
            self.agent.retire_items([name])
            await self.call("POST", "/v1/problems/p/items", {"retire": [name]})

    async def change_policy(self, name):
        spec, policy = POLICIES[name]
        body = {"policy": {"window": None, "half_life": None, **spec}, "window_s": None}
        try:
            fit_policy(policy, self.agent.problem)
        except sa.InvalidArgument:
            await self.call("PATCH", "/v1/problems/p/settings", body, status=(422,))
            return
        now = (await self.call("GET", "/v1/problems/p"))["settings"]["policy"]
        await self.call("PATCH", "/v1/problems/p/settings", body)
        if now != {"parameters": {}} | spec:
            self.agent.change_policy(policy)

    async def warm_start(self):
        arms = [self.agent.arms[j] for j in self.rng.integers(0, len(self.agent.arms), 3)]
        values, seen = self.draw(arms, self.agent.problem.n_items)
        outcomes = [[x if s else None for x, s in zip(*row, strict=True)] for row in zip(values, seen, strict=True)]
        body = {"id": f"past{self.asked}-{self.grown}-{len(self.told)}", "arms": arms, "outcomes": outcomes}
        self.grown += 1
        body["id"] += f"-{self.grown}"
        await self.call("POST", "/v1/problems/p/outcomes", body)
        numbers = [self.agent.arms.index(arm) for arm in arms]
        self.agent.warm_start(self.agent.problem.past(numbers, values, seen))

    def save_and_load(self):
        self.agent = ServiceStreamsAgent.from_state(json.loads(json.dumps(self.agent.to_state())))

    def counts(self):
        """The agent's tally and pending pulls, over all contexts."""
        return self.agent.tally, self.agent.learner.pending[0]

    async def compare(self):
        """Pulls, pending, means and variances of every arm are the same."""
        rows = (await self.call("GET", "/v1/problems/p/arms"))["arms"]
        agent, (tally, pending) = self.agent, self.counts()
        support, shape = agent.problem.support, tally.total.shape
        parts = (np.broadcast_to(tally.counts(tally.pulls), shape), tally.mean, tally.deviation**2)
        for j, row in enumerate(rows):
            own = np.array([j])
            seen, mean, variance = (to_flat(support, own, support.rows(part, own[None])[0]).tolist() for part in parts)
            assert (row["pulls"], row["pending"]) == (tally.pulls[0, j], pending[j]), row
            assert row["seen"] == seen
            assert row["mean"] == [x if n else None for x, n in zip(mean, seen, strict=True)]
            assert row["variance"] == [x if n else None for x, n in zip(variance, seen, strict=True)]
            if self.sparse:
                assert row["items"] == [self.item(agent.arms[j], n) for n in range(len(seen))]


KINDS = ["ask"] * 8 + ["tell"] * 7 + ["amend", "amend", "add_arm", "retire_arm", "add_item", "retire_item"]
KINDS += ["restore_arm", "policy", "policy", "warm", "save"]


async def drive(pair, kind, data, triggered):
    for _ in range(data.draw(st.integers(8, 30), label="steps")):
        step = data.draw(st.sampled_from(KINDS))
        if step == "ask" or (step == "tell" and not pair.pending) or (step == "amend" and not pair.told):
            arms = st.sampled_from(pair.agent.arms)
            eligible = data.draw(st.none() | st.lists(arms, min_size=3, unique=True))
            pinned = data.draw(st.just([]) | st.lists(arms, min_size=1, max_size=2, unique=True))
            await pair.ask(eligible, pinned)
        elif step == "tell":
            id = data.draw(st.sampled_from(sorted(pair.pending)))
            slate = pair.pending[id][0]
            others = [arm for arm in pair.agent.arms if arm not in slate]
            others = (
                data.draw(st.lists(st.sampled_from(others), max_size=2, unique=True)) if triggered and others else []
            )
            await pair.tell(id, others, data.draw(st.booleans()))
        elif step == "amend":
            await pair.amend(data.draw(st.sampled_from(sorted(pair.told))))
        elif step == "add_arm":
            await pair.add_arm(kind)
        elif step == "retire_arm":
            await pair.retire_arm()
        elif step == "restore_arm":
            await pair.restore_arm()
        elif step == "add_item":
            await pair.add_item()
        elif step == "retire_item":
            await pair.retire_item()
        elif step == "policy":
            await pair.change_policy(data.draw(st.sampled_from(pair.policies)))
        elif step == "warm":
            await pair.warm_start()
        else:
            pair.save_and_load()
        await pair.compare()


async def example(kind, reward, sparse, policy, triggered, tiny, data):
    problem, spec = make_problem(kind, reward, sparse), make_spec(kind, reward, sparse, policy, triggered)
    await drive_both(problem, spec, POLICIES[policy][1], Pair, data)


async def drive_both(problem, spec, policy, make_pair, data):
    """A random history of a problem of the library, and of the same problem of the service."""
    store = MemoryStore()
    service = application(store)
    seed = data.draw(st.integers(0, 2**32 - 1), label="outcomes")
    silence = data.draw(st.sampled_from([None, 0.0]), label="silence")
    spec = spec | {"settings": spec["settings"] | {"at_window_end": "ignore" if silence is None else silence}}
    transport = httpx.ASGITransport(service)
    coordinator = service.service.coordinator
    await coordinator.start()
    service.service.keyring.read()
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
            try:
                agent = ServiceStreamsAgent(problem, policy, arms=ARMS, items=ITEMS, silence=silence)
            except sa.InvalidArgument:
                assert (await http.put("/v1/problems/p", json=spec)).status_code == 422
                return
            pair = make_pair(http, agent, "support" in spec, np.random.default_rng(seed))
            pair.service = coordinator
            await pair.create(spec)
            await drive(pair, pair.kind_of(spec), data, spec["triggered"])
            check_log(store, coordinator)
            for _ in range(3):
                await pair.ask(None, [])
    finally:
        await coordinator.stop()


def check_log(store, coordinator):
    """The log gives the same counters: folded in its order, with all problem events first, and from a snapshot."""
    key = next(iter(coordinator.ledger.problems))
    live = state_of(coordinator.ledger, key)
    entries = [read.entry for read in store.tail({})]
    recall = partial(recall_of, entries)
    assert state_of(fold(entries, recall), key) == live
    ordered = sorted(entries, key=lambda entry: (entry.kind == "decision", entry.stream, entry.step))
    assert state_of(fold(ordered, recall), key) == live
    store.save(take_snapshot(coordinator.ledger, coordinator.position))
    restored, _, folded = restore_ledger(store)
    assert folded == 0
    assert state_of(restored, key) == live
    store.saved.clear()


def state_of(ledger, key):
    """The counters of a problem, and what pending decisions would tell."""
    contexts = ledger.problems[key].learner.contexts
    waiting = None if contexts is None or contexts.pending is None else contexts.pending.tolist()
    return encode_counters(*key, ledger.problems[key]), waiting


def recall_of(entries, key, before):
    from superarm.service.domain.decision import advance_record

    record = None
    for entry in entries:
        if entry.kind == "decision" and (entry.tenant, entry.stream) == key and entry.step < before:
            record = open_record(entry.event) if record is None else advance_record(record, entry.event)
    return record


SIZES = {running: ["THREAD_SIZE"], endpoint: ["LARGE_BYTES"]}
"""From which size on work runs in threads."""


@pytest.mark.parametrize("tiny", [False, True], ids=["usual sizes", "tiny sizes"])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(
    st.sampled_from(sorted(ACTIONS)),
    st.sampled_from(sorted(REWARDS)),
    st.booleans(),
    st.sampled_from(sorted(POLICIES)),
    st.booleans(),
    st.data(),
)
def test_the_same_history_gives_the_same_slates_and_estimates(tiny, kind, reward, sparse, policy, triggered, data):
    ledger = partial(Ledger, remembered=1) if tiny else Ledger
    sizes = {"MAX_STRETCHES": 4, "MAX_UNFLUSHED_REWARDS": 2} if tiny else {"MAX_STRETCHES": history.MAX_STRETCHES}
    with contextlib.ExitStack() as patches:
        patches.enter_context(patch.object(snapshot, "Ledger", ledger))
        patches.enter_context(patch.multiple(history, **sizes))
        if tiny:  # everything in threads
            for module, names in SIZES.items():
                patches.enter_context(patch.multiple(module, **dict.fromkeys(names, 0)))
        asyncio.run(example(kind, reward, sparse, policy, triggered, tiny, data))


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_can_be_named(name):
    spec, policy = POLICIES[name]
    assert describe(to_policy(PolicySpec(**spec))) == describe(policy)
