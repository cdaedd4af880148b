"""Starting from a list: what is kept of it, what learning costs where it is the best, and where it earns nothing."""

import json

import numpy as np
import pytest

import superarm as sa
from dev.benchmarks.best_list import RATES, losses
from superarm.core.tally import Tally
from superarm.describe import build
from superarm.policies import sliding_window
from superarm.policies.baseline import Account
from superarm.service.domain.spec import PolicySpec, to_policy


def test_an_agent_starts_from_its_list_by_name():
    problem = sa.Problem(5, 1, sa.Linear(), sa.Subsets(2))
    agent = sa.Agent(problem, seed=1, arms=["a", "b", "c", "d", "e"], baseline=["d", "b"])
    assert agent.ask().arms == ("d", "b")
    assert "b" in agent.ask(eligible=["a", "b", "c"]).arms
    with pytest.raises(sa.InvalidArgument, match="cannot start from a list"):
        sa.Agent(problem, sa.kl_ucb(), baseline=[0, 1])
    with pytest.raises(sa.InvalidArgument, match="unknown name"):
        sa.Agent(problem, arms=["a", "b", "c", "d", "e"], baseline=["x"])


@pytest.mark.parametrize("first", [3, 5], ids=["the page", "the ranking"])
def test_a_list_whose_first_products_are_all_sold_out_is_followed_without_a_warning(first):
    problem = sa.Problem(12, 1, sa.Linear(), sa.Subsets(3))
    agent = sa.Agent(problem, seed=0, baseline=range(5), silence=0.0)
    for _ in range(20):
        decision = agent.ask(eligible=range(first, 12))
        assert decision.action.min() >= first
        agent.tell(decision, clicks=[])
        agent.tell(agent.ask(), clicks=[])


def test_the_list_is_kept_on_action_sets_in_which_arms_cannot_be_exchanged():
    actions = sa.actions.PartitionMatroid("aabbcc", {"a": 1, "b": 1, "c": 1})
    problem = sa.Problem(6, 1, sa.Linear(), actions)
    agent, shown = sa.Agent(problem, seed=2, baseline=[1, 3, 5], silence=0.0), []
    for _ in range(200):
        decision = agent.ask()
        assert actions.includes(decision.action, 6)
        shown.append(set(decision.action.tolist()) == {1, 3, 5})
        agent.tell(decision, clicks=[int(j) for j in decision.action if j in (1, 3, 5)])
    assert shown[0]
    assert np.mean(shown) > 0.9  # nothing else was ever clicked


@pytest.mark.slow("shops of 600 visitors")
@pytest.mark.parametrize("rule", [False, True], ids=["any six", "two of a brand"])
def test_a_product_of_the_list_that_is_sold_out_does_not_make_learning_dearer(rule):
    """Earnings over those of the list of the moment, and at most a third of it replaced; before, 0.86 to 0.95."""
    earned = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = rng.lognormal(-3.3, 0.6, 120)
        ranking, brand = np.argsort(-(np.log(p) + 0.35 * rng.normal(size=120))), rng.integers(0, 18, 120)
        actions = sa.actions.PartitionMatroid(brand, [2] * 18, k=6) if rule else sa.Subsets(6)
        problem = sa.Problem(120, 1, sa.Linear(), actions)
        agent = sa.Agent(problem, seed=seed, baseline=ranking[:20].tolist(), silence=0.0)
        for t in range(600):
            if t == 300:
                agent.retire_arms(ranking[:1].tolist())
            action = (decision := agent.ask()).action
            listed = [j for n, j in enumerate(ranking) if not rule or (brand[ranking[:n]] == brand[j]).sum() < 2]
            listed = [j for j in listed if t < 300 or j != ranking[0]][:6]
            assert rule or len(set(listed) & set(action.tolist())) >= 4
            agent.tell(decision, clicks=action[rng.random(6) < p[action]].tolist())
            earned.append((seed, t >= 300, p[action].sum(), p[listed].sum()))
    later = np.array([row[2:] for row in earned if row[1]]).reshape(4, -1, 2).sum(1)
    assert (later[:, 0] / later[:, 1]).min() > 0.95


def test_at_most_a_third_of_the_list_is_replaced_under_a_rule():
    actions = sa.actions.PartitionMatroid(np.arange(30) % 10, [1] * 10, k=6)
    agent = sa.Agent(sa.Problem(30, 1, sa.Linear(), actions), seed=3, baseline=list(range(6)), silence=0.0)
    kept, rng = [], np.random.default_rng(0)
    for _ in range(300):
        decision = agent.ask()
        kept.append((decision.action < 6).sum())
        agent.tell(decision, clicks=decision.action[rng.random(6) < 0.3].tolist())
    assert min(kept) == 4  # it does learn, and from no more than two places at once


def test_a_list_that_earns_nothing_under_a_rule_does_not_stop_learning():
    actions = sa.actions.PartitionMatroid(np.arange(30) % 10, [1] * 10, k=6)
    agent = sa.Agent(sa.Problem(30, 1, sa.Linear(), actions), seed=3, baseline=list(range(6)), silence=0.0)
    others = 0
    for _ in range(400):
        decision = agent.ask()
        others += (decision.action >= 6).sum()
        agent.tell(decision, clicks=[])
    assert 400 * 6 / 50 <= others <= 400 * 6 / 40  # one place in forty, and none before the seventh decision


def test_a_best_list_with_rare_clicks_loses_no_more_than_is_promised():
    """Runs lose 1.4 % in the mean with deviation 1.4 %, so the test fails with chance below 1e-6; it was 12 %."""
    assert losses(0.002, 3000, 8, seed=1)[:, -1].mean() < 0.05


@pytest.mark.slow("simulated shops")
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    ("told", "pending"), [("at once", False), *[(t, p) for t in ("late", "never") for p in (0, 1)]]
)
def test_the_list_never_loses_more_than_a_twentieth(rate, told, pending):
    """It may in 5 % of runs at any time. Of 40 runs 8 have with chance .0007, so one of the 25 cases fails with .02."""
    assert (losses(rate, 1500, 40, told, pending, seed=11).max(1) > 0.05).sum() <= 7


def test_a_window_makes_no_more_trials_than_its_time_says():
    """Of 2 % that are lost, three standard errors are 1 %. If every decision is a trial, 10 % are."""
    p = np.append(np.full(6, 0.05), np.full(30, 0.02))[:, None]
    instance = sa.Instance(sa.Problem(36, 1, sa.Linear(), sa.Subsets(6)), sa.environments.Bernoulli(p))
    policy = sliding_window(sa.pooled_thompson(baseline=range(36)), 1600)
    done = sa.simulate(instance, {"": policy}, 2200, 4, seed=1, rounds=[1600, 2200], progress=False)
    assert np.diff(done.regret[""]).mean() / 600.0 / 0.3 < 0.06


def test_a_product_that_sells_is_found_below_a_list_that_sells_nothing():
    """The last of 12 products is clicked by half of the visitors, the others never are. One is shown at a time.

    A run has tried each product six times by decision 1,700, and misses it with chance 1/64: three of eight runs
    with chance 2e-4. Before, the list and then all the others in turn were shown to the end.
    """
    p = np.append(np.zeros(11), 0.5)[:, None]
    instance = sa.Instance(sa.Problem(12, 1, sa.Linear(), sa.Subsets(1)), sa.environments.Bernoulli(p))
    policy = sa.pooled_thompson(baseline=range(12))
    done = sa.simulate(instance, {"": policy}, 2000, 8, seed=1, rounds=[1700, 2000], progress=False)
    assert np.diff(done.regret[""]).mean() / 150.0 < 0.3


def test_a_product_of_the_list_that_is_known_to_be_worse_in_a_segment_leaves_it_there():
    """7.5 % of 6,000 views against 10.5 % of 4,000: six standard deviations of the difference, and one in a million."""
    rng, n = np.random.default_rng(0), 12
    context = sa.Context(sa.Features(categorical={"market": ["DE", "FR"]}))
    problem = sa.Problem(n, 1, sa.Linear(), sa.Subsets(4), context=context)
    rate = np.tile(np.linspace(0.12, 0.06, n), (2, 1))
    rate[1, 0], rate[1, 6] = 0.075, 0.105
    views = [(s, j) for s in range(2) for j in range(n) for _ in range(6000 if j < 4 else 4000)]
    clicks = [[float(rng.random() < rate[s, j])] for s, j in views]
    past = problem.past([j for _, j in views], clicks, contexts=[{"market": ["DE", "FR"][s]} for s, _ in views])
    agent = sa.Agent(problem, sa.pooled_thompson(baseline=range(n), caution=(0.025, 0.05, 0, 0.6)), seed=0, tally=past)
    assert sorted(agent.ask(context={"market": "DE"}).action) == [0, 1, 2, 3]
    assert sorted(agent.ask(context={"market": "FR"}).action) == [1, 2, 3, 6]


def account_of(agent):
    """The account of the next decision of an agent, with its balance as a share of what the list was worth so far."""
    learner = agent.learner
    view = learner.view(learner.t + 1, np.zeros(1, np.uint64))
    whole, _, _ = agent.policy.posteriors(agent.problem, view, learner.memory)
    return Account(agent.problem, view, learner.memory, whole, agent.policy.baseline, 0.6)


def sums(problem, pulls, clicks):
    pulls, clicks = (np.array([x]) for x in (pulls, clicks))
    units = clicks[:, None] * 2**24
    return Tally.of_sums(problem.support, pulls, pulls[:, None], units, units)


@pytest.mark.parametrize("arm", [0, 3], ids=["the list", "other arms"])
def test_past_data_sharpen_estimates_and_neither_charge_nor_credit_the_account(arm):
    """A log of the list would earn credit for exploring, and one of other arms a debt that is never paid."""
    problem = sa.Problem(4, 1, sa.Linear(), sa.Subsets(1))
    pulls, clicks = np.zeros((2, 4), int)
    pulls[arm], clicks[arm] = 10_000, 500
    past, fresh = sums(problem, pulls, clicks), sa.Agent(problem, seed=0, baseline=range(4), silence=0.0)
    agent = sa.Agent(problem, seed=0, baseline=range(4), silence=0.0, tally=past)
    assert agent.estimates().mean[arm, 0] == 0.05
    account = account_of(agent)
    assert (account.t, account.due / account.worth[:, 0]) == (1.0, 1.0)  # the present visit, and no other
    assert account.balance[0] <= 0.0
    table = sa.Agent(problem, seed=0, baseline=range(4), silence=0.0)
    table.warm_start(past, ours=True)
    charged = account_of(table)
    assert charged.t == 10_001.0
    assert charged.due / charged.worth[:, 0] == 10_001.0
    assert account_of(fresh).t == 1.0


def test_a_list_that_is_replaced_begins_a_new_account_and_keeps_what_was_learnt():
    problem = sa.Problem(6, 1, sa.Linear(), sa.Subsets(2))
    agent, rng = (
        sa.Agent(problem, seed=0, arms=list("abcdef"), baseline=["a", "b"], silence=0.0),
        np.random.default_rng(0),
    )
    for _ in range(300):
        decision = agent.ask()
        agent.tell(decision, clicks=[arm for arm in decision.arms if arm == "a" and rng.random() < 0.5])
    known, before = agent.estimates().mean, account_of(agent)
    agent.change_baseline(["a", "c", "b"])
    np.testing.assert_array_equal(agent.estimates().mean, known)
    account = account_of(agent)
    assert agent.policy.baseline == (0, 2, 1)
    assert account.t == before.t == 301.0
    assert account.own.sum() == 0.0
    assert account.due == account.worth[0, [0, 2]].sum()  # today's list, in the present visit
    saved = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    for _ in range(50):
        decision, copy = agent.ask(), saved.ask()
        assert decision.arms == copy.arms
        for one, own in ((agent, decision), (saved, copy)):
            one.tell(own, clicks=["c"] if "c" in own.arms else [])
    assert account_of(agent).own.sum() == 100.0
    with pytest.raises(sa.InvalidArgument, match="cannot start from a list"):
        sa.Agent(problem, sa.kl_ucb()).change_baseline([0, 1])


def test_the_numbers_that_stood_for_caution_before_are_read():
    """In stored agents, and in the settings of stored problems."""
    earlier = {"sharpness": 2.0, "baseline": [1, 0], "loss": 0.025, "later_loss": 0.05, "cautious": 1000}
    assert build({"type": "PooledThompson", **earlier}) == sa.pooled_thompson(baseline=[1, 0])
    bold = build({"type": "PooledThompson", **earlier, "later_loss": 0.2})
    assert bold.budget == (0.025, 0.2, 1000, sa.pooled_thompson().budget[-1])
    assert to_policy(PolicySpec("pooled_thompson", {"later_loss": 0.2})).budget == bold.budget


@pytest.mark.parametrize("caution", ["brave", 3, (0.1, 2.0, 3, 1.0), (0.1, 0.2), None])
def test_caution_is_one_of_three_words(caution):
    with pytest.raises(sa.InvalidArgument, match="give one of careful, normal, bold"):
        sa.pooled_thompson(caution=caution)
    assert sa.pooled_thompson(caution="careful").budget < sa.pooled_thompson().budget
