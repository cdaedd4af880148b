"""Prices, budgets and models that change: everything that was learnt stays, and dear arms are never played."""

import numpy as np
import pytest

import superarm as sa
from superarm import oracles
from superarm.policies import ladder, sliding_window, spend_set


def learnt(actions, policy=None, rounds=30):
    agent = sa.Agent(sa.Problem(3, 1, sa.Coverage(), actions), policy, arms=["a", "b", "c"], seed=0)
    for _ in range(rounds):
        decision = agent.ask()
        agent.tell(decision, [[float(arm == "a")] for arm in decision.arms])
    return agent


POLICIES = {
    "set": (sa.Knapsack([0.1, 0.2, 0.3], 0.3), None),
    "spend": (sa.Subsets(3), ladder([0.1, 0.2, 0.3], spend=0.3)),
    "mean": (sa.Subsets(3), spend_set([0.1, 0.2, 0.3], spend=0.3)),
    "worth": (sa.Subsets(3), ladder([0.1, 0.2, 0.3])),
}


@pytest.mark.parametrize("name", POLICIES)
def test_prices_change_and_models_come_and_go_without_losing_what_was_learnt(name):
    agent = learnt(*POLICIES[name])
    pulls, pending = agent.tally.pulls[0].tolist(), agent.ask()
    budget = None if name == "worth" else 0.25
    agent.change_prices({"b": 0.15, "new": 0.05}, budget, retire=["c"])
    owner = agent.problem.actions if name == "set" else agent.policy.oracle if name == "worth" else agent.policy
    assert owner.costs.tolist() == [0.1, 0.15, 0.3, 0.05]
    assert budget in (None, getattr(owner, "budget", None), getattr(owner, "spend", None))
    assert agent.tally.pulls[0].tolist() == [*pulls, 0.0]
    agent.tell(pending, np.zeros((len(pending.action), 1)))  # what was asked at the old prices is learnt, too
    for _ in range(20):
        decision = agent.ask()
        assert "c" not in decision.arms
        agent.tell(decision, np.ones((len(decision.action), 1)))
    assert agent.tally.pulls[0, 3] > 0.0
    again = sa.Agent.from_state(agent.to_state())
    assert again.ask().arms == agent.ask().arms


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("way", ["change_prices", "add_arms", "worth", "window"])
def test_a_new_model_has_room_in_a_ladder_that_could_try_all(k, way):
    """A sixth model, which succeeds most often and costs least, was never tried where five had filled the list."""
    skill, prices = {"a": 0.45, "b": 0.5, "c": 0.6, "d": 0.75, "e": 0.85, "new": 0.95}, [0.03, 0.05, 0.2, 0.6, 1.2]
    learns, rng = way == "add_arms", np.random.default_rng(0)
    problem = sa.Problem(5, 1 + learns, sa.Coverage(), sa.Subsets(k), weights=[1, 0][: 1 + learns])
    spend = {} if way in {"worth", "window"} else {"spend": 0.35}
    policy = ladder(None if learns else prices, scale=8.0, **spend)
    policy = sliding_window(policy, 5000) if way == "window" else policy
    agent = sa.Agent(problem, policy, arms=list(skill)[:5], seed=0)
    cost = dict(zip(skill, [*prices, 0.01], strict=True))
    for n in range(600):
        if n == 300 and way == "add_arms":
            agent.add_arms(["new"])
        elif n == 300:
            agent.change_prices({"new": 0.01})
        decision, done = agent.ask(), False
        outcome, seen = np.zeros((len(decision.arms), problem.n_items)), np.zeros((len(decision.arms), 1), bool)
        for place, arm in enumerate(decision.arms):
            if not done:
                seen[place], done = True, rng.random() < skill[arm]
                outcome[place] = [done, 1.0 - cost[arm] / 8.0][: problem.n_items]
        agent.tell(decision, outcome, seen=np.repeat(seen, problem.n_items, 1))
    assert agent.problem.k == (6 if k == 5 else 2)
    assert k == 2 or agent.tally.counts(agent.tally.pulls)[0, 0, -1] > 200.0


def test_a_change_of_prices_that_does_not_fit_changes_nothing():
    for name, (prices, budget, match) in {
        "set": ({"a": 1.0, "b": 1.0, "c": 1.0}, None, "buys no arm"),
        "spend": ({"a": 0.0}, None, "a cost is 0"),
        "worth": ({"a": 0.2}, 1.0, "no budget"),
    }.items():
        agent = learnt(*POLICIES[name], rounds=3)
        before = agent.to_state()
        with pytest.raises(sa.InvalidArgument, match=match):
            agent.change_prices(prices | {"new": 2.0}, budget)
        assert agent.to_state() == before
    for wrong in ("x", None, float("nan"), -1.0, [1.0]):
        with pytest.raises(sa.InvalidArgument, match=r"prices: .* for arm 'b'; give a finite number"):
            learnt(sa.Knapsack([0.1, 0.2, 0.3], 0.3), rounds=1).change_prices({"a": 0.1, "b": wrong})
    with pytest.raises(sa.InvalidArgument, match="no arm has a price"):
        learnt(sa.Subsets(2), rounds=1).change_prices({"a": 1.0})


@pytest.mark.parametrize("spend", [0, 0.0, -1.0])
def test_a_spend_of_nothing_is_refused(spend):
    with pytest.raises(sa.InvalidArgument, match="spend"):
        ladder([0.1, 0.2], spend=spend)


def test_a_scale_below_the_dearest_price_is_refused():
    """Of bills above the scale a part was not counted: a ladder of $0.35 spent $0.56."""
    problem = sa.Problem(2, 2, sa.Coverage(), sa.Subsets(2), weights=[1, 0])
    with pytest.raises(sa.InvalidArgument, match=r"scale: 0\.5, and the dearest arm costs 1\.2; give the largest bill"):
        sa.Agent(problem, ladder([0.1, 1.2], scale=0.5, spend=0.35))
    agent = sa.Agent(problem, ladder([0.1, 1.2], scale=1.2, spend=0.35), arms=["a", "b"])
    with pytest.raises(sa.InvalidArgument, match="dearest arm costs 2"):
        agent.change_prices({"b": 2.0})
    assert agent.policy.costs.tolist() == [0.1, 1.2]
    sa.Agent(sa.Problem(2, 1, sa.Coverage(), sa.Subsets(2)), ladder([0.1, 4.0], spend=0.35))  # nothing is learnt


def test_a_decision_with_a_budget_of_its_own():
    agent = learnt(sa.Knapsack([0.1, 0.2, 0.3], 0.6))
    for budget in (0.1, 0.3, 0.45, 2.0, None):
        costs = np.array([0.1, 0.2, 0.3])[agent.ask(budget=budget).action]
        assert 0.0 < costs.sum() <= (0.6 if budget is None else budget) + 1e-9
    with pytest.raises(sa.InvalidArgument, match="buys no arm"):
        agent.ask(budget=0.05)
    with pytest.raises(sa.InvalidArgument, match="has none"):
        learnt(sa.Subsets(2), rounds=1).ask(budget=1.0)


@pytest.mark.parametrize("policy", [sa.pooled_thompson(), sa.kl_ucb(), sa.uniform(), sa.cts()])
def test_an_arm_above_the_budget_is_never_played(policy):
    agent = learnt(sa.Knapsack([0.1, 0.2, 0.9], 0.3), policy, rounds=40)
    assert agent.tally.pulls[0, 2] == 0.0
    assert agent.tally.pulls[0, :2].min() > 0.0


@pytest.mark.parametrize(
    "oracle",
    [
        oracles.GreedyMax(),
        oracles.PartialEnumeration(),
        oracles.KnapsackTable(),
        oracles.KnapsackScheme(),
        oracles.Exhaustive(),
    ],
)
def test_oracles_leave_out_arms_above_the_budget_and_find_the_best_of_the_others(oracle):
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, costs = rng.uniform(0.1, 1.0, (5, 1)), rng.integers(1, 4, 5) / 10
        dear = sa.Problem(5, 1, sa.Linear(), sa.Knapsack([*costs[:4], 5.0], 0.5))
        found = oracles.solve(dear, q, oracle)
        assert 4 not in found
        fair = sa.Problem(4, 1, sa.Linear(), sa.Knapsack(costs[:4], 0.5))
        assert dear.value(q, found) == pytest.approx(fair.value(q[:4], oracles.solve(fair, q[:4], oracle)))


def test_what_calls_cost_follows_a_change_of_their_price_and_outlives_that_of_another_one():
    """Bills were twice the list: at half the price half of that is expected, whatever else changes."""
    problem = sa.Problem(2, 2, sa.Coverage(), sa.Subsets(2), weights=[1, 0])
    agent = sa.Agent(problem, ladder([0.25, 0.5], scale=4.0, spend=2.0), arms=["a", "b"], seed=0)
    for _ in range(40):
        decision = agent.ask()
        bills = np.array([0.5, 1.0])[decision.action]
        agent.tell(decision, np.stack([np.zeros(len(bills)), 1.0 - bills / 4.0], 1))

    def costs():
        return agent.policy.beliefs(agent.problem, agent.learner.memory)[1][0]

    before, calls = costs(), agent.tally.pulls[0].copy()
    assert before == pytest.approx((4 * np.array([0.25, 0.5]) + calls * [0.5, 1.0]) / (4 + calls))
    agent.change_prices({"a": 0.125, "new": 0.3}, budget=1.0)
    assert costs() == pytest.approx([before[0] / 2, before[1], 0.3])
