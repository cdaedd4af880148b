"""Slates around pinned arms and in slots with exclusions, against the agent and against brute force; propensities."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.actions.base import joinable_after
from superarm.core.tally import Feedback
from superarm.service.domain import slate as slates
from superarm.service.domain.events import Created
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import PolicySpec, ProblemSpec, RewardSpec, Settings
from superarm.service.errors import RequestError
from superarm.service.runtime.ask import plan_decision
from superarm.service.schemas import AskBody, SlotBody

NAMES = list("abcdef")


def make(k=2, policy="kl_ucb", reward="coverage", explore=0.0, n=6, seed=0, pulls=3):
    """A problem of the service that has seen ``pulls`` outcomes of every arm."""
    spec = ProblemSpec(
        arms=NAMES[:n],
        items=["x", "y", "z"],
        k=k,
        reward=RewardSpec(reward),
        settings=Settings(policy=PolicySpec(policy), explore=explore),
    )
    learner = ProblemState(Created(0, spec, "key"))
    rng = np.random.default_rng(seed)
    for _ in range(pulls):
        outcome = (rng.random((1, n, 3)) < rng.random((1, n, 3))).astype(float)
        learner.learner.apply(Feedback(0, np.arange(n)[None], outcome), learner.key("coin", ""))
    learner.learner.rounds = pulls
    return learner


def agent_of(learner, id, actions=None):
    """An agent with the same tally that draws the random numbers of decision ``id``."""
    problem = learner.problem if actions is None else learner.problem.changed(actions=actions)
    agent = sa.Agent(problem, learner.chooser.policy, arms=learner.arms.all)
    agent.learner.restore(learner.learner.memory.to_arrays(), 0)
    agent._choosing = learner.key("mind", id)
    return agent


def ask(learner, id="d", **asked_for):
    slots = [SlotBody(name, excluded) for name, excluded in asked_for.pop("slots", {}).items()] or None
    return plan_decision(learner, "p", id, AskBody(id=id, slots=slots, **asked_for), "", 0)


def names(action):
    return [NAMES[j] for j in action]


def test_the_rest_is_chosen_around_pinned_arms():
    """Arms a and b cover the same items; with a pinned, c covers what is left."""
    settings = Settings(policy=PolicySpec("kl_ucb"))
    spec = ProblemSpec(arms=["a", "b", "c"], items=["x", "y"], k=2, settings=settings)
    learner = ProblemState(Created(0, spec, "key"))
    outcome = np.array([[[1, 0], [1, 0], [0, 0.4]]])
    for _ in range(400):
        learner.learner.apply(Feedback(0, np.arange(3)[None], outcome), learner.key("coin", ""))
    assert names(ask(learner, pinned=["a"]).action) == ["a", "c"]


POLICIES = [
    "kl_ucb",
    "bc_ucb",
    "cucb",
    "ucb_v",
    "kl_moss",
    "directional_kl_moss",
    "cts",
    "gaussian_cts",
    "epsilon_greedy",
    "uniform",
]


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(POLICIES),
    st.sampled_from(["coverage", "linear"]),
    st.integers(2, 4),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
    st.lists(st.sampled_from(NAMES), min_size=2, unique=True) | st.none(),
    st.integers(0, 3),
)
def test_pinned_slates_are_the_agents(policy, reward, k, pinned, eligible, pulls):
    learner = make(k, policy, reward, seed=k, pulls=pulls)
    agent = agent_of(learner, "d")
    if eligible is not None and not set(pinned) <= set(eligible):
        with pytest.raises(RequestError, match="not eligible"):
            ask(learner, pinned=pinned, eligible=eligible)
        return
    found = names(ask(learner, pinned=pinned, eligible=eligible).action)
    wanted = list(agent.ask(eligible=eligible, pinned=pinned).arms)
    if len(pinned) == k:
        assert found == pinned
    else:
        assert found == pinned + [arm for arm in wanted if arm not in pinned]


@pytest.mark.parametrize("asked_for", [{"pinned": ["a"], "eligible": ["b", "c"]}, {"pinned": ["a"], "excluded": ["a"]}])
def test_a_pinned_arm_that_may_not_be_shown_is_refused(asked_for):
    """A pinned arm outside of `eligible` was accepted."""
    with pytest.raises(RequestError) as caught:
        ask(make(), **asked_for)
    assert caught.value.status == 422


def seatings(excluded, arms):
    """Every way to fill the slots, {slot: arm}: by trying all of them."""
    slots = list(excluded)
    for choice in itertools.product([*arms, None], repeat=len(slots)):
        taken = [arm for arm in choice if arm is not None]
        fits = all(arm is None or arm not in excluded[slot] for slot, arm in zip(slots, choice, strict=True))
        if taken and len(set(taken)) == len(taken) and fits:
            yield dict(zip(slots, choice, strict=True))


SLOTS = st.dictionaries(
    st.sampled_from(["top", "side", "foot"]), st.lists(st.sampled_from(NAMES), max_size=5, unique=True), min_size=1
)


@settings(max_examples=150, deadline=None)
@given(
    SLOTS,
    st.sampled_from(["kl_ucb", "bc_ucb", "cts", "uniform"]),
    st.sampled_from(["coverage", "linear"]),
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
    st.sampled_from([0.0, 0.5]),
    st.integers(0, 3),
)
def test_slots_are_filled_whenever_they_can_be(excluded, policy, reward, eligible, pinned, explore, pulls):
    """A request that some seating satisfies is never refused, and no seating fills more slots."""
    learner = make(3, policy, reward, explore, pulls=pulls)
    ways = [way for way in seatings(excluded, eligible) if set(pinned) <= set(way.values())]
    asked_for = {"slots": excluded, "eligible": eligible, "pinned": pinned}
    if not ways:
        with pytest.raises(RequestError) as caught:
            ask(learner, **asked_for)
        assert caught.value.status == 422
        return
    asked = ask(learner, **asked_for)
    most = max(sum(arm is not None for arm in way.values()) for way in ways)
    assert len(asked.action) == len(set(asked.action)) == len(set(asked.slots)) == most
    assert names(asked.action)[: len(pinned)] == pinned
    for arm, slot in zip(names(asked.action), asked.slots, strict=True):
        assert arm in eligible
        assert arm not in excluded[slot]


@settings(max_examples=40, deadline=None)
@given(SLOTS.filter(lambda excluded: any(excluded.values())), st.sampled_from(["kl_ucb", "cts"]), st.integers(0, 3))
def test_slots_are_solved_as_the_action_set_of_the_library(excluded, policy, pulls):
    learner = make(3, policy, pulls=pulls)
    arms = [arm for arm in NAMES if any(arm not in gone for gone in excluded.values())]
    table = [[n for n, arm in enumerate(NAMES) if arm not in gone] for gone in excluded.values()]
    allowed = np.array([[n in row for n in range(6)] for row in table])
    actions = sa.Slots(allowed | ~allowed.any(axis=0))  # arms that no slot holds are not eligible
    agent = agent_of(learner, "d", actions)
    assert names(ask(learner, slots=excluded).action) == list(agent.ask(eligible=arms).arms)


def test_slots_without_exclusions_are_the_first_picks():
    learner = make(3)
    plain_slate = ask(learner).action
    asked = ask(learner, slots={"top": [], "side": []})
    assert asked.action == plain_slate[:2]
    assert asked.slots == ("top", "side")


def test_a_smaller_slate_is_the_best_small_one_where_the_oracle_is_not_greedy():
    learner = make(3, reward="linear", policy="escb")
    agent = agent_of(learner, "d", sa.Subsets(1))
    assert names(ask(learner, k=1).action) == list(agent.ask().arms)


def scripted(monkeypatch, script):
    """Let exploration draw what ``script`` says: None for the policy's pick, or which of the arms that may join."""

    def draw(_, slot, __, n):
        if script[slot] is not None and script[slot] >= n:
            raise StopIteration
        return script[slot]

    monkeypatch.setattr(slates, "draw_place", draw)


@pytest.mark.parametrize(
    ("actions", "before"),
    [
        (sa.Subsets(3), []),
        (sa.Subsets(3), [4]),
        (sa.Slots([[0, 1], [1, 2, 3], [3, 4]]), []),
        (sa.Slots([[0, 1], [1, 2, 3], [0, 4]]), [0]),
        (sa.actions.PartitionMatroid([0, 0, 1, 1, 2], [1, 1, 1]), []),
        (sa.actions.Laminar([([0, 1], 1), ([0, 1, 2, 3], 2)]), [1]),
        (sa.actions.SpanningTrees(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]), []),
    ],
)
def test_propensities_are_the_probabilities(monkeypatch, actions, before):
    """Over all that exploration can draw: the probability of a slate is the product of the chances it reports."""
    share, free = 0.3, np.ones(5, bool)
    free[before] = False
    batch = next(b for b in actions.batches(5) if set(before) <= set(b))
    picks = [j for j in batch if j not in before]
    found, reported = {}, {}
    for script in itertools.product([None, 0, 1, 2, 3, 4], repeat=len(picks)):
        scripted(monkeypatch, script)
        try:
            slate, chances = slates.explore(actions, before, picks, free, share, np.zeros(1, np.uint64))
        except StopIteration:
            continue
        probability = 1.0
        for n, drawn in enumerate(script):
            joining = [j for j in range(5) if free[j] and j not in slate[:n]]
            joining = [j for j in joining if _admitted(actions, [*before, *slate[:n]], j)]
            probability *= 1.0 - share if drawn is None else share / len(joining)
        found[tuple(slate)] = found.get(tuple(slate), 0.0) + probability
        reported[tuple(slate)] = math.prod(chances)
        assert actions.includes(np.array([*before, *slate]), 5)
    assert math.isclose(sum(found.values()), 1.0)
    assert found.keys() == reported.keys()
    for slate, probability in found.items():
        assert math.isclose(probability, reported[slate], rel_tol=1e-12), slate


def _admitted(actions, slate, arm):
    return bool(joinable_after(actions, np.array([slate], np.int64), np.ones((1, 5), bool))[0, arm])
