"""Blocks: means, dependence inside an arm, independence between arms; by frequencies with a stated false-alarm rate."""

import numpy as np
import pytest

import superarm as sa
from superarm.environments import Blocks
from superarm.core.streams import new_stream

ROUNDS = 3000
CHANCE = np.array([[0.3, 0.6, 0.3, 0.5], [0.5, 0.5, 0.5, 0.5], [0.2, 0.2, 0.2, 0.2]])
BLOCK = [[1, 1, 0, -1], [0, 0, 0, 0], [2, 2, 2, 2]]
SHOCK = [0.0, 0.5, 0.0]
BASE = np.array([[0.0] * 4, [0.0] * 4, [0.5] * 4])


@pytest.fixture(scope="module")
def drawn():
    """Outcomes of all arms, (rounds, arms, items)."""
    environment, stream = Blocks(CHANCE, BLOCK, SHOCK, BASE), new_stream(np.random.SeedSequence(3))
    support, action, seen = sa.support.Dense(3, 4), np.arange(3), np.ones(12, bool)
    x = np.empty((ROUNDS, 12))
    for t in range(ROUNDS):
        environment.draw(support, action, t + 1, stream, x[t], seen)
    return x.reshape(ROUNDS, 3, 4)


def near(frequency, probability):
    """Within 5 standard errors: a false alarm has probability below 1e-6."""
    return abs(frequency - probability) <= 5.0 * np.sqrt(probability * (1.0 - probability) / ROUNDS) + 1e-12


def test_means_are_exact(drawn):
    means = Blocks(CHANCE, BLOCK, SHOCK, BASE).means(1)
    assert means == pytest.approx(BASE + (1.0 - BASE) * CHANCE)
    high = drawn == 1.0
    assert all(near(high[:, j, i].mean(), CHANCE[j, i]) for j in range(3) for i in range(4))
    assert set(np.unique(drawn[:, 2])) == {0.5, 1.0}


def test_items_of_a_block_move_together_and_opposed_ones_against_each_other(drawn):
    high = drawn == 1.0
    assert not (high[:, 0, 0] & ~high[:, 0, 1]).any()  # 0.3 < 0.6 with one number
    assert near((high[:, 0, 0] & high[:, 0, 3]).mean(), 0.0)  # u < 0.3 and 1 - u < 0.5
    assert near((high[:, 0, 0] & high[:, 0, 2]).mean(), 0.09)
    assert (high[:, 2] == high[:, 2, :1]).all()


def test_a_shock_lets_all_items_of_an_arm_agree_and_arms_are_independent(drawn):
    high = drawn == 1.0
    assert near((high[:, 1, 0] & high[:, 1, 3]).mean(), 0.5 * 0.5 + 0.5 * 0.25)
    assert near((high[:, 0, 0] & high[:, 2, 0]).mean(), 0.06)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([[0.5, 0.5]], [[1]]), "block"),
        (([[0.5, 0.5]], [[1, 3]]), "block"),
        (([[0.5, 0.5]], [[1, 1]], [0.1, 0.2]), "shock"),
        (([[0.5, 0.5]], [[1, 1]], None, [[0.5]]), "base"),
    ],
)
def test_wrong_shapes_are_named(arguments, name):
    with pytest.raises(sa.InvalidArgument, match=name):
        Blocks(*arguments)


def test_generated_instances_have_the_dependence_that_they_name():
    rare = sa.instances.dependent_coverage(4, 3, 1, "rare", high=0.4, seed=1)
    plain = sa.instances.dependent_coverage(4, 3, 1, "independent", high=0.4, seed=1)
    assert rare.p == pytest.approx(plain.p)
    assert rare.environment.chance.max() <= 0.02
    assert sa.instances.many_items(3, dependence="comonotone").environment.block.tolist() == [[1, 1, 1]] * 4
    with pytest.raises(sa.InvalidArgument, match="dependence"):
        sa.instances.dependent_coverage(dependence="all")
    with pytest.raises(sa.InvalidArgument, match="dependence"):
        sa.instances.many_items(2, dependence="all")
