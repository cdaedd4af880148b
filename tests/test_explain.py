"""Explanations: the numbers of the choice, gains that add up, and effects that are those of the regression."""

import json

import numpy as np
import pytest

import superarm as sa
from superarm import contextual

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [-0.5, 0.25]])
FEATURES = sa.Features(numeric={"age": (0, 100)}, categorical={"country": ["NO", "other"]})


def agent_of(policy, model=None, shared=True):
    context = None
    if model is not None:
        context = sa.Context(FEATURES, arms=ARMS, model=model)
    problem = sa.Problem(4, 3, sa.Coverage(), sa.Subsets(2), context=context)
    agent, rng = sa.Agent(problem, policy, seed=2, arms=["a", "b", "c", "d"]), np.random.default_rng(0)
    for _ in range(25):
        given = {"age": float(rng.integers(0, 100)), "country": "NO"} if context else None
        agent.tell(agent.ask(context=given), (rng.random((2, 3)) < 0.4).astype(float))
    return agent


CASES = {
    "index": (sa.kl_ucb(), None),
    "segments": (sa.kl_ucb(), sa.models.Segments()),
    "sampled": (sa.cts(), sa.models.Segments()),
    "linear": (contextual.vac2_ucb(), sa.models.Linear(shared=True)),
    "per entry": (contextual.c2_ucb(), sa.models.Linear()),
    "draw": (contextual.comb_lin_ts(), sa.models.Linear(shared="arms")),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_right_after_the_choice_its_numbers_are_explained(name):
    policy, model = CASES[name]
    agent = agent_of(policy, model)
    decision = agent.ask(context={"age": 30, "country": "NO"} if model else None)
    before = agent.to_state()
    explained = agent.explain(decision)
    assert agent.to_state() == before
    assert [arm.name for arm in explained.arms] == list(decision.arms)
    q = np.array([arm.optimistic for arm in explained.arms])
    if isinstance(model, sa.models.Linear):
        np.testing.assert_array_equal(q, agent.learner.memory.ridge.high[0].T[decision.action])
    table = np.zeros((4, 3))
    table[decision.action] = q
    plain = sa.Problem(4, 3, sa.Coverage(), sa.Subsets(2))
    assert np.isclose(sum(arm.gain for arm in explained.arms), plain.value(table, decision.action))
    means = np.zeros((4, 3))
    means[decision.action] = np.clip([arm.estimate for arm in explained.arms], 0, 1)
    assert sum(arm.estimated_gain for arm in explained.arms) == pytest.approx(
        plain.value(means, decision.action), abs=0.2
    )
    if isinstance(policy, sa.IndexPolicy) and name != "sampled":
        assert all((arm.optimistic >= arm.estimate).all() for arm in explained.arms)
    assert "gain" in str(explained)


def test_effects_of_features_add_up_to_the_estimate():
    """Without indicators of items: the estimate is the sum of all effects."""
    context = sa.Context(FEATURES, arms=ARMS, model=sa.models.Linear(shared=True))
    agent = sa.Agent(sa.Problem(4, 1, sa.Coverage(), sa.Subsets(2), context=context), contextual.c2_ucb())
    rng = np.random.default_rng(0)
    for _ in range(40):
        decision = agent.ask(context={"age": float(rng.integers(0, 100)), "country": str(rng.choice(["NO", "SE"]))})
        agent.tell(decision, (rng.random((2, 1)) < 0.4).astype(float))
    explained = agent.explain(agent.ask(context={"age": 80, "country": "NO"}), most=100)
    for arm in explained.arms:
        assert sum(effect for _, effect in arm.features) == pytest.approx(arm.estimate[0], abs=5e-3)
        sizes = [abs(effect) for _, effect in arm.features]
        assert sizes == sorted(sizes, reverse=True)
        assert {"intercept", "age", "country=NO"} <= {name for name, _ in arm.features}
    assert len(agent.explain("40", most=2).arms[0].features) == 2


def test_policies_that_choose_whole_batches_say_so():
    problem = sa.Problem(4, 1, sa.Linear(), sa.Subsets(2))
    agent = sa.Agent(problem, sa.policies.escb())
    with pytest.raises(sa.InvalidArgument, match="SetBonus chooses batches by other things"):
        agent.explain(agent.ask())


def test_words_of_hashed_features_are_named_also_by_an_agent_that_was_saved():
    features = sa.Features(hashed={"query": 16, "tags": 3})
    context = sa.Context(features, model=sa.models.Linear(shared="arms"))
    agent = sa.Agent(sa.Problem(4, 1, sa.Coverage(), sa.Subsets(2), context=context), contextual.c2_ucb())
    for n in range(30):
        query = "red" if n % 2 else ["red", "shoes"]
        agent.tell(agent.ask(context={"query": query, "tags": {"new": 0.5}}), [[1.0], [0.5]])
    agent.tell(agent.ask(context={"tags": ["a", "b", "c", "d"]}), [[1.0], [0.5]])
    for one in (agent, sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))):
        named = [{name for name, _ in one.explain(id, most=9).arms[0].features} for id in ("29", "30", "31")]
        assert named[0] == {"intercept", "query=red", "query=shoes", "tags=new"}
        assert named[1] == {"intercept", "query=red", "tags=new"}
        assert len(named[2]) < 5  # of four words in three buckets, some share one
        assert sorted(" + ".join(named[2]).split(" + ")) == ["intercept", "tags=a", "tags=b", "tags=c", "tags=d"]
