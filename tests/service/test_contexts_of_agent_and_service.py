"""The same history with contexts gives an ``Agent`` and the service the same slates and the same state.

As ``test_agent_and_service``, for problems whose decisions have a context: every model, features of every kind, and
feedback, growth, policies and restarts in any order. The whole state of the learners is compared, bit for bit.
"""

import asyncio
import contextlib
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import superarm as sa
from superarm.context import frames
from superarm.core.tally import Tally
from superarm.service.domain.context_spec import ContextSpec
from superarm.service.domain.ledger import Ledger
from superarm.service.storage import snapshot
from superarm.testing import require_equal_memories

from .test_agent_and_service import ACTIONS, ARMS, ITEMS, PHASES, POLICIES, REWARDS, SIZES, SUPPORT, Pair, drive_both

FEATURES = {
    "numeric": {"age": [0, 100], "basket": None},
    "categorical": {"country": ["NO", "other"], "device": ["phone", "desk"]},
    "hashed": {"words": 2},
    "missing": ["age"],
}
RANGES_ALONE = {**FEATURES, "numeric": {"age": [0, 100]}}
Z = [[0.5, -1.0], [0.0, 1.0], [1.0, 0.25], [-0.5, 0.5], [0.75, 0.0], [0.125, -0.25]]
TOPICS = {"categorical": {"topic": ["sport", "news", "other"]}, "numeric": {"price": [0, 10]}}


def segments(**parameters):
    return {"name": "segments", "parameters": parameters}


def linear(**parameters):
    return {"name": "linear", "parameters": parameters}


def logistic(**parameters):
    return {"name": "logistic", "parameters": parameters}


TOPIC_ROWS = [{"topic": topic, "price": n} for n, topic in enumerate(["sport", "news", "art", "sport", "news", None])]
CASES = {
    "segments": ({"features": FEATURES, "model": segments()}, ["kl_ucb", "bc_ucb", "cts", "escb", "pooled_thompson"]),
    "pooled": ({"features": FEATURES, "model": segments(by=["country"], pooling=3.0)}, ["kl_ucb", "ucb_v"]),
    "per entry": ({"features": FEATURES, "model": linear()}, ["c2_ucb", "vac2_ucb", "comb_lin_ts"]),
    "per arm": ({"features": RANGES_ALONE, "model": linear(shared="arms"), "stored": "encoded"}, ["c2_ucb"]),
    "shared": ({"features": FEATURES, "model": linear(shared=True), "arms": Z}, ["vac2_ucb", "comb_lin_ts"]),
    "pairs": ({"features": {"d": 2}, "model": linear(shared="arms"), "pairs": 2}, ["vac2_ucb", "c2_ucb"]),
    "side by side": (
        {
            "features": FEATURES,
            "model": linear(shared=True),
            "arms": TOPIC_ROWS,
            "arm_features": TOPICS,
            "interactions": False,
        },
        ["c2_ucb"],
    ),
    "logistic": ({"features": FEATURES, "model": logistic(prior_mean=0.2)}, ["logistic_kl_ucb", "logistic_ts"]),
    "shared logistic": (
        {"features": RANGES_ALONE, "model": logistic(shared=True, kept=25), "arms": Z},
        ["logistic_kl_ucb", "logistic_ts"],
    ),
    "one-hot": ({"features": {}, "model": logistic()}, ["logistic_kl_ucb", "logistic_ts"]),
}
CONTEXTUAL = {
    "c2_ucb": ({"name": "c2_ucb"}, sa.contextual.c2_ucb()),
    "vac2_ucb": ({"name": "vac2_ucb", "parameters": {"rho": 0.1}}, sa.contextual.vac2_ucb(0.1)),
    "comb_lin_ts": ({"name": "comb_lin_ts"}, sa.contextual.comb_lin_ts()),
    "logistic_kl_ucb": (
        {"name": "logistic_kl_ucb", "parameters": {"ridge": 2**-6}},  # little is known before: refits come early
        sa.contextual.logistic_kl_ucb(ridge=2**-6),
    ),
    "logistic_ts": ({"name": "logistic_ts", "parameters": {"ridge": 2**-6}}, sa.contextual.logistic_ts(ridge=2**-6)),
}


def library_context(spec):
    """The context of the library, put together by hand."""
    models = {"segments": sa.models.Segments, "linear": sa.models.Linear, "logistic": sa.models.Logistic}
    model = models[spec["model"]["name"]](**spec["model"]["parameters"])
    more = {name: spec[name] for name in ("arms", "interactions", "pairs") if name in spec}
    if "arm_features" in spec:
        more["arm_features"] = sa.Features(**spec["arm_features"])
    return sa.Context(sa.Features(**spec["features"]), model=model, **more)


class ContextPair(Pair):
    """An agent and a problem of the service that are given contexts."""

    def __init__(self, spec, *args):
        super().__init__(*args)
        self.spec = spec

    def draw_context(self):
        rng = self.rng
        if self.spec["features"].get("d"):
            x, rows = rng.uniform(-1, 1, 2).tolist(), {arm: rng.uniform(-1, 1, 2).tolist() for arm in self.agent.arms}
            return {"context": x, "pairs": rows}, {"context": x, "pairs": list(rows.values())}
        if not self.spec["features"]:
            return {}, {}
        drawn = {"country": str(rng.choice(["NO", "SE", "FI"])), "device": str(rng.choice(["phone", "desk"]))}
        if rng.random() < 0.8:
            drawn |= {"age": int(rng.integers(0, 120)), "words": rng.choice(["a", "b", "c"], 2).tolist()}
        if "basket" in self.spec["features"]["numeric"] and rng.random() < 0.8:
            drawn["basket"] = float(np.round(rng.normal(50.0, 20.0), 2))
        return {"context": drawn}, {"context": drawn}

    def draw_arm_features(self):
        if "arm_features" in self.spec:
            return {"topic": "art", "price": 3.5}
        return self.rng.uniform(-1, 1, 2).tolist() if "arms" in self.spec else None

    def counts(self):
        own = self.agent.tally
        tally = Tally(own.support, 1, own.partial)
        for name in ("pulls", "total", "square", "missed"):
            if getattr(own, name).size:
                getattr(tally, name)[0] = getattr(own, name).sum(0)
        tally.refresh()
        return tally, self.agent.learner.pending.sum(0)

    async def warm_start(self):
        arms = [self.agent.arms[0]]
        values, _ = self.draw(arms, self.agent.problem.n_items)
        body = {"id": "past", "arms": arms, "outcomes": values}
        await self.call("POST", "/v1/problems/p/outcomes", body, status=(422,))

    async def compare(self):
        await super().compare()
        (live,) = self.service.ledger.problems.values()
        mine, theirs = self.agent.learner, live.learner
        require_equal_memories(mine.memory, theirs.memory, "in agent and service")
        np.testing.assert_array_equal(mine.contexts.pending, theirs.contexts.pending)
        np.testing.assert_array_equal(mine.contexts.clock, theirs.contexts.clock)
        assert mine.contexts.frames.moments.sums == theirs.contexts.frames.moments.sums
        assert mine.contexts.frames.frames == theirs.contexts.frames.frames


@pytest.mark.parametrize("tiny", [False, True], ids=["usual sizes", "tiny sizes"])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(
    st.sampled_from(sorted(CASES)),
    st.sampled_from(["k", "subsets", "partition", "knapsack", "batches"]),
    st.sampled_from(sorted(REWARDS)),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_the_same_contexts_give_the_same_slates_and_state(tiny, case, kind, reward, sparse, triggered, data):
    spec, names = CASES[case]
    triggered = triggered and case != "pairs"
    declared = spec | ({"arms": dict(zip(ARMS, spec["arms"], strict=True))} if "arms" in spec else {})
    touched = {arm: [ITEMS[i] for i in range(3) if row[i]] for arm, row in zip(ARMS, SUPPORT, strict=True)}
    policies = POLICIES | CONTEXTUAL
    policy = data.draw(st.sampled_from(names), label="policy")
    body = {
        "arms": ARMS,
        "items": ITEMS,
        "weights": [1.0, 2.0, 0.5],
        "reward": REWARDS[reward][0],
        "seed": 5,
        "triggered": triggered,
        "settings": {"policy": policies[policy][0], "window_s": None},
        "context": declared,
        **({"support": touched} if sparse else {}),
        **ACTIONS[kind][0],
    }
    support = csr_array(np.array(SUPPORT)) if sparse else None
    problem = sa.Problem(6, 3, REWARDS[reward][1], ACTIONS[kind][1], [1.0, 2.0, 0.5], support, library_context(spec))

    with contextlib.ExitStack() as patches:
        patches.enter_context(patch.object(ContextPair, "policies", names))
        patches.enter_context(patch.dict(POLICIES, CONTEXTUAL))
        patches.enter_context(patch.object(frames, "FIRST_FRAME", 3))  # histories are short
        if tiny:
            patches.enter_context(patch.object(snapshot, "Ledger", partial(Ledger, remembered=1)))
            for module, limits in SIZES.items():
                patches.enter_context(patch.multiple(module, **dict.fromkeys(limits, 0)))
        asyncio.run(drive_both(problem, body, policies[policy][1], partial(ContextPair, spec), data))


def test_the_declaration_of_a_context_has_every_parameter_of_the_library():
    assert set(ContextSpec.__struct_fields__) - {"stored", "items_from"} == set(sa.Context.__annotations__)
