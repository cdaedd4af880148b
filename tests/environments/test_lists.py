"""Lists read from the top: what is seen, what is earned, and what the best list is, against plain re-tellings.

Bernoulli draws the same numbers for the same arms, so it tells what every arm would have done. Fixed seeds;
frequencies may be off by 5.2 standard errors: a true world fails one comparison with probability below 2e-7.
"""

import itertools

import numpy as np
import pytest
from scipy import sparse

import superarm as sa
from superarm.environments import Bernoulli, Cascade, ConjunctiveCascade, DependentClick, PositionBased, draw, respond
from superarm.simulation.regret import target
from superarm.core.streams import new_stream
from superarm.core.support import Dense, Sparse

P = np.array([[0.2, 0.5, 0.9], [0.5, 0.1, 0.3], [0.7, 0.4, 0.0], [0.3, 0.8, 1.0]])
RNG = np.random.default_rng(0)


def answers(environment, support, rounds, n_items):
    """(order, outcome, seen) of random lists of three arms; the first 200 are what Bernoulli says of the same arms."""
    source, everyone = new_stream(np.random.SeedSequence(1)), new_stream(np.random.SeedSequence(1))
    for t in range(1, rounds + 1):
        order = RNG.permutation(4)[:3]
        outcome, seen, truth = np.empty(12), np.ones(12, bool), np.empty(12)
        draw(environment, support, order, t, source, outcome, seen)
        n = 3 * n_items
        if t <= 200:
            draw(Bernoulli(environment.p), support, order, t, everyone, truth, np.ones(12, bool))
            assert np.array_equal(outcome[:n], truth[:n])
        yield order, outcome[:n].reshape(3, -1), seen[:n].reshape(3, -1)


@pytest.mark.parametrize(("environment", "end"), [(Cascade(P), 1.0), (ConjunctiveCascade(P), 0.0)])
def test_a_cascade_is_seen_up_to_what_ends_it(environment, end):
    for _, outcome, seen in answers(environment, Dense(4, 3), 200, 3):
        for column, shown in zip(outcome.T, seen.T, strict=True):
            stop = next((n for n, x in enumerate(column) if x == end), 2)
            assert shown.tolist() == [n <= stop for n in range(3)]


def test_a_sparse_cascade_has_a_reader_for_each_item():
    thin, source = Sparse(sparse.csr_array(np.array([[1, 1], [0, 1], [1, 0]]))), new_stream(np.random.SeedSequence(0))
    sure = Cascade([1.0, 0.0, 1.0, 1.0])  # arm 0 attracts reader 0 only, arm 1 reader 1, arm 2 reader 0
    told = respond(sure, thin, np.array([0, 1, 2]), 1, source)
    assert told.action.tolist() == [0, 1, 2]
    assert told.outcome.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert told.seen.tolist() == [True, True, True, False]


def test_dependent_clicks_end_at_a_click_with_the_chance_of_its_place():
    leave, left, clicks = np.array([0.8, 0.3, 0.1]), np.zeros(3), np.zeros(3)
    for _, outcome, seen in answers(DependentClick(P, leave), Dense(4, 3), 4000, 3):
        for column, shown in zip(outcome.T, seen.T, strict=True):
            assert shown[0]
            assert list(shown) == sorted(shown, reverse=True)
            for n in range(2):
                if shown[n] and column[n] == 1.0:
                    clicks[n] += 1
                    left[n] += not shown[n + 1]
                elif shown[n]:
                    assert shown[n + 1]
    error = np.sqrt(leave * (1 - leave) / np.maximum(clicks, 1.0))
    assert (np.abs(left - leave * clicks)[:2] <= (5.2 * error * clicks)[:2]).all()


def test_places_are_examined_with_their_chance_whatever_stands_there():
    examine, shown = np.array([0.9, 0.6, 0.3]), np.zeros((3, 3))
    for _, _, seen in answers(PositionBased(P, examine), Dense(4, 3), 4000, 3):
        shown += seen
    assert (np.abs(shown / 4000 - examine[:, None]) <= 5.2 * np.sqrt(0.25 / 4000)).all()


@pytest.mark.parametrize("kind", [DependentClick, PositionBased])
def test_what_a_list_earns_and_the_best_list_by_trying_all(kind):
    chance, p = np.array([0.9, 0.5]), P[:, :1]
    reward = sa.Coverage() if kind is DependentClick else sa.Linear()
    instance = sa.Instance(sa.Problem(4, 1, reward, sa.Subsets(3), weights=[2.0]), kind(p, chance))
    place = np.array([0.9, 0.5, 0.5])  # the last chance holds for all further places

    def worth(order):
        hits = place * p[list(order), 0]
        return 2.0 * (1.0 - np.prod(1.0 - hits) if kind is DependentClick else hits.sum())

    orders = list(itertools.permutations(range(4), 3))
    assert [instance.value(order) for order in orders] == pytest.approx([worth(order) for order in orders])
    most = max(map(worth, orders))
    assert instance.environment.best(instance.problem) == pytest.approx((most, most))
    assert target(instance, sa.cascade_kl_ucb(), "optimal").value == pytest.approx(most)


def test_the_best_list_for_several_readers_is_bracketed():
    problem = sa.Problem(4, 3, sa.Coverage(), sa.Subsets(2))
    instance = sa.Instance(problem, DependentClick(P, [0.7, 0.4]))
    most = max(instance.value(order) for order in itertools.permutations(range(4), 2))
    low, high = instance.environment.best(problem)
    assert low <= most <= high < 3.0
    listed = sa.Problem(4, 3, sa.Coverage(), sa.Explicit([[0, 1], [2, 3]]))
    with pytest.raises(sa.InvalidArgument, match="oracle"):
        instance.environment.best(listed)


def test_chances_of_places_must_fall():
    with pytest.raises(sa.InvalidArgument, match="leave"):
        DependentClick(P, [0.1, 0.2])
    with pytest.raises(sa.InvalidArgument, match="examine"):
        PositionBased(P, [])
