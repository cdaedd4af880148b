"""Lists read from the top: what is seen, what is earned, and what the best list is, against plain re-tellings.

``Bernoulli`` draws the same numbers for the same arms, so it tells what every arm would have done. Fixed seeds;
frequencies may be off by 5.2 standard errors: a true environment fails one comparison with probability below 2e-7.
"""

import itertools

import numpy as np
import pytest
from scipy import sparse

import superarm as sa
from superarm.environments import Bernoulli, Cascade, ConjunctiveCascade, CostlyCascade, DependentClick, PositionBased
from superarm.simulation.regret import target

P = np.array([[0.2, 0.5, 0.9], [0.5, 0.1, 0.3], [0.7, 0.4, 0.0], [0.3, 0.8, 1.0]])
PROBLEM = sa.Problem(4, 3, sa.Coverage(), sa.Subsets(3))


def answers(environment, n):
    """Outcomes and what was seen (n, 3, 3) of random lists of three arms."""
    rng = np.random.default_rng(0)
    lists, keys = np.array([rng.permutation(4)[:3] for _ in range(n)]), np.arange(n).astype(np.uint64)
    told = environment.draw(PROBLEM, lists, 5, keys)
    np.testing.assert_array_equal(told.outcome, Bernoulli(environment.p).draw(PROBLEM, lists, 5, keys).outcome)
    return told.outcome, told.seen


@pytest.mark.parametrize(("environment", "end"), [(Cascade(P), 1.0), (ConjunctiveCascade(P), 0.0)])
def test_a_cascade_is_seen_up_to_what_ends_it(environment, end):
    for outcome, seen in zip(*answers(environment, 200), strict=True):
        for column, shown in zip(outcome.T, seen.T, strict=True):
            stop = next((n for n, x in enumerate(column) if x == end), 2)
            assert shown.tolist() == [n <= stop for n in range(3)]


def test_a_sparse_cascade_has_a_reader_for_each_item():
    support = sparse.csr_array(np.array([[1, 1], [0, 1], [1, 0]]))
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(3), support=support)
    sure = Cascade([1.0, 0.0, 1.0, 1.0])  # arm 0 attracts reader 0 only, arm 1 reader 1, arm 2 reader 0
    told = sure.draw(problem, np.array([[0, 1, 2]]), 1, np.zeros(1, np.uint64))
    assert told.outcome[0].tolist() == [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
    assert [told.seen[0, k, :n].tolist() for k, n in enumerate((2, 1, 1))] == [[True, True], [True], [False]]


def test_dependent_clicks_end_at_a_click_with_the_chance_of_its_place():
    leave = np.array([0.8, 0.3, 0.1])
    outcome, seen = answers(DependentClick(P, leave), 4000)
    assert seen[:, 0].all()
    for n in range(2):
        reached, clicked = seen[:, n], seen[:, n] & (outcome[:, n] == 1.0)
        assert not (seen[:, n + 1] & ~reached).any()
        assert seen[:, n + 1][reached & ~clicked].all()
        share, clicks = 1.0 - seen[:, n + 1][clicked].mean(), clicked.sum()
        assert abs(share - leave[n]) <= 5.2 * np.sqrt(leave[n] * (1.0 - leave[n]) / clicks)


def test_places_are_examined_with_their_chance_whatever_stands_there():
    examine = np.array([0.9, 0.6, 0.3])
    _, seen = answers(PositionBased(P, examine), 4000)
    assert (np.abs(seen.mean(0) - examine[:, None]) <= 5.2 * np.sqrt(0.25 / 4000)).all()


@pytest.mark.parametrize("kind", [DependentClick, PositionBased])
def test_what_a_list_earns_and_the_best_list_by_trying_all(kind):
    chance, p = np.array([0.9, 0.5]), P[:, :1]
    reward = sa.Coverage() if kind is DependentClick else sa.Linear()
    instance = sa.Instance(sa.Problem(4, 1, reward, sa.Subsets(3), weights=[2.0]), kind(p, chance))
    place = np.array([0.9, 0.5, 0.5])  # the last chance holds for all further places

    def worth(order):
        hits = place * p[list(order), 0]
        return 2.0 * (1.0 - np.prod(1.0 - hits) if kind is DependentClick else hits.sum())

    orders = np.array(list(itertools.permutations(range(4), 3)))
    found = instance.environment.expected(instance.problem, orders, 1)
    assert found == pytest.approx([worth(order) for order in orders])
    most = max(map(worth, orders))
    assert instance.environment.best(instance.problem) == pytest.approx((most, most))
    assert target(instance, sa.policies.cascade_kl_ucb(), "optimal").value == pytest.approx(most)


def test_the_best_list_for_several_readers_is_bracketed():
    problem, environment = sa.Problem(4, 3, sa.Coverage(), sa.Subsets(2)), DependentClick(P, [0.7, 0.4])
    most = environment.expected(problem, np.array(list(itertools.permutations(range(4), 2))), 1).max()
    low, high = environment.best(problem)
    assert low <= most <= high < 3.0
    listed = sa.Problem(4, 3, sa.Coverage(), sa.actions.Explicit([[0, 1], [2, 3]]))
    with pytest.raises(sa.InvalidArgument, match="oracle"):
        environment.best(listed)


def test_chances_of_places_must_fall():
    with pytest.raises(sa.InvalidArgument, match="leave"):
        DependentClick(P, [0.1, 0.2])
    with pytest.raises(sa.InvalidArgument, match="examine"):
        PositionBased(P, [])


def net_worth(p, costs, listed):
    """What a ladder is worth, told step by step."""
    worth, reached = 0.0, 1.0
    for arm in listed:
        worth += reached * (p[arm] - costs[arm])
        reached *= 1.0 - p[arm]
    return worth


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_ladder_is_the_best_list_of_all(k):
    rng = np.random.default_rng(k)
    problem = sa.Problem(5, 1, sa.Coverage(), sa.Subsets(k))
    for _ in range(30):
        p, costs = rng.uniform(0, 1, 5), rng.uniform(0, 0.8, 5)
        lists = [order for n in range(1, k + 1) for order in itertools.permutations(range(5), n)]
        most = max(net_worth(p, costs, listed) for listed in lists)
        found = sa.oracles.solve(problem, p[:, None], sa.oracles.Ladder(costs))
        assert net_worth(p, costs, found) == pytest.approx(most)
        environment = CostlyCascade(p, costs)
        assert environment.best(problem)[0] == pytest.approx(most)
        assert environment.expected(problem, found[None], 1)[0] == pytest.approx(most)


@pytest.mark.parametrize("learnt", [False, True])
def test_ladders_are_learnt_with_costs_that_are_known_or_not(learnt):
    p, costs = np.array([0.5, 0.6, 0.7, 0.2]), np.array([0.05, 0.3, 0.2, 0.15])
    problem = sa.Problem(4, 1 + learnt, sa.Coverage(), sa.Subsets(3))
    instance = sa.Instance(problem, CostlyCascade(p, costs, scale=0.5))
    policies = {"ladder": sa.policies.ladder(None if learnt else costs, scale=0.5), "uniform": sa.uniform()}
    results = sa.simulate(instance, policies, 4000, 5, progress=False, rounds=[2000, 4000])
    assert results.target == "optimal"
    early, late = results.regret["ladder"].mean(0)
    assert late - early < 0.1 * (results.regret["uniform"].mean(0)[1] / 2)
    assert early > 0.0


def test_a_ladder_with_known_costs_takes_new_arms_in_the_way_that_its_error_names():
    problem = sa.Problem(2, 1, sa.Coverage(), sa.Subsets(2))
    agent = sa.Agent(problem, sa.policies.ladder([0.1, 0.3]), arms=["small", "large"], seed=0)
    for _ in range(20):
        agent.tell(agent.ask(), [[0], [1]])
    with pytest.raises(sa.InvalidArgument, match="give 3, one per arm; to add arms to an agent"):
        agent.add_arms(["new"])
    agent.change_policy("kl_ucb")
    agent.add_arms(["new"])
    agent.change_policy(sa.policies.ladder([0.1, 0.3, 0.01]))
    assert agent.ask().arms[0] == "new"
    assert agent.tally.pulls[0].tolist() == [20.0, 20.0, 0.0]


def test_a_ladder_refuses_what_does_not_fit():
    two = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(2))
    with pytest.raises(sa.InvalidArgument, match="one item"):
        sa.Agent(two, sa.policies.ladder([0.1, 0.2, 0.3]))
    with pytest.raises(sa.InvalidArgument, match="two items"):
        sa.Agent(two.changed(n_items=1, weights=None, support=None), sa.policies.ladder())
    with pytest.raises(sa.InvalidArgument, match="one per arm"):
        sa.Agent(two.changed(n_items=1, weights=None, support=None), sa.policies.ladder([0.1]))
    with pytest.raises(sa.InvalidArgument, match="at most 1"):
        CostlyCascade([0.5], [2.0])
